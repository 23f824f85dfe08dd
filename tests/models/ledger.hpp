#pragma once
// What a Program's instructions add up to.

#include "models/program/counts.hpp"

namespace orrery::models {

/// FLOPs and bytes of one rank over the whole step, summed over every instruction.
struct Ledger {
  Flops flops{};
  Bytes kernel_bytes{};      // memory traffic of kernels
  Bytes collective_bytes{};  // payload of collectives
  Bytes transfer_bytes{};    // sent to other stages
  friend bool operator==(const Ledger&, const Ledger&) = default;
};
inline Ledger ledger_of_block(const Block& block) {
  Ledger sum;
  for (const Operation& op : block.operations) {
    sum.flops += op.flops;
    (op.kind == OpKind::collective ? sum.collective_bytes : sum.kernel_bytes) += op.bytes;
  }
  return sum;
}

inline void add_to_ledger(Ledger& sum, const Ledger& more, std::int64_t times) {
  sum.flops += more.flops * times;
  sum.kernel_bytes += more.kernel_bytes * times;
  sum.collective_bytes += more.collective_bytes * times;
  sum.transfer_bytes += more.transfer_bytes * times;
}

/// The totals that evaluations and traces must add up to.
inline Ledger ledger_of(const Program& program, std::uint32_t rank_class) {
  const TargetCounts counts = counts_of(program, rank_class);
  Ledger sum;
  for (std::size_t p = 0; p < counts.phases.size(); ++p) {
    for (const Invocation& run : program.phases[p].invocations) {
      if (counts.phases[p] == 0) break;
      add_to_ledger(sum, ledger_of_block(program.blocks[run.block]), counts.phases[p] * run.count);
    }
  }
  for (std::size_t c = 0; c < counts.sends.size(); ++c) {
    sum.transfer_bytes += program.channels[c].bytes * counts.sends[c];
  }
  for (std::size_t j = 0; j < counts.collectives.size(); ++j) {
    sum.collective_bytes += program.collectives[j].bytes * counts.collectives[j];
    sum.kernel_bytes += program.collectives[j].accumulate_traffic * counts.collectives[j];
  }
  return sum;
}

}  // namespace orrery::models
