#include <algorithm>
#include <string>
#include <utility>

#include "models/lowering/compression.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::models {

namespace {

class GradientReducer {
 public:
  GradientReducer(Program& program, const BlockInputs& inputs)
      : program_{program},
        inputs_{inputs},
        reduction_{program, inputs},
        bucket_{bucket_elements(inputs)} {
    // Indices into a bucket are int32.
    if (inputs.plan.compression == Compression::top_k) {
      bucket_ = std::min(bucket_, std::int64_t{1} << 30);
    }
  }

  void run() {
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) reduce_class(c);
  }

 private:
  bool overlaps() const {
    const std::int64_t node = inputs_.node_gpus;
    const bool nics_are_free = node == 0 || program_.mesh.degree(MeshAxis::tensor) <= node;
    return nics_are_free && overlaps_data(inputs_);
  }

  /// Opcodes whose last instruction completes gradients of a chunk: backward, and weight gradients
  /// where backward is split; both where only some kinds are split.
  std::vector<Opcode> completing(const Chunk& chunk) const {
    if (!splits_backward(chunk)) return {Opcode::backward};
    const std::vector<Invocation>& runs = program_.phases[chunk.backward].invocations;
    const bool all = std::all_of(runs.begin(), runs.end(), [&](const Invocation& run) {
      const LayerKind& kind = *program_.use_of(run.block).kind;
      return kind.weight_gradient || kind.parameters == 0;
    });
    if (all) return {Opcode::weight_gradient};
    return {Opcode::backward, Opcode::weight_gradient};
  }

  void reduce_class(std::uint32_t rank_class) {
    std::vector<Instruction>& list = program_.classes[rank_class].instructions;
    const bool overlap = overlaps();
    std::vector<std::vector<Opcode>> open(program_.chunks.size());
    std::size_t missing = 0;
    for (const std::uint32_t chunk : program_.classes[rank_class].chunks) {
      open[chunk] = completing(program_.chunks[chunk]);
      missing += open[chunk].size();
    }
    std::vector<Instruction> tail;  // in reverse order of the list
    std::size_t at = list.size();
    while (missing > 0) {
      const Instruction each = list[--at];
      if (std::erase(open[each.chunk], each.op) > 0) {
        --missing;
        replace(rank_class, each, overlap, tail);
      } else {
        tail.push_back(each);
      }
    }
    list.resize(at);
    list.insert(list.end(), tail.rbegin(), tail.rend());
    for (std::vector<Instruction>* rest : {&late_, &between_, &undone_}) {
      append(std::exchange(*rest, {}), list);
    }
  }

  static void append(const std::vector<Instruction>& more, std::vector<Instruction>& list) {
    list.insert(list.end(), more.begin(), more.end());
  }

  Instruction part_of(Instruction slot, Segment segment) {
    slot.target = static_cast<std::uint32_t>(program_.phases.size());
    program_.phases.push_back(std::move(segment.phase));
    return slot;
  }

  void replace(std::uint32_t rank_class, const Instruction& slot, bool overlap,
               std::vector<Instruction>& tail) {
    std::vector<Segment> segments = segments_of(program_, program_.phases[slot.target], bucket_);
    std::vector<Instruction> forwards, waiting;
    for (Segment& segment : segments) {
      if (segment.all_parameters() == 0) {  // frozen, or made by weight gradients
        if (overlap) forwards.push_back(part_of(slot, std::move(segment)));
        continue;
      }
      const auto [there, between, back] = reduction_.reduce(rank_class, segment, slot.chunk);
      append(back, undone_);
      if (!overlap) {
        append(there, late_);
        append(between, between_);
        continue;
      }
      // The second step of a bucket waits for its first collective, so it comes only after the
      // backward of the next bucket, which overlaps with that.
      forwards.push_back(part_of(slot, std::move(segment)));
      append(std::exchange(waiting, between), forwards);
      append(there, forwards);
    }
    append(waiting, between_);
    if (!overlap) forwards.push_back(slot);
    tail.insert(tail.end(), forwards.rbegin(), forwards.rend());
  }

  Program& program_;
  const BlockInputs& inputs_;
  BucketReduction reduction_;
  std::int64_t bucket_;
  std::vector<Instruction> late_, between_, undone_;
};

}  // namespace

Program insert_gradient_reduction(Program program, const BlockInputs& inputs) {
  const bool experts = std::any_of(program.kinds.begin(), program.kinds.end(),
                                   [](const auto& each) { return each.expert_parameters > 0; });
  const bool several =
      program.shards() > 1 || (experts && program.mesh.degree(MeshAxis::expert_data) > 1);
  const StateSharding& sharding = program.sharding;
  const bool by_unit = sharding.gradients || sharding.parameters;  // insert_shards does
  if (several && !by_unit) GradientReducer{program, inputs}.run();
  return program;
}

}  // namespace orrery::models
