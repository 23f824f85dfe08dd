#include "models/prediction/flops.hpp"

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/model/operation_list.hpp"
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
  return layers / of(model.layers.size());
}

/// Sum over all layers of `count(matrix)` for each token of the decoder, for matrices that
/// `is_part(matrix, layer)` chooses.
template <class Choice, class Count>
double over_matrices(const Model& model, const Plan& plan, Choice is_part, Count count) {
  const auto passes = [&](const Layer& layer, const LayerMatrix& matrix) {
    return passes_per_token(model, layer, matrix, attended_length(plan));
  };
  double sum = 0;
  for (const Layer& kind : model.layers.kinds()) {
    double own = 0;
    for (const LayerMatrix& each : matrices_of(kind, model.hidden)) {
      if (is_part(each, kind)) own += count(each) * passes(kind, each);
    }
    sum += own * of(model.layers.count(kind));
  }
  return sum;
}

double weights_met(const LayerMatrix& matrix) {
  return of(matrix.met * matrix.in * matrix.out);
}

/// Matrices that are made again with this module.
/// Source  Megatron-Core, --recompute-modules; mla_up_proj is the up-projections of latents to
/// heads
bool is_module(RecomputeModule module, const LayerMatrix& matrix, const Layer& layer) {
  const bool of_attention = matrix.target == LoraTarget::qkv ||
                            matrix.target == LoraTarget::projection ||
                            matrix.name.starts_with("mixer.") || matrix.name.starts_with("index_");
  switch (module) {
    case RecomputeModule::mlp:
      return !of_attention && layer.experts() == nullptr;
    case RecomputeModule::moe:
      return !of_attention && layer.experts() != nullptr;
    case RecomputeModule::mla_up_proj:
      return matrix.name == "query_up" || matrix.name == "key_value_up";
    default:
      return false;
  }
}

/// FLOPs per token of these modules' forward, in all layers.
double modules_recomputed(const Model& model, const Plan& plan, WordSet<RecomputeModule> modules) {
  double sum = modules.has(RecomputeModule::core_attn)
                   ? attention_flops_per_token(model, attended_length(plan))
                   : 0;
  for (const RecomputeModule each :
       {RecomputeModule::mlp, RecomputeModule::moe, RecomputeModule::mla_up_proj}) {
    if (!modules.has(each)) continue;
    sum += 2 * over_matrices(
                   model, plan,
                   [&](const LayerMatrix& matrix, const Layer& layer) {
                     return is_module(each, matrix, layer);
                   },
                   weights_met);
  }
  return sum;
}

double all_layers_recomputed(const Model& model, const Plan& plan) {
  return plan.recompute.kind == Recompute::selective
             ? modules_recomputed(model, plan, plan.recompute.modules)
             : layers_flops_per_token(model, attended_length(plan));
}

/// Number of adapter weights that multiply each token: of the experts, those of its own.
double adapter_parameters(const Model& model, const Plan& plan) {
  const WordSet<LoraTarget>& targets = plan.adapters.targets;
  double ends = 0;
  if (targets.has(LoraTarget::head)) ends += of(embedding_width(model) + model.embedding.vocab);
  if (targets.has(LoraTarget::embedding))
    ends += of(model.hidden);  // its first factor is looked up
  return of(plan.adapters.rank) * ends +
         of(plan.adapters.rank) * over_matrices(
                                      model, plan,
                                      [](const LayerMatrix&, const Layer&) { return true; },
                                      [&](const LayerMatrix& matrix) {
                                        return of(matrix.met * adapter_columns(matrix, targets));
                                      });
}

}  // namespace

double recomputing_micro_batches(const Program& program) {
  double all = 0, some = 0;
  for (const RankClass& ranks : program.classes) {
    all += of(std::ssize(ranks.recomputes));
    some += of(std::count(ranks.recomputes.begin(), ranks.recomputes.end(), true));
  }
  return all > 0 ? some / all : 0;
}

double recomputed_flops_per_token(const Model& model, const Plan& plan, double all) {
  const double of_tiles =
      plan.kernels.mlp_tiles > 1 ? modules_recomputed(model, plan, {RecomputeModule::mlp}) : 0;
  if (plan.recompute.kind == Recompute::none) return of_tiles;
  const double share = all + (1 - all) * recomputing_share(model, plan);
  return of_tiles + share * all_layers_recomputed(model, plan) +
         (1 - share) * modules_recomputed(model, plan, plan.recompute.elsewhere);
}

