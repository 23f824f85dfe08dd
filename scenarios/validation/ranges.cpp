#include "scenarios/validation/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "models/prediction/error/uncertainty.hpp"
#include "models/software/resolved_profile.hpp"
#include "scenarios/validation/statistics.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using models::KindSpread;
using models::RangeRecord;
using models::RangeStep;
using models::RunGroup;
using models::RunKind;

/// A step of few groups adds this much of the spread of all: a range becomes 1.3 times as wide.
constexpr double usual_share = 0.83;
constexpr std::size_t least_groups_of_a_step = 8, least_groups_of_a_kind = 12;

/// 80 % of the values are no further from 0.
double spread_of(std::vector<double> values) {
  for (double& each : values) each = std::abs(each);
  return quantile(std::move(values), 0.8);
}

/// Finds spreads and factors in turn.
class RangeFit {
 public:
  explicit RangeFit(const std::vector<MeasuredGroup>& groups) {
    for (const MeasuredGroup& each : groups) {
      if (each.group.run.recurs || each.of_unfitted_stack) continue;
      record_.groups.push_back(each.group);
    }
    for (const MeasuredGroup& each : groups) {
      const RunGroup& group = each.group;
      const RunKind kind = group.run.kinds.front();
      (group.run.recurs ? recurrent_ : sides_)
          .push_back({.kind = kind,
                      .bias = each.bias(),
                      .steps = steps_between(record_.groups, kind, group.run, group.source)});
      if (group.run.recurs || each.fitted.size() < 2) continue;
      const double center = quantile(each.fitted, 0.5);
      for (const double error : each.fitted) within_[kind].push_back(error - center);
    }
  }

  RangeRecord found() {
    constexpr int rounds = 12;  // to 1 %
    for (int i = 0; i < rounds; ++i) {
      find_spreads();
      for (const auto& [step, word] : models::range_step_words) find_step(step);
    }
    // A stack without such runs has none on this GPU either.
    double& stack = spread(RangeStep::stack);
    stack = std::max(stack, spread(RangeStep::gpu));
    find_sides();
    return std::move(record_);
  }

 private:
  struct Sided {
    RunKind kind{};
    double bias = 0;
    std::vector<RangeStep> steps{};

    bool has(RangeStep step) const { return std::ranges::count(steps, step) > 0; }
  };

  double& spread(RangeStep step) { return record_.steps.at(static_cast<std::size_t>(step)); }

  /// What the steps of a group add, but for one of them.
  double away(const Sided& group, std::optional<RangeStep> without = {}) {
    double sum = 0;
    for (const RangeStep step : group.steps) {
      if (step != without) sum += spread(step) * spread(step);
    }
    return std::sqrt(sum);
  }

  /// The least number that, next to what is known of each group, explains four fifths of them and
  /// of the next one that comes: |bias| <= hypot(number, known). Of n groups that is 4/5 (n + 1).
  /// Source  Vovk, Gammerman, Shafer 2005, Algorithmic Learning in a Random World, 4.2: among n + 1
  ///         exchangeable groups the last is as likely as any to have each rank
  static double least_that_explains(const std::vector<Sided>& groups,
                                    const std::vector<double>& known) {
    double low = 0, high = 0;
    for (const Sided& each : groups) high = std::max(high, std::abs(each.bias));
    const auto explains = [&](double number) {
      std::size_t inside = 0;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        inside += std::abs(groups[i].bias) <= std::hypot(number, known[i]) ? 1 : 0;
      }
      return 5 * inside >= std::min(4 * (groups.size() + 1), 5 * groups.size());
    };
    if (explains(low)) return low;
    constexpr int halvings = 40;
    for (int i = 0; i < halvings; ++i) {
      const double middle = (low + high) / 2;
      (explains(middle) ? high : low) = middle;
    }
    return high;
  }

  double spread_of_groups(const std::vector<Sided>& groups) {
    std::vector<double> known;
    for (const Sided& each : groups) known.push_back(away(each));
    return least_that_explains(groups, known);
  }

  void find_spreads() {
    pooled_ = spread_of_groups(sides_);
    for (const auto& [kind, word] : models::run_kind_words) {
      std::vector<Sided> own;
      std::ranges::copy_if(sides_, std::back_inserter(own),
                           [&](const Sided& each) { return each.kind == kind; });
      KindSpread& spread = record_.kinds[kind];
      spread.groups = static_cast<std::int64_t>(own.size());
      spread.between = spread_of_groups(own);
      spread.groups_behind = spread.groups;
      if (own.size() < least_groups_of_a_kind && pooled_ >= spread.between) {
        spread.between = pooled_;
        spread.groups_behind = static_cast<std::int64_t>(sides_.size());
      }
      spread.within = within_[kind].empty() ? 0 : spread_of(within_[kind]);
    }
  }

  void find_step(RangeStep step) {
    std::vector<Sided> with;
    std::vector<double> known;
    for (const Sided& each : step == RangeStep::recurrence ? recurrent_ : sides_) {
      if (!each.has(step)) continue;
      with.push_back(each);
      known.push_back(std::hypot(record_.kinds[each.kind].between, away(each, step)));
    }
    const bool few = with.size() < least_groups_of_a_step;
    spread(step) = few ? usual_share * pooled_ : least_that_explains(with, known);
  }

  void find_sides() {
    std::vector<double> unseen;
    for (const Sided& each : sides_) {
      if (!each.has(RangeStep::stack)) continue;
      unseen.push_back(each.bias / std::hypot(record_.kinds[each.kind].between, away(each)));
    }
    if (unseen.size() < least_groups_of_a_step) return;
    const auto groups = static_cast<double>(unseen.size());
    const double share = std::min(1.0, 0.9 * (groups + 1) / groups);  // of the next one, as above
    record_.unseen_low = std::max(0.0, -quantile(unseen, 1 - share));
    record_.unseen_high = std::max(0.0, quantile(unseen, share));
  }

  RangeRecord record_;
  std::vector<Sided> sides_;
  std::vector<Sided> recurrent_;  // say what recurrent layers add, and nothing of other models
  std::map<RunKind, std::vector<double>> within_;
  double pooled_ = 0;  // spread between all groups
};

