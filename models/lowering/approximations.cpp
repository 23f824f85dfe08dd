#include <fmt/format.h>

#include "models/lowering/lower.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {

namespace {

std::string of_latents(const Model& model, const Plan& plan) {
  if (model.attention.kv_heads != model.attention.heads)
    return "latent attention with heads that share keys";
  if (model.embedding.positions != Positions::rotary)
    return "latent attention without rotary positions";
  if (model.latent.rotary_dim % 2 != 0) {
    return fmt::format("rotary positions with an odd rotary_dim {}", model.latent.rotary_dim);
  }
  if (plan.task == Task::lora) return "adapters of latent attention";
  const bool low_precision = quantisation_of(plan.formats.precision) != nullptr;
  return low_precision ? fmt::format("latent attention in {}", name(plan.formats.precision)) : "";
}

std::string of_model(const Model& model, std::int64_t tensor) {
  if (model.not_simulated) return *model.not_simulated;
  if (!model.inexact.empty()) return model.inexact;
  if (model.attention.sinks) return "attention sinks";
  if (model.attention.chunk > 0) return "attention within chunks";
  if (!model.attention.full.empty()) return "attention windows on some layers only";
  if (tensor > model.attention.kv_heads) {
    return fmt::format("more tensor ranks ({}) than key-value heads ({})", tensor,
                       model.attention.kv_heads);
  }
  if (model.embedding.positions == Positions::alibi) return "positions 'alibi'";
  const bool latent = model.latent.kv_rank > 0;
  if (!latent && model.embedding.positions == Positions::rotary &&
      model.attention.head_dim % 2 != 0) {
    return fmt::format("rotary positions with an odd head_dim {}", model.attention.head_dim);
  }
  if (model.prediction_layers > 0) return "layers that predict further tokens";
  if (model.generator_hidden > 0) return "an ELECTRA generator";
  if (model.head.task_outputs > 0) return "a question-answering head";
  if (model.embedding.token_types > 0 && position_rows(model) == 0) {
    return "token types without learned positions";
  }
  if (model.head.pooler) return "a pooler";
  if (projects_embeddings(model)) return "embeddings narrower or wider than the layers";
  if (model.norms.sandwich) return "norms after attention and MLP";
  return {};
}

std::string of_experts(const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  if (inputs.model.experts.count == 0) return {};
  if (!inputs.software.runs.keeps_expert_outputs) {
    return "experts whose outputs the software does not keep until backward";
  }
  if (adapts_mlps(plan)) return "adapters of experts";
  if (inputs.model.mlp.bias && expert_tensor_of(plan) > 1) {
    return "expert biases with expert tensor parallelism";
  }
  if (plan.experts.dispatcher != Dispatcher::all_to_all) {
    return fmt::format("dispatcher '{}'", word_of(dispatcher_words, plan.experts.dispatcher));
  }
  if (plan.experts.overlap == ExpertOverlap::micro_batches) {
    return "experts' all-to-alls overlapped with another micro-batch";
  }
  return {};
}

std::string of_plan(const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  const bool picks = inputs.software.kernels.predicted_share < 1 && !inputs.model.causal;
  if (picks) return "predictions for only a share of the tokens";
  if (plan.task == Task::qlora || plan.task == Task::dpo) {
    return fmt::format("task '{}'", word_of(task_words, plan.task));
  }
  if (plan.task == Task::lora) {
    if (plan.adapters.dropout) return "dropout before adapters";
    if (plan.sharding.zero == Zero::three) return "adapters with ZeRO-3";
  }
  if (plan.kernels.fused_cross_entropy && shards_gradients(plan) && plan.pipeline == 1) {
    return "fused cross-entropy with sharded gradients";
  }
  if (plan.offload.layers > 0 && plan.pipeline > 1) {
    return "offloaded activations in a pipeline";
  }
  if (plan.offload.device == OffloadDevice::nvme) return "state offloaded to the node's storage";
  if (plan.formats.start_layers_bf16 + plan.formats.end_layers_bf16 > 0)
    return "layers left in bf16";
  if (!plan.experts.layer_imbalance.empty()) return "a separate imbalance for each layer";
  if (plan.formats.low_precision_gather) return "weights gathered in 8 bits";
  if (plan.formats.low_precision_attention) return "attention in 8 bits";
  if (plan.formats.low_precision_activation) return "activation inputs kept in 8 bits";
  if (plan.formats.transpose_weights) return "weights of 8 bits transposed in backward";
  if (plan.optimizer.kind == Optimizer::muon) return "the optimizer Muon";
  if (!plan.formats.fused_amax.empty()) return "amax found by norms and activations";
  if (plan.formats.hadamard_pass) return "the random Hadamard transform";
  const Quantisation* how = quantisation_of(plan.formats.precision);
  if (how != nullptr && how->block > 0 && how->scale == hardware::DType::fp32) {
    return fmt::format("precision '{}'", name(plan.formats.precision));
  }
  if (plan.compression.kind == Compression::int8) return "gradients reduced in 8 bits";
  const bool keeps_rest = plan.compression.kind == Compression::top_k ||
                          plan.compression.kind == Compression::power_sgd;
  if (keeps_rest && plan.formats.precision == Precision::fp16) {
    return fmt::format("compression {} in fp16 (its residual is kept under another loss scale)",
                       name(plan.compression.kind));
  }
  return {};
}

}  // namespace

std::string inexact_feature(const BlockInputs& inputs) {
  for (std::string why : {of_model(inputs.model, inputs.plan.tensor), of_experts(inputs)}) {
    if (!why.empty()) return why;
  }
  if (inputs.model.latent.kv_rank > 0) {
    if (std::string why = of_latents(inputs.model, inputs.plan); !why.empty()) return why;
  }
  return of_plan(inputs);
}

}  // namespace orrery::models
