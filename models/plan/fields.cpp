#include "models/plan/fields.hpp"

#include <vector>

#include "models/plan/field_groups.hpp"

namespace orrery::models {

std::span<const PlanField> plan_fields() {
  static const std::vector<PlanField> all = [] {
    std::vector<PlanField> joined;
    for (const auto group : {fields_of_axes(), fields_of_experts(), fields_of_batch(),
                             fields_of_savers(), fields_of_gradients()}) {
      joined.insert(joined.end(), group.begin(), group.end());
    }
    return joined;
  }();
  return all;
}

}  // namespace orrery::models
