#include "models/lowering/segments.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace orrery::models {

namespace {

std::uint8_t end_of(std::uint32_t block) {
  if (block == embedding_forward || block == embedding_backward) return end_embedding;
  return block == head_forward || block == head_backward ? end_head : 0;
}

void append(Segment& segment, const Invocation& run, std::int64_t i, std::int64_t parameters) {
  std::vector<Invocation>& into = segment.phase.invocations;
  const bool layer = run.block == layer_forward || run.block == layer_backward;
  const bool descends = run.block == layer_backward;
  const std::int64_t at = run.first_layer + (descends ? -i : i);
  if (layer && !into.empty() && into.back().block == run.block) {
    ++into.back().count;
  } else {
    into.push_back({run.block, layer ? at : -1, 1});
  }
  if (layer) {
    segment.first_layer = segment.layers == 0 ? at : std::min(segment.first_layer, at);
    ++segment.layers;
  }
  segment.ends |= end_of(run.block);
  segment.parameters += parameters;
}

}  // namespace

std::vector<Segment> segments_of(const Program& program, const Phase& phase, std::int64_t full) {
  std::vector<Segment> segments(1);
  for (const Invocation& run : phase.invocations) {
    const std::int64_t each = program.use_of(run.block).kind->parameters;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const Segment& last = segments.back();
      if (!last.phase.invocations.empty() && last.parameters >= full) segments.emplace_back();
      append(segments.back(), run, i, each);
    }
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    segments[i].phase.name = phase.name + (segments.size() > 1 ? "." + std::to_string(i) : "");
  }
  return segments;
}

std::int64_t bucket_elements(const Program& program, const Software& software) {
  const Plan& plan = program.plan;
  const Bytes wanted = plan.bucket.count() > 0 ? plan.bucket : software.overlap.bucket;
  if (wanted.count() == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(1, wanted.count() * 8 / bits(gradient_dtype(plan, software)));
}

bool overlaps_data(const Plan& plan, const Software& software) {
  const bool stack_overlaps =
      plan.zero == Zero::none ? software.overlap.gradients : software.overlap.sharded_gradients;
  return plan.overlap_gradients && stack_overlaps;
}

JointCollective reduction_of(const Program& program, const Software& software,
                             std::uint32_t rank_class, const Segment& segment) {
  const DType gradient = gradient_dtype(program.plan, software);
  const bool sharded = program.plan.zero != Zero::none;
  return {.name = "gradients" + segment.phase.name.substr(std::string{"backward"}.size()),
          .kind = sharded ? Collective::reduce_scatter : Collective::all_reduce,
          .communicator = data_group,
          .dtype = gradient,
          .bytes = Bytes{segment.parameters * bits(gradient) / 8},
          .classes = {rank_class},
          .first_layer = segment.first_layer,
          .layers = segment.layers,
          .ends = segment.ends,
          .elements = segment.parameters};
}

}  // namespace orrery::models
