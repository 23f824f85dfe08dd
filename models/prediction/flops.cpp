#include "models/prediction/flops.hpp"

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "models/program/counts.hpp"

namespace orrery::models {

namespace {

double of(std::int64_t value) {
  return static_cast<double>(value);
}

/// Share of the layers that recompute.
double recomputing_share(const Model& model, const Plan& plan) {
  if (plan.recompute.layers == 0 && plan.recompute.every == 1) return 1;
  double layers = 0;
  for (const std::int64_t on_chunk : layers_per_chunk(plan, model)) {
    const std::int64_t early =
        plan.recompute.layers == 0 ? on_chunk : std::min(on_chunk, plan.recompute.layers);
    layers += of((early + plan.recompute.every - 1) / plan.recompute.every);
  }
  return layers / of(model.layers);
}

/// FLOPs per token of latent attention's up-projections to heads, in all layers: of queries, from
/// their latents or from the input where they have none, and of keys (without their rotated part)
/// and values.
double latents_expanded(const Model& model) {
  if (model.latent.kv_rank == 0) return 0;
  const std::int64_t from = model.latent.query_rank > 0 ? model.latent.query_rank : model.hidden;
  const std::int64_t values =
      model.latent.value_dim > 0 ? model.latent.value_dim : model.attention.head_dim;
  const std::int64_t of_keys = model.attention.head_dim - model.latent.rotary_dim + values;
  return 2 * of(model.layers) * of(model.attention.heads) *
         (of(from) * of(model.attention.head_dim) + of(model.latent.kv_rank) * of(of_keys));
}

/// Widths of the MLPs of layers without experts, added up.
double dense_widths(const Model& model) {
  if (model.experts.count == 0) return of(model.mlp.width) * of(model.layers);
  double sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (!has_experts(model, layer)) sum += of(model.experts.dense_width);
  }
  return sum;
}

/// FLOPs per token of all layers' experts, shared ones and routers included, forward.
double experts_forward(const Model& model) {
  if (model.experts.count == 0) return 0;
  double layers = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (has_experts(model, layer)) ++layers;
  }
  const std::int64_t widths =
      model.experts.per_token * model.mlp.width + model.experts.shared_width;
  return layers * 2 * of(model.hidden) *
         (of(model.mlp.gated ? 3 : 2) * of(widths) + of(model.experts.count));
}

/// FLOPs per token of these modules' forward, in all layers.
double modules_recomputed(const Model& model, const Plan& plan, WordSet<RecomputeModule> modules) {
  const double attention = attention_flops_per_token(model, attended_length(plan));
  const double mlp = 2 * of(model.hidden) * (model.mlp.gated ? 3 : 2) * dense_widths(model);
  return (modules.has(RecomputeModule::core_attn) ? attention : 0) +
         (modules.has(RecomputeModule::mlp) ? mlp : 0) +
         (modules.has(RecomputeModule::moe) ? experts_forward(model) : 0) +
         (modules.has(RecomputeModule::mla_up_proj) ? latents_expanded(model) : 0);
}

double all_layers_recomputed(const Model& model, const Plan& plan) {
  if (plan.recompute.kind == Recompute::selective) {
    return modules_recomputed(model, plan, plan.recompute.modules);
  }
  Model layers_only = model;
  layers_only.prediction_layers = layers_only.generator_hidden = 0;
  if (model.prediction_layers > 0) {
    layers_only.tally.gemm_parameters = 0;  // a stated count includes those layers, too
  } else if (model.tally.gemm_parameters > 0) {
    layers_only.tally.gemm_parameters -= model.embedding.vocab * embedding_width(model);
  }
  layers_only.embedding.vocab = 0;
  layers_only.embedding.width = 0;
  layers_only.head.transform = false;
  return forward_flops_per_token(layers_only, attended_length(plan));
}

/// Rows and columns of a layer's attention matrices that are targets of adapters, added up: each
/// adapter has `rank` times as many weights.
double attention_sides(const Model& layer, const Plan& plan) {
  const std::int64_t h = layer.hidden, value = layer.latent.value_dim > 0
                                                   ? layer.latent.value_dim
                                                   : layer.attention.head_dim;
  const std::int64_t queries = layer.attention.heads * layer.attention.head_dim,
                     latent = layer.latent.kv_rank;
  const std::int64_t keys = layer.attention.kv_heads *
                            (layer.attention.head_dim - (latent > 0 ? layer.latent.rotary_dim : 0));
  const std::int64_t expanded = keys + layer.attention.kv_heads * value;
  double sides = 0;
  if (plan.adapters.targets.has(LoraTarget::projection))
    sides += of(layer.attention.heads * value + h);
  if (!plan.adapters.targets.has(LoraTarget::qkv)) return sides;
  if (latent == 0) return sides + of(h + queries + expanded);
  sides += of(h + queries + (layer.latent.query_rank > 0 ? 2 * layer.latent.query_rank : 0));
  return sides + of(h + latent + layer.latent.rotary_dim + latent + expanded);
}

/// The same of an MLP.
double mlp_sides(const Model& layer, const Plan& plan, std::int64_t width) {
  const std::int64_t up = layer.hidden + width * (layer.mlp.gated ? 2 : 1);
  return (plan.adapters.targets.has(LoraTarget::up) ? of(up) : 0) +
         (plan.adapters.targets.has(LoraTarget::down) ? of(width + layer.hidden) : 0);
}

