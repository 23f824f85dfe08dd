#include "models/lowering/segments.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "models/plan/derived.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

bool stack_overlaps(const BlockInputs& inputs) {
  const Overlap& overlap = inputs.software.overlap;
  return inputs.plan.sharding.zero == Zero::none ? overlap.gradients : overlap.sharded_gradients;
}

/// Index of the unit of a layer, of its experts, or of embedding or head.
std::uint32_t unit_of(const Program& program, const LayerKind& kind, std::int64_t layer,
                      MeshView view = MeshView::dense) {
  const auto id = static_cast<std::uint32_t>(&kind - program.kinds.data());
  for (std::uint32_t u = 0; u < program.units.size(); ++u) {
    const Unit& each = program.units[u];
    if (each.layer != layer || each.view != view) continue;
    if (std::ranges::find(each.kinds, id) != each.kinds.end()) return u;
  }
  throw ContractError{"a Program runs a layer that is of no unit"};
}

/// The communicator along exactly these axes.
std::uint16_t communicator_over(const Program& program, AxisSet axes) {
  const std::vector<Communicator>& all = program.communicators;
  const auto found = std::ranges::find_if(
      all, [&](const Communicator& each) { return each.axes == axes && each.stages.empty(); });
  ensure(found != all.end(), "gradients are summed over axes that no communicator spans");
  return static_cast<std::uint16_t>(found - all.begin());
}

/// The part of a phase's name after the direction: ".c0", ".c0.1".
std::string chunk_of(const std::string& phase) {
  return phase.substr(std::min(phase.find('.'), phase.size()));
}

void append(const Program& program, const Invocation& run, std::int64_t i, Segment& segment) {
  const BlockUse use = program.use_of(run.block);
  const bool layer = use.of(ModelPart::layer);
  const std::int64_t step = use.direction == Direction::forward ? i : -i;
  const std::int64_t at = layer ? run.first_layer + step : -1;
  std::vector<Invocation>& into = segment.phase.invocations;
  if (layer && !into.empty() && into.back().block == run.block) {
    ++into.back().count;
  } else {
    into.push_back({run.block, at, 1});
  }
  segment.has_embedding = segment.has_embedding || use.of(ModelPart::embedding);
  segment.has_head = segment.has_head || use.of(ModelPart::head);
  // Gradients of a split backward are completed by its weight gradients.
  if (use.direction == Direction::backward && use.kind->weight_gradient) return;
  const std::uint32_t unit = unit_of(program, *use.kind, at);
  segment.first_unit = segment.units == 0 ? unit : std::min(segment.first_unit, unit);
  ++segment.units;
  segment.parameters += use.kind->parameters - use.kind->expert_parameters;
  if (use.kind->expert_parameters == 0) return;
  const std::uint32_t experts = unit_of(program, *use.kind, at, MeshView::experts);
  SegmentExperts& own = segment.experts;
  own.first_unit = own.units == 0 ? experts : std::min(own.first_unit, experts);
  ++own.units;
  own.parameters += use.kind->expert_parameters;
}

}  // namespace

std::vector<Segment> segments_of(const Program& program, const Phase& phase, std::int64_t full) {
  std::vector<Segment> segments(1);
  for (const Invocation& run : phase.invocations) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const Segment& last = segments.back();
      if (!last.phase.invocations.empty() && last.all_parameters() >= full) segments.emplace_back();
      append(program, run, i, segments.back());
    }
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    segments[i].phase.name = phase.name + (segments.size() > 1 ? "." + std::to_string(i) : "");
  }
  return segments;
}

std::int64_t bucket_elements(const BlockInputs& inputs) {
  const Bytes own = inputs.plan.sharding.bucket, usual = inputs.software.overlap.bucket;
  const Bytes wanted = own.count() > 0 ? own : usual;
  if (wanted.count() == 0) {
    return shards_gradients(inputs.plan) ? 1 : std::numeric_limits<std::int64_t>::max();
  }
  const DType gradient = gradient_dtype(inputs.plan, inputs.software);
  return std::max<std::int64_t>(1, wanted.count() * 8 / bits(gradient));
}

bool overlaps_data(const BlockInputs& inputs) {
  return inputs.plan.overlap.gradients && stack_overlaps(inputs);
}

bool overlaps_gathers(const BlockInputs& inputs) {
  return inputs.plan.overlap.with_forward() && stack_overlaps(inputs);
}

JointCollective reduction_of(const Program& program, std::uint32_t rank_class,
                             const Segment& segment) {
  const DType gradient = program.formats.gradient;
  const Unit& unit = program.units[segment.first_unit];
  const bool sharded = !unit.sharded.empty();
  const bool scattered = sharded && !program.sharding.whole_matrices;
  JointCollective joint{
      .name = "gradients" + chunk_of(segment.phase.name),
      .kind = scattered ? Collective::reduce_scatter : Collective::all_reduce,
      .communicator = communicator_over(program, sharded ? unit.sharded : unit.replicated),
      .dtype = gradient,
      .bytes = bytes_in(gradient, segment.parameters),
      .classes = {rank_class},
      .elements = segment.parameters};
  joint.first_unit = segment.first_unit;
  joint.units = segment.units;
  return joint;
}

std::optional<JointCollective> reduction_of_copies(const Program& program,
                                                   const JointCollective& reduction) {
  if (program.mesh.degree(MeshAxis::replica) == 1) return std::nullopt;
  JointCollective joint = reduction;
  const std::int64_t shards = program.shards();
  joint.name += ".copies";
  joint.kind = Collective::all_reduce;
  joint.communicator = program.communicator(CommunicatorRole::replica);
  joint.elements = equal_piece(reduction.elements, shards);
  joint.bytes = bytes_in(joint.dtype, joint.elements);
  joint.accumulate_traffic = {};
  return joint;
}

JointCollective expert_reduction_of(const Program& program, std::uint32_t rank_class,
                                    const Segment& segment) {
  Segment experts = segment;
  experts.parameters = segment.experts.parameters;
  experts.first_unit = segment.experts.first_unit;
  experts.units = segment.experts.units;
  JointCollective joint = reduction_of(program, rank_class, experts);
  joint.name = "experts' " + joint.name;
  return joint;
}

}  // namespace orrery::models
