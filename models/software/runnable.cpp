#include "models/software/runnable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/plan/fields.hpp"

namespace orrery::models {

namespace {

/// The words of a list; empty if it is absent.
template <class Words>
auto read_words(const Node& node, std::string_view key, const Words& words) {
  std::vector<decltype(node.word(words))> found;
  if (const auto list = node.find(key)) {
    for (const Node& each : list->elements()) found.push_back(each.word(words));
  }
  return found;
}

}  // namespace

RunnablePlans read_runnable(const Node& node) {
  node.only({"zero", "tensor", "pipeline", "shards_in_pipelines", "context", "schedules",
             "dispatchers", "expert_overlaps", "recompute_modules", "keeps_expert_outputs",
             "decodes_blocks", "source"});
  RunnablePlans plans;
  plans.zero.clear();
  for (const Node& stage : node["zero"].elements()) {
    Plan plan;
    plan_field("zero").read_value(stage, plan);
    const Zero read = plan.sharding.zero;
    if (!plans.zero.empty() && read <= plans.zero.back()) stage.fail("stages must rise");
    plans.zero.push_back(read);
  }
  if (plans.zero.empty()) node["zero"].fail_expected("ZeRO stages from 0 to 3");
  plans.tensor = node.value_or("tensor", true);
  plans.pipeline = node.value_or("pipeline", true);
  plans.shards_in_pipelines = node.value_or("shards_in_pipelines", false);
  plans.context = read_words(node, "context", context_form_words);
  plans.dispatchers = read_words(node, "dispatchers", dispatcher_words);
  plans.expert_overlaps = read_words(node, "expert_overlaps", expert_overlap_words);
  plans.recompute_modules = read_words(node, "recompute_modules", recompute_module_words);
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

namespace {

bool has(const auto& values, auto value) {
  return std::ranges::find(values, value) != values.end();
}

/// Why the stack does not overlap the experts' all-to-alls as the plan says; empty if it does.
std::string overlap_not_run(const Plan& plan, const RunnablePlans& plans) {
  if (plan.experts.overlap == ExpertOverlap::none || plans.expert_overlaps.empty()) return {};
  if (!has(plans.expert_overlaps, plan.experts.overlap)) return "is not supported";
  if (plan.experts.overlap == ExpertOverlap::shared) {
    return plan.experts.dispatcher == Dispatcher::all_to_all ? "" : "needs dispatcher alltoall";
  }
  if (plan.experts.ranks == 1) return "needs expert above 1";
  if (plan.recompute.kind == Recompute::full) return "excludes recompute full";
  const bool whole = plan.pipeline > 1 && plan.stages.virtual_stages == 1;
  return whole ? "needs virtual_stages above 1 in a pipeline" : "";
}

bool has_dispatcher(const Plan& plan, const RunnablePlans& plans) {
  return plans.dispatchers.empty() || has(plans.dispatchers, plan.experts.dispatcher);
}

}  // namespace

bool runs_experts(const Plan& plan, const RunnablePlans& plans) {
  return has_dispatcher(plan, plans) && overlap_not_run(plan, plans).empty();
}

std::vector<std::string> not_run(const Plan& plan, const RunnablePlans& plans,
                                 const std::string& stack) {
  std::vector<std::string> found;
  if (plans.source.empty()) return found;
  const bool known = std::ranges::find(plans.zero, plan.sharding.zero) != plans.zero.end();
  if (!known && plan.replicas() > 1) {
    found.push_back(fmt::format("/plan/zero: ZeRO stage {} is not supported by {}; supported: {}",
                                word_of(zero_words, plan.sharding.zero), stack, stages_of(plans)));
  }
  if (!plans.tensor && plan.tensor > 1) {
    found.push_back(fmt::format("/plan/tensor: {} has no tensor parallelism", stack));
  }
  const bool cuts =
      std::ranges::find(plans.context, plan.context_exchange.form) != plans.context.end();
  if (plan.context > 1 && !cuts) {
    found.push_back(fmt::format("/plan/context: {} does not support context parallelism by {}",
                                stack, word_of(context_form_words, plan.context_exchange.form)));
  }
  if (!plans.pipeline && plan.pipeline > 1) {
    found.push_back(fmt::format("/plan/pipeline: {} has no pipeline parallelism", stack));
  }
  if (!has_dispatcher(plan, plans)) {
    found.push_back(fmt::format("/plan/dispatcher: {} does not support {}", stack,
                                word_of(dispatcher_words, plan.experts.dispatcher)));
  }
  if (const std::string why = overlap_not_run(plan, plans); !why.empty()) {
    found.push_back(fmt::format("/plan/expert_overlap: {} of {} {}",
                                word_of(expert_overlap_words, plan.experts.overlap), stack, why));
  }
  return found;
}

}  // namespace orrery::models
