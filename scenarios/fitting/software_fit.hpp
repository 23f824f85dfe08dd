#pragma once
// A stack's numbers fitted to its measured step times, and how well such numbers predict runs that
// the fit has not seen.
//   loss = mean of d^2 (sqrt(1 + (e/d)^2) - 1) + sum of pull ln(value / start)^2 / rows
//   e     ln(predicted / measured) of a row;  d = 0.1: beyond it, errors count by their size
//   pull  a number moved to twice its start costs what one row at 5 % does
// Source  the loss is Charbonnier et al. 1994 (pseudo-Huber)
// What the profile chooses (kernels, overlap, accumulation, defaults) is not fitted.

#include <string>
#include <vector>

#include "scenarios/fitting/few_steps.hpp"
#include "scenarios/fitting/software_rows.hpp"
#include "scenarios/validation/measured_run.hpp"
#include "scenarios/validation/statistics.hpp"

namespace orrery::scenarios {

struct SoftwareFitOptions {
  std::vector<Json> profiles;          // before the shipped ones
  std::vector<std::string> stacks;     // stacks or profiles to fit; empty: all in the file
  std::vector<std::string> leave_out;  // columns whose cells make groups; empty: chosen by stack
  bool from_generic = false;           // start at the generic profile's numbers
  /// A table of as many runs or fewer moves the parent's numbers no further than they say.
  std::size_t few = 0;
  Trials trials;
};

/// A number that the rows do not determine keeps its start.
struct FittedNumber {
  double start = 0, value = 0;
  /// The least that the typical error grows by when it alone moves by 30 %, in points of percent.
  double growth = 0;
  bool determined() const;
};

/// A profile and its rows.
struct SoftwareFit {
  std::string name;
  Json profile;                       // the document with the fitted numbers
  std::vector<FittedNumber> numbers;  // as software_numbers()
  std::vector<std::size_t> rows;      // in the list of runs
  /// ln(predicted / measured) by row: with the numbers at the start, with the fitted ones, and with
  /// ones fitted without the row's group. The last is empty where there are no groups.
  std::vector<double> at_start, in_sample, left_out;
  std::vector<int> borrowed;  // curves, by row
  std::string left_out_by;    // columns
  std::size_t groups = 0;
  std::optional<FewSteps> few;  // from few runs: instead of `numbers` and `left_out`
};

struct SoftwareFits {
  std::vector<SoftwareFit> fits;  // by name
  std::vector<UnusedRow> unused;  // every row of the table that is in none of them
  bool complete = true;           // false: stopped; what is there is there
};

/// Fits each profile that the rows of `software_rows` run.
/// Errors  a column of `leave_out` that the table lacks; no rows to fit: InputError
SoftwareFits fit_software(const orrery::Table& table, const SoftwareFitOptions& options);

/// 100 (e^log - 1): the errors as `validate` states them.
std::vector<double> percents(const std::vector<double>& logs);

/// Errors of a whole list by the generic profile: what a stack without a fit gets.
/// ln(predicted / measured) by row of `rows`; nothing for a run that it cannot simulate, as one
/// with an attention kernel that only its own stack has.
std::vector<std::optional<double>> errors_of_generic(const std::vector<MeasuredRun>& runs,
                                                     const std::vector<std::size_t>& rows);

Json to_json(const orrery::Table& table, const SoftwareFits& fits);
std::string table_of(const orrery::Table& table, const SoftwareFits& fits);

}  // namespace orrery::scenarios
