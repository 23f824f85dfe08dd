#include "scenarios/validation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/errors.hpp"

namespace orrery::scenarios {

ErrorSummary summary_of(const std::vector<double>& errors) {
  std::vector<double> sizes;
  double sum = 0;
  for (const double error : errors) {
    sizes.push_back(std::abs(error));
    sum += sizes.back();
  }
  return {.rows = errors.size(),
          .median = quantile(sizes, 0.5),
          .mean = sum / static_cast<double>(errors.size()),
          .p90 = quantile(sizes, 0.9),
          .bias = quantile(errors, 0.5)};
}

std::optional<ErrorSummary> summary_if_any(const std::vector<double>& errors) {
  return errors.empty() ? std::nullopt : std::optional{summary_of(errors)};
}

Json to_json(const std::optional<ErrorSummary>& summary) {
  Json json{{"rows", summary ? summary->rows : 0}};
  add_errors(json, summary);
  return json;
}

void add_errors(Json& json, const std::optional<ErrorSummary>& summary) {
  const auto figure = [&](double ErrorSummary::*of) {
    return summary ? Json((*summary).*of) : Json(nullptr);
  };
  json["median_abs_error_pct"] = figure(&ErrorSummary::median);
  json["mean_abs_error_pct"] = figure(&ErrorSummary::mean);
  json["p90_abs_error_pct"] = figure(&ErrorSummary::p90);
  json["bias_pct"] = figure(&ErrorSummary::bias);
}

namespace {

constexpr std::size_t least_contenders = 4;
constexpr double least_spread = 1.10;  // slowest over fastest of a group
constexpr double least_gap = 1.05;     // slower over faster of a pair

bool spreads(const std::vector<RankedRun>& group) {
  if (group.size() < least_contenders) return false;
  const auto [fastest, slowest] = std::ranges::minmax_element(group, {}, &RankedRun::measured);
  return slowest->measured > least_spread * fastest->measured;
}

/// Regret in percent: how much longer the plan predicted fastest took than the fastest measured
/// one.
double regret_of(const std::vector<RankedRun>& group) {
  const auto chosen = std::ranges::min_element(group, {}, &RankedRun::predicted);
  double best = chosen->measured;
  for (const RankedRun& each : group) best = std::min(best, each.measured);
  return 100 * (chosen->measured / best - 1);
}

struct Pairs {
  std::size_t all = 0, in_order = 0;
};

Pairs pairs_of(const std::vector<RankedRun>& group) {
  Pairs pairs;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t j = 0; j < group.size(); ++j) {
      if (group[j].measured <= least_gap * group[i].measured) continue;
      if (group[j].plan == group[i].plan) continue;
      ++pairs.all;
      if (group[j].predicted > group[i].predicted) ++pairs.in_order;
    }
  }
  return pairs;
}

/// Percent: robust standard deviation of ln(predicted / measured) within a group, 1.4826 times the
/// median absolute deviation from the group's median.
double spread_of(const std::vector<RankedRun>& group) {
  constexpr double deviation_over_median = 1.4826;
  std::vector<double> errors;
  for (const RankedRun& each : group) errors.push_back(std::log(each.predicted / each.measured));
  const double common = quantile(errors, 0.5);
  for (double& each : errors) each = std::abs(each - common);
  return 100 * deviation_over_median * quantile(errors, 0.5);
}

/// Percent: absolute differences between the errors of two plans, over all pairs with equal cuts
/// (`alike`) or over all with different ones.
std::vector<double> gaps_of(const std::vector<RankedRun>& group, bool alike) {
  std::vector<double> gaps;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t j = i + 1; j < group.size(); ++j) {
      const RankedRun &a = group[i], &b = group[j];
      if (a.plan == b.plan || (a.cut == b.cut) != alike) continue;
      gaps.push_back(100 * std::abs(std::log(a.predicted / a.measured * b.measured / b.predicted)));
    }
  }
  return gaps;
}

/// The median over groups of the median gap; 0 if no group has such a pair.
double gap_of(const std::map<std::string, std::vector<RankedRun>>& groups, bool alike) {
  std::vector<double> medians;
  for (const auto& [name, group] : groups) {
    const std::vector<double> gaps = gaps_of(group, alike);
    if (spreads(group) && !gaps.empty()) medians.push_back(quantile(gaps, 0.5));
  }
  return medians.empty() ? 0 : quantile(medians, 0.5);
}

}  // namespace

Ranking ranking_of(const std::vector<RankedRun>& ranked_runs) {
  std::map<std::string, std::vector<RankedRun>> groups;
  for (const RankedRun& each : ranked_runs) groups[each.group].push_back(each);
  Ranking ranking;
  Pairs pairs;
  double regret = 0;
  std::vector<double> deviations;
  for (const auto& [name, group] : groups) {
    if (!spreads(group)) continue;
    ++ranking.groups;
    deviations.push_back(spread_of(group));
    regret += regret_of(group);
    const Pairs more = pairs_of(group);
    pairs.all += more.all;
    pairs.in_order += more.in_order;
  }
  if (ranking.groups > 0) {
    ranking.mean_regret = regret / static_cast<double>(ranking.groups);
    ranking.plan_spread = quantile(deviations, 0.5);
    ranking.gap_of_alike = gap_of(groups, true);
    ranking.gap_of_others = gap_of(groups, false);
  }
  if (pairs.all > 0) {
    ranking.pairs_in_order =
        100 * static_cast<double>(pairs.in_order) / static_cast<double>(pairs.all);
  }
  return ranking;
}

}  // namespace orrery::scenarios
