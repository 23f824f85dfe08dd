#include "models/pricing/rank_load.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "models/program/counts.hpp"

namespace orrery::models {

namespace {

void add_links(LinkTimes& sum, LinkTimes links, std::int64_t count = 1) {
  sum.nic += links.nic * count;
  sum.nvlink += links.nvlink * count;
}

LinkTimes& of_class(RankLoad& load, TimeClass part) {
  return load.collectives[static_cast<std::size_t>(part)];
}

/// The load of a phase: of the collectives and kernels in its blocks.
RankLoad load_of_phase(const PricedProgram& priced, const Phase& phase) {
  RankLoad load;
  for (const Invocation& run : phase.invocations) {
    const Block& block = priced.program->blocks[run.block];
    for (std::size_t i = 0; i < block.operations.size(); ++i) {
      const Operation& op = block.operations[i];
      const PricedOperation& price = priced.blocks[run.block][i];
      if (op.queue == Lane::compute) load.sm += price.duration * run.count;
      if (op.kind == OpKind::collective) {
        const TimeClass part = priced.program->communicators[op.communicator()].time_class;
        add_links(of_class(load, part), price.links, run.count);
      }
    }
  }
  return load;
}

void add_load(RankLoad& sum, const RankLoad& load, std::int64_t count) {
  for (std::size_t part = 0; part < load.collectives.size(); ++part) {
    add_links(sum.collectives[part], load.collectives[part], count);
  }
  sum.sm += load.sm * count;
}

std::vector<RankLoad> loads_of_phases(const PricedProgram& priced) {
  std::vector<RankLoad> phases;
  for (const Phase& phase : priced.program->phases) phases.push_back(load_of_phase(priced, phase));
  return phases;
}

RankLoad load_of_class(const PricedProgram& priced, const std::vector<RankLoad>& phases,
                       std::uint32_t rank_class) {
  const Program& program = *priced.program;
  const TargetCounts& counts = priced.counts[rank_class];
  RankLoad load;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (counts.phases[p] > 0) add_load(load, phases[p], counts.phases[p]);
  }
  for (std::size_t c = 0; c < priced.channel_links.size(); ++c) {
    add_links(load.sent, priced.channel_links[c], counts.sends[c]);
    add_links(load.received, priced.channel_links[c], counts.receives[c]);
  }
  for (std::size_t j = 0; j < counts.collectives.size(); ++j) {
    if (counts.collectives[j] == 0) continue;
    const std::uint16_t group = program.collectives[j].communicator;
    add_links(of_class(load, program.communicators[group].time_class), priced.collectives[j].links,
              counts.collectives[j]);
  }
  return load;
}

}  // namespace

Time RankLoad::nic() const {
  Time sum = std::max(sent.nic, received.nic);
  for (const LinkTimes& each : collectives) sum += each.nic;
  return sum;
}

Time RankLoad::nvlink() const {
  Time sum = std::max(sent.nvlink, received.nvlink);
  for (const LinkTimes& each : collectives) sum += each.nvlink;
  return sum;
}

TimeClass RankLoad::most_on_nic() const {
  const LinkTimes between{.nic = std::max(sent.nic, received.nic)};
  std::pair<Time, TimeClass> most{Time{}, TimeClass::dp};
  for (int i = 0; i < time_class_count; ++i) {
    const auto part = static_cast<TimeClass>(i);
    const Time time =
        (part == TimeClass::pp ? between : collectives[static_cast<std::size_t>(i)]).nic;
    if (time > most.first) most = {time, part};
  }
  return most.second;
}

RankLoad load_of(const PricedProgram& priced, std::uint32_t rank_class) {
  return load_of_class(priced, loads_of_phases(priced), rank_class);
}

std::vector<RankLoad> loads_of(const PricedProgram& priced) {
  const std::vector<RankLoad> phases = loads_of_phases(priced);
  std::vector<RankLoad> loads;
  for (std::uint32_t c = 0; c < priced.program->classes.size(); ++c) {
    loads.push_back(load_of_class(priced, phases, c));
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
