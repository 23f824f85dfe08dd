#include "scenarios/search/over_stacks.hpp"

#include <algorithm>

#include "models/plan/conflicts.hpp"
#include "models/software/resolved_profile.hpp"

namespace orrery::scenarios {

namespace {

std::vector<models::Software> fitted_stacks() {
  std::vector<models::Software> stacks;
  for (const std::string& name : models::software_names()) {
    const Json profile = models::software_profile(name);
    models::Software stack = models::read_software(Node{profile, name, ""});
    if (models::is_fitted(stack)) stacks.push_back(std::move(stack));
  }
  return stacks;
}

std::optional<models::Estimate> on_stack(const PlanQuery& query, const PlacedPlan& placed) {
  const models::Software& stack = query.software;
  if (!models::not_run(placed.plan, stack.runs, stack.name).empty()) return std::nullopt;
  const models::Question question = question_of(query, placed);
  if (!models::conflicts(question).empty()) return std::nullopt;
  models::Estimate found = models::estimate(question);
  if (found.out_of_memory) return std::nullopt;
  return found;
}

/// Fills in `worst` and `robust`.
void compare_stacks(const Objective& objective, OverStacks& found) {
  for (const PlansOnStack& stack : found.stacks) {
    const double least = objective.measure(*stack.estimates[stack.best]);
    for (std::size_t i = 0; i < found.worst.size(); ++i) {
      if (!stack.estimates[i]) continue;
      found.worst[i] = std::max(found.worst[i], objective.measure(*stack.estimates[i]) / least - 1);
    }
  }
  for (std::size_t i = 1; i < found.worst.size(); ++i) {
    const std::size_t own = found.runs(i), most = found.runs(found.robust);
    const bool safer = own == most && found.worst[i] < found.worst[found.robust];
    if (own > most || safer) found.robust = i;
  }
}

}  // namespace

std::size_t OverStacks::runs(std::size_t plan) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      stacks, [&](const PlansOnStack& each) { return each.estimates[plan].has_value(); }));
}

OverStacks over_stacks(const PlanQuery& query, const Objective& objective,
                       const std::vector<RankedPlan>& plans, const Workers& workers) {
  OverStacks found;
  const std::vector<models::Software> stacks = fitted_stacks();
  std::vector<PlansOnStack> all(stacks.size());
  workers.work_through(stacks.size(), [&](std::size_t s, unsigned) {
    PlanQuery asked = query;
    asked.software = stacks[s];
    all[s].software = stacks[s].name;
    for (const RankedPlan& each : plans) {
      all[s].estimates.push_back(on_stack(asked, each.candidate.placed));
    }
  });
  for (PlansOnStack& each : all) {
    const auto measure = [&](std::size_t i) { return objective.measure(*each.estimates[i]); };
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < each.estimates.size(); ++i) {
      if (each.estimates[i] && (!best || measure(i) < measure(*best))) best = i;
    }
    if (!best) continue;
    each.best = *best;
    found.stacks.push_back(std::move(each));
  }
  found.worst.assign(plans.size(), 0);
  compare_stacks(objective, found);
  return found;
}

}  // namespace orrery::scenarios
