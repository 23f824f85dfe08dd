#pragma once
// How far predictions are off on what nobody fitted: every source, stack, site, year or GPU of a
// file left out whole in turn, or every model on a GPU.

#include <string>
#include <vector>

#include "models/prediction/uncertainty.hpp"
#include "scenarios/validation/measured_run.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One run, ln(predicted / measured) three times.
struct TransferRow {
  std::size_t row = 0;  // in the list of runs
  std::string group, cell, profile;
  std::string apart;    // what it is reported apart as, if it is held
  bool seen = false;    // other runs of its stack were left to fit to
  double shipped = 0;   // by its profile as it is
  double left_out = 0;  // by its profile with numbers found without its group
  double generic = 0;   // by the generic profile of its year; not of one reported apart
  bool inside = false;  // measured inside p10 to p90 of the second
};

/// In percent, of |ln(predicted / measured)|. A cell is one stack, year and site.
struct TransferErrors {
  double cells_mean = 0, cells_median = 0;  // over cells, of their medians
  double rows_median = 0, rows_p90 = 0;
  double bias = 0;  // median over cells of the median of ln(predicted / measured)
};

struct Transfer {
  std::string column;
  std::size_t groups = 0, cells = 0;
  std::vector<TransferRow> rows;
  std::vector<TransferRow> held;  // found by none of these fits, predicted by what the others say
  TransferErrors shipped, left_out, generic;
  double inside = 0;  // percent of rows, cells weighing the same
};

/// Leaves out each cell of a column in turn, one column after the other; `model,gpu`: each model on
/// each GPU. A run's profile keeps its
/// switches; its numbers are a mean of its relatives' (number_prior.hpp), moved by what runs of its
/// stack are left. Relatives with runs in the group are fitted without them, too. Errors  a column
/// that the table lacks, a table without a run to score: InputError
std::vector<Transfer> transfers_of(const orrery::Table& table,
                                   const std::vector<std::string>& columns, unsigned threads);

Json to_json(const std::vector<MeasuredRun>& runs, const Transfer& transfer);
std::string table_of(const std::vector<MeasuredRun>& runs, const Transfer& transfer);
/// A section of the page (Markdown): a line for each, next to the profiles as they are.
std::string page_section_of(const std::vector<Transfer>& transfers);

}  // namespace orrery::scenarios
