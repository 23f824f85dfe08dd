#include <fmt/format.h>

#include "models/lowering/lower.hpp"
#include "models/model/operation_list.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"

namespace orrery::models {

namespace {

std::string of_latents(const AttentionPart& attention, const BlockInputs& inputs) {
  if (attention.kv_heads != attention.heads) return "latent attention with heads that share keys";
  if (inputs.model.embedding.positions != Positions::rotary)
    return "latent attention without rotary positions";
  if (attention.latents->rotary_dim % 2 != 0) {
    return fmt::format("rotary positions with an odd rotary_dim {}", attention.latents->rotary_dim);
  }
  const Plan& plan = inputs.plan;
  if (plan.task == Task::lora) return "adapters of latent attention";
  const bool low_precision = quantisation_of(plan.formats.precision) != nullptr;
  return low_precision ? fmt::format("latent attention in {}", name(plan.formats.precision)) : "";
}

std::string of_attention(const AttentionPart& attention, const BlockInputs& inputs) {
  if (attention.indexer) return "sparse attention";
  if (context_split(inputs.plan).heads > 1) {  // heads' numbers and gates stay where they are
    if (attention.sinks) return "attention sinks of heads that ranks exchange for tokens";
    if (attention.gated) return "a gate of the output of heads that ranks exchange for tokens";
  }
  if (attention.gated && attention.value_width() != attention.head_dim) {
    return "a gate of values that are not as wide as keys";
  }
  if (inputs.plan.tensor > attention.kv_heads) {
    return fmt::format("more tensor ranks ({}) than key-value heads ({})", inputs.plan.tensor,
                       attention.kv_heads);
  }
  if (!attention.latents && inputs.model.embedding.positions == Positions::rotary &&
      attention.head_dim % 2 != 0) {
    return fmt::format("rotary positions with an odd head_dim {}", attention.head_dim);
  }
  return attention.latents ? of_latents(attention, inputs) : "";
}

std::string of_layers(const BlockInputs& inputs) {
  for (const Layer& kind : inputs.model.layers.kinds()) {
    if (const AttentionPart* const own = kind.attention()) {
      if (std::string why = of_attention(*own, inputs); !why.empty()) return why;
    }
    const auto* const delta = std::get_if<DeltaPart>(&kind.mixer);
    if (delta != nullptr && delta->gate_rank > 0) return "delta rules with a gate for each channel";
    if (recurs(kind) && !inputs.plan.batch.documents.empty()) {
      return "recurrences over packed documents";
    }
    if (const MlpPart* const mlp = kind.mlp(); mlp != nullptr && mlp->clamped && !mlp->gated) {
      return "a clamped activation without a gate";
    }
  }
  return {};
}

std::string of_import(const Model& model) {
  return model.not_simulated ? *model.not_simulated : model.inexact;
}

std::string of_ends(const Model& model) {
  if (model.embedding.positions == Positions::alibi) return "positions 'alibi'";
  if (model.prediction_layers > 0) return "layers that predict further tokens";
  if (model.generator_hidden > 0) return "an ELECTRA generator";
  if (model.front) return "an encoder of images";
  if (model.encoder && model.encoder->given()) return "rows of images that are given";
  if (model.encoder && model.encoder->frame_columns > 0) return "frames of sound";
  if (model.encoder && model.encoder->vocab > 0) return "a table of tokens for each of two sides";
  if (model.head.task_outputs > 0) return "a question-answering head";
  if (model.embedding.token_types > 0 && position_rows(model) == 0) {
    return "token types without learned positions";
  }
  if (model.head.pooler) return "a pooler";
  if (projects_embeddings(model)) return "embeddings narrower or wider than the layers";
  if (model.norms.sandwich || model.norms.of_outputs) {
    const MlpPart& mlp = usual_mlp(model);
    if (mlp.bias || usual_attention(model).output_bias) return "a bias before a norm of the output";
  }
  return {};
}

std::string of_experts(const BlockInputs& inputs) {
  if (usual_experts(inputs.model).count == 0) return {};
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
  if (inputs.model.list) {
    const ListedOperation first = inputs.model.list->operations(0).front();
    return fmt::format("operations of a list: '{}' ({})", first.name, first.word);
  }
  for (std::string why :
       {of_import(inputs.model), of_layers(inputs), of_ends(inputs.model), of_experts(inputs)}) {
    if (!why.empty()) return why;
  }
  const bool picks = inputs.software.kernels.predicted_share < 1 && !inputs.model.causal;
  return picks ? "predictions for only a share of the tokens" : of_plan(inputs);
}

}  // namespace orrery::models