namespace {

/// FLOPs of a sequence's images, spread over its tokens: the encoder forward only, the projector
/// with its weight gradients, and with the input gradient of its second matrix.
double front_flops_per_token(const Model& model, const Plan& plan) {
  if (!model.front) return 0;
  const FrontFlops of_images = front_flops(*model.front, model.hidden);
  const double trained = 2 * of_images.project_up + 3 * of_images.project_down;
  return (of_images.encoder + trained) / of(plan.batch.seq_len);
}

}  // namespace

double training_flops_per_token(const Model& model, const Plan& plan) {
  const double forward = forward_flops_per_token(model, attended_length(plan));
  if (plan.task == Task::dpo) return 4 * forward;
  if (!trains_adapters(plan)) return 3 * forward + front_flops_per_token(model, plan);
  // Frozen weights multiply forward and for the input's gradient, adapters a third time.
  const double weights = 2 * of(count_gemm_parameters(model));
  return 3 * forward - weights + 6 * adapter_parameters(model, plan);
}

namespace {

/// FLOPs of one rank's whole step: of attention, and of all else.
struct RankFlops {
  Flops gemm{}, attention{};
};

RankFlops flops_of(const Program& program, const TargetCounts& counts) {
  RankFlops sum;
  for (std::size_t p = 0; p < counts.phases.size(); ++p) {
    if (counts.phases[p] == 0) continue;
    for (const Invocation& run : program.phases[p].invocations) {
      if (program.use_of(run.block).direction == Direction::step) continue;
      for (const Operation& op : program.blocks[run.block].operations) {
        if (op.kind == OpKind::kernel) continue;  // not among what matrix units do
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
double beyond_average(const RankFlops& rank, const Program& spread,
                      const std::vector<TargetCounts>& counts) {
  double sum = 0;
  for (const TargetCounts& each : counts) {
    const RankFlops other = flops_of(spread, each);
    sum += of((rank.gemm + rank.attention).count() - (other.gemm + other.attention).count());
  }
  return sum / static_cast<double>(spread.classes.size());
}

}  // namespace

std::vector<WaterfallPart> waterfall_of(const Question& question, const Prediction& prediction) {
  if (question.model.list && !question.model.list->trains()) {
    const auto of = [&](TimeClass which) {
      return prediction.breakdown[static_cast<std::size_t>(which)];
    };
    const Time named = of(TimeClass::memory_bound) + of(TimeClass::gemm) +
                       of(TimeClass::attention) + of(TimeClass::optimizer);
    Time sent{};
    for (const TimeClass each : {TimeClass::tp, TimeClass::cp, TimeClass::ep, TimeClass::dp,
                                 TimeClass::pp, TimeClass::other_comm}) {
      sent += of(each);
    }
    const Time rest = prediction.step - named - sent - of(TimeClass::host);
    return {{"kernels", named},
            {"messages and collectives", sent},
            {"host", of(TimeClass::host)},
            {"waiting and copies", rest}};
  }
  const FlopRate peak = *question.cluster.gpu().peak(prediction.program->formats.compute);
  const double all = peak.count() * static_cast<double>(question.plan.gpus());
  const Time ideal = from_seconds(prediction.model_flops / all);
  const Time again = from_seconds(prediction.recomputed_flops / all);
  const std::vector<TargetCounts>& counts = prediction.priced.counts;
  const RankFlops own = flops_of(*prediction.program, counts[prediction.slowest]);
  const Time gemm = own.gemm / peak;
  const Time attention = own.attention / peak;
  const std::shared_ptr<const Program> spread = with_even_ranks(question, prediction);
  const bool even = spread == prediction.program;
  const double beyond = beyond_average(own, *spread, even ? counts : counts_of(*spread));
  const Time uneven = from_seconds(beyond / peak.count());
  const Time unexplained = prediction.step - prediction.data_wait() - prediction.times.step;
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
  if (prediction.data) parts.push_back({"waiting for data", prediction.data_wait()});
  return parts;
}

}  // namespace orrery::models
