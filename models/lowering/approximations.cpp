#include <fmt/format.h>

#include "models/lowering/lower.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"

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
  if (inputs.model.experts.count == 0) return {};
  if (!inputs.software.runs.keeps_expert_outputs) {
    return "experts whose outputs the software does not keep until backward";
  }
  return adapts_mlps(inputs.plan) ? "adapters of experts" : "";
}

std::string of_plan(const BlockInputs& inputs) {
  for (const PlanField& field : plan_fields()) {
    if (field.not_executed_if) {
      if (std::string why = field.not_executed_if(inputs.plan, inputs.model); !why.empty()) {
        return why;
      }
    } else if (!field.not_executed.empty() && field.is_set(inputs.plan)) {
      return std::string{field.not_executed};
    }
  }
  const Quantisation* how = quantisation_of(inputs.plan.formats.precision);
  const bool scaled = how != nullptr && how->block > 0 && how->scale == hardware::DType::fp32;
  return scaled ? fmt::format("precision '{}'", name(inputs.plan.formats.precision)) : "";
}

}  // namespace

std::string inexact_feature(const BlockInputs& inputs) {
  for (std::string why : {of_model(inputs.model, inputs.plan.tensor), of_experts(inputs)}) {
    if (!why.empty()) return why;
  }
  if (inputs.model.latent.kv_rank > 0) {
    if (std::string why = of_latents(inputs.model, inputs.plan); !why.empty()) return why;
  }
  const bool picks = inputs.software.kernels.predicted_share < 1 && !inputs.model.causal;
  return picks ? "predictions for only a share of the tokens" : of_plan(inputs);
}

}  // namespace orrery::models
