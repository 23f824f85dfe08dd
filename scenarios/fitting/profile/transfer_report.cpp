// The report of `orrery validate --leave-out COLUMN[,COLUMN]`.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "scenarios/fitting/profile/leave_out_groups.hpp"
#include "scenarios/fitting/profile/transfer.hpp"
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

/// Errors of some rows, in percent.
struct ErrorsOfSome {
  std::vector<double> shipped, left_out, generic;

  void add(const TransferRow& row) {
    shipped.push_back(100 * row.shipped);
    left_out.push_back(100 * row.left_out);
    generic.push_back(100 * row.generic);
  }
};

std::string cell_lines(const Transfer& transfer) {
  std::map<std::string, ErrorsOfSome> cells;
  for (const TransferRow& each : transfer.rows) cells[each.cell].add(each);
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

/// Median and 90th percentile of errors without their sign.
struct HeldErrors {
  explicit HeldErrors(std::vector<double> errors) {
    for (double& each : errors) each = std::abs(each);
    median = quantile(errors, 0.5);
    p90 = quantile(errors, 0.9);
  }
  Json json() const { return {{"rows_median_pct", median}, {"rows_p90_pct", p90}}; }

  double median = 0, p90 = 0;
};

/// Calls `take(group, rows, as it is, left out)` with every group of the runs that are held.
template <class Take>
void for_held_groups(const Transfer& transfer, Take take) {
  std::map<std::string, ErrorsOfSome> groups;
  for (const TransferRow& each : transfer.held) groups[each.apart].add(each);
  for (const auto& [name, errors] : groups) {
    take(name, errors.left_out.size(), HeldErrors{errors.shipped}, HeldErrors{errors.left_out});
  }
}

Json held_json(const Transfer& transfer) {
  Json json = Json::object();
  for_held_groups(transfer, [&](const auto& name, auto rows, const auto& own, const auto& unseen) {
    json[name] = {{"rows", rows}, {"as_it_is", own.json()}, {"left_out", unseen.json()}};
  });
  return json;
}

std::string held_lines(const Transfer& transfer) {
  if (transfer.held.empty()) return {};
  std::string text = fmt::format("\n{:<52} {:>5} {:>17} {:>17}\n",
                                 "reported separately, median / 90th of |error|, %", "runs",
                                 "as it is", "left out");
  for_held_groups(transfer, [&](const auto& name, auto rows, const auto& own, const auto& unseen) {
    text += fmt::format("{:<52.52} {:>5} {:>8.1f} / {:>6.1f} {:>8.1f} / {:>6.1f}\n", name, rows,
                        own.median, own.p90, unseen.median, unseen.p90);
  });
  return text;
}

/// The columns left out, in words.
std::string title_of(const Transfer& transfer) {
  return fmt::format("{}", fmt::join(columns_of(transfer.column), " and "));
}

std::string held_section_of(const Transfer& transfer) {
  if (transfer.held.empty()) return {};
  std::string text = fmt::format(
      "\nOf the strategies that are reported separately, each {} left out in turn; numbers are "
      "fitted "
      "to all remaining runs of a stack, whichever their strategy.\n\n| reported separately | runs "
      "| the profiles, median / 90th "
      "percentile | numbers without its {} |\n|---|--:|--:|--:|\n",
      title_of(transfer), title_of(transfer));
  for_held_groups(transfer, [&](const auto& name, auto rows, const auto& own, const auto& unseen) {
    text += fmt::format("| {} | {} | {:.1f} / {:.1f} % | {:.1f} / {:.1f} % |\n", name, rows,
                        own.median, own.p90, unseen.median, unseen.p90);
  });
  return text;
}

Json row_json(const std::vector<MeasuredRun>& runs, const TransferRow& row) {
  Json json{{"run", runs[row.row].run},    {"group", row.group},          {"cell", row.cell},
            {"profile", row.profile},      {"stack_seen", row.seen},      {"inside", row.inside},
            {"as_it_is_log", row.shipped}, {"left_out_log", row.left_out}};
  if (row.apart.empty()) {
    json["generic_log"] = row.generic;
  } else {
    json["apart"] = row.apart;
  }
  return json;
}

}  // namespace

