#include "models/plan/fields.hpp"
#include "models/plan/expert_counts.hpp"
#include "models/plan/field_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace orrery::models {
namespace {

using Kind = PlanField::Kind;
using Title = PlanField::Title;
using Default = PlanField::Default;
using Flag = PlanField::Flag;
using Stack = PlanField::Stack;

constexpr std::int64_t most_virtual_stages = 1 << 12;  // a model has no more layers
constexpr std::int64_t most_prefetch = 1 << 12;
constexpr std::int64_t most_batch = std::int64_t{1} << 31;
constexpr std::int64_t most_lora_rank = 1 << 14;  // and of factors of gradients
constexpr std::int64_t most_seq_len = std::int64_t{1} << 30;

std::vector<std::string> schedule_names() {
  return builtin_schedules().names();
}

std::string derive_data(Plan& plan, const PlanBasis& basis) {
  plan.data = std::max<std::int64_t>(1, basis.gpus / (plan.tensor * plan.context * plan.pipeline));
  return fmt::format("{} derived from the cluster's GPUs over tensor{} and pipeline", plan.data,
                     plan.context > 1 ? ", context" : "");
}

void read_context_form(const Node& word, Plan& plan) {
  if (plan.context == 1) word.fail("is for context above 1 alone");
  plan.context_form = word.word(context_form_words);
}

Json write_context_form(const Plan& plan) {
  if (plan.context == 1) return nullptr;
  return word_of(context_form_words, plan.context_form);
}

std::string derive_context_form(Plan& plan, const PlanBasis&) {
  if (plan.context == 1) return {};
  return "ring taken as default";
}

void read_context_heads(const Node& ranks, Plan& plan) {
  if (plan.context == 1 || plan.context_form != ContextForm::hierarchical) {
    ranks.fail("is for context_form hierarchical alone");
  }
  plan.context_heads = ranks.integer(1, most_gpus);
}

Json write_context_heads(const Plan& plan) {
  if (plan.context == 1 || plan.context_form != ContextForm::hierarchical) return nullptr;
  return plan.context_heads;
}

Json write_expert(const Plan& plan) {
  return plan.expert > 1 ? Json(plan.expert) : Json(nullptr);
}

std::string derive_expert(Plan&, const PlanBasis& basis) {
  return basis.model.experts > 0 ? "1 taken as default: every rank has all experts" : "";
}

void read_expert_tensor(const Node& degree, Plan& plan) {
  plan.expert_tensor = degree.integer(1, most_gpus);
}

Json write_expert_tensor(const Plan& plan) {
  return plan.expert_tensor > 0 ? Json(plan.expert_tensor) : Json(nullptr);
}

std::string derive_expert_tensor(Plan& plan, const PlanBasis& basis) {
  if (basis.model.experts == 0) return {};
  plan.expert_tensor = plan.tensor;
  return plan.tensor > 1 ? fmt::format("{} taken, as tensor", plan.tensor) : "";
}

Json write_dispatcher(const Plan& plan) {
  if (plan.dispatcher == Dispatcher::all_to_all) return nullptr;
  return word_of(dispatcher_words, plan.dispatcher);
}

std::string derive_dispatcher(Plan& plan, const PlanBasis&) {
  return plan.expert > 1 ? "alltoall taken as default" : "";
}

Json write_expert_overlap(const Plan& plan) {
  if (plan.expert_overlap == ExpertOverlap::none) return nullptr;
  return word_of(expert_overlap_words, plan.expert_overlap);
}

std::string derive_permute_fusion(Plan&, const PlanBasis& basis) {
  return basis.model.experts > 0 ? "false taken as default, as in Megatron-Core" : "";
}

constexpr double most_factor = 1e4;

double read_factor(const Node& number, double least) {
  const double value = number.as<double>();
  if (!(value > 0 && value >= least && value <= most_factor)) {
    number.fail_expected(fmt::format("a number {}, at most {:g}",
                                     least > 0 ? fmt::format("from {:g}", least) : "above 0",
                                     most_factor));
  }
  return value;
}

void read_capacity(const Node& factor, Plan& plan) {
  plan.capacity = read_factor(factor, 0);
}
Json write_capacity(const Plan& plan) {
  return plan.capacity > 0 ? Json(plan.capacity) : Json(nullptr);
}
std::string derive_capacity(Plan&, const PlanBasis& basis) {
  return basis.model.experts > 0 ? "no limit taken as default: no token is dropped" : "";
}

/// A number, or a file of counted tokens, whose busiest rank depends on `expert`.
void read_imbalance(const Node& factor, Plan& plan) {
  if (!factor.is_string()) {
    plan.imbalance = read_factor(factor, 1);
    return;
  }
  const auto file = factor.as<std::string>();
  if (!file.ends_with(".csv") && !file.ends_with(".json")) {
    factor.fail_expected("a number from 1, or a file of counted tokens (.csv, .json)");
  }
  const ExpertCounts counts = load_expert_counts(file);
  if (counts.experts() % plan.expert != 0) {
    factor.fail(fmt::format("{} ranks of expert do not divide the {} experts that {} counts",
                            plan.expert, counts.experts(), file));
  }
  plan.imbalance = counts.imbalance(plan.expert);
}

std::int64_t layers_with_experts(const Model& model) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) count += has_experts(model, layer);
  return count;
}

