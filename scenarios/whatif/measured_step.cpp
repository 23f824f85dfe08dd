#include "scenarios/whatif/measured_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "models/plan/fields.hpp"
#include "models/software/published_recipes.hpp"
#include "models/software/resolved_profile.hpp"
#include "models/software/software.hpp"
#include "scenarios/report/open_questions.hpp"
#include "scenarios/scenario/changed_plan.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::PlanField;
using models::Question;

constexpr double deviation_of_a_run = 0.05;  // of ln(measured / predicted): uncertainty.hpp
constexpr double share_without_recipes = 0.1;
constexpr std::size_t most_causes = 10;

double density(double x, double deviation) {
  const double z = x / deviation;
  return std::exp(-z * z / 2) / (deviation * std::sqrt(2 * std::numbers::pi));
}

/// Collects causes.
class Causes {
 public:
  Causes(const Scenario& scenario, const Question& question, const models::Prediction& prediction,
         Time measured)
      : scenario_{scenario}, question_{question}, prediction_{prediction}, measured_{measured} {
    question_.network = {};
    question_.network.mode = models::NetworkMode::fixed;
    static_step_ = models::predict(question_).step;
  }

  void add_changes();
  void add_clock();
  void add_stragglers();
  void add_slow_part(const char* kind, const char* at, double rate, const char* words);

  ExplainedStep found();

 private:
  /// The step with another question, relative to the same one evaluated statically.
  std::optional<Time> step_of(const Question& changed) const;
  void add(Explanation cause, std::optional<Time> step);
  double gap() const { return std::log(ratio(measured_, prediction_.step)); }

  const Scenario& scenario_;
  Question question_;  // statically evaluated
  const models::Prediction& prediction_;
  Time measured_, static_step_{};
  std::vector<Explanation> causes_;
};

