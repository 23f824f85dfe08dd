#pragma once
// Which numbers move an answer, and how much: every number of the expanded scenario is changed by
// one percent each way, and the step is predicted again.
//   e = (ln S(x (1 + h)) - ln S(x (1 - h))) / (ln(1 + h) - ln(1 - h)),  h = 0.01
// e  elasticity: percent of the figure S per percent of the number x. Where x can change in one
//    direction only, that against the figure as stated.
// Left out: counts that one percent would make fractions, words, and numbers that nothing prices.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario/scenario.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// One number that moves a figure.
struct Sensitivity {
  std::string pointer;
  std::string value;  // as stated
  /// Elasticities of step time, dollars of a step (none without a price), energy and peak memory.
  double step = 0, energy = 0, memory = 0;
  std::optional<double> cost;
  /// The step with 10 % less and 10 % more; nothing where that is refused, or not asked for.
  std::array<std::optional<Time>, 2> tenth{};
};

struct SensitivityReport {
  std::string scenario;
  Time step{};
  std::vector<Sensitivity> numbers;  // most of the step first
  std::size_t tried = 0;
  bool stopped = false;
};

/// Errors  as Scenario::question and predict, of the scenario as stated
SensitivityReport sensitivity(const Scenario& scenario, std::optional<double> headroom,
                              const Workers& workers);

/// A number that would make the slower of two plans as fast as the other one.
struct Crossing {
  std::string pointer;
  std::string value, needed;  // as stated; where both steps are equal
  double factor = 1;          // needed over stated
  Time step{};                // of both then
};

struct CrossingReport {
  std::string scenario, faster, slower;  // the two plans, by their degrees
  bool versus_is_faster = false;         // the second one
  Time faster_step{}, slower_step{};
  std::vector<Crossing> numbers;  // the smallest change first
  bool stopped = false;
};

/// What would have to change for the slower of two plans to win: each number alone, within a factor
/// of 4 either way, found from both elasticities and refined until the steps differ by less than
/// 0.01 %.
/// versus  the scenario with another plan
/// Errors  as sensitivity, of both
CrossingReport crossings(const Scenario& scenario, const Scenario& versus,
                         std::optional<double> headroom, const Workers& workers);

/// The number of a JSON value times a factor, in the same unit: "3.35 TB/s", "$3.99/h", 0.8;
/// nothing for 0 and for what begins with no number. Rounded to significant digits.
std::optional<Json> scaled_number(const Json& value, double factor, int digits = 12);

/// `[{pointer, value, step, cost, energy, memory, step_time_s: {less, more}}]`
Json to_json(const SensitivityReport& report);
std::string text_of(const SensitivityReport& report, bool colour);
/// `{faster, slower, versus_is_faster, faster_step_time_s, slower_step_time_s, numbers[{pointer,
/// value, needed, factor, step_time_s}]}`
Json to_json(const CrossingReport& report);
std::string text_of(const CrossingReport& report, bool colour);
/// A tornado: the step with 10 % less and 10 % more of each of the first numbers.
std::string picture_of(const SensitivityReport& report);

}  // namespace orrery::scenarios
