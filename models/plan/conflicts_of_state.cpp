// Conflicts of ZeRO, offload, compression, tasks, recomputation and stored formats.

#include <fmt/format.h>

#include <set>
#include <utility>

#include "models/plan/conflict_checks.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {
namespace {

class StateChecks : private ConflictChecks {
 public:
  explicit StateChecks(const ConflictChecks& checks) : ConflictChecks{checks} {}

  void all() {
    zero();
    compression();
    task();
    memory_savers();
  }

 private:
  void zero() {
    if (plan_.data % plan_.data_shards() != 0) {
      add("/data_shard",
          fmt::format("data_shard {} does not divide data {}", plan_.sharding.ranks, plan_.data));
    } else if (plan_.data_shards() < plan_.data && plan_.sharding.zero == Zero::none) {
      add("/data_shard", "data_shard needs zero above 0");
    } else if (plan_.data_shards() * plan_.context == 1 && plan_.data > 1) {
      add("/data_shard", "data_shard 1 shards nothing; leave zero and data_shard out");
    }
    if (plan_.offload.state != Offload::none && plan_.sharding.zero == Zero::none) {
      add("/offload", "offload needs zero above 0, where each rank updates its own shard");
    }
    if (plan_.offload.share < 1 && plan_.offload.state != Offload::optimizer) {
      add("/optimizer_offload_fraction",
          fmt::format("applies only to offload optimizer; offload is {}",
                      word_of(offload_words, plan_.offload.state)));
    }
    if (plan_.optimizer.paged && plan_.offload.state != Offload::none) {
      add("/paged_optimizer", fmt::format("has no effect: offload {} keeps that state on the host",
                                          word_of(offload_words, plan_.offload.state)));
    }
    const bool in_files = plan_.offload.device == OffloadDevice::nvme;
    if (in_files && plan_.offload.state == Offload::none && plan_.offload.layers == 0) {
      add("/offload_device", "offload_device nvme needs offload or offload_layers");
    }
    if (plan_.sharding.zero == Zero::three) return;
    if (plan_.offload.state == Offload::parameters) {
      add("/offload", "offload parameters needs zero 3, which gathers weights");
    }
    if (!plan_.sharding.reshard)
      add("/reshard", "reshard false needs zero 3, which gathers weights");
    if (plan_.sharding.prefetch != 1)
      add("/prefetch", "prefetch needs zero 3, which gathers weights");
  }

  void compression() {
    if (plan_.compression.kind == Compression::none) return;
    if (plan_.sharding.zero != Zero::none) {
      add("/compression",
          fmt::format("compression {} needs zero 0, the plan has zero {}",
                      name(plan_.compression.kind), word_of(zero_words, plan_.sharding.zero)));
    }
    if (plan_.context > 1) {
      add("/compression", "compression is not simulated with context above 1");
    }
    if (plan_.data == 1) {
      add("/compression",
          fmt::format("compression {} needs data above 1", name(plan_.compression.kind)));
    }
  }

