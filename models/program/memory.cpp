#include "models/program/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "models/program/memory_course.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

Bytes total(const MemoryByKind& memory) {
  Bytes sum{};
  for (const Bytes each : memory) sum += each;
  return sum;
}

namespace {

constexpr std::size_t at(BufferKind kind) {
  return static_cast<std::size_t>(kind);
}

/// Bytes of the gradient that a backward block passes on to the previous layer's, unless it is kept
/// for weight gradients.
Bytes passed_gradient(const Program& program, std::uint32_t id) {
  const BlockUse use = program.use_of(id);
  if (use.direction != Direction::backward || program.keeps_output_gradient(*use.kind)) return {};
  return program.blocks[id].bytes(Role::output);
}

/// Scratch memory of a phase where it needs most, and what of the saved activations is free by
/// then.
struct Workspace {
  Bytes scratch{}, freed{};

  Bytes total() const { return scratch - freed; }
};

/// Does the phase run the head?
bool runs_head(const Program& program, const Phase& phase) {
  return std::ranges::any_of(phase.invocations, [&](const Invocation& run) {
    return program.use_of(run.block).of(ModelPart::head);
  });
}

/// Is the loss made by kernels of autograd, with copies of the logits next to those that it saves?
bool copies_logits(const Block& head) {
  return std::ranges::find(head.operands, logits_copies, &Operand::name) != head.operands.end();
}

/// Saved activations of the head that autograd frees when its backward has ended, before the
/// layers' backward.
Bytes freed_by_head(const Program& program) {
  const auto head = std::ranges::find(program.kinds, ModelPart::head, &LayerKind::part);
  if (head == program.kinds.end() || head->weight_gradient) return {};
  if (!copies_logits(program.blocks[head->forward])) return {};
  return program.blocks[head->backward].bytes(Role::saved);
}

/// Temporaries of a phase: those of its largest block, and two gradients passed between layers
/// where backward runs several; likewise where each layer is a phase of its own.
Workspace workspace_of(const Program& program, const Phase& phase,
                       const std::vector<Bytes>& block_peaks, Bytes saved_by_head) {
  std::optional<Workspace> peak;
  Bytes freed{};
  for (const Invocation& run : phase.invocations) {
    const bool several = phase.invocations.size() + static_cast<std::size_t>(run.count) > 2;
    Workspace each{block_peaks[run.block], freed};
    const bool by_unit = program.sharding.gradients || program.sharding.parameters;
    if (several || by_unit) each.scratch += passed_gradient(program, run.block) * 2;
    const BlockUse use = program.use_of(run.block);
    const bool backward = use.direction == Direction::backward;
    if (backward && use.of(ModelPart::head)) freed = saved_by_head;
    if (!peak || each.total() > peak->total()) peak = each;
  }
  return peak.value_or(Workspace{});
}

/// The workspace of every phase.
std::vector<Workspace> workspaces_of(const Program& program) {
  std::vector<Bytes> blocks;
  std::vector<Workspace> phases;
  const Bytes freed = freed_by_head(program);
  for (const Block& block : program.blocks) blocks.push_back(block.temporary_peak());
  for (const Phase& phase : program.phases) {
    phases.push_back(workspace_of(program, phase, blocks, freed));
  }
  return phases;
}

/// Bytes of each combination of slots, by bit mask.
using SlotBytes = std::array<Bytes, 1U << slot_count>;

SlotBytes sums_of(const std::array<Bytes, slot_count>& by_slot) {
  SlotBytes sums;
  for (unsigned slots = 1; slots < sums.size(); ++slots) {
    sums[slots] = sums[slots & (slots - 1)] + by_slot[std::countr_zero(slots)];
  }
  return sums;
}

/// Where adapters are units of ZeRO-3 of their own, so that the host waits for each, a layer's own
/// unit is frozen, and FSDP1 keeps the layer's input and the input's gradient until backward ends:
/// the hook that gathers the unit no longer after backward holds the node at which the gradient
/// arrives, a leaf in reentrant checkpointing. Saved inputs are there until then anyway.
/// Source  torch/distributed/fsdp/_runtime_utils.py, _register_post_backward_reshard_only_hook;
///         torch/autograd/graph.py, register_multi_grad_hook; torch/utils/checkpoint.py. Peaks of
///         LoRA over 2 and 4 GPUs in foundation-model-stack/fms-acceleration grow by a second copy
///         of the layers' inputs with the batch, those of full fine-tuning and of one GPU do not
bool keeps_input_gradient(const Block& backward) {
  return std::ranges::any_of(backward.operations, [](const Operation& op) {
    return op.pass == Pass::recompute && op.module.adapter && op.host_waits;
  });
}

/// Gradients of layers' inputs that stay until the chunk's backward ends. The last one is what the
/// next layer reads, which its workspace counts.
class KeptGradients {
 public:
  explicit KeptGradients(const Program& program) : program_{program} {
    std::vector<bool> keeps;  // by block
    for (const Block& each : program.blocks) keeps.push_back(keeps_input_gradient(each));
    for (const Phase& phase : program.phases) {
      std::int64_t& layers = kept_.emplace_back(0);
      for (const Invocation& run : phase.invocations) layers += keeps[run.block] ? run.count : 0;
    }
  }

