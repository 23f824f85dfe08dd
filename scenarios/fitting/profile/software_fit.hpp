#pragma once
// A stack's numbers fitted to its measured step times (stack_fit.hpp), and how well such numbers
// predict runs that the fit has not seen. The prior is the profile's own numbers, or `generic`'s.
// Of few runs (`few_runs`) a profile states what the fit leaves unexplained and the uncertainty
// that remains of its numbers; of more, the errors on runs left out. What the profile chooses
// (kernels, overlap, accumulation, defaults) is not fitted.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitting/profile/software_rows.hpp"
#include "scenarios/fitting/profile/stack_fit.hpp"
#include "scenarios/validation/statistics.hpp"

namespace orrery::scenarios {

struct SoftwareFitOptions {
  std::vector<Json> profiles;          // before the shipped ones
  std::vector<std::string> stacks;     // stacks or profiles to fit; empty: all in the file
  std::vector<std::string> leave_out;  // columns whose cells make groups; empty: chosen by stack
  bool from_generic = false;           // the prior is the generic profile's numbers
  Trials trials;
};

/// One fitted number. Spreads are standard deviations: of a factor's logarithm, or of the amount.
struct FittedNumber {
  std::size_t number = 0;  // in profile_numbers()
  double start = 0, value = 0;
  double spread_before = 0, spread_left = 0;
  double effect = 0;  // of one remaining spread on these steps: ln, root mean square

  /// Do the rows explain more than half of the prior's variance?
  bool determined() const;
};

/// A fitted profile and its rows.
struct SoftwareFit {
  std::string name;
  Json profile;                       // the document with the fitted numbers and their spreads
  std::vector<FittedNumber> numbers;  // those that apply
  std::vector<std::size_t> rows;      // in the list of runs
  /// ln(predicted / measured) by row: with the numbers at the start, with those that the profile
  /// states, and with numbers fitted without the row's group. The last is empty without groups.
  std::vector<double> at_start, in_sample, left_out;
  double unexplained = 1;            // as the profile states it; part of the last two
  std::vector<int> fallback_curves;  // number of fallback curves, by row
  std::string left_out_by;           // columns
  std::size_t groups = 0;
  /// Of few runs: the differences in numbers that depend on the site as well as on the stack, as a
  /// site's entry, and the step to measure next.
  Json site;
  std::string next;
};

struct SoftwareFits {
  std::vector<SoftwareFit> fits;  // by name
  std::vector<UnusedRow> unused;  // every row of the table that no fit uses
  bool complete = true;           // false: stopped early
};

/// Fits each profile that the table's usable rows (`software_rows`) run.
/// Errors  a column of `leave_out` that the table lacks; no rows to fit: InputError
SoftwareFits fit_software(const orrery::Table& table, const SoftwareFitOptions& options);

/// The site entry that changes the start's numbers on a neutral cluster into the fitted ones.
Json site_of(const std::vector<FittedNumber>& numbers);
/// The step to measure next: one that determines the number whose remaining spread changes these
/// steps most (the first number if none does).
std::string next_of(const std::vector<FittedNumber>& numbers);

/// 100 (e^log - 1): the errors as `validate` states them.
std::vector<double> percents(const std::vector<double>& logs);

/// Errors of the generic profile, which a stack without a fit gets: ln(predicted / measured) by row
/// of `rows`; nothing for a run that it cannot simulate, such as one with an attention kernel that
/// only its own stack has.
std::vector<std::optional<double>> errors_of_generic(const std::vector<MeasuredRun>& runs,
                                                     const std::vector<std::size_t>& rows);

Json to_json(const orrery::Table& table, const SoftwareFits& fits);
std::string table_of(const orrery::Table& table, const SoftwareFits& fits);

}  // namespace orrery::scenarios
