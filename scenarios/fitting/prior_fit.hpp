#pragma once
// Fits a stack and a site from twenty measured steps or fewer: numbers start at the parent
// profile's values and move only as far as the steps justify.

#include <string>
#include <vector>

#include "scenarios/fitting/stack_fit.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// More steps than these determine a profile's numbers by themselves (software_fit.hpp).
inline constexpr std::size_t most_steps_with_a_prior = 20;

/// One fitted number. Spreads are standard deviations: of a factor's logarithm, or of the amount.
struct FittedPriorNumber {
  std::size_t number = 0;  // in inherited_numbers()
  double prior = 0, value = 0;
  double spread_before = 0, spread_left = 0;
  double effect = 0;  // of one remaining spread on these steps: ln, root mean square
};

struct PriorFit {
  std::vector<FittedPriorNumber> numbers;  // those that apply to the stack
  /// The differences in numbers that depend on the site as well as on the stack, as a site's entry.
  Json site;
  Json profile;  // the parent's with all fitted numbers and their spreads
  /// ln(predicted / measured), by row: by the parent, by the profile as it is written.
  std::vector<double> at_prior, fitted;
  double factor = 0;  // ln of the profile's `unexplained`
  std::string next;   // the step to measure next
};

/// What a profile states as `unexplained` for rows with these ln(measured / predicted): their
/// median, shrunk towards 1 the fewer rows there are; to three digits.
double unexplained_by(std::vector<double> errors);

/// `profile` is the parent's document, with the name and source of the result.
PriorFit prior_fit_of(std::vector<BenchRow> rows, Json profile, unsigned threads);

Json to_json(const PriorFit& prior_fit);
std::string text_of(const PriorFit& prior_fit);

}  // namespace orrery::scenarios
