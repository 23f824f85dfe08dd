#include "models/program/memory.hpp"

#include <algorithm>

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

/// The gradient that a backward block hands to the one before it, where it is not kept for weight
/// gradients.
Bytes passed_gradient(const Program& program, std::uint32_t id) {
  const BlockUse use = program.use_of(id);
  if (use.direction != Direction::backward || program.delays_arrival(*use.kind)) return {};
  return program.blocks[id].bytes(Role::output);
}

/// Temporaries of a phase: its largest block, and where layers follow each other in backward a
/// second gradient to pass between them; so, too, where each layer is a phase of its own.
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

/// Of every phase.
std::vector<Bytes> workspaces_of(const Program& program) {
  std::vector<Bytes> blocks, phases;
  for (const Block& block : program.blocks) blocks.push_back(block.temporary_peak());
  for (const Phase& phase : program.phases) {
    phases.push_back(workspace_of(program, phase, blocks));
  }
  return phases;
}

/// What one combination of slots holds.
using SlotBytes = std::array<Bytes, 1U << slot_count>;

/// Follows one class's list.
class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const RankClass& ranks, const std::vector<Bytes>& workspace)
      : program_{program}, ranks_{ranks}, workspace_{workspace} {
    for (const ChunkBuffers& each : ranks.chunk_buffers) {
      for (const std::uint16_t out : {each.gradient_out, each.out}) {
        SlotBytes& sums = bytes_.emplace_back();
        for (unsigned slots = 0; slots < sums.size(); ++slots) {
          if ((slots & bit(slot_saved)) != 0) sums[slots] += ranks.types[each.saved].bytes;
          if ((slots & bit(slot_in)) != 0) sums[slots] += ranks.types[each.gradient_in].bytes;
          if ((slots & bit(slot_out)) != 0) sums[slots] += ranks.types[out].bytes;
          if ((slots & bit(slot_kept)) != 0) sums[slots] += ranks.types[each.kept].bytes;
          if ((slots & bit(slot_delayed)) != 0) sums[slots] += ranks.types[each.delayed].bytes;
        }
      }
    }
  }

  /// Sums alone are followed to the peak, and then their parts.
  MemoryPeak run() {
    MemoryPeak peak;
    if (ranks_.instructions.empty()) return peak;
    Bytes highest{-1}, held{};
    for (std::size_t i = 0; i < ranks_.instructions.size(); ++i) {
      const Instruction& each = ranks_.instructions[i];
      if (each.binds != 0) held += bytes_of(each, each.binds);
      if (held + workspace_of(each) > highest) {
        highest = held + workspace_of(each);
        peak.instruction = i;
      }
      if (each.frees != 0) held += bytes_of(each, each.frees) * -1;
    }
    peak.by_kind = parts_at(peak.instruction);
    return peak;
  }

 private:
  Bytes workspace_of(const Instruction& each) const {
    return runs_phase(each) ? workspace_[each.target] : Bytes{};
  }

  Bytes bytes_of(const Instruction& each, unsigned slots) const {
    if ((slots & bit(slot_weights)) != 0) {
      Bytes sum{};
      for_each_type(each, slots, [&](const BufferType& type) { sum += type.bytes; });
      return sum;
    }
    const std::size_t place = program_.chunks[each.chunk].place;
    const bool up = (slots & bit(slot_out)) != 0 && ascends(program_, each);
    return bytes_[2 * place + (up ? 1 : 0)][slots];
  }

  template <class Visit>
  void for_each_type(const Instruction& each, unsigned slots, Visit visit) const {
    for (int slot = 0; slot < slot_count; ++slot) {
      if ((slots & (1U << slot)) == 0) continue;
      visit(ranks_.types[buffer_type(program_, ranks_, each, static_cast<Slot>(slot))]);
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
  std::vector<SlotBytes> bytes_;         // by chunk of the class, for backward and for forward
};

}  // namespace

MemoryPeak memory_peak(const Program& program, std::uint32_t rank_class) {
  return MemoryWalk{program, program.classes[rank_class], workspaces_of(program)}.run();
}

std::vector<MemoryPeak> memory_peaks(const Program& program) {
  const std::vector<Bytes> workspaces = workspaces_of(program);
  std::vector<MemoryPeak> peaks;
  for (const RankClass& ranks : program.classes) {
    peaks.push_back(MemoryWalk{program, ranks, workspaces}.run());
  }
  return peaks;
}

}  // namespace orrery::models