std::string remark_imbalance(const Plan& plan, const PlanBasis& basis) {
  const auto given = basis.given.find("imbalance");
  if (!given || !given->is_string()) return {};
  const auto file = given->as<std::string>();
  const ExpertCounts counts = load_expert_counts(file);
  if (counts.experts() != basis.model.experts) {
    given->fail(fmt::format("{} counts {} experts, the model has {}", file, counts.experts(),
                            basis.model.experts));
  }
  const std::int64_t layers = std::ssize(counts.layers), due = layers_with_experts(basis.model);
  if (layers > 1 && layers != due) {
    given->fail(
        fmt::format("{} counts {} layers, the model has {} with experts", file, layers, due));
  }
  return fmt::format(
      "{:.3g} taken: of {} ranks the busiest over the mean, {} in {}", plan.imbalance, plan.expert,
      layers > 1 ? fmt::format("mean of {} layers", layers) : "every layer alike", file);
}
Json write_imbalance(const Plan& plan) {
  return plan.imbalance > 1 ? Json(plan.imbalance) : Json(nullptr);
}
std::string derive_imbalance(Plan& plan, const PlanBasis& basis) {
  const bool free = basis.model.experts > 0 && plan.capacity == 0;
  return free ? "1 taken as default: every expert gets as many tokens" : "";
}

std::string derive_schedule(Plan& plan, const PlanBasis&) {
  plan.schedule = usual_schedule(plan.virtual_stages);
  return plan.schedule + " taken as default";
}

void read_schedule(const Node& word, Plan& plan) {
  constexpr std::string_view ending = ".csv";
  plan.schedule = word.as<std::string>();
  const std::string_view name = plan.schedule;
  if (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending) {
    plan.slots = load_schedule(plan.schedule);
  }
  if (plan.schedule == "interleaved") plan.schedule = "interleaved-1f1b";
}

void read_zero(const Node& stage, Plan& plan) {
  const auto most = static_cast<std::int64_t>(zero_words.size()) - 1;
  plan.zero = *value_of(zero_words, std::to_string(stage.integer(0, most)));
}

Json write_zero(const Plan& plan) {
  return std::stoi(std::string{word_of(zero_words, plan.zero)});
}

Json write_data_shard(const Plan& plan) {
  if (plan.data_shards() == plan.data) return nullptr;
  return plan.data_shard;
}

Json write_offload(const Plan& plan) {
  if (plan.offload == Offload::none) return nullptr;
  return word_of(offload_words, plan.offload);
}

std::string derive_global_batch(Plan& plan, const PlanBasis&) {
  plan.global_batch = plan.data * plan.micro_batch * plan.pipeline;
  return fmt::format("{} taken as data x micro_batch x pipeline", plan.global_batch);
}

