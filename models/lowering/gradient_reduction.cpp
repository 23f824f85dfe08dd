#include <algorithm>
#include <string>
#include <utility>

#include "models/lowering/compression.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::models {

namespace {

/// Cuts the last backward of each chunk into segments, one per bucket, and adds their reductions.
class GradientReducer {
 public:
  GradientReducer(Program& program, const BlockInputs& inputs)
      : program_{program},
        inputs_{inputs},
        reduction_{program, inputs},
        bucket_{bucket_elements(inputs)} {
    // Indices into a bucket are int32.
    if (inputs.plan.compression.kind == Compression::top_k) {
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
    const bool overlapped = nics_are_free || inputs_.software.overlap.gradients_across_tensor;
    return overlapped && overlaps_data(inputs_);
  }

  /// Opcodes whose last instruction completes gradients of a chunk: backward, and weight gradients
  /// where backward is split; both where only some kinds are split.
  std::vector<Opcode> completing(const Chunk& chunk) const {
    if (!splits_backward(chunk)) return {Opcode::backward};
    const std::vector<Invocation>& runs = program_.phases[chunk.backward].invocations;
    const bool all = std::ranges::all_of(runs, [&](const Invocation& run) {
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
    for (std::vector<Instruction>* rest : {&compress_, &second_step_, &decompress_}) {
      append(std::exchange(*rest, {}), list);
    }
  }

  static void append(const std::vector<Instruction>& more, std::vector<Instruction>& list) {
    list.insert(list.end(), more.begin(), more.end());
  }

  Instruction part_of(Instruction slot, Segment segment) {
    slot.target = appended(program_.phases, std::move(segment.phase));
    return slot;
  }

  void replace(std::uint32_t rank_class, const Instruction& slot, bool overlap,
               std::vector<Instruction>& tail) {
    std::vector<Segment> segments = segments_of(program_, program_.phases[slot.target], bucket_);
    std::vector<Instruction> in_order, waiting;
    for (Segment& segment : segments) {
      if (segment.all_parameters() == 0) {  // frozen, or made by weight gradients
        if (overlap) in_order.push_back(part_of(slot, std::move(segment)));
        continue;
      }
      const auto [compress, second_step, decompress] =
          reduction_.reduce(rank_class, segment, slot.chunk);
      append(decompress, decompress_);
      if (!overlap) {
        append(compress, compress_);
        append(second_step, second_step_);
        continue;
      }
      // The second step of a bucket waits for its first collective, so it comes only after the
      // backward of the next bucket, which overlaps with that.
      in_order.push_back(part_of(slot, std::move(segment)));
      append(std::exchange(waiting, second_step), in_order);
      append(compress, in_order);
    }
    append(waiting, second_step_);
    if (!overlap) in_order.push_back(slot);
    tail.insert(tail.end(), in_order.rbegin(), in_order.rend());
  }

  Program& program_;
  const BlockInputs& inputs_;
  BucketReduction reduction_;
  std::int64_t bucket_;
  std::vector<Instruction> compress_, second_step_, decompress_;  // to append after backward
};

}  // namespace

Program insert_gradient_reduction(Program program, const BlockInputs& inputs) {
  const bool several = program.shards() > 1 || program.reduces_experts();
  const StateSharding& sharding = program.sharding;
  const bool by_unit = sharding.gradients || sharding.parameters;  // insert_shards does
  if (several && !by_unit) GradientReducer{program, inputs}.run();
  return program;
}

}  // namespace orrery::models
