#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/plan/fields.hpp"

namespace orrery::models {
namespace {

/// Collects conflicts of one plan.
class Checker {
 public:
  Checker(const Plan& plan, const Model& model, std::int64_t gpus,
          const Registry<Schedule>& schedules)
      : plan_{plan}, model_{model}, gpus_{gpus}, schedules_{schedules} {}

  std::vector<Conflict> all() {
    if (!in_range()) return std::move(found_);
    model();
    gpus();
    tensor();
    sequence();
    context();
    experts();
    batch();
    zero();
    compression();
    task();
    memory_savers();
    schedule();
    layers();
    return std::move(found_);
  }

 private:
  void add(std::string pointer, std::string problem) {
    found_.push_back({std::move(pointer), std::move(problem)});
  }

  /// Later checks divide by these, and multiply them.
  bool in_range() {
    for (const PlanField& field : plan_fields()) {
      if (!field.count) continue;
      const std::int64_t value = plan_.*field.count;
      const std::string pointer = fmt::format("/{}", field.key);
      if (value < field.least) {
        add(pointer, fmt::format("{} {} is below {}", field.key, value, field.least));
      }
      if (value > field.most) {
        add(pointer, fmt::format("{} {} is above {}", field.key, value, field.most));
      }
    }
    return found_.empty();
  }

  void model() {
    if (model_.not_simulated) {
      add("", fmt::format("the model cannot be simulated: {}", *model_.not_simulated));
    }
  }

  void gpus() {
    if (plan_.gpus() > most_gpus) {
      add("/data",
          fmt::format("{} GPUs are more than 2^20, the most that a plan may use", plan_.gpus()));
    }
    if (plan_.gpus() != gpus_) {
      add("/data", fmt::format("tensor {}{} x pipeline {} x data {} is {} GPUs, the cluster has {}",
                               plan_.tensor,
                               plan_.context > 1 ? fmt::format(" x context {}", plan_.context) : "",
                               plan_.pipeline, plan_.data, plan_.gpus(), gpus_));
    }
  }

  void tensor() {
    const std::int64_t t = plan_.tensor;
    if (model_.heads % t != 0) {
      add("/tensor",
          fmt::format("tensor {} does not divide the model's {} attention heads", t, model_.heads));
    }
    if (model_.kv_heads % t != 0 && t % model_.kv_heads != 0) {
      add("/tensor", fmt::format("tensor {} neither divides the model's {} key-value heads nor is "
                                 "a multiple of them",
                                 t, model_.kv_heads));
    }
    const std::int64_t widths[] = {model_.experts > 0 ? model_.dense_ffn : model_.ffn_hidden,
                                   model_.shared_ffn};
    for (const std::int64_t width : widths) {
      if (width % t == 0) continue;
      add("/tensor", fmt::format("tensor {} does not divide the model's MLP width {}", t, width));
    }
  }

  void sequence() {
    if (plan_.sequence_parallel && plan_.tensor == 1) {
      add("/sequence", "sequence parallelism needs tensor above 1");
    }
    if (plan_.sequence_parallel && plan_.seq_len % (plan_.tensor * plan_.context) != 0 &&
        plan_.context > 1) {
      add("/seq_len", fmt::format("tensor {} x context {} does not divide seq_len {}, as sequence "
                                  "parallelism needs",
                                  plan_.tensor, plan_.context, plan_.seq_len));
    } else if (plan_.sequence_parallel && plan_.seq_len % plan_.tensor != 0) {
      add("/seq_len", fmt::format("tensor {} does not divide seq_len {}, as sequence parallelism "
                                  "needs",
                                  plan_.tensor, plan_.seq_len));
    }
    if (model_.positions == Positions::learned && plan_.seq_len > model_.max_positions) {
      add("/seq_len", fmt::format("seq_len {} is longer than the model's {} learned positions",
                                  plan_.seq_len, model_.max_positions));
    }
  }

