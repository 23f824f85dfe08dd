#include "models/program/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>

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

/// Temporaries of a phase: those of its largest block, and two gradients passed between layers
/// where backward runs several; likewise where each layer is a phase of its own.
Bytes workspace_of(const Program& program, const Phase& phase,
                   const std::vector<Bytes>& block_peaks) {
  Bytes peak{};
  for (const Invocation& run : phase.invocations) {
    const bool several = phase.invocations.size() + static_cast<std::size_t>(run.count) > 2;
    Bytes each = block_peaks[run.block];
    const bool by_unit = program.sharding.gradients || program.sharding.parameters;
    if (several || by_unit) each += passed_gradient(program, run.block) * 2;
    peak = std::max(peak, each);
  }
  return peak;
}

/// The workspace of every phase.
std::vector<Bytes> workspaces_of(const Program& program) {
  std::vector<Bytes> blocks, phases;
  for (const Block& block : program.blocks) blocks.push_back(block.temporary_peak());
  for (const Phase& phase : program.phases) {
    phases.push_back(workspace_of(program, phase, blocks));
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

/// Follows one class's list and the bytes that it holds.
class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const RankClass& ranks, const std::vector<Bytes>& workspace)
      : program_{program}, ranks_{ranks}, workspace_{workspace} {
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
    Bytes highest{-1}, held{};
    for (std::size_t i = 0; i < ranks_.instructions.size(); ++i) {
      const Instruction& each = ranks_.instructions[i];
      held += bytes_of(each, each.binds);
      const Bytes now = held + workspace_of(each);
      if (now > highest) {
        highest = now;
        peak.instruction = i;
      }
      held += bytes_of(each, each.frees) * -1;
    }
    peak.by_kind = parts_at(peak.instruction);
    return peak;
  }

  std::vector<MemoryAt> course() const {
    Bytes held{};
    for (const PersistentBuffer& each : ranks_.persistent) held += each.bytes;
    std::vector<MemoryAt> course;
    course.reserve(ranks_.instructions.size());
    for (const Instruction& each : ranks_.instructions) {
      held += bytes_of(each, each.binds);
      const Bytes during = held + workspace_of(each);
      held += bytes_of(each, each.frees) * -1;
      course.push_back({during, held});
    }
    return course;
  }

 private:
  using DirectionSums = std::array<SlotBytes, 2>;  // backward's, forward's

  Bytes workspace_of(const Instruction& each) const {
    return runs_phase(each) ? workspace_[each.target] : Bytes{};
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
    parts[at(BufferKind::workspace)] = workspace_of(ranks_.instructions[peak]);
    return parts;
  }

  const Program& program_;
  const RankClass& ranks_;
  const std::vector<Bytes>& workspace_;  // by phase
  std::vector<DirectionSums> sums_;      // by chunk of the class; then those that recompute all
};

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Program& program) {
  const std::vector<Bytes> workspaces = workspaces_of(program);
  std::vector<MemoryPeak> peaks;
  for (const RankClass& ranks : program.classes) {
    peaks.push_back(MemoryWalk{program, ranks, workspaces}.run());
  }
  return peaks;
}

std::vector<MemoryAt> memory_course(const Program& program, std::uint32_t rank_class) {
  const std::vector<Bytes> workspaces = workspaces_of(program);
  return MemoryWalk{program, program.classes[rank_class], workspaces}.course();
}

}  // namespace orrery::models