  /// Adapters' targets: which the model has, and which of them are simulated together.
  void targets() {
    const WordSet<LoraTarget>& listed = plan_.adapters.targets;
    WordSet<LoraTarget> present;
    std::set<std::pair<LoraTarget, LoraTarget>> overlaps;  // a part and its whole
    if (model_.head.task_outputs == 0 && !model_.list) present.add(LoraTarget::head);
    if (!model_.list && !projects_embeddings(model_)) present.add(LoraTarget::embedding);
    for (const Layer& kind : model_.layers.kinds()) {
      for (const LayerMatrix& each : matrices_of(kind, model_.hidden)) {
        if (each.target) present.add(*each.target);
        for (const MatrixPart& part : each.parts) {
          present.add(part.target);
          if (!listed.has(part.target) || !listed.has(*each.target)) continue;
          if (!overlaps.emplace(part.target, *each.target).second) continue;
          add("/lora_targets",
              fmt::format("{} is a part of {}", word(part.target), word(*each.target)));
        }
      }
    }
    for (const auto& [target, text] : lora_target_words) {
      if (!listed.has(target) || present.has(target)) continue;
      add("/lora_targets", fmt::format("the model has no matrix {}", text));
    }
    if (!model_.list && plan_.adapters.rank > model_.hidden) {
      add("/lora_rank", fmt::format("{} is above the model's hidden size {}; an adapter has fewer "
                                    "columns than the matrix that it adapts",
                                    plan_.adapters.rank, model_.hidden));
    }
    const bool shares_keys = usual_attention(model_).kv_heads % plan_.tensor != 0;
    if (shares_keys && (listed.has(LoraTarget::key) || listed.has(LoraTarget::value))) {
      add("/lora_targets", fmt::format("adapters of keys or values are not simulated where tensor "
                                       "ranks ({}) share the model's {} key-value heads",
                                       plan_.tensor, usual_attention(model_).kv_heads));
    }
    if (listed.has(LoraTarget::head) && plan_.kernels.fused_cross_entropy) {
      add("/lora_targets", "an adapter of lm_head is not simulated with fused_cross_entropy");
    }
    WordSet<LoraTarget> ends{LoraTarget::embedding, LoraTarget::head};
    if ((listed.bits & ~ends.bits) == 0) {
      add("/lora_targets",
          "adapters of embed_tokens and lm_head are simulated next to adapters of "
          "layers only");
    }
  }
  static std::string_view word(LoraTarget target) { return word_of(lora_target_words, target); }

  void task() {
    if (trains_adapters(plan_)) targets();
    if (plan_.task == Task::qlora && hardware::bits(compute_dtype(plan_.formats.precision)) != 16) {
      add("/task",
          fmt::format("qlora computes in 16 bits; precision is {}", name(plan_.formats.precision)));
    }
    if (!plan_.batch.documents.empty() && plan_.context > 1) {
      add("/sequence_lengths", "packed documents are not simulated with context above 1");
    }
    for (const std::int64_t each : plan_.batch.documents) {
      if (each <= plan_.batch.seq_len) continue;
      add("/sequence_lengths", fmt::format("a document of {} tokens does not fit into seq_len {}",
                                           each, plan_.batch.seq_len));
    }
  }

  void memory_savers() {
    const bool recomputes = plan_.recompute.kind != Recompute::none;
    if (!recomputes && (plan_.recompute.layers > 0 || plan_.recompute.every > 1)) {
      add(plan_.recompute.layers > 0 ? "/recompute_layers" : "/recompute_every",
          "has no effect: recompute is none");
    }
    const auto layers = static_cast<std::int64_t>(model_.layers.size());
    if (!model_.list && plan_.recompute.layers > layers) {
      add("/recompute_layers", fmt::format("the model has {} layers", layers));
    }
    const bool some = plan_.recompute.layers > 0 || plan_.recompute.every > 1;
    if (!plan_.recompute.elsewhere.empty() && !(recomputes && some)) {
      add("/recompute_elsewhere",
          "applies to the layers that recompute_layers and recompute_every leave out, and there "
          "are none");
    }
    if (plan_.offload.layers > 0 && plan_.task == Task::dpo) {
      add("/offload_layers",
          "is not simulated with task dpo, whose reference model keeps no activations");
    }
    const bool further = model_.head.transform || model_.head.pooler ||
                         model_.head.task_outputs > 0 || projects_embeddings(model_);
    if (plan_.kernels.fused_cross_entropy && further) {
      add("/fused_cross_entropy",
          "is simulated only for heads of a single matrix over the vocabulary");
    }
    if (plan_.kernels.fused_cross_entropy && plan_.context > 1) {
      add("/fused_cross_entropy", "is not simulated with context above 1");
    }
    if (plan_.optimizer.moments != Moments::full && plan_.offload.state != Offload::none) {
      add("/moments", fmt::format("moments {} are not simulated with offload",
                                  word_of(moments_words, plan_.optimizer.moments)));
    }
    if (plan_.formats.gradient == GradientFormat::bf16 && !model_.list &&
        storage_dtype(plan_.formats.precision) != hardware::DType::bf16) {
      add("/gradient_dtype", fmt::format("bf16 needs weights in bf16; precision is {}",
                                         name(plan_.formats.precision)));
    }
    if (plan_.optimizer.kind == Optimizer::muon) muon();
    tiles();
    low_precision_attention();
    wide_layers();
    if (recomputes) modules("/recompute_modules", plan_.recompute.modules);
    modules("/recompute_elsewhere", plan_.recompute.elsewhere);
    const bool in_8_bits = compute_dtype(plan_.formats.precision) == hardware::DType::fp8;
    const bool gathers = plan_.sharding.zero != Zero::none || plan_.task == Task::lora;
    if (plan_.formats.low_precision_gather && (!in_8_bits || !gathers)) {
      add("/low_precision_gather",
          fmt::format("gathering weights in 8 bits needs ZeRO and fp8; the plan has zero {} and {}",
                      word_of(zero_words, plan_.sharding.zero), name(plan_.formats.precision)));
    }
    low_precision_activation();
    if (plan_.formats.transpose_weights && !in_8_bits) {
      add("/transpose_weights",
          fmt::format("needs weights in 8 bits; precision is {}", name(plan_.formats.precision)));
    }
    fused_amax();
    if (plan_.formats.hadamard_pass && plan_.formats.precision != Precision::nvfp4) {
      add("/hadamard_pass", fmt::format("transforms what nvfp4 quantises; precision is {}",
                                        name(plan_.formats.precision)));
    }
  }