std::string derive_seq_len(Plan& plan, const PlanBasis& basis) {
  if (basis.model.max_positions < 1) {
    basis.given.fail("seq_len is missing, and the model states no longest sequence");
  }
  plan.seq_len = basis.model.max_positions;
  return fmt::format("{} taken from the model's longest sequence", plan.seq_len);
}

std::string_view words_of(Positions positions) {
  switch (positions) {
    case Positions::rotary:
      return "rotary angles";
    case Positions::alibi:
      return "biases by distance";
    default:
      return "layers, which see no positions,";
  }
}

/// Learned positions end where their table does: a conflict of the plan.
std::string remark_seq_len(const Plan& plan, const PlanBasis& basis) {
  const Model& model = basis.model;
  const bool beyond = model.max_positions > 0 && plan.seq_len > model.max_positions;
  if (!beyond || model.positions == Positions::learned) return {};
  return fmt::format("{} is beyond the model's {} positions, which it was made for; its {} go on",
                     plan.seq_len, model.max_positions, words_of(model.positions));
}

Json write_compression(const Plan& plan) {
  if (plan.compression == Compression::none) return nullptr;
  return name(plan.compression);
}

void read_compression_share(const Node& share, Plan& plan) {
  if (plan.compression != Compression::top_k) share.fail("is for compression top-k alone");
  plan.compression_share = share.as<double>();
  if (!(plan.compression_share > 0 && plan.compression_share <= 1)) {
    share.fail_expected("a number above 0, at most 1");
  }
}

Json write_compression_share(const Plan& plan) {
  if (plan.compression != Compression::top_k) return nullptr;
  return plan.compression_share;
}

void read_compression_rank(const Node& rank, Plan& plan) {
  if (plan.compression != Compression::power_sgd) rank.fail("is for compression power-sgd alone");
  plan.compression_rank = rank.integer(1, most_lora_rank);
}

std::string derive_compression_rank(Plan& plan, const PlanBasis&) {
  if (plan.compression != Compression::power_sgd) return {};
  return fmt::format("{} taken as default (Vogels et al. 2019, for language models)",
                     plan.compression_rank);
}

Json write_compression_rank(const Plan& plan) {
  if (plan.compression != Compression::power_sgd) return nullptr;
  return plan.compression_rank;
}

constexpr std::string_view by_time = "by-time";

void read_stage_layers(const Node& list, Plan& plan) {
  plan.layers_by_time = list.json() == by_time;
  if (plan.layers_by_time) return;
  if (!list.is_array()) list.fail_expected("a list of layers, or \"by-time\"");
  for (const Node& layers : list.elements()) {
    plan.stage_layers.push_back(layers.integer(0, most_virtual_stages));
  }
  if (plan.stage_layers.empty()) list.fail("is empty; leave it out for an even split");
}

Json write_stage_layers(const Plan& plan) {
  if (plan.layers_by_time) return by_time;
  if (plan.stage_layers.empty()) return nullptr;
  return plan.stage_layers;
}

std::string derive_stage_layers(Plan& plan, const PlanBasis& basis) {
  const bool cut = plan.chunks() > 1 && !basis.given.has("embedding_counts");
  return cut ? "as even as possible taken as default" : "";
}

