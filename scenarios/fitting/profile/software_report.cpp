// The report of `orrery fit software`: numbers, which of them the rows do not determine, errors in
// sample and left out.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenarios/fitting/profile/software_fit.hpp"

namespace orrery::scenarios {

namespace {

Json logs_json(const std::vector<double>& logs) {
  if (logs.empty()) return nullptr;
  return to_json(summary_of(percents(logs)));
}

std::string summary_text(const std::vector<double>& logs) {
  if (logs.empty()) return "-";
  const ErrorSummary summary = summary_of(percents(logs));
  return fmt::format("{:.1f} / {:.1f} / {:+.1f}", summary.median, summary.p90, summary.bias);
}

/// Errors over all rows, and means over the stacks.
struct Overall {
  std::vector<double> at_start, in_sample, left_out;
  std::vector<std::optional<double>> generic;    // by row
  double mean_in_sample = 0, mean_left_out = 0;  // of the stacks' medians
};

constexpr std::size_t least_rows_of_a_stack = 10;

/// Quantiles of ln(measured / predicted) by the generic profile, divided by the widening for
/// fallback curves, with equal weight per stack: the uncertainty that the generic profile states.
struct Unfitted {
  double p10 = 0, p90 = 0;
};

Unfitted unfitted(const SoftwareFits& fits, const std::vector<std::optional<double>>& logs) {
  std::vector<std::pair<double, double>> weighed;  // value, weight
  std::size_t next = 0;
  double all = 0;
  for (const SoftwareFit& fit : fits.fits) {
    const double weight = 1.0 / static_cast<double>(fit.rows.size());
    for (const int fallbacks : fit.fallback_curves) {
      const std::optional<double>& log = logs.at(next++);
      if (!log) continue;
      weighed.emplace_back(-*log / models::widening(fallbacks), weight);
      all += weight;
    }
  }
  std::ranges::sort(weighed);
  const auto at = [&](double share) {
    double below = 0;
    for (const auto& [value, weight] : weighed) {
      below += weight;
      if (below >= share * all) return value;
    }
    return weighed.back().first;
  };
  return {at(0.1), at(0.9)};
}

std::vector<double> stated(const std::vector<std::optional<double>>& logs) {
  std::vector<double> values;
  for (const std::optional<double>& each : logs) {
    if (each) values.push_back(*each);
  }
  return values;
}

void append(std::vector<double>& to, const std::vector<double>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Overall overall(const orrery::Table& table, const SoftwareFits& fits) {
  Overall all;
  std::vector<std::size_t> rows;
  std::size_t stacks = 0;
  for (const SoftwareFit& fit : fits.fits) {
    append(all.at_start, fit.at_start);
    append(all.in_sample, fit.in_sample);
    append(all.left_out, fit.left_out);
    rows.insert(rows.end(), fit.rows.begin(), fit.rows.end());
    if (fit.left_out.size() < least_rows_of_a_stack) continue;
    all.mean_in_sample += summary_of(percents(fit.in_sample)).median;
    all.mean_left_out += summary_of(percents(fit.left_out)).median;
    ++stacks;
  }
  if (stacks > 0) {
    all.mean_in_sample /= static_cast<double>(stacks);
    all.mean_left_out /= static_cast<double>(stacks);
  }
  if (fits.complete) all.generic = errors_of_generic(read_runs(table), rows);
  return all;
}

Json fit_json(const SoftwareFit& fit) {
  Json numbers = Json::array();
  for (const FittedNumber& each : fit.numbers) {
    const ProfileNumber& number = profile_numbers()[each.number];
    numbers.push_back({{"pointer", number.pointer},
                       {"start", number.written(each.start)},
                       {"fitted", number.written(each.value)},
                       {"spread_before", each.spread_before},
                       {"spread_left", each.spread_left},
                       {"effect_pct", 100 * each.effect},
                       {"determined", each.determined()}});
  }
  Json json{{"software", fit.name},
            {"rows", fit.rows.size()},
            {"numbers", numbers},
            {"at_start", logs_json(fit.at_start)},
            {"in_sample", logs_json(fit.in_sample)},
            {"unexplained", fit.unexplained},
            {"factor_not_expressed", fit.unexplained},  // its name in fits of few runs
            {"left_out_by", fit.left_out_by},
            {"groups", fit.groups},
            {"left_out", logs_json(fit.left_out)},
            {"profile", fit.profile}};
  if (fit.next.empty()) return json;
  json["site"] = fit.site;
  json["measure_next"] = fit.next;
  return json;
}

Json unused_json(const std::vector<MeasuredRun>& runs, const std::vector<UnusedRow>& unused) {
  Json json = Json::array();
  for (const UnusedRow& each : unused) {
    json.push_back({{"run", runs[each.row].run}, {"reason", each.reason}});
  }
  return json;
}

void add_runs(Json& json, const std::vector<MeasuredRun>& runs, const SoftwareFit& fit) {
  const auto time = [](const std::vector<double>& logs, std::size_t i, double measured) {
    return i < logs.size() ? Json(measured * std::exp(logs[i])) : Json(nullptr);
  };
  for (std::size_t i = 0; i < fit.rows.size(); ++i) {
    const MeasuredRun& run = runs[fit.rows[i]];
    const Json unseen = time(fit.left_out, i, *run.step_time);
    json.push_back({{"run", run.run},
                    {"measured_s", *run.step_time},
                    {"predicted_s", unseen},
                    {"in_sample_s", time(fit.in_sample, i, *run.step_time)},
                    {"error_pct",
                     unseen.is_null() ? Json(nullptr) : Json(100 * std::expm1(fit.left_out[i]))}});
  }
}

std::string value_text(const ProfileNumber& number, double value) {
  const Json written = number.written(value);
  return written.is_string() ? written.get<std::string>()
                             : fmt::format("{:.2f}", written.get<double>());
}

/// A spread as text: "12 %", or "5 us".
std::string spread_text(const ProfileNumber& number, double spread) {
  return number.differs == Differs::by_factor ? fmt::format("{:.0f} %", 100 * std::expm1(spread))
                                              : value_text(number, spread);
}

std::string numbers_text(const SoftwareFit& fit) {
  std::string text =
      fmt::format("  {:<30} {:>10} {:>10} {:>9} {:>9}   uncertainty of these steps\n", "number",
                  "start", "fitted", "spread", "left");
  for (const FittedNumber& each : fit.numbers) {
    const ProfileNumber& number = profile_numbers()[each.number];
    text += fmt::format("  {:<30} {:>10} {:>10} {:>9} {:>9}   {:.1f} %{}\n", number.pointer,
                        value_text(number, each.start), value_text(number, each.value),
                        spread_text(number, each.spread_before),
                        spread_text(number, each.spread_left), 100 * each.effect,
                        each.determined() ? "" : ", hardly determined by these runs");
  }
  return text;
}

std::string fit_text(const SoftwareFit& fit) {
  std::string text = fmt::format("\n{}: {} runs\n", fit.name, fit.rows.size());
  if (!fit.site.is_null()) {
    text += fmt::format("  your site, as a cluster's \"site\": {}\n", fit.site.dump());
  }
  text += numbers_text(fit);
  if (fit.unexplained != 1) {
    text += fmt::format("  unexplained: {:+.1f} % of each step, in the profile's predictions{}\n",
                        100 * (fit.unexplained - 1),
                        fit.site.is_null() ? "" : ", not in those of the site alone");
  }
  if (!fit.next.empty()) text += fmt::format("  measure next  {}\n", fit.next);
  text += fmt::format(
      "  error, median / 90th percentile / bias in %\n"
      "    numbers at the start  {}\n    fitted                {}\n",
      summary_text(fit.at_start), summary_text(fit.in_sample));
  if (!fit.left_out.empty()) {
    text += fmt::format("    fitted without its own {} ({} groups)  {}\n", fit.left_out_by,
                        fit.groups, summary_text(fit.left_out));
  }
  return text;
}

std::string overall_text(const orrery::Table& table, const SoftwareFits& fits) {
  const Overall all = overall(table, fits);
  std::string text = fmt::format(
      "\nall: {} runs; error, median / 90th percentile / bias in %\n"
      "  numbers at the start                    {}\n"
      "  fitted                                  {}\n"
      "  fitted without the row's group          {}\n",
      all.at_start.size(), summary_text(all.at_start), summary_text(all.in_sample),
      summary_text(all.left_out));
  if (!stated(all.generic).empty()) {
    const Unfitted spread = unfitted(fits, all.generic);
    text += fmt::format(
        "  by the generic profile                  {}\n    ln(measured / predicted), stacks "
        "weighted equally: p10 {:+.2f}, p90 {:+.2f}\n",
        summary_text(stated(all.generic)), spread.p10, spread.p90);
  }
  if (all.mean_left_out > 0) {
    text +=
        fmt::format("  mean over stacks of 10 runs or more     {:.1f} fitted, {:.1f} left out\n",
                    all.mean_in_sample, all.mean_left_out);
  }
  if (!all.in_sample.empty() && all.left_out.size() == all.in_sample.size()) {
    const ErrorSummary seen = summary_of(percents(all.in_sample));
    const ErrorSummary unseen = summary_of(percents(all.left_out));
    text += fmt::format("  left out over fitted                    {:.2f} median, {:.2f} 90th\n",
                        unseen.median / seen.median, unseen.p90 / seen.p90);
  }
  return text;
}

}  // namespace

Json to_json(const orrery::Table& table, const SoftwareFits& fits) {
  const std::vector<MeasuredRun> runs = read_runs(table);
  const Overall all = overall(table, fits);
  Json json{{"kind", "training runs"},
            {"complete", fits.complete},
            {"rows", runs.size()},
            {"used", runs.size() - fits.unused.size()},
            {"unused", unused_json(runs, fits.unused)},
            {"scored", all.left_out.size()}};
  add_errors(json, summary_if_any(percents(all.left_out)));
  json["mean_over_stacks_pct"] = all.mean_left_out > 0 ? Json(all.mean_left_out) : Json(nullptr);
  json["at_start"] = logs_json(all.at_start);
  json["in_sample"] = logs_json(all.in_sample);
  json["stack_left_out"] = logs_json(stated(all.generic));
  if (!stated(all.generic).empty()) {
    const Unfitted spread = unfitted(fits, all.generic);
    json["stack_left_out"]["log_p10"] = spread.p10;
    json["stack_left_out"]["log_p90"] = spread.p90;
  }
  json["software"] = Json::array();
  json["runs"] = Json::array();
  for (const SoftwareFit& fit : fits.fits) {
    json["software"].push_back(fit_json(fit));
    add_runs(json["runs"], runs, fit);
  }
  return json;
}

std::string table_of(const orrery::Table& table, const SoftwareFits& fits) {
  std::string text = fmt::format("{}: {}", table.name(), account_of(read_runs(table), fits.unused));
  if (text.back() != '\n') text += "\n";
  text += words_of_unread(table);
  for (const SoftwareFit& fit : fits.fits) text += fit_text(fit);
  if (fits.fits.size() > 1) text += overall_text(table, fits);
  if (!fits.complete)
    text += "\nstopped: the numbers are the best so far; the rest was not fitted\n";
  return text;
}

}  // namespace orrery::scenarios
