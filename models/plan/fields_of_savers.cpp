// Rows of a plan's fields: what is trained, and options that save memory.

#include <fmt/format.h>

#include "models/plan/derived.hpp"
#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Default = PlanField::Default;

std::string derive_lora_rank(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? fmt::format("not stated; {} assumed", plan.lora_rank) : "";
}

std::string derive_lora_targets(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? "not stated; qkv and projection assumed" : "";
}

Json write_lora_rank(const Plan& plan) {
  return trains_adapters(plan) ? Json(plan.lora_rank) : Json(nullptr);
}

Json write_fused_amax(const Plan& plan) {
  if (plan.fused_amax.empty()) return nullptr;
  return words_of_set<&Plan::fused_amax, amax_kernel_words>(plan);
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
     .value = count_at(&Plan::lora_rank, 1, most_lora_rank),
     .by_default = Default::silent,
     .write = write_lora_rank,
     .derive = derive_lora_rank},
    {.key = "lora_targets",  // matrices that have an adapter
     .name = "adapters' targets",
     .value = words_at<&Plan::lora_targets, lora_target_words>(),
     .by_default = Default::silent,
     .write = write_lora_targets,
     .derive = derive_lora_targets},
    {.key = "lora_dropout",  // on the adapters' input
     .name = "adapters' dropout",
     .value = flag_at(&Plan::lora_dropout),
     .by_default = Default::silent,
     .write = write_lora_dropout},
    {.key = "sequence_lengths",  // of documents packed into a sequence, equally frequent
     .name = "packed lengths",
     .value = {PlanValue::Kind::counts, 1, most_seq_len},
     .by_default = Default::silent,
     .read = read_sequence_lengths,
     .write = write_sequence_lengths},
    {.key = "optimizer",  // of the matrices of layers: models/operations/update.cpp
     .name = "optimizer",
     .value = word_at<&Plan::optimizer, optimizer_words>()},
    {.key = "moments",  // format of Adam's moments
     .name = "moments",
     .value = word_at<&Plan::moments, moments_words>(),
     .column = "moments"},
    {.key = "fused_cross_entropy",  // no logits are kept: models/operations/head.cpp
     .name = "fused cross-entropy",
     .value = flag_at(&Plan::fused_cross_entropy),
     .column = "fused_cross_entropy"},
    {.key = "low_precision_gather",  // ZeRO gathers, and LoRA keeps frozen weights, in 8 bits
     .name = "gather in 8 bits",
     .value = flag_at(&Plan::low_precision_gather)},
    {.key = "attention",  // kernel: models/software/software.hpp
     .name = "attention",
     .value = word_at<&Plan::attention, attention_kernel_words>()},
    {.key = "low_precision_attention",  // in fp8, see models/operations/fp8_attention.cpp
     .name = "attention in 8 bits",
     .value = flag_at(&Plan::low_precision_attention)},
    {.key = "low_precision_activation",  // of gated SiLU: models/operations/layer.cpp
     .name = "activation inputs kept in 8 bits",
     .value = flag_at(&Plan::low_precision_activation)},
    {.key = "transpose_weights",  // 8-bit ones, in every backward: models/operations/linear.cpp
     .name = "weights transposed in backward",
     .value = flag_at(&Plan::transpose_weights)},
    {.key = "hadamard_pass",  // of nvfp4: models/operations/quantisation.hpp
     .name = "Hadamard transform in its own pass",
     .value = flag_at(&Plan::hadamard_pass)},
    {.key = "fused_amax",  // models/operations/linear.cpp
     .name = "amax found by",
     .value = words_at<&Plan::fused_amax, amax_kernel_words>(),
     .by_default = Default::silent,
     .write = write_fused_amax},
    {.key = "start_layers_bf16",  // first layers that stay in bf16 under a narrower precision
     .name = "first layers in bf16",
     .value = count_at(&Plan::start_layers_bf16, 0, most_layers)},
    {.key = "end_layers_bf16",  // last layers that stay in bf16
     .name = "last layers in bf16",
     .value = count_at(&Plan::end_layers_bf16, 0, most_layers)},
};

}  // namespace

std::span<const PlanField> fields_of_savers() {
  return saver_rows;
}

}  // namespace orrery::models