std::optional<Time> Causes::step_of(const Question& changed) const {
  try {
    const models::Prediction found = models::predict(changed);
    if (found.fit == models::Fit::no && prediction_.fit != models::Fit::no) return std::nullopt;
    return scaled(prediction_.step, ratio(found.step, static_step_));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

void Causes::add(Explanation cause, std::optional<Time> step) {
  if (!step) return;
  const double left = std::log(ratio(measured_, *step));
  if (std::abs(left) > 0.7 * std::abs(gap())) return;  // explains little of it
  cause.step = *step;
  cause.weight = cause.prior * density(left, deviation_of_a_run);
  causes_.push_back(std::move(cause));
}

/// Fields that change what is trained, or are degrees, are not looked at.
bool may_differ(const PlanField& field) {
  constexpr std::string_view stated_by_all[] = {"task", "global_batch", "seq_len", "optimizer",
                                                "layers_by_time"};
  return !field.is_degree() &&
         std::ranges::find(stated_by_all, field.key) == std::end(stated_by_all);
}

/// Collects what may differ.
class DifferingChanges {
 public:
  DifferingChanges(const Scenario& scenario, const Question& question)
      : scenario_{scenario}, question_{question} {}

  std::vector<StepChange> run() {
    add_plan_fields();
    add_switches();
    return std::move(changes_);
  }

 private:
  void add_plan_fields();
  void add_switches();
  void add_value(const PlanField& field, const Json& value);

  const Scenario& scenario_;
  const Question& question_;
  std::vector<StepChange> changes_;
};

void DifferingChanges::add_value(const PlanField& field, const Json& value) {
  const std::string key{field.key};
  if (field.json(question_.plan) == value) return;
  const PlanChanges changes{{key, value}};
  const models::RecipeShare share = models::recipe_share(question_.software.name, key, value);
  const auto stating = static_cast<double>(share.stating);
  const double prior =
      share.stating == 0
          ? share_without_recipes
          : (static_cast<double>(share.with_value) + 0.1 * stating) / (1.2 * stating);
  const std::string basis =
      share.stating == 0 ? fmt::format("no recipe of {} states {}", question_.software.name, key)
                         : fmt::format("{} of {} recipes of {}", share.with_value, share.stating,
                                       question_.software.name);
  changes_.push_back({.cause = text_of(changes),
                      .flags = "--set /plan/" + text_of(changes),
                      .prior = prior,
                      .basis = basis,
                      .apply = [changes](const Question& to) { return with_fields(to, changes); }});
}

void DifferingChanges::add_plan_fields() {
  using Kind = models::PlanValue::Kind;
  const Json& stated = scenario_.json().at("plan");
  for (const PlanField& field : models::plan_fields()) {
    if (!may_differ(field) || stated.contains(std::string{field.key})) continue;
    if (field.value.kind == Kind::flag) {
      add_value(field, true);
      add_value(field, false);
    } else if (field.value.kind == Kind::word && field.value.words) {
      for (const std::string& word : field.value.words()) add_value(field, word);
    } else if (field.key == "micro_batch" || field.key == "zero") {
      for (const std::int64_t count : {0, 1, 2, 3, 4, 8}) add_value(field, count);
    }
  }
}

void DifferingChanges::add_switches() {
  const std::string generation = question_.cluster.gpu().generation.name;
  const bool unknown = stands_in(question_.software);
  for (const ProfileSwitch& each : profile_switches()) {
    std::int64_t profiles = 0, other = 0;
    for (const std::string& name : models::software_names()) {
      const Json profile = models::software_profile(name);
      const models::Software known = models::read_software(Node{profile, name, ""});
      ++profiles;
      other += each.is_set(known, generation) != each.is_set(question_.software, generation);
    }
    const double share = static_cast<double>(other) / static_cast<double>(profiles);
    changes_.push_back(
        {.cause = fmt::format("{}: the other way than {}", each.question, question_.software.name),
         .flags = {},
         .prior = unknown ? share : 0.1 * share,
         .basis = fmt::format("so in {} of {} profiles{}", other, profiles,
                              unknown ? "" : "; this stack's is known from its source"),
         .apply = [&each, generation](const Question& to) {
           Question changed = to;
           each.other_way(changed.software, generation);
           return std::optional{changed};
         }});
  }
}

void Causes::add_changes() {
  for (const StepChange& each : changes_that_may_explain(scenario_, question_)) {
    const auto changed = each.apply(question_);
    if (!changed) continue;
    add({.cause = each.cause, .flags = each.flags, .prior = each.prior, .basis = each.basis},
        step_of(*changed));
  }
}

/// GEMMs at the rate that makes the step as long as measured, by bisection.
void Causes::add_clock() {
  if (measured_ <= prediction_.step) return;
  constexpr double least = 0.5;
  const auto at = [&](double clock) {
    Question changed = question_;
    changed.cluster.site.clock *= clock;
    return step_of(changed);
  };
  double low = least, high = 1;
  const auto slowest = at(low);
  if (!slowest || *slowest < measured_) return;
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    const auto step = at(middle);
    if (!step) return;
    (*step > measured_ ? low : high) = middle;
  }
  const double clock = std::round(1000 * high) / 1000;
  add({.cause = fmt::format(
           "GEMMs at {:.0f} % of their rate: clock or power limit of the slowest GPU", 100 * clock),
       .flags = fmt::format("--site '{{\"clock\": {}}}'", clock * question_.cluster.site.clock),
       .prior = share_of_slow_machines,
       .basis = basis_of_slow_machines},
      at(clock));
}

/// Share of jobs that stragglers slow down by this factor and more, and its density over the
/// logarithm of the factor.
double straggler_density(double log_factor) {
  struct TailPoint {
    double factor, share;
  };
  // Lost GPU time of 21.3 % and 45 % is a step 1 / (1 - lost) times as long.
  constexpr TailPoint tail[] = {
      {1, 1}, {1.1, 0.425}, {1 / (1 - 0.213), 0.1}, {1 / (1 - 0.45), 0.01}};
  for (std::size_t i = 0; i + 1 < std::size(tail); ++i) {
    const double begin = std::log(tail[i].factor), end = std::log(tail[i + 1].factor);
    if (log_factor < begin || log_factor >= end) continue;
    return (tail[i].share - tail[i + 1].share) / (end - begin);
  }
  return 0;
}

void Causes::add_stragglers() {
  constexpr std::int64_t least_gpus = 128;  // of the jobs that the figures are of
  if (question_.plan.gpus() < least_gpus || gap() <= 0) return;
  const double found = straggler_density(gap());
  if (found <= 0) return;
  causes_.push_back(
      {.cause = fmt::format("stragglers: pauses and uneven work make all ranks wait, {:+.1f} %",
                            100 * (std::exp(gap()) - 1)),
       .flags = {},
       .step = measured_,
       .prior = found / density(0, deviation_of_a_run),
       .basis = "jobs on 128 GPUs and more that lose as much (arXiv 2505.05713)",
       .weight = found});
}

void Causes::add_slow_part(const char* kind, const char* at, double rate, const char* words) {
  constexpr std::int64_t most_gpus = 1024;  // events of more take seconds
  if (gap() <= 0 || question_.plan.gpus() > most_gpus) return;
  const Json slow = Json::array({{{"kind", kind}, {"at", at}, {"rate", rate}}});
  try {
    const Scenario events = scenario_.replace({{"/network", "events"}});
    const models::Prediction usual = models::predict(events.question());
    const Scenario changed = events.replace({{"/perturbations", slow}});
    const models::Prediction found = models::predict(changed.question());
    add({.cause = words,
         .flags = fmt::format("--set '/perturbations={}'", slow.dump()),
         .prior = share_of_slow_machines,
         .basis = basis_of_slow_machines},
        scaled(prediction_.step, ratio(found.step, usual.step)));
  } catch (const InputError&) {  // no such part here
  }
}

bool is_inside_range(const models::Prediction& prediction, Time measured) {
  return measured >= prediction.uncertainty.p10 && measured <= prediction.uncertainty.p90;
}

ExplainedStep Causes::found() {
  ExplainedStep result{.measured = measured_,
                       .predicted = prediction_.step,
                       .inside_range = is_inside_range(prediction_, measured_),
                       .explanations = {}};
  const models::Uncertainty& range = prediction_.uncertainty;
  constexpr double deviations = 2 * 1.2816;  // from p10 to p90 of a normal distribution
  const double own =
      std::max(deviation_of_a_run, std::log(ratio(range.p90, range.p10)) / deviations);
  result.weight_of_none = density(std::log(ratio(measured_, range.p50)), own);
  double all = result.weight_of_none;
  for (const Explanation& each : causes_) all += each.weight;
  if (all > 0) {
    result.weight_of_none /= all;
    for (Explanation& each : causes_) each.weight /= all;
  }
  std::ranges::stable_sort(causes_, std::greater{}, &Explanation::weight);
  if (causes_.size() > most_causes) causes_.resize(most_causes);
  result.explanations = std::move(causes_);
  return result;
}

}  // namespace