  /// Is there any?
  bool any() const {
    return std::ranges::any_of(kept_, [](std::int64_t layers) { return layers > 0; });
  }
  Bytes bytes() const { return program_.activation_bytes * std::max<std::int64_t>(0, layers_ - 1); }
  void after(const Instruction& each) {
    if (each.op != Opcode::backward) return;
    layers_ += kept_[each.target];
    if ((each.frees & bit(slot_saved)) != 0) layers_ = 0;
  }

 private:
  const Program& program_;
  std::vector<std::int64_t> kept_;  // layers that keep it, by phase
  std::int64_t layers_ = 0;         // whose backward has ended
};

/// Follows one class's list and the bytes that it holds.
class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const RankClass& ranks,
             const std::vector<Workspace>& workspace, const KeptGradients& gradients)
      : program_{program},
        ranks_{ranks},
        workspace_{workspace},
        gradients_{gradients},
        freed_by_head_{freed_by_head(program)} {
    const auto bytes = [&](std::uint16_t type) { return ranks.types[type].bytes; };
    for (const auto* buffers : {&ranks.chunk_buffers, &ranks.recomputing_buffers}) {
      for (const ChunkBuffers& each : *buffers) {
        std::array<Bytes, slot_count> by_slot{};
        by_slot[slot_saved] = bytes(each.saved);
        by_slot[slot_in] = bytes(each.gradient_in);
        by_slot[slot_kept] = bytes(each.kept);
        by_slot[slot_delayed] = bytes(each.delayed);
        DirectionSums& sums = sums_.emplace_back();
        for (const bool up : {false, true}) {
          by_slot[slot_out] = bytes(up ? each.out : each.gradient_out);
          sums[up ? 1 : 0] = sums_of(by_slot);
        }
      }
    }
  }

  /// Finds the peak from total bytes, then splits it by kind.
  MemoryPeak run() {
    MemoryPeak peak;
    if (ranks_.instructions.empty()) return peak;
    Bytes highest{-1}, held{}, kept{};
    KeptGradients gradients = gradients_;
    const bool keeps = gradients.any();
    for (std::size_t i = 0; i < ranks_.instructions.size(); ++i) {
      const Instruction& each = ranks_.instructions[i];
      const unsigned binds = each.binds, frees = each.frees;
      if (binds != 0) held += bytes_of(each, binds);
      Bytes now = held;
      if (runs_phase(each)) now += workspace_of(each).total();
      if (keeps) now += gradients.bytes();
      if (now > highest) {
        highest = now;
        kept = gradients.bytes();
        peak.instruction = i;
      }
      if (frees != 0) held += bytes_of(each, frees) * -1;
      if (keeps) gradients.after(each);
    }
    peak.by_kind = parts_at(peak.instruction);
    peak.by_kind[at(BufferKind::activation)] += kept;
    return peak;
  }

  std::vector<MemoryAt> course() const {
    Bytes held{};
    for (const PersistentBuffer& each : ranks_.persistent) held += each.bytes;
    KeptGradients gradients = gradients_;
    std::vector<MemoryAt> course;
    course.reserve(ranks_.instructions.size());
    for (const Instruction& each : ranks_.instructions) {
      held += bytes_of(each, each.binds);
      const Bytes during = held + workspace_of(each).total() + gradients.bytes();
      held += bytes_of(each, each.frees) * -1;
      gradients.after(each);
      course.push_back({during, held + gradients.bytes()});
    }
    return course;
  }

 private:
  using DirectionSums = std::array<SlotBytes, 2>;  // backward's, forward's

  Workspace workspace_of(const Instruction& each) const {
    if (!runs_phase(each)) return {};
    Workspace workspace = workspace_[each.target];
    const bool frees = freed_by_head_ > Bytes{} && each.op == Opcode::backward;
    if (frees && after_head(each)) workspace.freed = freed_by_head_;
    return workspace;
  }

  /// Is it a part of a backward that begins after the head's?
  bool after_head(const Instruction& backward) const {
    const Chunk& chunk = program_.chunks[backward.chunk];
    return chunk.has_head && !splits_backward(chunk) && backward.target != chunk.backward &&
           !runs_head(program_, program_.phases[backward.target]);
  }

  Bytes bytes_of(const Instruction& each, unsigned slots) const {
    if (slots == 0) return {};
    Bytes sum{};
    if ((slots & bit(slot_weights)) != 0) {
      for_each_weights(each, [&](const BufferType& type) { sum += type.bytes; });
      slots -= bit(slot_weights);
    }
    std::size_t place = program_.chunks[each.chunk].place;
    if (recomputes_all(program_, ranks_, each)) place += ranks_.chunk_buffers.size();
    return sum + sums_[place][ascends(program_, each) ? 1 : 0][slots];
  }

  /// Of what a gather fills, or of all the gathers that a run frees.
  template <class Visit>
  void for_each_weights(const Instruction& each, Visit visit) const {
    const auto weights = [&](const Instruction& gather) {
      visit(ranks_.types[buffer_type(program_, ranks_, gather, slot_weights)]);
    };
    if (each.op == Opcode::unshard) return weights(each);
    for (Token t = first_gather(program_, ranks_, each.awaits); t <= each.awaits; ++t) {
      weights(ranks_.instructions[t]);
    }
  }

  template <class Visit>
  void for_each_type(const Instruction& each, unsigned slots, Visit visit) const {
    for (; slots != 0; slots &= slots - 1) {
      const auto slot = static_cast<Slot>(std::countr_zero(slots));
      if (slot == slot_weights) {
        for_each_weights(each, visit);
      } else {
        visit(ranks_.types[buffer_type(program_, ranks_, each, slot)]);
      }
    }
  }

  MemoryByKind parts_at(std::size_t peak) const {
    MemoryByKind parts{};
    for (const PersistentBuffer& each : ranks_.persistent) parts[at(each.kind)] += each.bytes;
    const auto hold = [&](const Instruction& each, unsigned slots, int sign) {
      for_each_type(each, slots,
                    [&](const BufferType& type) { parts[at(type.kind)] += type.bytes * sign; });
    };
    for (std::size_t i = 0; i <= peak; ++i) {
      const Instruction& each = ranks_.instructions[i];
      hold(each, each.binds, 1);
      if (i < peak) hold(each, each.frees, -1);
    }
    const Workspace during = workspace_of(ranks_.instructions[peak]);
    parts[at(BufferKind::workspace)] = during.scratch;
    parts[at(BufferKind::activation)] += during.freed * -1;
    return parts;
  }

  const Program& program_;
  const RankClass& ranks_;
  const std::vector<Workspace>& workspace_;  // by phase
  const KeptGradients& gradients_;           // before the step
  Bytes freed_by_head_;
  std::vector<DirectionSums> sums_;  // by chunk of the class; then those that recompute all
};

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Program& program) {
  const std::vector<Workspace> workspaces = workspaces_of(program);
  const KeptGradients gradients{program};
  std::vector<MemoryPeak> peaks;
  for (const RankClass& ranks : program.classes) {
    peaks.push_back(MemoryWalk{program, ranks, workspaces, gradients}.run());
  }
  return peaks;
}

std::vector<MemoryAt> memory_course(const Program& program, std::uint32_t rank_class) {
  const std::vector<Workspace> workspaces = workspaces_of(program);
  const KeptGradients gradients{program};
  return MemoryWalk{program, program.classes[rank_class], workspaces, gradients}.course();
}

}  // namespace orrery::models
