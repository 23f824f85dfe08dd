#include "scenarios/fitting/kernels/curve_report.hpp"

#include <fmt/format.h>

#include "hardware/curves/measured.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

std::optional<double> relative_error(std::optional<double> predicted,
                                     std::optional<double> measured) {
  if (!predicted || !measured) return std::nullopt;
  return 100 * (*predicted / *measured - 1);
}

Json curve_group_json(const CurveReport& report, const std::vector<std::string>& cells) {
  std::map<std::string, std::vector<double>> errors;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    if (report.rows[i].scored()) errors[cells[i]].push_back(*report.rows[i].error_pct());
  }
  Json groups = Json::object();
  for (const auto& [value, list] : errors) groups[value] = to_json(summary_of(list));
  return groups;
}

Json curve_row_json(const CurveRow& row) {
  return {{"run", row.run},
          {"class", row.score_class},
          {"scored", row.scored()},
          {"not_scored_because", or_null(row.not_scored_because)},
          {"measured_s", or_null(row.measured)},
          {"predicted_s", or_null(row.predicted)},
          {"in_sample_s", or_null(row.in_sample)},
          {"error_pct", or_null(row.error_pct())},
          {"note", or_null(row.note)}};
}

Json curve_totals_json(const CurveReport& report) {
  std::vector<double> errors;
  std::vector<double> seen;
  std::size_t predicted = 0;
  for (const CurveRow& row : report.rows) {
    if (row.predicted) ++predicted;
    if (row.scored()) errors.push_back(*row.error_pct());
    if (row.scored() && row.in_sample) seen.push_back(*row.in_sample_error_pct());
  }
  Json json{{"kind", report.kind},
            {"scoring", report.scoring == Scoring::unseen ? "unseen" : "in sample"},
            {"rows", report.rows.size()},
            {"predicted", predicted},
            {"scored", errors.size()}};
  add_errors(json, summary_if_any(errors));
  json["in_sample"] = to_json(summary_if_any(seen));
  return json;
}

}  // namespace

void CurveRow::answer(std::optional<double> measured_s, std::optional<double> predicted_s,
                      const std::string& reported) {
  measured = measured_s;
  predicted = predicted_s;
  note = reported;
  if (!not_scored_because.empty()) return;
  if (!measured) {
    not_scored_because = "no time measured";
  } else if (!predicted) {
    not_scored_because = reported;
  }
}

void CurveReport::add_errors(CurveCard& card) const {
  std::vector<double> unseen, seen;
  for (const CurveRow& row : rows) {
    if (!row.scored() || row.curve != card.name) continue;
    unseen.push_back(*row.error_pct());
    if (row.in_sample) seen.push_back(*row.in_sample_error_pct());
  }
  card.leave_out = summary_if_any(unseen);
  card.in_sample = summary_if_any(seen);
}

std::optional<double> CurveRow::error_pct() const {
  return relative_error(predicted, measured);
}

std::optional<double> CurveRow::in_sample_error_pct() const {
  return relative_error(in_sample, measured);
}

std::string published_place(const std::string& source) {
  const orrery::Table& sources = hardware::measured_sources();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].text("source") == source) return std::string{sources[i].text("published_at")};
  }
  return source;
}

Json curve_file(const CurveCard& card) {
  Json json{{"name", card.name},
            {"kind", card.kind},
            {"rows", card.rows},
            {"includes", or_null(card.includes)},
            {"prices", card.prices},
            {"source", fmt::format("{}", fmt::join(card.sources, "; "))},
            {"range", card.range},
            {"parameters", card.parameters},
            {"in_sample", card.in_sample ? to_json(card.in_sample) : Json(nullptr)},
            {"leave_out", card.leave_out ? to_json(card.leave_out) : Json(nullptr)}};
  if (!card.catalogue.empty()) json["catalogue"] = card.catalogue;
  if (!card.samples.empty()) json["residual"] = card.samples;
  return json;
}

Json to_json(const CurveReport& report, const std::vector<Grouping>& groupings) {
  Json json = curve_totals_json(report);
  std::vector<std::string> classes;
  for (const CurveRow& row : report.rows) classes.push_back(row.score_class);
  json["by"]["class"] = curve_group_json(report, classes);
  for (const Grouping& grouping : groupings) {
    json["by"][grouping.column] = curve_group_json(report, grouping.cells);
  }
  if (!report.cards.empty()) {
    json["curves"] = Json::array();
    for (const CurveCard& card : report.cards) {
      Json curve = curve_file(card);
      curve.erase("residual");
      json["curves"].push_back(std::move(curve));
    }
  }
  json["runs"] = Json::array();
  for (const CurveRow& row : report.rows) json["runs"].push_back(curve_row_json(row));
  return json;
}

}  // namespace orrery::scenarios