  void context() {
    if (plan_.context == 1) return;
    if (!model_.causal) add("/context", "context parallelism is simulated of causal models alone");
    if (model_.sliding_window > 0) {
      add("/context", "context parallelism is not simulated with a sliding window");
    }
    if (model_.kv_rank > 0) {
      add("/context", "context parallelism is not simulated with latent attention");
    }
    if (plan_.context % plan_.context_heads != 0) {
      add("/context_heads", fmt::format("context_heads {} does not divide context {}",
                                        plan_.context_heads, plan_.context));
      return;
    }
    const auto [heads, pieces] = context_split(plan_);
    if (plan_.context_form == ContextForm::hierarchical && (heads == 1 || pieces == 1)) {
      add("/context_heads", fmt::format("a hierarchy of context {} has groups of 2 ranks or more, "
                                        "and several of them; context_heads is {}",
                                        plan_.context, heads));
    }
    context_heads(heads);
    const std::int64_t cuts = (pieces > 1 ? 2 * pieces : 1) * heads;
    if (plan_.seq_len % cuts != 0) {
      add("/seq_len",
          fmt::format("context {} cuts a sequence in {} pieces, which seq_len {} is not "
                      "a multiple of",
                      plan_.context, cuts, plan_.seq_len));
    }
  }

  void context_heads(std::int64_t ranks) {
    if (ranks == 1) return;
    for (const auto& [heads, of] :
         {std::pair{model_.heads, "attention"}, std::pair{model_.kv_heads, "key-value"}}) {
      if (heads % (plan_.tensor * ranks) == 0) continue;
      add("/context", fmt::format("tensor {} x {} context ranks that trade for heads do not divide "
                                  "the model's {} {} heads",
                                  plan_.tensor, ranks, heads, of));
    }
  }

  void experts() {
    const std::int64_t ep = plan_.expert, etp = expert_tensor_of(plan_);
    if (model_.experts == 0) {
      if (ep > 1) {
        add("/expert", fmt::format("expert {} needs a model with experts", ep));
      }
      if (plan_.expert_tensor > 1 && plan_.expert_tensor != plan_.tensor) {
        add("/expert_tensor", "expert_tensor needs a model with experts");
      }
      return;
    }
    if (model_.experts % ep != 0) {
      add("/expert",
          fmt::format("expert {} does not divide the model's {} experts", ep, model_.experts));
    }
    if (model_.ffn_hidden % etp != 0) {
      add("/expert_tensor", fmt::format("expert_tensor {} does not divide an expert's width {}",
                                        etp, model_.ffn_hidden));
    }
    const std::int64_t ranks = plan_.gpus() / plan_.pipeline;
    if (ranks % (ep * etp) != 0) {
      add("/expert", fmt::format("expert {} x expert_tensor {} does not divide the {} ranks of a "
                                 "stage",
                                 ep, etp, ranks));
    }
    if (plan_.tensor > 1 && !plan_.sequence_parallel) {
      add("/sequence", "a model with experts and tensor above 1 needs sequence parallelism");
    }
    if (plan_.capacity > 0 && plan_.imbalance > 1) {
      add("/imbalance", "imbalance is of dropless routing; capacity pads every expert alike");
    }
    if (plan_.expert_overlap == ExpertOverlap::shared && model_.shared_ffn == 0) {
      add("/expert_overlap", "expert_overlap shared needs a model with shared experts");
    }
    if (ep * etp != plan_.tensor) expert_replicas();
  }

  /// What does not know yet that experts have other replicas than the rest of a layer.
  void expert_replicas() {
    if (plan_.zero == Zero::two || plan_.zero == Zero::three) {
      add("/zero", fmt::format("zero {} is not simulated with experts over several ranks; known "
                               "with them: 0, 1",
                               word_of(zero_words, plan_.zero)));
    }
    if (plan_.data_shards() != plan_.data) {
      add("/data_shard", "data_shard is not simulated with experts over several ranks");
    }
    if (plan_.compression != Compression::none) {
      add("/compression",
          fmt::format("compression {} is not simulated with experts over several ranks",
                      name(plan_.compression)));
    }
  }

  void batch() {
    if (plan_.global_batch % (plan_.micro_batch * plan_.data) != 0) {
      add("/global_batch", fmt::format("micro_batch {} x data {} does not divide global_batch {}",
                                       plan_.micro_batch, plan_.data, plan_.global_batch));
    }
    const std::int64_t count = plan_.micro_batches();
    if (count > most_micro_batches) {
      add("/global_batch",
          fmt::format("{} micro-batches of a replica are more than {}; raise micro_batch or data",
                      count, most_micro_batches));
    } else if (count * plan_.chunks() > most_forwards) {
      add("/global_batch",
          fmt::format("{} micro-batches on {} chunks of the model are more than {} forward passes; "
                      "raise micro_batch or data",
                      count, plan_.chunks(), most_forwards));
    }
  }

