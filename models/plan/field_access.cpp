#include "models/plan/field_access.hpp"

#include <fmt/format.h>

namespace orrery::models {

namespace {

constexpr std::int64_t most_document = std::int64_t{1} << 30;

}  // namespace

std::string derive_lora_rank(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? fmt::format("{} taken as default", plan.lora_rank) : "";
}

std::string derive_lora_targets(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? "qkv and projection taken as default" : "";
}

Json write_lora_rank(const Plan& plan) {
  return trains_adapters(plan) ? Json(plan.lora_rank) : Json(nullptr);
}

Json write_lora_targets(const Plan& plan) {
  if (!trains_adapters(plan)) return nullptr;
  return words_of_set<&Plan::lora_targets, lora_target_words>(plan);
}

Json write_lora_dropout(const Plan& plan) {
  return trains_adapters(plan) && plan.lora_dropout ? Json(true) : Json(nullptr);
}

Json write_recompute_modules(const Plan& plan) {
  if (plan.recompute != Recompute::selective) return nullptr;
  if (plan.recompute_modules == Plan{}.recompute_modules) return nullptr;
  return words_of_set<&Plan::recompute_modules, recompute_module_words>(plan);
}

Json write_recompute_layers(const Plan& plan) {
  return plan.recompute_layers == 0 ? Json(nullptr) : Json(plan.recompute_layers);
}

Json write_recompute_every(const Plan& plan) {
  return plan.recompute_every == 1 ? Json(nullptr) : Json(plan.recompute_every);
}

Json write_moments(const Plan& plan) {
  if (plan.moments == Moments::full) return nullptr;
  return word_of(moments_words, plan.moments);
}

Json write_task(const Plan& plan) {
  if (plan.task == Task::pretrain) return nullptr;
  return word_of(task_words, plan.task);
}

void read_sequence_lengths(const Node& list, Plan& plan) {
  plan.sequence_lengths.clear();
  for (const Node& each : list.elements()) {
    plan.sequence_lengths.push_back(each.integer(1, most_document));
  }
  if (plan.sequence_lengths.empty()) list.fail("is empty; leave it out for whole sequences");
}

Json write_sequence_lengths(const Plan& plan) {
  if (plan.sequence_lengths.empty()) return nullptr;
  return plan.sequence_lengths;
}

}  // namespace orrery::models
