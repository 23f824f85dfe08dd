// What `orrery validate --leave-out COLUMN` prints.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/fitting/transfer.hpp"
#include "scenarios/validation/statistics.hpp"

namespace orrery::scenarios {

namespace {

Json errors_json(const TransferErrors& errors) {
  return {{"cells_mean_pct", errors.cells_mean},
          {"cells_median_pct", errors.cells_median},
          {"rows_median_pct", errors.rows_median},
          {"rows_p90_pct", errors.rows_p90},
          {"bias_pct", errors.bias}};
}

std::string errors_line(const char* name, const TransferErrors& errors) {
  return fmt::format("{:<44} {:>6.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>+8.1f}\n", name,
                     errors.cells_mean, errors.cells_median, errors.rows_median, errors.rows_p90,
                     errors.bias);
}

struct CellErrors {
  std::vector<double> shipped, left_out, generic;
};

std::string cell_lines(const Transfer& transfer) {
  std::map<std::string, CellErrors> cells;
  for (const TransferRow& each : transfer.rows) {
    CellErrors& cell = cells[each.cell];
    cell.shipped.push_back(100 * each.shipped);
    cell.left_out.push_back(100 * each.left_out);
    cell.generic.push_back(100 * each.generic);
  }
  std::string text =
      fmt::format("\n{:<52} {:>5} {:>9} {:>9} {:>9}\n", "median of ln(predicted / measured), %",
                  "runs", "as it is", "left out", "generic");
  for (const auto& [name, cell] : cells) {
    text += fmt::format("{:<52.52} {:>5} {:>+9.1f} {:>+9.1f} {:>+9.1f}\n", name,
                        cell.left_out.size(), quantile(cell.shipped, 0.5),
                        quantile(cell.left_out, 0.5), quantile(cell.generic, 0.5));
  }
  return text;
}

}  // namespace

Json to_json(const std::vector<MeasuredRun>& runs, const Transfer& transfer) {
  Json json{{"kind", "training runs left out"},
            {"leave_out", transfer.column},
            {"groups", transfer.groups},
            {"cells", transfer.cells},
            {"scored", transfer.rows.size()},
            {"inside_pct", transfer.inside},
            {"median_abs_error_pct", transfer.left_out.rows_median},
            {"as_it_is", errors_json(transfer.shipped)},
            {"left_out", errors_json(transfer.left_out)},
            {"generic", errors_json(transfer.generic)},
            {"runs", Json::array()}};
  for (const TransferRow& each : transfer.rows) {
    json["runs"].push_back({{"run", runs[each.row].run},
                            {"group", each.group},
                            {"cell", each.cell},
                            {"profile", each.profile},
                            {"stack_seen", each.seen},
                            {"inside", each.inside},
                            {"as_it_is_log", each.shipped},
                            {"left_out_log", each.left_out},
                            {"generic_log", each.generic}});
  }
  return json;
}

std::string table_of(const std::vector<MeasuredRun>& runs, const Transfer& transfer) {
  std::string text = fmt::format(
      "{} runs, {} scored; each {} of {} left out in turn; {} cells of stack, year and site\n\n",
      runs.size(), transfer.rows.size(), transfer.column, transfer.groups, transfer.cells);
  text += fmt::format("{:<44} {:>6} {:>8} {:>8} {:>8} {:>8}\n", "|ln(predicted / measured)|, %",
                      "cells:", "median", "rows:", "90th", "bias");
  text += errors_line("profiles as they are", transfer.shipped);
  text += errors_line("switches known, numbers without the group", transfer.left_out);
  text += errors_line("the generic profile of the year", transfer.generic);
  text += fmt::format("\np10 to p90 holds {:.0f} % of what is left out (80 % if it is right)\n",
                      transfer.inside);
  return text + cell_lines(transfer);
}

std::string page_section_of(const std::vector<Transfer>& transfers) {
  if (transfers.empty()) return {};
  const Transfer& any = transfers.front();
  std::string text = fmt::format(
      "\n## What no fit has seen\n\nEvery source, stack, site, year or GPU left out whole in turn: "
      "a run's profile keeps its switches, and its numbers are its relatives', moved by what runs "
      "of its stack are left. {} runs in {} cells, one for each stack, year and site, those "
      "reported "
      "apart among them; errors are 100 |ln(predicted / measured)|.\n\n"
      "| predicted by | cells, mean / median | runs, median / 90th percentile | in p10 to p90 |\n"
      "|---|--:|--:|--:|\n",
      any.rows.size(), any.cells);
  const auto line = [&](const std::string& name, const TransferErrors& errors,
                        const std::string& inside) {
    text += fmt::format("| {} | {:.1f} / {:.1f} % | {:.1f} / {:.1f} % | {} |\n", name,
                        errors.cells_mean, errors.cells_median, errors.rows_median, errors.rows_p90,
                        inside);
  };
  line("the profiles, fitted to most of these runs", any.shipped, "");
  for (const Transfer& each : transfers) {
    line(fmt::format("numbers without its {} ({} of them)", each.column, each.groups),
         each.left_out, fmt::format("{:.0f} %", each.inside));
  }
  line("the generic profile of its year", any.generic, "");
  return text;
}

}  // namespace orrery::scenarios
