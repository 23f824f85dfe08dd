// Conflicts of tensor, sequence, context and expert parallelism with a model.

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "models/plan/conflict_checks.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {
namespace {

class AxisChecks : private ConflictChecks {
 public:
  explicit AxisChecks(const ConflictChecks& checks) : ConflictChecks{checks} {}

  void all() {
    tensor();
    sequence();
    context();
    experts();
  }

 private:
  bool is_cut(const PartCut& part) const {
    return part.count % plan_.tensor == 0 || (part.shared && plan_.tensor % part.count == 0);
  }

  void tensor() {
    cuts_of_layers(model_.layers, "model");
    if (model_.front) cuts_of_layers(model_.front->encoder->layers, "image encoder");
  }

  void cuts_of_layers(const LayerList& layers, const char* whose) {
    std::set<std::string> named;
    for (const Layer& kind : layers.kinds()) {
      for (const PartCut& each : cuts_of(kind)) {
        if (is_cut(each) || !named.insert(each.what).second) continue;
        add("/tensor", each.shared ? fmt::format("tensor {} neither divides the {}'s {} nor is a "
                                                 "multiple of them",
                                                 plan_.tensor, whose, each.what)
                                   : fmt::format("tensor {} does not divide the {}'s {}",
                                                 plan_.tensor, whose, each.what));
      }
    }
  }

  void sequence() {
    if (plan_.sequence_parallel && plan_.tensor == 1) {
      add("/sequence", "sequence parallelism needs tensor above 1");
    }
    if (plan_.sequence_parallel && plan_.batch.seq_len % (plan_.tensor * plan_.context) != 0 &&
        plan_.context > 1) {
      add("/seq_len", fmt::format("tensor {} x context {} does not divide seq_len {}, as sequence "
                                  "parallelism needs",
                                  plan_.tensor, plan_.context, plan_.batch.seq_len));
    } else if (plan_.sequence_parallel && plan_.batch.seq_len % plan_.tensor != 0) {
      add("/seq_len", fmt::format("tensor {} does not divide seq_len {}, as sequence parallelism "
                                  "needs",
                                  plan_.tensor, plan_.batch.seq_len));
    }
    if (model_.embedding.positions == Positions::learned &&
        plan_.batch.seq_len > model_.embedding.max_positions) {
      add("/seq_len", fmt::format("seq_len {} is longer than the model's {} learned positions",
                                  plan_.batch.seq_len, model_.embedding.max_positions));
    }
  }

  void context() {
    if (plan_.context == 1) return;
    if (model_.layers.any(recurs))
      add("/context", "context parallelism of Mamba-2 and delta rules is not simulated");
    if (!model_.causal) add("/context", "context parallelism is simulated for causal models only");
    const auto& layers = model_.layers;
    const bool windows = layers.any([](const Layer& layer) {
      return layer.attention() != nullptr && layer.attention()->window > 0;
    });
    if (windows && plan_.context_exchange.form != ContextForm::ulysses) {
      add("/context",
          "context parallelism with a sliding window is simulated only with context_form ulysses");
    }
    chunks();
    if (usual_attention(model_).latents) {
      add("/context", "context parallelism is not simulated with latent attention");
    }
    if (plan_.context % plan_.context_exchange.heads != 0) {
      add("/context_heads", fmt::format("context_heads {} does not divide context {}",
                                        plan_.context_exchange.heads, plan_.context));
      return;
    }
    const auto [heads, pieces] = context_split(plan_);
    if (plan_.context_exchange.form == ContextForm::hierarchical && (heads == 1 || pieces == 1)) {
      add("/context_heads", fmt::format("context_form hierarchical needs at least 2 groups of at "
                                        "least 2 ranks; context is {} and context_heads is {}",
                                        plan_.context, heads));
    }
    context_heads(heads);
    const std::int64_t cuts = (pieces > 1 ? 2 * pieces : 1) * heads;
    if (plan_.batch.seq_len % cuts != 0) {
      add("/seq_len",
          fmt::format("context {} cuts a sequence into {} pieces, which do not divide seq_len {}",
                      plan_.context, cuts, plan_.batch.seq_len));
    }
  }

  /// Chunks of attention that are neither longer than the sequence nor whole on one rank.
  void chunks() {
    const std::int64_t chunk = longest_chunk(model_), piece = piece_length(plan_);
    if (chunk == 0 || chunk >= plan_.batch.seq_len || context_split(plan_).pieces == 1) return;
    if (piece % chunk == 0) return;
    add("/context", fmt::format("context {} cuts a sequence into pieces of {} tokens, which are no "
                                "multiple of the {} tokens within which the model attends; "
                                "context_form ulysses does not cut them",
                                plan_.context, piece, chunk));
  }