std::vector<StepChange> changes_that_may_explain(const Scenario& scenario,
                                                 const Question& question) {
  return DifferingChanges{scenario, question}.run();
}

ExplainedStep explain_measured(const Scenario& scenario, const Question& question,
                               const models::Prediction& prediction, Time measured) {
  constexpr double agrees = 0.01;
  if (std::abs(std::log(ratio(measured, prediction.step))) < agrees) {
    return {.measured = measured,
            .predicted = prediction.step,
            .inside_range = is_inside_range(prediction, measured),
            .weight_of_none = 1,
            .explanations = {}};
  }
  Causes causes{scenario, question, prediction, measured};
  causes.add_changes();
  causes.add_stragglers();
  causes.add_clock();
  causes.add_slow_part("nic", "node0/nic0", 0.5, "one NIC at half rate");
  causes.add_slow_part("gpu", "node0/gpu0", 0.8, "one GPU at 80 % of its rate");
  return causes.found();
}

Time read_measured_flag(const std::string& text) {
  const auto time = parse_quantity<Time>(text);
  if (!time || time->count() <= 0) {
    throw InputError{"--measured", fmt::format("expected a step time such as \"1.7 s\", found '{}'",
                                               printable(text, 60))};
  }
  return *time;
}

}  // namespace orrery::scenarios
