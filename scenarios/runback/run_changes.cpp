#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "scenarios/fitting/profile/profile_numbers.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/runback/run_comparison.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::Question;

constexpr double spread_of_class = 0.03, spread_of_step = 0.01;
constexpr double least_gain = 2;
constexpr std::size_t most_changes = 6;
constexpr std::size_t most_after_first = 16;  // candidates that are tried again
constexpr double prior_of_unpriced = 0.1;

/// A number of the profile whose class of time follows it.
struct NumberOfClass {
  std::vector<std::string_view> pointers;  // moved together
  RunClass which;
  bool slow_machine;  // one would show so, too
  /// What the number's move means: from its factor, or for an amount its seconds.
  std::string (*words)(double);
};

std::string as_rate(const char* what, double factor) {
  return fmt::format("{} at {:.0f} % of the predicted rate", what, 100 / factor);
}

const std::vector<NumberOfClass>& numbers_of_classes() {
  static const std::vector<NumberOfClass> numbers = {
      {{"/kernels/gemm_derate/default"},
       RunClass::gemm,
       true,
       [](double f) { return as_rate("GEMMs", f); }},
      {{"/kernels/attention_derate"},
       RunClass::attention,
       true,
       [](double f) { return as_rate("attention", f); }},
      {{"/kernels/memory_derate"},
       RunClass::memory_bound,
       true,
       [](double f) { return as_rate("memory-bound kernels", f); }},
      {{"/overlap/data_efficiency"},
       RunClass::communication,
       true,
       [](double f) {
         return fmt::format("the network reaches {:.0f} % of the share predicted for gradients",
                            100 * f);
       }},
      {{"/overlap/tensor_exposed"},
       RunClass::communication,
       true,
       [](double f) {
         return fmt::format("tensor-parallel communication {:.2f} times as exposed", f);
       }},
      {{"/overlap/data_exposed"},
       RunClass::communication,
       false,
       [](double f) { return fmt::format("gradient traffic {:.2f} times as exposed", f); }},
      {{"/host/forward_launch", "/host/backward_launch"},
       RunClass::host,
       true,
       [](double f) { return fmt::format("launches cost the host {:.2f} times as much", f); }},
      {{"/host/step"},
       RunClass::host,
       false,
       [](double s) {
         return fmt::format("{} of host time in each step", format(from_seconds(s)));
       }},
  };
  return numbers;
}

/// What no number of a profile moves: the class as the trace shows it.
struct ObservedClass {
  RunClass which;
  const char* words;
  double prior;
  const char* basis;
};
constexpr const char* basis_of_unpriced = "not predicted, and no share of runs is published";
constexpr ObservedClass observed_classes[] = {
    {RunClass::data_loading, "the GPU waits for input data", prior_of_unpriced, basis_of_unpriced},
    {RunClass::optimizer, "the optimizer's kernels", prior_of_unpriced,
     "no number of a profile scales the optimizer"},
    {RunClass::copies, "copies on the GPU and to the host", prior_of_unpriced, basis_of_unpriced},
    {RunClass::other, "kernels wait for other streams, and gaps between them", prior_of_unpriced,
     basis_of_unpriced},
    {RunClass::pipeline, "stages wait for each other: stragglers or uneven stages", 0.425,
     "jobs that are slowed by 1.1 and more (arXiv 2505.05713)"},
    {RunClass::communication, "ranks wait for each other in collectives, or a slow network", 0.425,
     "jobs that are slowed by 1.1 and more (arXiv 2505.05713)"},
};

/// The state that changes lead to: a question, and time that no question expresses.
struct ChangedRun {
  Question question;
  ClassTimes extra;    // by observed classes
  ClassTimes classes;  // predicted, with `extra`
};

struct TriedChange {
  std::string cause, flags, basis;
  double prior = 0;
  std::function<std::optional<ChangedRun>(const ChangedRun&, TriedChange&)> apply;
};

class ChangeSearch {
 public:
  ChangeSearch(const Scenario& scenario, const Question& question, RunComparison& found)
      : scenario_{scenario}, found_{found}, fixed_{question} {
    fixed_.network = {};
    fixed_.network.mode = models::NetworkMode::fixed;
    for (const RunClassTime& row : found_.classes) measured_[row.which] = row.measured;
    for (const RunClassTime& row : found_.classes) offset_[row.which] = row.predicted;
    // What shared links add to the static prediction stays as it is.
    const ClassTimes base = classes_of_question(fixed_);
    for (const auto& each : run_class_words) offset_[each.value] -= base[each.value];
  }

