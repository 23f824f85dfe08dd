#include "models/software/runnable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/plan/fields.hpp"

namespace orrery::models {

RunnablePlans read_runnable(const Node& node) {
  node.only({"zero", "tensor", "pipeline", "context", "schedules", "keeps_expert_outputs",
             "decodes_blocks", "source"});
  RunnablePlans plans;
  plans.zero.clear();
  for (const Node& stage : node["zero"].elements()) {
    Plan plan;
    plan_field("zero").read_value(stage, plan);
    const Zero read = plan.zero;
    if (!plans.zero.empty() && read <= plans.zero.back()) stage.fail("stages must rise");
    plans.zero.push_back(read);
  }
  if (plans.zero.empty()) node["zero"].fail_expected("ZeRO stages from 0 to 3");
  plans.tensor = node.value_or("tensor", true);
  plans.pipeline = node.value_or("pipeline", true);
  if (const auto forms = node.find("context")) {
    for (const Node& form : forms->elements())
      plans.context.push_back(form.word(context_form_words));
  }
  if (const auto schedules = node.find("schedules")) {
    for (const Node& each : schedules->elements()) {
      const auto name = each.as<std::string>();
      if (!builtin_schedules().has(name)) {
        each.fail_expected("one of " + listed(builtin_schedules().names()));
      }
      plans.schedules.push_back(name);
    }
  }
  plans.keeps_expert_outputs = node.value_or("keeps_expert_outputs", false);
  plans.decodes_blocks = node.value_or("decodes_blocks", false);
  plans.source = node["source"].as<std::string>();
  return plans;
}

std::string stages_of(const RunnablePlans& plans) {
  std::string text;
  for (const Zero each : plans.zero) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", word_of(zero_words, each));
  }
  return text;
}

std::vector<std::string> not_run(const Plan& plan, const RunnablePlans& plans,
                                 const std::string& stack) {
  std::vector<std::string> found;
  if (plans.source.empty()) return found;
  const bool known = std::ranges::find(plans.zero, plan.zero) != plans.zero.end();
  if (!known && plan.replicas() > 1) {
    found.push_back(fmt::format("/plan/zero: ZeRO stage {} is not supported by {}; supported: {}",
                                word_of(zero_words, plan.zero), stack, stages_of(plans)));
  }
  if (!plans.tensor && plan.tensor > 1) {
    found.push_back(fmt::format("/plan/tensor: {} has no tensor parallelism", stack));
  }
  const bool cuts = std::ranges::find(plans.context, plan.context_form) != plans.context.end();
  if (plan.context > 1 && !cuts) {
    found.push_back(fmt::format("/plan/context: {} does not support context parallelism by {}",
                                stack, word_of(context_form_words, plan.context_form)));
  }
  if (!plans.pipeline && plan.pipeline > 1) {
    found.push_back(fmt::format("/plan/pipeline: {} has no pipeline parallelism", stack));
  }
  return found;
}

}  // namespace orrery::models