/// Number of adapter weights that multiply each token: of the experts, those of its own.
double adapter_parameters(const Model& model, const Plan& plan) {
  double sides = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const Model layer = layer_model(model, i);
    sides += attention_sides(layer, plan);
    sides += mlp_sides(layer, plan, layer.mlp.width) *
             of(layer.experts.count > 0 ? layer.experts.per_token : 1);
    if (layer.experts.shared_width > 0) sides += mlp_sides(layer, plan, layer.experts.shared_width);
  }
  return of(plan.adapters.rank) * sides;
}

}  // namespace

double recomputed_flops_per_token(const Model& model, const Plan& plan) {
  if (plan.recompute.kind == Recompute::none) return 0;
  const double share = recomputing_share(model, plan);
  return share * all_layers_recomputed(model, plan) +
         (1 - share) * modules_recomputed(model, plan, plan.recompute.elsewhere);
}

double training_flops_per_token(const Model& model, const Plan& plan) {
  const double forward = forward_flops_per_token(model, attended_length(plan));
  if (plan.task == Task::dpo) return 4 * forward;
  if (!trains_adapters(plan)) return 3 * forward;
  // Frozen weights multiply forward and for the input's gradient, adapters a third time.
  const double weights = 2 * of(dense_gemm_parameters(model));
  return 3 * forward - weights + 6 * adapter_parameters(model, plan);
}

namespace {

/// FLOPs of one rank's whole step: of attention, and of all else.
struct RankFlops {
  Flops gemm{}, attention{};
};

RankFlops flops_of(const Program& program, std::uint32_t rank_class) {
  const TargetCounts counts = counts_of(program, rank_class);
  RankFlops sum;
  for (std::size_t p = 0; p < counts.phases.size(); ++p) {
    for (const Invocation& run : program.phases[p].invocations) {
      if (counts.phases[p] == 0 || program.use_of(run.block).direction == Direction::step) continue;
      for (const Operation& op : program.blocks[run.block].operations) {
        Flops& of = op.time_class == TimeClass::attention ? sum.attention : sum.gemm;
        of += op.flops * (run.count * counts.phases[p]);
      }
    }
  }
  return sum;
}

/// The Program with its work spread evenly over the ranks of a stage: where it is not, the
/// Program's ranks are as busy as the busiest one.
std::shared_ptr<const Program> with_even_ranks(const Question& question,
                                               const Prediction& prediction) {
  const bool contiguous =
      question.plan.context > 1 && question.plan.context_exchange.form == ContextForm::contiguous;
  const bool even =
      question.plan.experts.imbalance == 1 && question.plan.experts.layer_imbalance.empty();
  if (even && !contiguous) return prediction.program;
  Question spread = question;
  spread.plan.experts.imbalance = 1;
  spread.plan.experts.layer_imbalance.clear();
  if (contiguous) spread.plan.context_exchange.form = ContextForm::all_gather;
  return std::make_shared<const Program>(lower(spread));
}

/// FLOPs that a rank does beyond the average of all ranks; negative where it does fewer.
double beyond_average(const RankFlops& rank, const Program& spread) {
  double sum = 0;
  for (std::uint32_t c = 0; c < spread.classes.size(); ++c) {
    const RankFlops other = flops_of(spread, c);
    sum += of((rank.gemm + rank.attention).count() - (other.gemm + other.attention).count());
  }
  return sum / static_cast<double>(spread.classes.size());
}

}  // namespace

std::vector<WaterfallPart> waterfall_of(const Question& question, const Prediction& prediction) {
  const FlopRate peak = *question.cluster.gpu().peak(prediction.program->formats.compute);
  const double all = peak.count() * static_cast<double>(question.plan.gpus());
  const Time ideal = from_seconds(prediction.model_flops / all);
  const Time again = from_seconds(prediction.recomputed_flops / all);
  const RankFlops own = flops_of(*prediction.program, prediction.slowest);
  const Time gemm = own.gemm / peak;
  const Time attention = own.attention / peak;
  const Time uneven =
      from_seconds(beyond_average(own, *with_even_ranks(question, prediction)) / peak.count());
  const Time unexplained = prediction.step - prediction.times.step;
  const auto part = [&](TimeClass which) {
    return prediction.breakdown[static_cast<std::size_t>(which)];
  };
  std::vector<WaterfallPart> parts{
      {"ideal: model FLOPs at peak", ideal},
      {"recomputation", again},
      {"FLOPs outside the model's count", gemm + attention - ideal - again - uneven},
      {"more work than the average rank", std::max(uneven, Time{})},
      {"less work than the average rank", std::min(uneven, Time{})},
      {"GEMMs below peak", part(TimeClass::gemm) - gemm},
      {"attention below peak", part(TimeClass::attention) - attention},
      {"memory-bound kernels", part(TimeClass::memory_bound)},
      {"optimizer", part(TimeClass::optimizer)},
      {"tensor-parallel communication", part(TimeClass::tp)},
      {"context-parallel communication", part(TimeClass::cp)},
      {"expert-parallel communication", part(TimeClass::ep)},
      {"data-parallel communication", part(TimeClass::dp)},
      {"pipeline transfers", part(TimeClass::pp)},
      {"other communication", part(TimeClass::other_comm)},
      {"pipeline bubble", part(TimeClass::bubble)},
      {"host", part(TimeClass::host)},
      {"other", part(TimeClass::other) - unexplained},
      {"unexplained", unexplained}};
  return parts;
}

}  // namespace orrery::models
