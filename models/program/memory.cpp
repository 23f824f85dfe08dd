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

/// Temporaries of a phase: its largest block, and where layers follow each other in backward a
/// second gradient to pass between them; so, too, where each layer is a phase of its own.
Bytes workspace_of(const Program& program, const Phase& phase,
                   const std::vector<Bytes>& block_peaks) {
  Bytes peak{};
  const bool cut = program.plan.zero == Zero::two || program.plan.zero == Zero::three;
  for (const Invocation& run : phase.invocations) {
    const Block& block = program.blocks[run.block];
    Bytes each = block_peaks[run.block];
    const bool several = phase.invocations.size() + static_cast<std::size_t>(run.count) > 2;
    const bool passes_gradient = block.find("x.grad").has_value() && (several || cut);
    if (passes_gradient) each += block.operands[*block.find("x.grad")].bytes() * 2;
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

/// Follows one class's list.
class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const RankClass& ranks, const std::vector<Bytes>& workspace)
      : program_{program}, ranks_{ranks}, workspace_{workspace} {
    for (const PersistentBuffer& each : ranks.persistent) now_[at(each.kind)] += each.bytes;
    held_ = total(now_);
  }

  MemoryPeak run() {
    for (std::size_t i = 0; i < ranks_.instructions.size(); ++i) step(i, ranks_.instructions[i]);
    return peak_;
  }

 private:
  void step(std::size_t i, const Instruction& each) {
    if (each.binds != 0) hold(each, each.binds, 1);
    const Bytes workspace = runs_phase(each) ? workspace_[each.target] : Bytes{};
    if (held_ + workspace > highest_) {
      highest_ = held_ + workspace;
      peak_ = {now_, i};
      peak_.by_kind[at(BufferKind::workspace)] = workspace;
    }
    if (each.frees != 0) hold(each, each.frees, -1);
  }

  void hold(const Instruction& each, unsigned slots, int sign) {
    for (int slot = 0; slot < slot_count; ++slot) {
      if ((slots & (1U << slot)) == 0) continue;
      const std::uint16_t type = buffer_type(program_, ranks_, each, static_cast<Slot>(slot));
      const BufferType& buffer = ranks_.types[type];
      now_[at(buffer.kind)] += buffer.bytes * sign;
      held_ += buffer.bytes * sign;
    }
  }

  const Program& program_;
  const RankClass& ranks_;
  const std::vector<Bytes>& workspace_;  // by phase
  MemoryByKind now_{};                   // without workspace
  Bytes held_{};                         // their sum
  MemoryPeak peak_{};
  Bytes highest_{-1};
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
