#pragma once
// A stack's numbers fitted to its measured step times, and how well such numbers predict runs that
// the fit has not seen.
//   loss = mean of d^2 (sqrt(1 + (e/d)^2) - 1) + sum of pull ln(value / start)^2 / rows
//   e     ln(predicted / measured) of a row;  d = 0.1: beyond it, errors count linearly
//   pull  a number at twice or half its start costs as much as one row at 5 %
// Source  the loss is Charbonnier et al. 1994 (pseudo-Huber)
// What the profile chooses (kernels, overlap, accumulation, defaults) is not fitted.

#include <string>
#include <vector>

#include "scenarios/fitting/prior_fit.hpp"
#include "scenarios/fitting/software_rows.hpp"
#include "scenarios/validation/measured_run.hpp"
#include "scenarios/validation/statistics.hpp"

namespace orrery::scenarios {

struct SoftwareFitOptions {
  std::vector<Json> profiles;          // before the shipped ones
  std::vector<std::string> stacks;     // stacks or profiles to fit; empty: all in the file
  std::vector<std::string> leave_out;  // columns whose cells make groups; empty: chosen by stack
  bool from_generic = false;           // start at the generic profile's numbers
  /// With at most this many runs, prior_fit.hpp fits the numbers, with the parent's as a prior.
  std::size_t most_runs_with_prior = 0;
  Trials trials;
};

/// One fitted number; one that the rows do not determine keeps its start.
struct FittedNumber {
  double start = 0, value = 0;
  /// The smaller growth of the typical error, in percentage points, when the number alone is moved
  /// up or down by 30 %.
  double growth = 0;
  bool determined() const;
};

/// A fitted profile and its rows.
struct SoftwareFit {
  std::string name;
  Json profile;                       // the document with the fitted numbers
  std::vector<FittedNumber> numbers;  // as software_numbers()
  std::vector<std::size_t> rows;      // in the list of runs
  /// ln(predicted / measured) by row: with the numbers at the start, with the fitted ones, and with
  /// numbers fitted without the row's group. The last is empty if there are no groups.
  std::vector<double> at_start, in_sample, left_out;
  double unexplained = 1;            // as the profile states it; part of the last two
  std::vector<int> fallback_curves;  // number of fallback curves, by row
  std::string left_out_by;           // columns
  std::size_t groups = 0;
  std::optional<PriorFit> prior_fit;  // the fit to few runs, instead of `numbers` and `left_out`
};

struct SoftwareFits {
  std::vector<SoftwareFit> fits;  // by name
  std::vector<UnusedRow> unused;  // every row of the table that no fit uses
  bool complete = true;           // false: stopped early
};

/// Fits each profile that the table's usable rows (`software_rows`) run.
/// Errors  a column of `leave_out` that the table lacks; no rows to fit: InputError
SoftwareFits fit_software(const orrery::Table& table, const SoftwareFitOptions& options);

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
