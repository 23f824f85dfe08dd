#pragma once
// A stack and a site from twenty steps or fewer: numbers start where the parent's profile has them
// and move as far as the steps say and no further.

#include <string>
#include <vector>

#include "scenarios/fitting/stack_fit.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// More steps than these determine a profile's numbers by themselves (software_fit.hpp).
inline constexpr std::size_t most_steps_with_a_prior = 20;

/// What became of one number. Spreads are standard deviations: of a factor's logarithm, or of the
/// amount.
struct MovedNumber {
  std::size_t number = 0;  // in inherited_numbers()
  double prior = 0, value = 0;
  double spread_before = 0, spread_left = 0;
  double effect = 0;  // on these steps of one spread left: ln, root mean square
};

struct FewSteps {
  std::vector<MovedNumber> numbers;  // that the stack has
  /// Of numbers that a place changes as well as a stack: the difference as a site's block.
  Json site;
  Json profile;  // the parent's with all numbers moved, and how sure they are
  std::vector<double> at_prior, fitted;  // ln(predicted / measured), by row
  double factor = 0;                     // ln(measured / predicted) that no number expresses
  std::string next;                      // what would say most that these steps do not
};

/// `profile` is the parent's document, with the name and source that the result has.
FewSteps few_steps_of(std::vector<BenchRow> rows, Json profile, unsigned threads);

Json to_json(const FewSteps& few);
std::string text_of(const FewSteps& few);

}  // namespace orrery::scenarios