constexpr std::array<PlanField, 45> field_rows{{
    {.key = "task",
     .name = "task",
     .kind = Kind::word,
     .column = "task",
     .title = Title::addition,
     .titled = "task",
     .by_default = Default::silent,
     .words = words_in<task_words>,
     .read = read_word<&Plan::task, task_words>,
     .write = write_task},
    {.key = "tensor",
     .name = "tensor",
     .column = "tp",
     .title = Title::degree,
     .titled = "TP",
     .flag = Flag::always,
     .count = &Plan::tensor,
     .most = most_gpus},
    {.key = "sequence",  // sequence parallelism in the tensor group
     .name = "sequence parallelism",
     .kind = Kind::flag,
     .column = "sequence_parallel",
     .title = Title::addition,
     .titled = "+ SP",
     .stack = Stack::has_default,
     .on = &Plan::sequence_parallel},
    {.key = "context",  // ranks that share a sequence
     .name = "context",
     .column = "cp",
     .title = Title::degree_where_used,
     .titled = "CP",
     .by_default = Default::silent,
     .count = &Plan::context,
     .most = most_gpus},
    {.key = "context_form",
     .name = "context form",
     .kind = Kind::word,
     .column = "cp_comm_type",
     .title = Title::addition,
     .titled = "by",
     .by_default = Default::silent,
     .words = words_in<context_form_words>,
     .read = read_context_form,
     .write = write_context_form,
     .derive = derive_context_form},
    {.key = "context_heads",  // of a hierarchy: ranks of a group that trade for heads
     .name = "context heads",
     .title = Title::addition,
     .titled = "in groups of",
     .by_default = Default::silent,
     .count = &Plan::context_heads,
     .most = most_gpus,
     .read = read_context_heads,
     .write = write_context_heads},
    {.key = "pipeline",
     .name = "pipeline",
     .column = "pp",
     .title = Title::degree,
     .titled = "PP",
     .flag = Flag::always,
     .count = &Plan::pipeline,
     .most = most_gpus},
    {.key = "virtual_stages",
     .name = "virtual stages",
     .column = "virtual_stages",
     .title = Title::addition,
     .titled = "x",
     .count = &Plan::virtual_stages,
     .most = most_virtual_stages},
    {.key = "schedule",
     .name = "schedule",
     .kind = Kind::word,
     .column = "schedule",
     .words = schedule_names,
     .read = read_schedule,
     .write = [](const Plan& plan) { return Json(plan.schedule); },
     .derive = derive_schedule},
    {.key = "data",
     .name = "data",
     .column = "dp",
     .title = Title::degree,
     .titled = "DP",
     .flag = Flag::always,
     .count = &Plan::data,
     .most = most_gpus,
     .derive = derive_data},
    {.key = "zero",  // what data-parallel ranks shard
     .name = "ZeRO",
     .kind = Kind::word,
     .column = "zero_stage",
     .title = Title::addition,
     .titled = "ZeRO-",
     .stack = Stack::has_default,
     .words = words_in<zero_words>,
     .read = read_zero,
     .write = write_zero},
    {.key = "data_shard",  // ranks that share state, copied along the others; 0: all of data
     .name = "data shard",
     .title = Title::addition,
     .titled = "in shards of",
     .by_default = Default::silent,
     .count = &Plan::data_shard,
     .least = 0,
     .most = most_gpus,
     .write = write_data_shard},
    {.key = "reshard",  // of ZeRO-3: after forward
     .name = "reshard after forward",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::reshard,
     .write = [](const Plan& plan) { return plan.reshard ? Json(nullptr) : Json(false); }},
    {.key = "prefetch",  // of ZeRO-3: units gathered ahead
     .name = "prefetch",
     .by_default = Default::silent,
     .count = &Plan::prefetch,
     .least = 0,
     .most = most_prefetch,
     .write =
         [](const Plan& plan) { return plan.prefetch == 1 ? Json(nullptr) : Json(plan.prefetch); }},
    {.key = "offload",  // of sharded state to the host
     .name = "offload",
     .kind = Kind::word,
     .column = "offload",
     .title = Title::addition,
     .titled = "offloading",
     .by_default = Default::silent,
     .words = words_in<offload_words>,
     .read = read_word<&Plan::offload, offload_words>,
     .write = write_offload},
    {.key = "expert",  // ranks of a stage that share a layer's experts
     .name = "expert",
     .column = "ep",
     .title = Title::addition,
     .titled = "EP",
     .by_default = Default::silent,
     .count = &Plan::expert,
     .most = most_gpus,
     .write = write_expert,
     .derive = derive_expert},
    {.key = "expert_tensor",  // ranks that cut each expert
     .name = "expert tensor",
     .title = Title::addition,
     .titled = "ETP",
     .by_default = Default::silent,
     .most = most_gpus,
     .read = read_expert_tensor,
     .write = write_expert_tensor,
     .derive = derive_expert_tensor},
    {.key = "dispatcher",  // of tokens to their experts
     .name = "dispatcher",
     .kind = Kind::word,
     .by_default = Default::silent,
     .words = words_in<dispatcher_words>,
     .read = read_word<&Plan::dispatcher, dispatcher_words>,
     .write = write_dispatcher,
     .derive = derive_dispatcher},
    {.key = "expert_overlap",  // what runs while tokens travel to their experts
     .name = "expert overlap",
     .kind = Kind::word,
     .by_default = Default::silent,
     .words = words_in<expert_overlap_words>,
     .read = read_word<&Plan::expert_overlap, expert_overlap_words>,
     .write = write_expert_overlap},
    {.key = "permute_fusion",  // of tokens to the order of their experts: one kernel each way
     .name = "fused permutation",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::permute_fusion,
     .write = [](const Plan& plan) { return plan.permute_fusion ? Json(true) : Json(nullptr); },
     .derive = derive_permute_fusion},
    {.key = "capacity",  // rows of an expert over the mean: above it tokens are dropped
     .name = "capacity",
     .kind = Kind::factor,
     .by_default = Default::silent,
     .read = read_capacity,
     .write = write_capacity,
     .derive = derive_capacity},
    {.key = "imbalance",  // rows of the busiest rank's experts over the mean, or a file of counts
     .name = "imbalance",
     .kind = Kind::factor,
     .by_default = Default::silent,
     .read = read_imbalance,
     .write = write_imbalance,
     .derive = derive_imbalance,
     .remark = remark_imbalance},
    {.key = "micro_batch",
     .name = "micro-batch",
     .column = "micro_batch",
     .title = Title::choice,
     .titled = "micro-batch",
     .heading = "micro",
     .flag = Flag::always,
     .count = &Plan::micro_batch,
     .most = most_gpus},
    {.key = "global_batch",
     .name = "batch",
     .column = "global_batch",
     .flag = Flag::always,
     .count = &Plan::global_batch,
     .most = most_batch,
     .derive = derive_global_batch},
    {.key = "seq_len",
     .name = "sequence length",
     .column = "seq_len",
     .flag = Flag::always,
     .count = &Plan::seq_len,
     .most = most_seq_len,
     .derive = derive_seq_len,
     .remark = remark_seq_len},
    {.key = "precision",
     .name = "precision",
     .kind = Kind::word,
     .column = "precision",
     .flag = Flag::always,
     .stack = Stack::has_default,
     .words = words_in<precision_words>,
     .read = read_word<&Plan::precision, precision_words>,
     .write = write_word<&Plan::precision, precision_words>},
    {.key = "recompute",
     .name = "recompute",
     .kind = Kind::word,
     .column = "recompute",
     .title = Title::choice,
     .titled = "recompute",
     .flag = Flag::always,
     .stack = Stack::has_default,
     .words = words_in<recompute_words>,
     .read = read_word<&Plan::recompute, recompute_words>,
     .write = write_word<&Plan::recompute, recompute_words>},
    {.key = "recompute_modules",  // of recompute selective
     .name = "recomputed modules",
     .kind = Kind::some,
     .by_default = Default::silent,
     .words = words_in<recompute_module_words>,
     .read = read_some<&Plan::recompute_modules, recompute_module_words>,
     .write = write_recompute_modules},
    {.key = "recompute_layers",  // the first ones of each chunk; 0: all
     .name = "recomputed layers",
     .column = "recompute_layers",
     .by_default = Default::silent,
     .count = &Plan::recompute_layers,
     .least = 0,
     .most = most_virtual_stages,
     .write = write_recompute_layers},
    {.key = "recompute_every",  // of those, the first of every so many
     .name = "recomputed every",
     .by_default = Default::silent,
     .count = &Plan::recompute_every,
     .most = most_virtual_stages,
     .write = write_recompute_every},
    {.key = "lora_rank",
     .name = "adapters' rank",
     .by_default = Default::silent,
     .count = &Plan::lora_rank,
     .most = most_lora_rank,
     .write = write_lora_rank,
     .derive = derive_lora_rank},
    {.key = "lora_targets",  // matrices that have an adapter
     .name = "adapters' targets",
     .kind = Kind::some,
     .by_default = Default::silent,
     .words = words_in<lora_target_words>,
     .read = read_some<&Plan::lora_targets, lora_target_words>,
     .write = write_lora_targets,
     .derive = derive_lora_targets},
    {.key = "lora_dropout",  // on the adapters' input
     .name = "adapters' dropout",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::lora_dropout,
     .write = write_lora_dropout},
    {.key = "sequence_lengths",  // of the documents packed into a sequence, equally frequent
     .name = "packed lengths",
     .kind = Kind::counts,
     .by_default = Default::silent,
     .most = most_seq_len,
     .read = read_sequence_lengths,
     .write = write_sequence_lengths},
    {.key = "moments",  // of Adam
     .name = "moments",
     .kind = Kind::word,
     .column = "moments",
     .by_default = Default::silent,
     .words = words_in<moments_words>,
     .read = read_word<&Plan::moments, moments_words>,
     .write = write_moments},
    {.key = "fused_cross_entropy",  // no logits are kept: models/operations/head.cpp
     .name = "fused cross-entropy",
     .kind = Kind::flag,
     .column = "fused_cross_entropy",
     .by_default = Default::silent,
     .on = &Plan::fused_cross_entropy,
     .write =
         [](const Plan& plan) { return plan.fused_cross_entropy ? Json(true) : Json(nullptr); }},
    {.key = "low_precision_gather",  // of weights under ZeRO, and of frozen ones, in 8 bits
     .name = "gather in 8 bits",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::low_precision_gather,
     .write =
         [](const Plan& plan) { return plan.low_precision_gather ? Json(true) : Json(nullptr); }},
    {.key = "overlap",  // false: nothing data-parallel concurrently with compute
     .name = "overlap",
     .kind = Kind::flag,
     .on = &Plan::overlap_gradients},
    {.key = "bucket",  // of gradients that are reduced at once
     .name = "bucket",
     .kind = Kind::bytes,
     .read = [](const Node& value, Plan& plan) { plan.bucket = value.as<Bytes>(); },
     .write = [](const Plan& plan) { return Json(fmt::format("{} B", plan.bucket.count())); },
     .derive = [](Plan&, const PlanBasis&) -> std::string {
       return "the software's gradient bucket taken as default";
     }},
    {.key = "compression",  // of gradients, with zero 0 and data above 1
     .name = "compression",
     .kind = Kind::word,
     .by_default = Default::silent,
     .words = words_in<compression_words>,
     .read = read_word<&Plan::compression, compression_words>,
     .write = write_compression},
    {.key = "compression_share",  // of each bucket's gradients, of top-k
     .name = "compression share",
     .kind = Kind::share,
     .by_default = Default::silent,
     .read = read_compression_share,
     .write = write_compression_share},
    {.key = "compression_rank",  // of power-sgd's factors
     .name = "compression rank",
     .by_default = Default::silent,
     .least = 1,
     .most = most_lora_rank,
     .read = read_compression_rank,
     .write = write_compression_rank,
     .derive = derive_compression_rank},
    {.key = "stage_layers",  // layers of each chunk: [7, 8, 8, 7]; "by-time": prices decide
     .name = "stage layers",
     .kind = Kind::counts,
     .least = 0,
     .most = most_virtual_stages,
     .read = read_stage_layers,
     .write = write_stage_layers,
     .derive = derive_stage_layers},
    {.key = "embedding_counts",  // embedding and head take a layer's slot each
     .name = "embedding counts",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::embedding_counts},
    {.key = "cuda_graphs",  // where the stack launches ahead: models/program/stretches.hpp
     .name = "CUDA graphs",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::cuda_graphs,
     .write = [](const Plan& plan) { return plan.cuda_graphs ? Json(true) : Json(nullptr); }},
}};

}  // namespace

std::span<const PlanField> plan_fields() {
  return field_rows;
}

}  // namespace orrery::models