  void context_heads(std::int64_t ranks) {
    if (ranks == 1) return;
    const AttentionPart& attention = usual_attention(model_);
    for (const auto& [heads, of] :
         {std::pair{attention.heads, "attention"}, std::pair{attention.kv_heads, "key-value"}}) {
      if (heads % (plan_.tensor * ranks) == 0) continue;
      add("/context", fmt::format("tensor {} x {} context ranks that exchange heads do not divide "
                                  "the model's {} {} heads",
                                  plan_.tensor, ranks, heads, of));
    }
  }

  void experts() {
    const std::int64_t ep = plan_.experts.ranks, etp = expert_tensor_of(plan_);
    const ExpertsPart& experts = usual_experts(model_);
    if (experts.count == 0) {
      if (ep > 1) {
        add("/expert", fmt::format("expert {} needs a model with experts", ep));
      }
      if (plan_.experts.tensor > 1 && plan_.experts.tensor != plan_.tensor) {
        add("/expert_tensor", "expert_tensor needs a model with experts");
      }
      for (const PlanField& each : plan_fields()) {
        const bool degree = each.key == "expert" || each.key == "expert_tensor";
        if (each.group != PlanField::Group::experts || degree || !each.is_set(plan_)) continue;
        add(fmt::format("/{}", each.key), "has no effect: the model has no experts");
      }
      return;
    }
    if (experts.count % ep != 0) {
      add("/expert",
          fmt::format("expert {} does not divide the model's {} experts", ep, experts.count));
    }
    if (experts.mlp.width % etp != 0) {
      add("/expert_tensor", fmt::format("expert_tensor {} does not divide an expert's width {}",
                                        etp, experts.mlp.width));
    }
    const std::int64_t ranks = plan_.gpus() / plan_.pipeline;
    if (ranks % (ep * etp) != 0) {
      add("/expert", fmt::format("expert {} x expert_tensor {} does not divide the {} ranks of a "
                                 "stage",
                                 ep, etp, ranks));
    }
    const bool folded = ep > 1 || etp != plan_.tensor;  // groups of their own
    if (plan_.rank_order == RankOrder::pipeline_first && plan_.pipeline > 1 && folded &&
        ep * etp != plan_.tensor * plan_.context) {
      add("/rank_order",
          "with pipeline before data, experts need as many ranks as tensor x context");
    }
    if (plan_.tensor > 1 && !plan_.sequence_parallel) {
      add("/sequence", "a model with experts and tensor above 1 needs sequence parallelism");
    }
    if (plan_.experts.capacity > 0 &&
        (plan_.experts.imbalance > 1 || !plan_.experts.layer_imbalance.empty())) {
      add("/imbalance", "imbalance applies only to dropless routing (capacity 0)");
    }
    if (plan_.experts.capacity > 0 && plan_.experts.room > 1) {
      add("/expert_room", "expert_room applies only to dropless routing (capacity 0)");
    }
    if (plan_.experts.overlap == ExpertOverlap::shared && experts.shared_width == 0) {
      add("/expert_overlap", "expert_overlap shared needs a model with shared experts");
    }
    if (plan_.experts.gemms == ExpertGemms::loop && (ep > 1 || etp > 1)) {
      add("/expert_gemms",
          "loop is simulated with expert 1 and expert_tensor 1, where a rank has "
          "all experts");
    }
    if (plan_.experts.gemms == ExpertGemms::loop && plan_.kernels.graphs) {
      add("/cuda_graphs", "expert_gemms loop waits for the host, which a graph cannot");
    }
    if (plan_.experts.gemms == ExpertGemms::loop && plan_.experts.permute_fusion) {
      add("/permute_fusion", "has no effect: expert_gemms loop does not permute rows");
    }
    if (etp > 1 && adapts_mlps(plan_)) {
      add("/lora_targets", "adapters of experts are not simulated with expert_tensor above 1");
    }
    if (ep * etp != plan_.tensor) expert_replicas();
  }

  /// Features that do not support experts with other replicas than the rest of their layer.
  void expert_replicas() {
    const std::int64_t holders = plan_.experts.ranks * expert_tensor_of(plan_);
    const bool alone = plan_.gpus() / plan_.pipeline == holders;
    if (alone && plan_.offload.state == Offload::parameters) {
      add("/offload", "offload parameters needs data-parallel replicas of the experts");
    }
    const bool freezes = trains_adapters(plan_) || plan_.task == Task::dpo;
    if (freezes && plan_.sharding.zero == Zero::three) {
      add("/zero", fmt::format("task {} with zero 3 is not simulated with experts over several "
                               "ranks: their frozen weights would be gathered apart",
                               word_of(task_words, plan_.task)));
    }
    if (plan_.data_shards() != plan_.data) {
      add("/data_shard", "data_shard is not simulated with experts over several ranks");
    }
    if (plan_.compression.kind != Compression::none) {
      add("/compression",
          fmt::format("compression {} is not simulated with experts over several ranks",
                      name(plan_.compression.kind)));
    }
  }
};

}  // namespace

void add_conflicts_of_axes(const ConflictChecks& checks) {
  AxisChecks{checks}.all();
}

}  // namespace orrery::models