Json to_json(const std::vector<MeasuredRun>& runs, const Transfer& transfer) {
  Json json{{"kind", "training runs left out"},
            {"leave_out", transfer.column},
            {"own", transfer.own},
            {"groups", transfer.groups},
            {"cells", transfer.cells},
            {"scored", transfer.rows.size()},
            {"inside_pct", transfer.inside},
            {"median_abs_error_pct", transfer.left_out.rows_median},
            {"as_it_is", errors_json(transfer.shipped)},
            {"left_out", errors_json(transfer.left_out)},
            {"generic", errors_json(transfer.generic)},
            {"apart", held_json(transfer)},
            {"runs", Json::array()},
            {"apart_runs", Json::array()}};
  for (const TransferRow& each : transfer.rows) json["runs"].push_back(row_json(runs, each));
  for (const TransferRow& each : transfer.held) json["apart_runs"].push_back(row_json(runs, each));
  return json;
}

std::string table_of(const std::vector<MeasuredRun>& runs, const Transfer& transfer) {
  std::string text = fmt::format(
      "{} runs, {} scored; each {} of {} left out in turn; {} cells of stack, year and site\n\n",
      runs.size(), transfer.rows.size(), transfer.column, transfer.groups, transfer.cells);
  if (transfer.own > 0) {
    text += fmt::format("of each group {} runs are known, as a user's own, and not scored\n\n",
                        transfer.own);
  }
  text += fmt::format("{:<44} {:>15} {:>26}\n", "", "over cells", "over runs");
  text += fmt::format("{:<44} {:>6} {:>8} {:>8} {:>8} {:>8}\n", "|ln(predicted / measured)|, %",
                      "mean", "median", "median", "90th", "bias");
  text += errors_line("profiles as they are", transfer.shipped);
  text += errors_line(transfer.own > 0 ? "numbers without the group, then its own runs"
                                       : "switches known, numbers without the group",
                      transfer.left_out);
  text += errors_line("the generic profile of the year", transfer.generic);
  text += fmt::format("\np10 to p90 contains {:.0f} % of what is left out (80 % expected)\n",
                      transfer.inside);
  return text + cell_lines(transfer) + held_lines(transfer);
}

std::string page_section_of(const std::vector<Transfer>& transfers) {
  if (transfers.empty()) return {};
  const Transfer& any = transfers.front();
  std::string text = fmt::format(
      "\n## Errors on runs left out of the fit\n\nEvery source, stack, site, year, GPU or model on "
      "a GPU is left out whole in turn: a run's profile keeps its switches, and its numbers are "
      "those of related profiles, fitted to the remaining runs of its stack. {} runs in {} cells, "
      "one for each stack, year and site, including those reported separately; errors are 100 "
      "|ln(predicted / measured)|.\n\n| predicted by | cells, mean / median | runs, median / 90th "
      "percentile | in p10 to p90 |\n|---|--:|--:|--:|\n",
      any.rows.size(), any.cells);
  const auto line = [&](const std::string& name, const TransferErrors& errors,
                        const std::string& inside) {
    text += fmt::format("| {} | {:.1f} / {:.1f} % | {:.1f} / {:.1f} % | {} |\n", name,
                        errors.cells_mean, errors.cells_median, errors.rows_median, errors.rows_p90,
                        inside);
  };
  line("the profiles, fitted to most of these runs", any.shipped, "");
  for (const Transfer& each : transfers) {
    line(fmt::format("numbers without its {} ({} of them)", title_of(each), each.groups),
         each.left_out, fmt::format("{:.0f} %", each.inside));
  }
  line("the generic profile of its year", any.generic, "");
  return text + held_section_of(transfers.back());
}

}  // namespace orrery::scenarios
