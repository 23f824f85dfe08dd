// The text report on curves.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "scenarios/fitting/kernels/curve_report.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

std::string curve_totals(const Json& json) {
  if (json["scored"] == 0) {
    return fmt::format("{} rows of {}, none scored\n", json["rows"].get<std::size_t>(),
                       json["kind"].get<std::string>());
  }
  const auto number = [](const Json& value) { return value.get<double>(); };
  return fmt::format(
      "{} rows of {}, {} scored {}: |error| median {:.1f} %, mean {:.1f} %, p90 {:.1f} %, "
      "bias {:+.1f} %\nin sample: median {:.1f} %, p90 {:.1f} %\n",
      json["rows"].get<std::size_t>(), json["kind"].get<std::string>(),
      json["scored"].get<std::size_t>(), json["scoring"].get<std::string>(),
      number(json["median_abs_error_pct"]), number(json["mean_abs_error_pct"]),
      number(json["p90_abs_error_pct"]), number(json["bias_pct"]),
      number(json["in_sample"]["median_abs_error_pct"]),
      number(json["in_sample"]["p90_abs_error_pct"]));
}

std::string curve_group_table(const std::string& column, const Json& groups) {
  std::string text = fmt::format("\n{:<52} {:>6} {:>8} {:>8} {:>8} {:>8}\n", "by " + column, "rows",
                                 "median %", "mean %", "p90 %", "bias %");
  for (const auto& [value, one] : groups.items()) {
    text += fmt::format("{:<52} {:>6} {:>8.1f} {:>8.1f} {:>8.1f} {:>+8.1f}\n", value,
                        one["rows"].get<std::size_t>(), one["median_abs_error_pct"].get<double>(),
                        one["mean_abs_error_pct"].get<double>(),
                        one["p90_abs_error_pct"].get<double>(), one["bias_pct"].get<double>());
  }
  return text;
}

std::string worst_curve_rows(const CurveReport& report, std::size_t count) {
  std::vector<const CurveRow*> rows;
  for (const CurveRow& row : report.rows) {
    if (row.scored()) rows.push_back(&row);
  }
  const auto size = [](const CurveRow* row) { return std::abs(*row->error_pct()); };
  std::ranges::stable_sort(rows, std::greater{}, size);
  rows.resize(std::min(count, rows.size()));
  if (rows.empty()) return {};
  std::string text = "\nworst rows\n";
  for (const CurveRow* row : rows) {
    text += fmt::format("{:<12} {:<52} measured {:>10} predicted {:>10} {:>+8.1f} %{}\n", row->run,
                        row->curve, format(from_seconds(*row->measured)),
                        format(from_seconds(*row->predicted)), *row->error_pct(),
                        row->note.empty() ? "" : "  " + row->note);
  }
  return text;
}

std::string curve_cards_table(const std::vector<CurveCard>& cards) {
  std::string text =
      fmt::format("{:<58} {:>5} {:>15} {:>15}  {}\n", "curve (median / p90 |error| %)", "rows",
                  "in sample", "left out", "parameters");
  for (const CurveCard& card : cards) {
    const auto errors = [](const std::optional<ErrorSummary>& summary) {
      return summary ? fmt::format("{:.1f} / {:.1f}", summary->median, summary->p90)
                     : std::string{"-"};
    };
    std::string parameters;
    for (const auto& [name, value] : card.parameters.items()) {
      parameters += fmt::format(" {} {:.4g}", name, value.get<double>());
    }
    if (!card.includes.empty()) parameters += "  (includes " + card.includes + ")";
    if (!card.prices) parameters += "  (prices nothing: no place in a GPU's file)";
    text += fmt::format("{:<58} {:>5} {:>15} {:>15} {}\n", card.name, card.rows,
                        errors(card.in_sample), errors(card.leave_out), parameters);
  }
  return text + "\n";
}

}  // namespace

std::string table_of(const CurveReport& report, const std::vector<Grouping>& groupings,
                     std::size_t worst) {
  const Json json = to_json(report, groupings);
  std::string text = report.cards.empty() ? "" : curve_cards_table(report.cards);
  text += curve_totals(json);
  for (const auto& [column, groups] : json["by"].items()) text += curve_group_table(column, groups);
  return text + worst_curve_rows(report, worst);
}

}  // namespace orrery::scenarios
