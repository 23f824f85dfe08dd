#include "models/program/program.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

Ledger of_block(const Block& block) {
  Ledger sum;
  for (const Operation& op : block.operations) {
    sum.flops += op.flops;
    (op.kind == OpKind::collective ? sum.collective_bytes : sum.kernel_bytes) += op.bytes;
  }
  return sum;
}

void add(Ledger& sum, const Ledger& more, std::int64_t times) {
  sum.flops += more.flops * times;
  sum.kernel_bytes += more.kernel_bytes * times;
  sum.collective_bytes += more.collective_bytes * times;
  sum.transfer_bytes += more.transfer_bytes * times;
}

}  // namespace

Ledger ledger_of(const Program& program, std::uint32_t rank_class) {
  std::vector<Ledger> blocks;
  for (const Block& block : program.blocks) blocks.push_back(of_block(block));
  std::vector<Ledger> phases(program.phases.size());
  for (std::size_t p = 0; p < phases.size(); ++p) {
    for (const Invocation& run : program.phases[p].invocations) {
      add(phases[p], blocks[run.block], run.count);
    }
  }
  Ledger sum;
  walk(program, rank_class,
       Cases{[&](Token, const Instruction& each) { add(sum, phases[each.target], 1); },
             [&](Token, const Instruction& each) {
               sum.transfer_bytes += program.channels[each.target].bytes;
             },
             pass_over,
             [&](Token, const Instruction& each) {
               sum.collective_bytes += program.collectives[each.target].bytes;
               sum.kernel_bytes += program.collectives[each.target].sums;
             }});
  return sum;
}

}  // namespace orrery::models
