#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "models/prediction/flops.hpp"
#include "models/prediction/lower_bound.hpp"
#include "scenarios/search/comparison.hpp"
#include "scenarios/search/plan_search.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

SharedStep shared_step(const PlanQuery& query, const PlacedPlan& placed) {
  models::Question question = question_of(query, placed);
  question.network.mode = models::NetworkMode::events;
  models::Prediction found = models::predict(question);
  SharedStep shared;
  shared.figures = {found, found.memory[found.fullest].total};
  shared.contention = found.network.contention;
  shared.evaluation = found.network.evaluation;
  shared.waterfall = std::move(found.waterfall);
  return shared;
}

}  // namespace

double measure_of(const Objective& objective, const Candidate& candidate) {
  return objective.measure(candidate.figures());
}

bool is_on_links(const Candidate& plan) {
  return plan.shared || plan.placed.nodes == 1;
}

namespace {

/// Evaluates plans of an answer with their traffic on links.
class Sharing {
 public:
  Sharing(const PlanQuery& query, const Objective& objective, const Workers& workers,
          PlanAnswer& answer)
      : query_{query}, objective_{objective}, workers_{workers}, answer_{answer} {}

  /// Returns why the traffic of one cannot be simulated; empty: all are evaluated.
  std::string evaluate(const std::vector<Candidate*>& plans) {
    std::string refused;
    std::mutex writing;
    const bool whole = workers_.work_through(plans.size(), [&](std::size_t i, unsigned) {
      Candidate& each = *plans[i];
      if (is_on_links(each)) return;
      try {
        each.shared = shared_step(query_, each.placed);
      } catch (const InputError& error) {
        const std::lock_guard lock{writing};
        if (refused.empty() || error.what() < refused) refused = error.what();
      }
    });
    return whole ? refused : stop();
  }

  /// Evaluates the plans that may be better than the best one, a batch at a time.
  std::string evaluate_rivals() {
    constexpr std::size_t batch = 8;
    std::vector<Candidate*> rivals = bounded_rivals();
    if (answer_.stopped) return stop();
    std::size_t next = 0;
    while (next < std::min(rivals.size(), most_further)) {
      const double best = best_measure();
      std::vector<Candidate*> now;
      for (; next < rivals.size() && now.size() < batch; ++next) {
        if (*rivals[next]->least_shared >= best) break;
        now.push_back(rivals[next]);
      }
      if (now.empty()) break;
      if (std::string refused = evaluate(now); !refused.empty()) return refused;
    }
    for (Candidate* each : rivals) {
      if (each->shared) each->least_shared.reset();
    }
    return {};
  }

 private:
  std::string stop() {
    answer_.stopped = true;
    return "interrupted before the traffic of all plans shown was simulated";
  }

  bool ranks_with_first(const Candidate& each) const {
    return each.estimate.fit == answer_.fitting.front().estimate.fit;
  }

  double best_measure() const {
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& each : answer_.fitting) {
      if (ranks_with_first(each) && is_on_links(each)) {
        best = std::min(best, measure_of(objective_, each));
      }
    }
    return best;
  }

  /// The plans that were not evaluated, with their lower bounds, which ascend.
  std::vector<Candidate*> bounded_rivals() {
    std::vector<Candidate*> rivals;
    for (Candidate& each : answer_.fitting) {
      if (ranks_with_first(each) && !is_on_links(each)) rivals.push_back(&each);
    }
    answer_.stopped = !workers_.work_through(rivals.size(), [&](std::size_t i, unsigned) {
      Candidate& each = *rivals[i];
      const Time step = models::step_without_sharing(question_of(query_, each.placed));
      each.least_shared = objective_.bound(
          query_, each.placed.nodes, {.step = step, .kernels = {}, .memory = each.estimate.memory});
    });
    if (answer_.stopped) return {};
    std::ranges::stable_sort(rivals, {}, [](const Candidate* each) { return *each->least_shared; });
    return rivals;
  }

  const PlanQuery& query_;
  const Objective& objective_;
  const Workers& workers_;
  PlanAnswer& answer_;
};

/// The plans that a report shows.
std::vector<Candidate*> shown_plans(const PlanQuery& query, const Objective& objective,
                                    std::size_t top, PlanAnswer& answer) {
  constexpr std::size_t most_tight = 3, most_classes = 8;
  std::set<const Candidate*> shown;
  for (std::size_t i = 0; i < std::min(top, answer.fitting.size()); ++i) {
    shown.insert(&answer.fitting[i]);
  }
  std::int64_t open = 0;
  const std::vector<PlanClass> classes = classes_of(query, answer, objective, open);
  for (std::size_t i = 0; i < std::min(most_classes, classes.size()); ++i) {
    shown.insert(classes[i].best);
  }
  for (const PlanKind& kind : named_kinds()) {
    if (const Candidate* best = best_of_kind(query, answer, kind)) shown.insert(best);
  }
  // Those that fit tightly and were searched faster than the first.
  std::size_t tight = 0;
  for (const Candidate& each : answer.fitting) {
    if (tight == most_tight || answer.fitting.front().estimate.fit == models::Fit::tight) break;
    if (each.estimate.fit != models::Fit::tight) continue;
    const double first = objective.measure(answer.fitting.front().estimate);
    if (objective.measure(each.estimate) >= first) break;
    shown.insert(&each);
    ++tight;
  }
  std::vector<Candidate*> plans;
  for (Candidate& each : answer.fitting) {
    if (shown.count(&each) > 0) plans.push_back(&each);
  }
  return plans;
}

}  // namespace

std::string share_links(const PlanQuery& query, const Objective& objective, std::size_t top,
                        const Workers& workers, PlanAnswer& answer) {
  if (answer.fitting.empty()) return {};
  Sharing sharing{query, objective, workers, answer};
  std::string refused = sharing.evaluate(shown_plans(query, objective, top, answer));
  if (refused.empty()) refused = sharing.evaluate_rivals();
  if (!refused.empty()) {
    for (Candidate& each : answer.fitting) {
      each.shared.reset();
      each.least_shared.reset();
    }
    return refused;
  }
  // Those on links first, by their figures, ties as in the search; the rest as they were searched.
  const auto rank = [&](const Candidate& each) {
    const bool tight = each.estimate.fit == models::Fit::tight;
    if (!is_on_links(each)) return std::tuple{tight, true, 0.0, 0.0, Bytes{}};
    return std::tuple{tight, false, measure_of(objective, each),
                      models::recomputed_flops_per_token(query.model, each.placed.plan),
                      each.estimate.memory};
  };
  std::ranges::stable_sort(answer.fitting, {}, rank);
  return {};
}

}  // namespace orrery::scenarios
