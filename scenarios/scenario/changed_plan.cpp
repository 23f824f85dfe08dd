#include "scenarios/scenario/changed_plan.hpp"

#include <fmt/format.h>

#include "models/plan/fields.hpp"
#include "models/prediction/network/network.hpp"
#include "models/software/runnable.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

std::size_t unsupported(const models::Question& question) {
  return models::not_run(question.plan, question.software.runs, question.software.name).size();
}

/// Fields that follow from the degree.
void erase_derived(Json& plan, std::string_view degree) {
  plan.erase("data");
  if (degree != "pipeline") return;
  for (const char* key : {"stage_layers", "embedding_counts", "schedule", "virtual_stages"}) {
    plan.erase(key);
  }
}

}  // namespace

std::optional<models::Question> with_fields(const models::Question& question,
                                            const PlanChanges& changes) {
  Json plan = models::to_json(question.plan);
  for (const auto& [key, value] : changes) {
    if (models::plan_field(key).is_degree() && key != "virtual_stages" && key != "data") {
      erase_derived(plan, key);
    }
    plan[key] = value;
  }
  models::Question changed = question;
  try {
    std::vector<std::string> assumed;
    changed.plan =
        models::read_plan(Node{plan, "", "/plan"}, question.model, question.plan.gpus(), assumed);
  } catch (const InputError&) {
    return std::nullopt;
  }
  if (unsupported(changed) > unsupported(question)) return std::nullopt;
  if (!models::conflicts(changed).empty()) return std::nullopt;
  return changed;
}

std::string text_of(const PlanChanges& changes) {
  std::string text;
  for (const auto& [key, value] : changes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace orrery::scenarios
