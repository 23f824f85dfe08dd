#include "models/prediction/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/program/counts.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {

namespace {

constexpr double longest = 0x1p59;  // ps

double as_number(Time time) {
  return static_cast<double>(time.count());
}

/// Launch and queue time of an operation, one after another.
double in_turn(const PricedOperation& op) {
  return as_number(op.launch) + as_number(op.lead) + as_number(op.duration) + as_number(op.trail);
}

/// For each phase, the sum over its operations.
std::vector<double> phase_times(const PricedProgram& priced) {
  std::vector<double> blocks;
  for (const std::vector<PricedOperation>& block : priced.blocks) {
    double sum = 0;
    for (const PricedOperation& op : block) sum += in_turn(op);
    blocks.push_back(sum);
  }
  std::vector<double> phases;
  for (const Phase& phase : priced.program->phases) {
    double sum = 0;
    for (const Invocation& run : phase.invocations) {
      sum += blocks[run.block] * static_cast<double>(run.count);
    }
    phases.push_back(sum);
  }
  return phases;
}

double most_of(const std::vector<double>& times) {
  return times.empty() ? 0 : *std::ranges::max_element(times);
}

/// Times of transfers and collectives, with their launches.
struct WireTimes {
  std::vector<double> channels, collectives;
};

WireTimes wire_times(const PricedProgram& priced) {
  WireTimes times;
  for (const Time each : priced.channels) {
    times.channels.push_back(as_number(each) + as_number(priced.transfer_launch));
  }
  for (const PricedOperation& each : priced.collectives) times.collectives.push_back(in_turn(each));
  return times;
}

/// Time before the schedule (step launch, carried traffic), and the bound of the step.
double outside_schedule(const PricedProgram& priced) {
  double sum = as_number(priced.step_launch) + as_number(priced.bound.time);
  for (const Time each : priced.carried) sum += as_number(each);
  return sum;
}

double all_work(const PricedProgram& priced, const std::vector<double>& phases,
                const WireTimes& wires) {
  double sum = outside_schedule(priced);
  const auto add = [&](const std::vector<std::int64_t>& counts, const std::vector<double>& times) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      sum += static_cast<double>(counts[i]) * times[i];
    }
  };
  for (std::uint32_t c = 0; c < priced.program->classes.size(); ++c) {
    const TargetCounts& counts = priced.counts[c];
    add(counts.phases, phases);
    add(counts.sends, wires.channels);
    add(counts.receives, wires.channels);
    add(counts.collectives, wires.collectives);
  }
  return sum;
}

}  // namespace

void require_exact_times(const PricedProgram& priced) {
  const std::vector<double> phases = phase_times(priced);
  const WireTimes wires = wire_times(priced);
  double pieces = 0;
  for (const RankClass& ranks : priced.program->classes) {
    pieces += static_cast<double>(ranks.instructions.size());
  }
  const double piece =
      std::max({most_of(phases), most_of(wires.channels), most_of(wires.collectives)});
  if (outside_schedule(priced) + piece * pieces < longest) return;  // most steps are seconds
  const double work = all_work(priced, phases, wires);
  if (work < longest) return;
  constexpr double picoseconds_per_day = seconds_per_day * 1e12;
  throw InputError{"/plan",
                   fmt::format("a step takes {:.3g} days if nothing overlaps; at most {:.2g} days "
                               "are simulated; use a smaller batch or sequence",
                               work / picoseconds_per_day, longest / picoseconds_per_day)};
}

void require_possible(const Question& question, const Prediction& prediction) {
  if (prediction.step <= Time{}) {
    throw InputError{"/cluster", "with these rates a step takes no time"};
  }
  const auto figures = {prediction.tokens_per_second,
                        prediction.model_flops,
                        prediction.mfu,
                        prediction.hfu,
                        prediction.energy.count(),
                        prediction.cost.value_or(Money{}).count()};
  if (!std::ranges::all_of(figures, [](double each) { return std::isfinite(each); })) {
    throw InputError{"/cluster", "with these rates, powers and prices a result is not finite"};
  }
  constexpr double rounding = 1e-9;
  if (prediction.mfu >= 0 && prediction.mfu <= 1 + rounding) return;
  throw InputError{
      "/cluster/node/gpu",
      fmt::format("an MFU of {:.4g} is not possible: the curves of {} and the software's factors "
                  "are faster than its peak of {}",
                  prediction.mfu, question.cluster.gpu().name,
                  format(*question.cluster.gpu().peak(prediction.program->formats.compute)))};
}

}  // namespace orrery::models