  void zero() {
    if (plan_.data % plan_.data_shards() != 0) {
      add("/data_shard",
          fmt::format("data_shard {} does not divide data {}", plan_.data_shard, plan_.data));
    } else if (plan_.data_shards() < plan_.data && plan_.zero == Zero::none) {
      add("/data_shard", "data_shard needs zero above 0");
    } else if (plan_.data_shards() * plan_.context == 1 && plan_.data > 1) {
      add("/data_shard", "data_shard 1 shards nothing; leave zero and data_shard out");
    }
    if (plan_.offload != Offload::none && plan_.zero == Zero::none) {
      add("/offload", "offload needs zero above 0, whose ranks step their own shards");
    }
    if (plan_.zero == Zero::three) return;
    if (plan_.offload == Offload::parameters) {
      add("/offload", "offload parameters needs zero 3, whose weights are gathered");
    }
    if (!plan_.reshard) add("/reshard", "reshard false needs zero 3, whose weights are gathered");
    if (plan_.prefetch != 1) add("/prefetch", "prefetch needs zero 3, whose weights are gathered");
  }

  void compression() {
    if (plan_.compression == Compression::none) return;
    if (plan_.zero != Zero::none) {
      add("/compression", fmt::format("compression {} needs zero 0, the plan has zero {}",
                                      name(plan_.compression), word_of(zero_words, plan_.zero)));
    }
    if (plan_.context > 1) {
      add("/compression", "compression is not simulated with context above 1");
    }
    if (plan_.data == 1) {
      add("/compression",
          fmt::format("compression {} needs data above 1", name(plan_.compression)));
    }
  }

  /// A schedule that is given slot by slot is for one shape.
  void schedule_file() {
    const ScheduleTable& table = plan_.slots;
    const auto wants = [&](std::string_view pointer, std::string_view what, std::int64_t needed,
                           std::int64_t found) {
      if (needed == found) return;
      add(std::string{pointer},
          fmt::format("{} has {} {}, the plan has {}", plan_.schedule, needed, what, found));
    };
    wants("/pipeline", "ranks", std::ssize(table.slots), plan_.pipeline);
    wants("/virtual_stages", "chunks", table.chunks, plan_.chunks());
    wants("/global_batch", "micro-batches", table.micro_batches, plan_.micro_batches());
    if (table.splits_backward()) whole_gradients();
  }

  void whole_gradients() {
    if (trains_adapters(plan_)) {
      add("/schedule", fmt::format("{} splits backward, which is not simulated with task {}",
                                   plan_.schedule, word_of(task_words, plan_.task)));
    }
    if (plan_.fused_cross_entropy) {
      add("/fused_cross_entropy",
          fmt::format("is not simulated with {}, which splits backward: the head's gradients are "
                      "forward's",
                      plan_.schedule));
    }
    if (!shards_gradients(plan_)) return;
    add("/zero", fmt::format("zero {} is not simulated with {}, which splits backward; known with "
                             "it: 0, 1",
                             word_of(zero_words, plan_.zero), plan_.schedule));
  }

  void task() {
    if (plan_.task == Task::dpo && plan_.pipeline > 1) {
      add("/task",
          "task dpo is not simulated with pipeline above 1: its frozen reference is a "
          "second pass through the stages");
    }
    if (plan_.task == Task::qlora && hardware::bits(compute_dtype(plan_.precision)) != 16) {
      add("/task", fmt::format("qlora multiplies in 16 bits what it stores in 4, not in {}",
                               name(plan_.precision)));
    }
    if (!plan_.sequence_lengths.empty() && plan_.context > 1) {
      add("/sequence_lengths", "packed documents are not simulated with context above 1");
    }
    for (const std::int64_t each : plan_.sequence_lengths) {
      if (each <= plan_.seq_len) continue;
      add("/sequence_lengths",
          fmt::format("a document of {} tokens does not fit into seq_len {}", each, plan_.seq_len));
    }
  }

