#include "scenarios/validation/runs/run_experts.hpp"

#include "models/model/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery::scenarios {

using models::Model;
using models::Plan;

namespace {

/// A published configuration: the name of its architecture, and its model.
struct Architecture {
  std::string type;
  Model model;
};

std::string type_in(const Json& config) {
  std::string type = config.value("model_type", config.value("name", ""));
  constexpr std::string_view suffix = "_text";
  if (type.ends_with(suffix)) type.resize(type.size() - suffix.size());
  return type;
}

/// The catalogue's models that have experts.
const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> known = [] {
    std::vector<Architecture> read;
    for (const std::string& name : models::model_names()) {
      const Json config = models::model_config(name);
      Model model = models::read_model(Document::from(config, name).root());
      if (usual_experts(model).count > 0) read.push_back({type_in(config), std::move(model)});
    }
    return read;
  }();
  return known;
}

bool agrees(const std::optional<std::int64_t>& stated, std::int64_t value) {
  return !stated || *stated == value;
}

const Architecture* architecture_of(const MeasuredRun& run) {
  for (const Architecture& each : architectures()) {
    const Model& model = each.model;
    const bool same = agrees(run.hidden, model.hidden) &&
                      agrees(run.heads, usual_attention(model).heads) &&
                      agrees(run.kv_heads, usual_attention(model).kv_heads) &&
                      agrees(run.experts, usual_experts(model).count) &&
                      agrees(run.experts_per_token, usual_experts(model).per_token) &&
                      agrees(run.ffn_hidden, usual_mlp(model).width);
    if (same) return &each;
  }
  return nullptr;
}

/// The fallback model: ordinary attention and gated experts on every layer.
Model plain_model_of(const MeasuredRun& run) {
  models::ModelDraft model;
  model.depth = *run.layers;
  model.family = models::Family::llama;
  model.hidden = *run.hidden;
  model.attention.heads = *run.heads;
  model.attention.head_dim = model.hidden / model.attention.heads;
  model.attention.kv_heads = run.kv_heads.value_or(model.attention.heads);
  model.mlp.width = run.ffn_hidden.value_or(4 * model.hidden);
  model.experts.count = *run.experts;
  model.experts.per_token = run.experts_per_token.value_or(2);
  model.embedding.vocab = 32000;
  model.norms.kind = models::Norm::rms_norm;
  model.embedding.positions = models::Positions::rotary;
  model.mlp.activation = models::Activation::silu;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = model.norms.bias =
      false;
  model.embedding.tied = false;
  return built(std::move(model));
}

/// The kind of its layers with experts, or without; null: none.
const models::Layer* kind_with(const Model& model, bool experts) {
  const auto found = std::ranges::find_if(model.layers.kinds(), [&](const models::Layer& each) {
    return (each.experts() != nullptr) == experts;
  });
  return found == model.layers.kinds().end() ? nullptr : &*found;
}

/// Why the stated number of first layers without experts cannot be built; empty if it can.
std::string missing_of_dense_layers(const MeasuredRun& run, const Architecture* known) {
  if (run.dense_layers.value_or(0) == 0) return {};
  if (*run.dense_layers > run.layers.value_or(*run.dense_layers)) {
    return "dense_layers is above layers";
  }
  const bool any = known && kind_with(known->model, false);
  return any ? "" : "dense_layers is stated for a configuration that has none";
}

/// The stated number of layers: those without experts first, if the run says how many.
void cut_layers(const MeasuredRun& run, Model& model) {
  if (!run.dense_layers) return model.layers.resize(*run.layers);
  models::LayerList cut;
  for (std::int64_t i = 0; i < *run.layers; ++i) {
    cut.push_back(*kind_with(model, i >= *run.dense_layers));
  }
  model.layers = std::move(cut);
}

}  // namespace

bool has_experts(const MeasuredRun& run) {
  return run.experts.value_or(1) > 1;
}

std::string missing_of_experts(const MeasuredRun& run) {
  if (run.experts_per_token.value_or(1) > *run.experts) {
    return "experts_per_token is above experts";
  }
  const Architecture* known = architecture_of(run);
  if (known && known->model.not_simulated) return *known->model.not_simulated;
  if (!known && run.family == "mla-moe") {
    return "latent attention with sizes of no known configuration";
  }
  return missing_of_dense_layers(run, known);
}

Model expert_model_of(const MeasuredRun& run, std::vector<std::string>& assumptions) {
  const Architecture* known = architecture_of(run);
  Model model = known ? known->model : plain_model_of(run);
  if (known) {
    assumptions.push_back(
        fmt::format("/model: not stated in part; the rest assumed as in {}", model.name));
  } else {
    assumptions.push_back(
        "/model: not stated; gated experts on every layer and no shared experts assumed");
  }
  model.name = run.model;
  cut_layers(run, model);
  model.prediction_layers = run.prediction_layers.value_or(model.prediction_layers);
  model.embedding.vocab = run.vocab.value_or(model.embedding.vocab);
  model.embedding.max_positions = *run.count("seq_len");
  model.embedding.tied = run.tied.value_or(model.embedding.tied);
  model.parameters = models::count_parameters(model);
  model.active_parameters = models::count_active_parameters(model);
  return model;
}

void settle_experts(Plan& plan, std::vector<std::string>& assumptions) {
  // Megatron-Core requires sequence parallelism for experts with tensor parallelism.
  if (plan.tensor > 1) plan.sequence_parallel = true;
  if (plan.experts.tensor > 0) return;
  const std::int64_t ranks = plan.gpus() / plan.pipeline;
  plan.experts.tensor = ranks % (plan.experts.ranks * plan.tensor) == 0 ? plan.tensor : 1;
  assumptions.push_back(
      fmt::format("/plan/expert_tensor: not stated; {} assumed, Megatron-Core's default; no recipe "
                  "of this stack and release",
                  plan.experts.tensor));
}

}  // namespace orrery::scenarios
