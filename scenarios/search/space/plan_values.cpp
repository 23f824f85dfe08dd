#include "scenarios/search/space/plan_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/search/space/dimensions.hpp"

namespace orrery::scenarios {

using models::Plan;

Json value_in(const models::PlanField& field, const Plan& plan) {
  return field.write ? field.write(plan) : field.value.write(plan);
}

std::string text_in(const models::PlanField& field, const Plan& plan) {
  const Json value = value_in(field, plan);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string flag_of(const PlanQuery& query, const Plan& plan) {
  std::string text = models::to_text(plan);
  for (const SearchDimension& each : search_dimensions()) {
    if (!each.refines || plan.experts.ranks == 1 || !each.runs(query.software.runs)) continue;
    const models::PlanField& field = models::plan_field(each.key);
    if (field.json(plan).is_null()) text += fmt::format(",{}={}", each.key, text_in(field, plan));
  }
  return text;
}

bool is_excluded(const PlanQuery& query, const Plan& plan) {
  return std::ranges::any_of(query.excluded, [&](const ExcludedValue& each) {
    return value_in(models::plan_field(each.key), plan) == each.value;
  });
}

}  // namespace orrery::scenarios