  void memory_savers() {
    const bool recomputes = plan_.recompute != Recompute::none;
    if (!recomputes && (plan_.recompute_layers > 0 || plan_.recompute_every > 1)) {
      add(plan_.recompute_layers > 0 ? "/recompute_layers" : "/recompute_every",
          "says which layers recompute, and recompute is none");
    }
    const bool further =
        model_.head_transform || model_.pooler || model_.answers > 0 || projects_embeddings(model_);
    if (plan_.fused_cross_entropy && further) {
      add("/fused_cross_entropy", "is simulated for heads of one matrix over the vocabulary");
    }
    if (plan_.fused_cross_entropy && plan_.context > 1) {
      add("/fused_cross_entropy", "is not simulated with context above 1");
    }
    if (plan_.moments != Moments::full && plan_.offload != Offload::none) {
      add("/moments", fmt::format("moments {} are not simulated with offload",
                                  word_of(moments_words, plan_.moments)));
    }
    const bool in_8_bits = compute_dtype(plan_.precision) == hardware::DType::fp8;
    const bool gathers = plan_.zero != Zero::none || plan_.task == Task::lora;
    if (plan_.low_precision_gather && (!in_8_bits || !gathers)) {
      add("/low_precision_gather",
          fmt::format("weights are gathered in 8 bits by ZeRO in fp8, not with zero {} in {}",
                      word_of(zero_words, plan_.zero), name(plan_.precision)));
    }
  }

  void schedule() {
    if (!plan_.slots.empty()) {
      schedule_file();
      return;
    }
    if (!schedules_.has(plan_.schedule)) {
      add("/schedule", fmt::format("unknown schedule '{}'; known: {}", plan_.schedule,
                                   listed(schedules_.names())));
      return;
    }
    const Schedule& row = schedules_.at(plan_.schedule);
    if (plan_.virtual_stages > 1 && row.chunks == ChunksPerStage::one) {
      add("/virtual_stages",
          fmt::format("{} virtual stages need the schedule {}, not {}", plan_.virtual_stages,
                      fmt::join(schedules_of(ChunksPerStage::several), " or "), plan_.schedule));
    }
    if (row.splits_backward()) whole_gradients();
    if (!row.lacks) return;
    for (const std::string& what : row.lacks(plan_.shape())) {
      add("/schedule", fmt::format("{} needs {}", plan_.schedule, what));
    }
  }

  std::vector<std::string> schedules_of(ChunksPerStage chunks) const {
    std::vector<std::string> names;
    for (const auto& [name, row] : schedules_) {
      const bool two = row.placement == Placement::vee;
      if (row.chunks == chunks && (!two || plan_.virtual_stages == 2)) names.push_back(name);
    }
    return names;
  }

  void layers() {
    if (plan_.layers_by_time && plan_.embedding_counts) {
      add("/embedding_counts", "embedding_counts and stage_layers exclude each other");
    }
    if (!plan_.stage_layers.empty()) {
      stage_layers();
      return;
    }
    // Where embedding and head take a slot each, they may be all that their chunks hold.
    const bool two_slots = plan_.embedding_counts && plan_.chunks() > 1;
    const std::int64_t needed = plan_.chunks() - (two_slots ? 2 : 0);
    if (model_.layers >= needed) return;
    const std::string cut =
        plan_.virtual_stages == 1
            ? fmt::format("pipeline {}", plan_.pipeline)
            : fmt::format("pipeline {} x virtual_stages {}", plan_.pipeline, plan_.virtual_stages);
    add("/pipeline",
        fmt::format("{} leaves a stage without a layer: the model has {}{}", cut, model_.layers,
                    two_slots ? " and embedding and head take a slot each" : ""));
  }

  void stage_layers() {
    if (plan_.embedding_counts) {
      add("/embedding_counts", "embedding_counts and stage_layers exclude each other");
    }
    const auto count = static_cast<std::int64_t>(plan_.stage_layers.size());
    if (count != plan_.chunks()) {
      add("/stage_layers",
          fmt::format("stage_layers has {} entries for {} stages", count, plan_.chunks()));
    }
    const auto& each = plan_.stage_layers;
    const bool inner = each.size() > 2 && *std::min_element(each.begin() + 1, each.end() - 1) < 1;
    if (inner || each.front() < (each.size() > 1 ? 0 : 1)) {
      add("/stage_layers",
          "every stage needs at least one layer, but for the first and the last, "
          "which hold embedding and head");
    }
    const std::int64_t sum =
        std::accumulate(plan_.stage_layers.begin(), plan_.stage_layers.end(), std::int64_t{0});
    if (sum != model_.layers) {
      add("/stage_layers",
          fmt::format("stage_layers add up to {}, the model has {} layers", sum, model_.layers));
    }
  }

  const Plan& plan_;
  const Model& model_;
  std::int64_t gpus_;
  const Registry<Schedule>& schedules_;
  std::vector<Conflict> found_;
};

}  // namespace

std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus,
                                const Registry<Schedule>& schedules) {
  return Checker{plan, model, gpus, schedules}.all();
}

}  // namespace orrery::models