/// Groups alike in all that a question is compared by, as one.
std::vector<RunGroup> merged(const std::vector<RunGroup>& groups) {
  std::map<std::string, RunGroup> alike;
  for (const RunGroup& each : groups) {
    std::string key;
    for (const RunKind kind : each.run.kinds) key += word_of(models::run_kind_words, kind);
    key += fmt::format("|{}|{}|{}", each.run.stack, each.run.gpu, each.run.year);
    const auto [at, fresh] = alike.emplace(key, each);
    if (fresh) continue;
    at->second.rows += each.rows;
    at->second.groups += each.groups;
  }
  std::vector<RunGroup> list;
  for (const auto& [key, group] : alike) list.push_back(group);
  return list;
}

/// Rounds to four decimals.
double to_four(double value) {
  return std::round(value * 1e4) / 1e4;
}

Json group_json(const RunGroup& group) {
  Json kinds = Json::array();
  for (const RunKind kind : group.run.kinds) {
    kinds.push_back(word_of(models::run_kind_words, kind));
  }
  return {{"kinds", kinds},         {"stack", group.run.stack}, {"gpu", group.run.gpu},
          {"year", group.run.year}, {"rows", group.rows},       {"groups", group.groups}};
}

/// How many runs of some groups are inside their ranges.
struct Coverage {
  std::int64_t groups = 0, rows = 0, inside = 0;
  std::vector<double> half_widths;  // percent

  void add(const MeasuredGroup& group, const models::Evidence& range) {
    ++groups;
    for (const double error : group.errors) {
      ++rows;
      inside += error >= -range.low && error <= range.high ? 1 : 0;
      half_widths.push_back(50 * (std::exp(range.high) - std::exp(-range.low)));
    }
  }
};

std::string coverage_lines(const std::map<std::string, Coverage>& by) {
  std::string text;
  for (const auto& [name, each] : by) {
    text += fmt::format("| {} | {} | {} | {:.0f} % | {:.0f} % |\n", name, each.groups, each.rows,
                        100.0 * static_cast<double>(each.inside) / static_cast<double>(each.rows),
                        quantile(each.half_widths, 0.5));
  }
  return text;
}

std::vector<MeasuredGroup> without_source(const std::vector<MeasuredGroup>& groups,
                                          const std::string& source) {
  std::vector<MeasuredGroup> rest;
  std::ranges::copy_if(groups, std::back_inserter(rest),
                       [&](const MeasuredGroup& each) { return each.group.source != source; });
  return rest;
}

/// Groups in the order of their first runs.
class Grouped {
 public:
  MeasuredGroup& of(const MeasuredRun& run, const RunResult& result) {
    const models::RunTraits& traits = result.traits;
    std::string key =
        fmt::format("{}\n{}\n{}\n{}\n", run.source, run.model, traits.stack, traits.gpu);
    for (const RunKind kind : traits.kinds) key += word_of(models::run_kind_words, kind);
    const auto [at, fresh] = places_.try_emplace(key, groups_.size());
    if (fresh) groups_.push_back({{.run = traits, .source = run.source}, {}, {}});
    return groups_[at->second];
  }

  std::vector<MeasuredGroup> take() && { return std::move(groups_); }

