#pragma once
// Errors of predictions on data that no fit has used: every source, stack, site, year or GPU of a
// file, or every model on a GPU, left out whole in turn.

#include <map>
#include <string>
#include <vector>

#include "scenarios/validation/runs/measured_run.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One run, with ln(predicted / measured) by three profiles.
struct TransferRow {
  std::size_t row = 0;  // in the list of runs
  std::string group, cell, profile;
  std::string apart;    // its group reported separately, if it is held
  bool seen = false;    // other runs of its stack remained to fit to
  double shipped = 0;   // by its profile as it is
  double left_out = 0;  // by its profile with numbers found without its group
  double generic = 0;   // by the generic profile of its year; not set if reported separately
  bool inside = false;  // measured time inside p10 to p90 of `left_out`
};

/// In percent, of |ln(predicted / measured)|. A cell is one stack, year and site.
struct TransferErrors {
  double cells_mean = 0, cells_median = 0;  // over the medians of cells
  double rows_median = 0, rows_p90 = 0;
  double bias = 0;  // median over cells of the median of ln(predicted / measured)
};

struct Transfer {
  std::string column;
  std::size_t own = 0;  // runs of each group that are known; they are not scored
  std::size_t groups = 0, cells = 0;
  std::vector<TransferRow> rows;
  std::vector<TransferRow> held;  // of strategies reported separately
  TransferErrors shipped, left_out, generic;
  double inside = 0;  // percent of rows, with equal weight per cell
};

/// Leaves out each value of a column in turn, one column after the other; `model,gpu`: each model
/// on each GPU; `size`: each size class of models. A run's profile keeps its switches; its numbers
/// are a mean of its relatives' (number_prior.hpp), updated by the remaining runs of its stack, of
/// whichever strategy. Relatives with runs in the group are fitted without those, too. Errors  a
/// column that the table lacks, a table without a run to score: InputError
///
/// With `own` runs, that many of each group, evenly over the file, are then fitted to as a user's
/// own (`orrery fit software`), and the group's others are scored; smaller groups are left alone.
std::vector<Transfer> transfers_of(const orrery::Table& table,
                                   const std::vector<std::string>& columns, unsigned threads,
                                   std::size_t own = 0);

/// ln(measured / predicted) by row, of what was left out.
std::map<std::size_t, double> unseen_errors(const Transfer& transfer);
/// The same, with each source of the table left out.
std::map<std::size_t, double> unseen_errors(const orrery::Table& table, unsigned threads);

Json to_json(const std::vector<MeasuredRun>& runs, const Transfer& transfer);
std::string table_of(const std::vector<MeasuredRun>& runs, const Transfer& transfer);
/// A section of the page (Markdown): a line per column, next to the errors of the profiles as they
/// are.
std::string page_section_of(const std::vector<Transfer>& transfers);

}  // namespace orrery::scenarios