  void run() {
    ChangedRun at{fixed_, {}, classes_of_question(fixed_)};
    for (const auto& each : run_class_words) at.classes[each.value] += offset_[each.value];
    collect();
    double score = score_of(at.classes);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < candidates_.size(); ++i) order.emplace_back(0, i);
    while (found_.changes.size() < most_changes) {
      std::optional<ChangedRun> best;
      TriedChange chosen;
      std::size_t index = 0;
      double gain = least_gain;
      for (auto& [gained, i] : order) {
        TriedChange tried = candidates_[i];
        const auto changed = tried.apply(at, tried);
        gained = -1e300;
        if (!changed) continue;
        gained = score_of(changed->classes) + std::log(tried.prior) - score;
        if (gained <= gain) continue;
        gain = gained;
        best = changed;
        chosen = std::move(tried);
        index = i;
      }
      if (!best) break;
      found_.changes.push_back({.cause = chosen.cause,
                                .flags = chosen.flags,
                                .prior = chosen.prior,
                                .basis = chosen.basis,
                                .effect = best->classes.sum() - at.classes.sum()});
      at = *std::move(best);
      score = score_of(at.classes);
      std::ranges::stable_sort(order, std::greater{});
      if (order.size() > most_after_first) order.resize(most_after_first);
      std::erase_if(order, [&](const auto& each) { return each.second == index; });
      for (const std::size_t each : always_) {
        const bool there =
            std::ranges::any_of(order, [&](const auto& entry) { return entry.second == each; });
        if (!there && each != index) order.emplace_back(0, each);
      }
    }
    found_.unexplained = measured_.sum() - at.classes.sum();
  }

 private:
  ClassTimes classes_of_question(const Question& question) const {
    return predicted_classes(models::predict(question), found_.rank_class);
  }

  std::optional<ChangedRun> with(const ChangedRun& from, Question question) const {
    try {
      const models::Prediction prediction = models::predict(question);
      const bool fits = prediction.fit != models::Fit::no;
      if (!fits && found_.prediction.fit != models::Fit::no) return std::nullopt;
      const auto stages = prediction.program->classes.size();
      const std::uint32_t rank_class =
          found_.rank_class < stages ? found_.rank_class : prediction.slowest;
      ChangedRun made{std::move(question), from.extra, predicted_classes(prediction, rank_class)};
      for (const auto& each : run_class_words) {
        made.classes[each.value] += offset_[each.value] + from.extra[each.value];
      }
      return made;
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  double score_of(const ClassTimes& predicted) const {
    const double step = seconds(measured_.sum());
    double score = 0;
    for (const auto& each : run_class_words) {
      const double m = seconds(measured_[each.value]), p = seconds(predicted[each.value]);
      const double spread = std::hypot(spread_of_class * std::max(m, p), spread_of_step * step);
      const double far = std::abs(m - p) / spread;
      score -= far < 3 ? far * far / 2 : 3 * far - 4.5;
    }
    return score;
  }

  void collect() {
    for (const StepChange& each : changes_that_may_explain(scenario_, fixed_)) {
      candidates_.push_back(
          {.cause = each.cause,
           .flags = each.flags,
           .basis = each.basis,
           .prior = each.prior,
           .apply = [this, change = each.apply](const ChangedRun& from, TriedChange&) {
             auto changed = change(from.question);
             return changed ? with(from, *std::move(changed)) : std::nullopt;
           }});
    }
    for (const NumberOfClass& each : numbers_of_classes()) {
      always_.push_back(candidates_.size());
      candidates_.push_back({.cause = {},
                             .flags = {},
                             .basis = {},
                             .apply = [this, &each](const ChangedRun& from, TriedChange& own) {
                               return moved(from, each, own);
                             }});
    }
    for (const ObservedClass& each : observed_classes) {
      always_.push_back(candidates_.size());
      candidates_.push_back({.cause = each.words,
                             .flags = {},
                             .basis = each.basis,
                             .prior = each.prior,
                             .apply = [this, &each](const ChangedRun& from, TriedChange& own) {
                               return observed(from, each, own);
                             }});
    }
  }

  std::optional<ChangedRun> observed(const ChangedRun& from, const ObservedClass& which,
                                     TriedChange& own) const {
    const Time difference = measured_[which.which] - from.classes[which.which];
    if (difference == Time{}) return std::nullopt;
    const bool waits = which.which == RunClass::communication || which.which == RunClass::pipeline;
    if (waits && difference < Time{}) return std::nullopt;
    ChangedRun made = from;
    made.extra[which.which] += difference;
    made.classes[which.which] += difference;
    const Time size = difference < Time{} ? -difference : difference;
    own.cause = fmt::format("{}: {} {} in each step than predicted", which.words, format(size),
                            difference < Time{} ? "less" : "more");
    return made;
  }

  static const ProfileNumber& number_at(std::string_view pointer) {
    for (const ProfileNumber& each : profile_numbers()) {
      if (each.pointer == pointer) return each;
    }
    throw ContractError{"a class follows a number that no profile has"};
  }

  /// Moves the numbers by the factor (or amount) at which their class agrees with the trace.
  std::optional<ChangedRun> moved(const ChangedRun& from, const NumberOfClass& which,
                                  TriedChange& own) const {
    const ProfileNumber& first = number_at(which.pointers.front());
    if (!first.matters(from.question.software)) return std::nullopt;
    const double start = first.coordinate(first.get(from.question.software));
    const double target = seconds(measured_[which.which]);
    const auto at = [&](double move) -> std::optional<ChangedRun> {
      Question question = from.question;
      for (const std::string_view pointer : which.pointers) {
        const ProfileNumber& number = number_at(pointer);
        const double there = number.coordinate(number.get(question.software));
        number.set(question.software, number.value(there + move));
      }
      return with(from, std::move(question));
    };
    const auto error = [&](const ChangedRun& run) {
      return seconds(run.classes[which.which]) - target;
    };
    double low = 0, error_low = error(from);
    const bool by_factor = first.differs == Differs::by_factor;
    double high = by_factor ? (error_low < 0 ? 0.2 : -0.2) : -error_low;
    std::optional<ChangedRun> best;
    double least = std::abs(error_low);
    for (int round = 0; round < 6; ++round) {
      const auto tried = at(high);
      if (!tried) return std::nullopt;
      const double error_high = error(*tried);
      if (std::abs(error_high) < least) {
        least = std::abs(error_high);
        best = tried;
      }
      if (std::abs(error_high - error_low) < 1e-9 || least < 0.002 * target) break;
      const double next = high - error_high * (high - low) / (error_high - error_low);
      low = high;
      error_low = error_high;
      high = std::clamp(next, -3.0, 3.0);
    }
    if (!best) return std::nullopt;
    describe(which, first, start, from, *best, own);
    return best;
  }

  /// The flags that predict with these numbers. GEMMs of a GPU's generation have an entry of their
  /// own; a site's clock changes them all.
  static std::string flags_of(const NumberOfClass& which, const Question& question) {
    if (which.which == RunClass::gemm) return {};
    std::string flags;
    for (const std::string_view pointer : which.pointers) {
      const ProfileNumber& number = number_at(pointer);
      const Json written = number.written(number.get(question.software));
      flags += fmt::format(
          "{}--set /software{}={}", flags.empty() ? "" : " ", pointer,
          written.is_string() ? "'" + written.get<std::string>() + "'" : written.dump());
    }
    return flags;
  }

  static void describe(const NumberOfClass& which, const ProfileNumber& number, double start,
                       const ChangedRun& from, const ChangedRun& to, TriedChange& own) {
    const bool by_factor = number.differs == Differs::by_factor;
    const double before = number.get(from.question.software);
    const double after = number.get(to.question.software);
    own.cause = which.words(by_factor ? after / before : after - before);
    const double far = (number.coordinate(after) - start) / number.spread;
    const double density = std::exp(-far * far / 2);
    const bool slow = which.slow_machine && to.classes.sum() > from.classes.sum() &&
                      density < share_of_slow_machines;
    own.prior = std::max(slow ? share_of_slow_machines : 1e-6, density);
    own.basis = slow ? std::string{basis_of_slow_machines}
                     : fmt::format("{} differs by {} between stacks", number.pointer,
                                   by_factor ? fmt::format("{:.0f} %", 100 * number.spread)
                                             : format(from_seconds(number.spread)));
    own.flags = flags_of(which, to.question);
    if (which.which == RunClass::gemm) {
      const double clock = to.question.cluster.site.clock * before / after;
      own.flags = fmt::format("--site '{{\"clock\": {:.3f}}}'", clock);
    }
  }

  const Scenario& scenario_;
  RunComparison& found_;
  Question fixed_;
  ClassTimes measured_, offset_;
  std::vector<TriedChange> candidates_;
  std::vector<std::size_t> always_;  // candidates that follow the classes: tried in every round
};

}  // namespace

void add_changes(const Scenario& scenario, const Question& question, RunComparison& found) {
  constexpr double agrees = 0.01;
  Time apart{};
  for (const RunClassTime& row : found.classes) {
    apart +=
        row.measured > row.predicted ? row.measured - row.predicted : row.predicted - row.measured;
  }
  found.unexplained = found.measured - found.prediction.step;
  if (ratio(apart, found.measured) < agrees) return;
  ChangeSearch{scenario, question, found}.run();
}

}  // namespace orrery::scenarios
