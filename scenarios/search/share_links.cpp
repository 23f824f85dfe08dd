#include <algorithm>
#include <mutex>
#include <tuple>

#include "scenarios/search/plan_search.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

SharedStep shared_step(const PlanQuery& query, const PlacedPlan& placed) {
  models::Question question = question_of(query, placed);
  question.network.mode = models::NetworkMode::events;
  const models::Prediction found = models::predict(question);
  return {found.step, found.network.contention, found.network.evaluation};
}

}  // namespace

double measure_of(const Objective& objective, const Candidate& candidate) {
  const double searched = objective.measure(candidate.estimate);
  // On the same number of nodes cost and energy scale with time.
  return candidate.shared
             ? searched * orrery::ratio(candidate.shared->step, candidate.estimate.step)
             : searched;
}

std::string share_links(const PlanQuery& query, const Objective& objective, std::size_t top,
                        const Workers& workers, PlanAnswer& answer) {
  const std::size_t count = std::min(top, answer.fitting.size());
  std::string refused;
  std::mutex writing;
  workers.work_through(count, [&](std::size_t i, unsigned) {
    Candidate& each = answer.fitting[i];
    if (each.placed.nodes < 2) return;
    try {
      each.shared = shared_step(query, each.placed);
    } catch (const InputError& error) {
      const std::lock_guard lock{writing};
      refused = error.what();
    }
  });
  const auto rank = [&](const Candidate& each) {
    return std::tuple{each.estimate.fit == models::Fit::tight, measure_of(objective, each),
                      each.estimate.memory};
  };
  std::stable_sort(answer.fitting.begin(),
                   answer.fitting.begin() + static_cast<std::ptrdiff_t>(count),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  return refused;
}

}  // namespace orrery::scenarios
