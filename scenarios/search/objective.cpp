#include "scenarios/search/objective.hpp"

#include <fmt/format.h>

#include <array>

#include "hardware/gpu/gpu_power.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

using models::Estimate;

namespace {

double cost_of(const Estimate& estimate) {
  ensure(estimate.cost.has_value(), "a search for the least cost needs a price");
  return estimate.cost->count();
}

double days_at(double tokens_per_second) {
  constexpr double trillion = 1e12;
  return trillion / tokens_per_second / seconds_per_day;
}

/// Days of steps after each other for a trillion tokens.
double days_of_trillion(const Estimate& estimate) {
  return days_at(estimate.tokens_per_second);
}

/// Dollars per step, with three significant digits below one dollar.
std::string small_dollars(const Estimate& estimate) {
  if (!estimate.cost) return "-";
  const Money money = *estimate.cost;
  return money.count() < 1 ? fmt::format("${:.3g}", money.count()) : format(money);
}

/// Energy of a step if every rank waits for as long as it must, and runs its kernels at the power
/// of those that draw least.
double least_energy(const PlanQuery& query, int nodes, const PlanBound& least) {
  const hardware::Cluster& cluster = query.cluster;
  const hardware::PowerDraw draw = hardware::power_draw(cluster.gpu());
  const double gpus = static_cast<double>(nodes) * cluster.node.gpus;
  const Energy around = hardware::host_share(cluster.node) * gpus * least.step;
  const Energy ranks =
      (draw.waiting * least.step + (draw.memory_bound - draw.waiting) * least.kernels) * gpus;
  constexpr double rounding = 1e-12;  // the sum over stages is rounded in another order
  return (around + ranks).count() * (1 - rounding);
}

constexpr std::array<Objective, 5> known_objectives{{
    {.name = "time",
     .measure = [](const Estimate& estimate) { return seconds(estimate.step); },
     .bound = [](const PlanQuery&, int, const PlanBound& least) { return seconds(least.step); },
     .heading = "$/step",
     .cell = small_dollars},
    {.name = "cost",
     .measure = cost_of,
     .bound =
         [](const PlanQuery& query, int nodes, const PlanBound& least) {
           const double gpus = static_cast<double>(nodes) * query.cluster.node.gpus;
           ensure(query.cluster.price_per_gpu_hour.has_value(), "a bound of cost needs a price");
           return ((*query.cluster.price_per_gpu_hour * gpus) * least.step).count();
         },
     .extent = Extent::fewer_nodes,
     .needs_price = true,
     .better = "cheaper",
     .heading = "$/step",
     .cell = small_dollars},
    {.name = "energy",
     .measure = [](const Estimate& estimate) -> double { return estimate.energy.count(); },
     .bound = least_energy,
     .extent = Extent::fewer_nodes,
     .better = "lower in energy",
     .heading = "energy",
     .cell = [](const Estimate& estimate) { return format(estimate.energy); }},
    {.name = "memory",
     .measure =
         [](const Estimate& estimate) { return static_cast<double>(estimate.memory.count()); },
     .bound = [](const PlanQuery&, int,
                 const PlanBound& least) { return static_cast<double>(least.memory.count()); },
     .better = "smaller in memory",
     .heading = "$/step",
     .cell = small_dollars},
    {.name = "days",
     .measure = days_of_trillion,
     .bound =
         [](const PlanQuery& query, int, const PlanBound& least) {
           const double tokens =
               static_cast<double>(query.global_batch) * static_cast<double>(query.seq_len);
           return days_at(tokens / seconds(least.step));
         },
     .heading = "days/1T",
     .cell =
         [](const Estimate& estimate) {
           return fmt::format("{:.1f}", days_of_trillion(estimate));
         }},
}};

}  // namespace

std::span<const Objective> objectives() {
  return known_objectives;
}

std::string objective_words() {
  std::string text;
  for (std::size_t i = 0; i < known_objectives.size(); ++i) {
    if (i > 0) text += i + 1 == known_objectives.size() ? " or " : ", ";
    text += known_objectives[i].name;
  }
  return text;
}

const Objective& objective_named(std::string_view name, const std::string& flag) {
  for (const Objective& each : known_objectives) {
    if (each.name == name) return each;
  }
  throw InputError{flag, fmt::format("expected {}, found '{}'", objective_words(),
                                     printable(std::string{name}, 60))};
}

}  // namespace orrery::scenarios
