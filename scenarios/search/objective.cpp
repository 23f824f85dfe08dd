#include "scenarios/search/objective.hpp"

#include <fmt/format.h>

#include <array>

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

/// Dollars per step, with three significant digits below one dollar.
std::string small_dollars(const Estimate& estimate) {
  if (!estimate.cost) return "-";
  const Money money = *estimate.cost;
  return money.count() < 1 ? fmt::format("${:.3g}", money.count()) : format(money);
}

constexpr std::array<Objective, 3> known_objectives{{
    {.name = "time",
     .measure = [](const Estimate& estimate) { return seconds(estimate.step); },
     .heading = "$/step",
     .cell = small_dollars},
    {.name = "cost",
     .measure = cost_of,
     .extent = Extent::fewer_nodes,
     .needs_price = true,
     .heading = "$/step",
     .cell = small_dollars},
    {.name = "energy",
     .measure = [](const Estimate& estimate) -> double { return estimate.energy.count(); },
     .extent = Extent::fewer_nodes,
     .heading = "energy",
     .cell = [](const Estimate& estimate) { return format(estimate.energy); }},
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

const Objective& objective_named(std::string_view name) {
  for (const Objective& each : known_objectives) {
    if (each.name == name) return each;
  }
  throw InputError{"--objective", fmt::format("expected {}, found '{}'", objective_words(),
                                              printable(std::string{name}, 60))};
}

}  // namespace orrery::scenarios
