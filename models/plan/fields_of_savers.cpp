// Rows of a plan's fields: what is trained, and options that save memory.

#include <fmt/format.h>

#include "models/plan/derived.hpp"
#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Kind = PlanField::Kind;
using Default = PlanField::Default;
using Written = PlanField::Written;

std::string derive_lora_rank(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? fmt::format("not stated; {} assumed", plan.lora_rank) : "";
}

std::string derive_lora_targets(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? "not stated; qkv and projection assumed" : "";
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

void read_sequence_lengths(const Node& list, Plan& plan) {
  plan.sequence_lengths.clear();
  for (const Node& each : list.elements()) {
    plan.sequence_lengths.push_back(each.integer(1, most_seq_len));
  }
  if (plan.sequence_lengths.empty()) list.fail("is empty; leave it out for whole sequences");
}

Json write_sequence_lengths(const Plan& plan) {
  if (plan.sequence_lengths.empty()) return nullptr;
  return plan.sequence_lengths;
}

constexpr PlanField saver_rows[] = {
    {.key = "lora_rank",
     .name = "adapters' rank",
     .by_default = Default::silent,
     .count = &Plan::lora_rank,
     .most = most_lora_rank,
     .write = write_lora_rank,
     .derive = derive_lora_rank},
    {.key = "lora_targets",  // matrices that have an adapter
     .name = "adapters' targets",
     .kind = Kind::word_list,
     .by_default = Default::silent,
     .words = words_in<lora_target_words>,
     .read = read_some<&Plan::lora_targets, lora_target_words>,
     .write = write_lora_targets,
     .derive = derive_lora_targets},
    {.key = "lora_dropout",  // on the adapters' input
     .name = "adapters' dropout",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::lora_dropout,
     .write = write_lora_dropout},
    {.key = "sequence_lengths",  // of documents packed into a sequence, equally frequent
     .name = "packed lengths",
     .kind = Kind::counts,
     .by_default = Default::silent,
     .most = most_seq_len,
     .read = read_sequence_lengths,
     .write = write_sequence_lengths},
    {.key = "moments",  // format of Adam's moments
     .name = "moments",
     .kind = Kind::word,
     .column = "moments",
     .by_default = Default::silent,
     .words = words_in<moments_words>,
     .read = read_word<&Plan::moments, moments_words>,
     .write = write_word<&Plan::moments, moments_words>,
     .written = Written::where_changed},
    {.key = "fused_cross_entropy",  // no logits are kept: models/operations/head.cpp
     .name = "fused cross-entropy",
     .kind = Kind::flag,
     .column = "fused_cross_entropy",
     .by_default = Default::silent,
     .on = &Plan::fused_cross_entropy,
     .written = Written::where_changed},
    {.key = "low_precision_gather",  // ZeRO gathers, and LoRA keeps frozen weights, in 8 bits
     .name = "gather in 8 bits",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::low_precision_gather,
     .written = Written::where_changed},
    {.key = "low_precision_attention",  // in fp8, see models/operations/fp8_attention.cpp
     .name = "attention in 8 bits",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::low_precision_attention,
     .written = Written::where_changed},
    {.key = "transpose_weights",  // 8-bit ones, in every backward: models/operations/linear.cpp
     .name = "weights transposed in backward",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::transpose_weights,
     .written = Written::where_changed},
    {.key = "start_layers_bf16",  // first layers that stay in bf16 under a narrower precision
     .name = "first layers in bf16",
     .by_default = Default::silent,
     .count = &Plan::start_layers_bf16,
     .least = 0,
     .most = most_layers,
     .written = Written::where_changed},
    {.key = "end_layers_bf16",  // last layers that stay in bf16
     .name = "last layers in bf16",
     .by_default = Default::silent,
     .count = &Plan::end_layers_bf16,
     .least = 0,
     .most = most_layers,
     .written = Written::where_changed},
};

}  // namespace

std::span<const PlanField> fields_of_savers() {
  return saver_rows;
}

}  // namespace orrery::models
