#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

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

namespace {

/// The first `top` plans, and the best of those further down that fit tightly and were searched
/// faster than the first.
std::vector<Candidate*> shown_plans(const Objective& objective, std::size_t top,
                                    PlanAnswer& answer) {
  constexpr std::size_t most_tight = 3;
  std::vector<Candidate*> shown;
  const std::size_t count = std::min(top, answer.fitting.size());
  for (std::size_t i = 0; i < count; ++i) shown.push_back(&answer.fitting[i]);
  for (std::size_t i = count; i < answer.fitting.size() && shown.size() < count + most_tight; ++i) {
    Candidate& each = answer.fitting[i];
    const bool tight = each.estimate.fit == models::Fit::tight;
    const double first = objective.measure(answer.fitting.front().estimate);
    if (tight && objective.measure(each.estimate) < first) shown.push_back(&each);
  }
  return shown;
}

}  // namespace

std::string share_links(const PlanQuery& query, const Objective& objective, std::size_t top,
                        const Workers& workers, PlanAnswer& answer) {
  const std::vector<Candidate*> shown = shown_plans(objective, top, answer);
  std::string refused;
  std::mutex writing;
  workers.work_through(shown.size(), [&](std::size_t i, unsigned) {
    Candidate& each = *shown[i];
    if (each.placed.nodes < 2) return;
    try {
      each.shared = shared_step(query, each.placed);
    } catch (const InputError& error) {
      const std::lock_guard lock{writing};
      if (refused.empty() || error.what() < refused) refused = error.what();
    }
  });
  if (!refused.empty()) {
    for (Candidate& each : answer.fitting) each.shared.reset();
    return refused;
  }
  const auto rank = [&](const Candidate& each) {
    return std::tuple{each.estimate.fit == models::Fit::tight, measure_of(objective, each),
                      each.estimate.memory};
  };
  const auto count = static_cast<std::ptrdiff_t>(std::min(top, answer.fitting.size()));
  std::stable_sort(answer.fitting.begin(), answer.fitting.begin() + count,
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  return refused;
}

}  // namespace orrery::scenarios