 private:
  std::vector<MeasuredGroup> groups_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

namespace {

/// Does the shipped profile of a stack say that none of its numbers is fitted to runs of it?
bool is_unfitted(const std::string& stack) {
  const std::vector<std::string> known = models::software_names();
  if (std::ranges::find(known, stack) == known.end()) return false;
  return !models::software_profile(stack).value("fitted", true);
}

}  // namespace

double MeasuredGroup::bias() const {
  return quantile(errors, 0.5);
}

std::vector<MeasuredGroup> measured_groups(const std::vector<MeasuredRun>& runs,
                                           const std::vector<RunResult>& results,
                                           const UnseenErrors& unseen) {
  Grouped grouped;
  for (const RunResult& each : results) {
    if (!each.counts()) continue;
    MeasuredGroup& own = grouped.of(runs[each.row], each);
    const double wider = models::widening(each.fallback_curves);
    const double fitted = -std::log1p(*each.error_pct / 100);
    const auto left_out = unseen.find(each.row);
    own.fitted.push_back(fitted / wider);
    own.errors.push_back((left_out == unseen.end() ? fitted : left_out->second) / wider);
    ++own.group.rows;
  }
  std::vector<MeasuredGroup> groups = std::move(grouped).take();
  for (MeasuredGroup& each : groups) each.of_unfitted_stack = is_unfitted(each.group.run.stack);
  return groups;
}

std::vector<MeasuredGroup> groups_with_peaks(const std::vector<MeasuredRun>& runs,
                                             const std::vector<RunResult>& results) {
  Grouped grouped;
  for (const RunResult& each : results) {
    if (!each.counts() || !each.measured_memory) continue;
    MeasuredGroup& own = grouped.of(runs[each.row], each);
    own.errors.push_back(std::log(ratio(*each.measured_memory, *each.predicted_memory)));
    own.fitted.push_back(own.errors.back());
    ++own.group.rows;
  }
  return std::move(grouped).take();
}

RangeRecord ranges_of(const std::vector<MeasuredGroup>& groups) {
  ensure(!groups.empty(), "ranges come from groups of runs");
  RangeRecord record = RangeFit{groups}.found();
  for (const MeasuredGroup& each : groups) {
    if (!each.group.run.recurs) record.kinds[each.group.run.kinds.front()].rows += each.group.rows;
  }
  return record;
}

Json to_json(const RangeRecord& ranges) {
  Json json{{"kinds", Json::object()}, {"steps", Json::object()}};
  for (const auto& [kind, word] : models::run_kind_words) {
    const KindSpread& spread = ranges.kinds.at(kind);
    json["kinds"][std::string{word}] = {{"rows", spread.rows},
                                        {"groups", spread.groups},
                                        {"between", to_four(spread.between)},
                                        {"within", to_four(spread.within)},
                                        {"groups_behind", spread.groups_behind}};
  }
  for (const auto& [step, word] : models::range_step_words) {
    json["steps"][std::string{word}] = to_four(ranges.spread(step));
  }
  json["unseen_low"] = to_four(ranges.unseen_low);
  json["unseen_high"] = to_four(ranges.unseen_high);
  json["groups"] = Json::array();
  for (const RunGroup& each : merged(ranges.groups)) json["groups"].push_back(group_json(each));
  return json;
}

std::string coverage_section(const std::vector<MeasuredGroup>& groups) {
  std::map<std::string, Coverage> kinds, stacks, all;
  std::set<std::string> sources;
  for (const MeasuredGroup& each : groups) sources.insert(each.group.source);
  if (sources.size() < 2) return {};  // nothing is left once a source is left out
  for (const std::string& source : sources) {
    const RangeRecord others = ranges_of(without_source(groups, source));
    for (const MeasuredGroup& each : groups) {
      if (each.group.source != source) continue;
      const models::Evidence range = evidence_of(others, each.group.run);
      const RunKind kind = each.group.run.kinds.front();
      kinds[std::string{word_of(models::run_kind_words, kind)}].add(each, range);
      stacks[each.group.run.stack].add(each, range);
      all["all"].add(each, range);
    }
  }
  return fmt::format(
      "\n## Ranges of runs whose source is left out\n\nEach source is left out of the fits and of "
      "the runs that ranges come from; 80 % inside p10 to p90 are expected. Widths before what "
      "fallback curves and curves beyond their range add.\n\n"
      "| kind | groups | runs | inside | median half width |\n|---|--:|--:|--:|--:|\n{}{}\n"
      "| stack | groups | runs | inside | median half width |\n|---|--:|--:|--:|--:|\n{}",
      coverage_lines(kinds), coverage_lines(all), coverage_lines(stacks));
}

}  // namespace orrery::scenarios
