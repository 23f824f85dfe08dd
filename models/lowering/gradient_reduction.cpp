#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// One backward of a chunk cut where a bucket is full: a phase, and the gradients it completes.
struct Segment {
  Phase phase;
  std::int64_t parameters = 0;
  std::int64_t first_layer = -1, layers = 0;
};

class GradientReducer {
 public:
  GradientReducer(Program& program, const Software& software)
      : program_{program}, software_{software}, bucket_{bucket_elements()} {}

  void run() {
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) reduce_class(c);
  }

 private:
  bool sharded() const { return program_.plan.zero == Zero::one; }

  std::int64_t bucket_elements() const {
    const Bytes wanted =
        program_.plan.bucket.count() > 0 ? program_.plan.bucket : software_.overlap.bucket;
    if (wanted.count() == 0) return std::numeric_limits<std::int64_t>::max();
    return std::max<std::int64_t>(1, wanted.count() * 8 / bits(gradient_));
  }

  /// Cuts a backward phase into segments that each fill a bucket.
  std::vector<Segment> segments_of(const Phase& phase) const {
    std::vector<Segment> segments(1);
    for (const Invocation& run : phase.invocations) {
      const std::int64_t each = owned_parameters(program_, run.block - 1);
      for (std::int64_t i = 0; i < run.count; ++i) {
        if (segments.back().parameters >= bucket_) segments.emplace_back();
        append(segments.back(), run, i, each);
      }
    }
    for (std::size_t i = 0; i < segments.size(); ++i) {
      segments[i].phase.name = phase.name + (segments.size() > 1 ? "." + std::to_string(i) : "");
    }
    return segments;
  }

  static void append(Segment& segment, const Invocation& run, std::int64_t i, std::int64_t each) {
    std::vector<Invocation>& into = segment.phase.invocations;
    const bool layer = run.block == layer_backward;
    const bool joins = layer && !into.empty() && into.back().block == run.block;
    if (joins) {
      ++into.back().count;
    } else {
      into.push_back({run.block, run.first_layer - i, 1});
    }
    if (layer) {
      segment.first_layer = run.first_layer - i;
      ++segment.layers;
    }
    segment.parameters += each;
  }

  Instruction reduction(std::uint32_t rank_class, const Segment& segment, std::uint16_t chunk) {
    const std::int64_t bits_each = bits(gradient_);
    const std::string name =
        "gradients" + segment.phase.name.substr(std::string{"backward"}.size());
    program_.collectives.push_back(
        {.name = name,
         .kind = sharded() ? Collective::reduce_scatter : Collective::all_reduce,
         .communicator = data_group,
         .dtype = gradient_,
         .bytes = Bytes{segment.parameters * bits_each / 8},
         .classes = {rank_class},
         .first_layer = segment.first_layer,
         .layers = segment.layers});
    Instruction each;
    each.op = Opcode::reduce_gradient;
    each.chunk = chunk;
    each.target = static_cast<std::uint32_t>(program_.collectives.size() - 1);
    return each;
  }

  /// The last backward of each chunk completes its gradients.
  void reduce_class(std::uint32_t rank_class) {
    std::vector<Instruction>& list = program_.classes[rank_class].instructions;
    const bool overlap = program_.plan.overlap_gradients && software_.overlap.gradients;
    std::vector<bool> seen(static_cast<std::size_t>(program_.plan.chunks()), false);
    std::vector<Instruction> tail;  // in reverse order of the list
    std::size_t at = list.size();
    std::int64_t missing = program_.plan.virtual_stages;
    while (missing > 0) {
      const Instruction each = list[--at];
      const bool completes = each.op == Opcode::backward && !seen[each.chunk];
      if (completes) {
        seen[each.chunk] = true;
        --missing;
        replace(rank_class, each, overlap, tail);
      } else {
        tail.push_back(each);
      }
    }
    list.resize(at);
    list.insert(list.end(), tail.rbegin(), tail.rend());
    list.insert(list.end(), late_.begin(), late_.end());
    late_.clear();
  }

  void replace(std::uint32_t rank_class, const Instruction& slot, bool overlap,
               std::vector<Instruction>& tail) {
    std::vector<Segment> segments = segments_of(program_.phases[slot.target]);
    std::vector<Instruction> forwards;
    for (Segment& segment : segments) {
      const Instruction reduce = reduction(rank_class, segment, slot.chunk);
      if (!overlap) {
        late_.push_back(reduce);
        continue;
      }
      Instruction part = slot;
      part.target = static_cast<std::uint32_t>(program_.phases.size());
      program_.phases.push_back(std::move(segment.phase));
      forwards.push_back(part);
      forwards.push_back(reduce);
    }
    if (!overlap) forwards.push_back(slot);
    tail.insert(tail.end(), forwards.rbegin(), forwards.rend());
  }

  Program& program_;
  const Software& software_;
  DType gradient_ = gradient_dtype(program_.plan, software_);
  std::int64_t bucket_;
  std::vector<Instruction> late_;
};

}  // namespace

Program insert_gradient_reduction(Program program, const Software& software) {
  if (program.plan.data > 1) GradientReducer{program, software}.run();
  return program;
}

}  // namespace orrery::models