  /// An MLP in tiles.
  void tiles() {
    if (plan_.kernels.mlp_tiles == 1) return;
    const auto refuse = [&](std::string_view what) {
      add("/tiled_mlp", fmt::format("is not simulated with {}", what));
    };
    const bool dense = model_.layers.any(
        [](const Layer& layer) { return layer.experts() == nullptr && layer.mlp() != nullptr; });
    if (!dense) add("/tiled_mlp", "has no effect: the model has no layer with a plain MLP");
    const std::int64_t tokens = plan_.batch.micro * plan_.batch.seq_len / plan_.context;
    if (plan_.kernels.mlp_tiles > tokens) {
      add("/tiled_mlp",
          fmt::format("{} tiles are more than the {} tokens of a micro-batch on a rank",
                      plan_.kernels.mlp_tiles, tokens));
    }
    if (plan_.tensor > 1) refuse("tensor above 1, which cuts the MLP itself");
    if (adapts_mlps(plan_)) refuse("adapters of MLPs");
    if (hardware::bits(compute_dtype(plan_.formats.precision)) < 16) {
      refuse(fmt::format("precision {}", name(plan_.formats.precision)));
    }
    const auto again = [](const WordSet<RecomputeModule>& listed) {
      return listed.has(RecomputeModule::activation) || listed.has(RecomputeModule::mlp);
    };
    const bool selective = plan_.recompute.kind == Recompute::selective;
    if ((selective && again(plan_.recompute.modules)) || again(plan_.recompute.elsewhere)) {
      refuse("recomputed MLPs or activations: tiles are computed again already");
    }
  }

  /// Muon updates whole matrices, with one momentum in the format of the master weights.
  void muon() {
    const auto refuse = [&](std::string_view what) {
      add("/optimizer", fmt::format("muon is not simulated with {}", what));
    };
    if (plan_.sharding.zero == Zero::two || plan_.sharding.zero == Zero::three) {
      refuse(fmt::format("zero {}, which cuts matrices; accepted: 0, 1",
                         word_of(zero_words, plan_.sharding.zero)));
    }
    if (plan_.offload.state != Offload::none) refuse("offload");
    if (plan_.formats.state == StatePrecision::pure) refuse("state_precision pure");
    if (plan_.compression.kind != Compression::none) refuse("compressed gradients");
    if (plan_.optimizer.moments != Moments::full) {
      refuse(fmt::format("moments {}", word_of(moments_words, plan_.optimizer.moments)));
    }
  }

