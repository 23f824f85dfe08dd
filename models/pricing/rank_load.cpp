#include "models/pricing/rank_load.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

void add_links(LinkTimes& sum, LinkTimes links, std::int64_t count = 1) {
  sum.nic += links.nic * count;
  sum.nvlink += links.nvlink * count;
}

LinkTimes& of_class(RankLoad& load, TimeClass part) {
  if (part == TimeClass::dp) return load.data;
  return part == TimeClass::tp ? load.tensor : load.other;
}

/// What the operations of a phase ask for: they are collectives of groups, or kernels.
RankLoad load_of_phase(const PricedProgram& priced, const Phase& phase) {
  RankLoad load;
  for (const Invocation& run : phase.invocations) {
    const Block& block = priced.program->blocks[run.block];
    for (std::size_t i = 0; i < block.operations.size(); ++i) {
      const Operation& op = block.operations[i];
      const PricedOperation& price = priced.blocks[run.block][i];
      if (op.queue == Lane::compute) load.sm += price.duration * run.count;
      if (op.kind == OpKind::collective) {
        const TimeClass part = priced.program->communicators[op.communicator].time_class;
        add_links(of_class(load, part), price.links, run.count);
      }
    }
  }
  return load;
}

void add_load(RankLoad& sum, const RankLoad& load) {
  add_links(sum.tensor, load.tensor);
  add_links(sum.data, load.data);
  add_links(sum.other, load.other);
  sum.sm += load.sm;
}

}  // namespace

Time RankLoad::nic() const {
  return tensor.nic + data.nic + other.nic + std::max(sent.nic, received.nic);
}

Time RankLoad::nvlink() const {
  return tensor.nvlink + data.nvlink + other.nvlink + std::max(sent.nvlink, received.nvlink);
}

TimeClass RankLoad::most_on_nic() const {
  std::pair<Time, TimeClass> most{data.nic, TimeClass::dp};
  for (const auto& [time, part] : {std::pair{tensor.nic, TimeClass::tp},
                                   std::pair{std::max(sent.nic, received.nic), TimeClass::pp},
                                   std::pair{other.nic, TimeClass::other_comm}}) {
    if (time > most.first) most = {time, part};
  }
  return most.second;
}

std::vector<RankLoad> loads_of(const PricedProgram& priced) {
  const Program& program = *priced.program;
  std::vector<RankLoad> phases;
  for (const Phase& phase : program.phases) phases.push_back(load_of_phase(priced, phase));
  std::vector<RankLoad> loads(program.classes.size());
  const auto add_transfer = [&](LinkTimes& sum, const Instruction& each) {
    if (!priced.channel_links.empty()) add_links(sum, priced.channel_links[each.target]);
  };
  for (std::uint32_t c = 0; c < loads.size(); ++c) {
    RankLoad& load = loads[c];
    walk(program, c,
         Cases{[&](Token, const Instruction& each) { add_load(load, phases[each.target]); },
               [&](Token, const Instruction& each) { add_transfer(load.sent, each); },
               [&](Token, const Instruction& each) { add_transfer(load.received, each); },
               [&](Token, const Instruction& each) {
                 const JointCollective& joint = program.collectives[each.target];
                 add_links(of_class(load, program.communicators[joint.communicator].time_class),
                           priced.collectives[each.target].links);
               }});
  }
  return loads;
}

StepBound bound_of(const std::vector<RankLoad>& loads) {
  StepBound bound;
  for (std::uint32_t c = 0; c < loads.size(); ++c) {
    if (loads[c].nic() <= bound.time) continue;
    bound = {.time = loads[c].nic(), .rank_class = c, .part = loads[c].most_on_nic()};
  }
  return bound;
}

Busy busy_of(const RankLoad& load, Time step) {
  return {.nic = ratio(load.nic(), step),
          .nvlink = ratio(load.nvlink(), step),
          .sm = ratio(load.sm, step)};
}

}  // namespace orrery::models