  /// Layers that stay in bf16 under a narrower precision.
  void wide_layers() {
    const std::int64_t wide = plan_.formats.start_layers_bf16 + plan_.formats.end_layers_bf16;
    if (wide == 0) return;
    const char* const field =
        plan_.formats.start_layers_bf16 > 0 ? "/start_layers_bf16" : "/end_layers_bf16";
    if (hardware::bits(compute_dtype(plan_.formats.precision)) > 8) {
      add(field, fmt::format("needs GEMMs in 8 or 4 bits; precision is {}",
                             name(plan_.formats.precision)));
    }
    if (wide > model_.layers.size()) {
      add(field, fmt::format("{} layers in bf16, the model has {}", wide, model_.layers.size()));
    }
    if (plan_.formats.low_precision_gather) {
      add(field, "is not simulated with low_precision_gather, which gathers all layers in 8 bits");
    }
  }

  /// Modules that the model does not have.
  void modules(const char* field, const WordSet<RecomputeModule>& listed) {
    if (listed.has(RecomputeModule::mla_up_proj) && !usual_attention(model_).latents) {
      add(field, "mla_up_proj needs latent attention, which the model does not have");
    }
    if (listed.has(RecomputeModule::moe) && usual_experts(model_).count == 0) {
      add(field, "moe needs experts, which the model does not have");
    }
  }

  /// Kernels that find amax: only of what is quantised by it.
  void fused_amax() {
    if (plan_.formats.fused_amax.empty()) return;
    if (plan_.formats.precision != Precision::fp8_current &&
        plan_.formats.precision != Precision::nvfp4) {
      add("/fused_amax", fmt::format("needs a precision that quantises by a tensor's own amax, "
                                     "fp8-current or nvfp4; precision is {}",
                                     name(plan_.formats.precision)));
    }
    if (plan_.formats.hadamard_pass) {
      add("/fused_amax", "a Hadamard transform needs the amax of what it makes: hadamard_pass");
    }
  }

  void low_precision_activation() {
    if (!plan_.formats.low_precision_activation) return;
    if (usual_mlp(model_).activation != Activation::silu || !usual_mlp(model_).gated) {
      add("/low_precision_activation", "needs a gated SiLU, which the model does not have");
    }
    if (hardware::bits(storage_dtype(plan_.formats.precision)) != 16) {
      add("/low_precision_activation", fmt::format("needs activations in 16 bits; precision is {}",
                                                   name(plan_.formats.precision)));
    }
    const auto again = [](const WordSet<RecomputeModule>& listed) {
      return listed.has(RecomputeModule::activation) || listed.has(RecomputeModule::mlp) ||
             listed.has(RecomputeModule::moe);
    };
    const bool selective = plan_.recompute.kind == Recompute::selective;
    if ((selective && again(plan_.recompute.modules)) || again(plan_.recompute.elsewhere)) {
      add("/low_precision_activation", "is not simulated where activations are recomputed");
    }
  }

  void low_precision_attention() {
    if (!plan_.formats.low_precision_attention) return;
    const int narrow = hardware::bits(compute_dtype(plan_.formats.precision));
    if (narrow > 8 || hardware::bits(storage_dtype(plan_.formats.precision)) != 16) {
      add("/low_precision_attention", fmt::format("needs GEMMs in 8 or 4 bits; precision is {}",
                                                  name(plan_.formats.precision)));
    }
    if (context_split(plan_).pieces > 1) {
      add("/low_precision_attention",
          "is not simulated with context ranks that exchange keys and values");
    }
    if (usual_attention(model_).latents) {
      add("/low_precision_attention", "is not simulated with latent attention");
    }
  }
};

}  // namespace

void add_conflicts_of_state(const ConflictChecks& checks) {
  StateChecks{checks}.all();
}

}  // namespace orrery::models
