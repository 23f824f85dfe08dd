// Rows of a plan's fields: degrees along the axes of the mesh, and the sharding and offload of
// state.

#include <fmt/format.h>

#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Title = PlanField::Title;
using Default = PlanField::Default;
using Blocks = PlanField::Blocks;
using Group = PlanField::Group;
using Search = PlanField::Search;
using Recipe = PlanField::Recipe;
using Summary = PlanField::Summary;
using Flag = PlanField::Flag;
using Stack = PlanField::Stack;

constexpr std::int64_t most_prefetch = 1 << 12;

std::vector<std::string> schedule_names() {
  return builtin_schedules().names();
}

std::string derive_data(Plan& plan, const PlanBasis& basis) {
  plan.data = std::max<std::int64_t>(1, basis.gpus / (plan.tensor * plan.context * plan.pipeline));
  return fmt::format("not stated; {} assumed, the cluster's GPUs over tensor{} and pipeline",
                     plan.data, plan.context > 1 ? ", context" : "");
}

void read_context_form(const Node& word, Plan& plan) {
  if (plan.context == 1) word.fail("applies only to context above 1");
  plan.context_exchange.form = word.word(context_form_words);
}

Json write_context_form(const Plan& plan) {
  if (plan.context == 1) return nullptr;
  return word_of(context_form_words, plan.context_exchange.form);
}

std::string derive_context_form(Plan& plan, const PlanBasis&) {
  if (plan.context == 1) return {};
  return "not stated; ring assumed";
}

void read_context_heads(const Node& ranks, Plan& plan) {
  if (plan.context == 1 || plan.context_exchange.form != ContextForm::hierarchical) {
    ranks.fail("applies only to context_form hierarchical");
  }
  plan.context_exchange.heads = ranks.integer(1, most_gpus);
}

Json write_context_heads(const Plan& plan) {
  if (plan.context == 1 || plan.context_exchange.form != ContextForm::hierarchical) return nullptr;
  return plan.context_exchange.heads;
}

std::string derive_schedule(Plan& plan, const PlanBasis&) {
  plan.stages.schedule = default_schedule(plan.stages.virtual_stages);
  return fmt::format("not stated; {} assumed", plan.stages.schedule);
}

void read_schedule(const Node& word, Plan& plan) {
  constexpr std::string_view ending = ".csv";
  plan.stages.schedule = word.as<std::string>();
  const std::string_view name = plan.stages.schedule;
  if (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending) {
    plan.stages.table = load_schedule(plan.stages.schedule);
  }
  if (plan.stages.schedule == "interleaved") plan.stages.schedule = "interleaved-1f1b";
}

void read_zero(const Node& stage, Plan& plan) {
  const auto most = static_cast<std::int64_t>(zero_words.size()) - 1;
  plan.sharding.zero = *value_of(zero_words, std::to_string(stage.integer(0, most)));
}

Json write_zero(const Plan& plan) {
  return std::stoi(std::string{word_of(zero_words, plan.sharding.zero)});
}

Json write_data_shard(const Plan& plan) {
  if (plan.data_shards() == plan.data) return nullptr;
  return plan.sharding.ranks;
}

std::string task_not_executed(const Plan& plan, const Model&) {
  if (plan.task != Task::qlora && plan.task != Task::dpo) return {};
  return fmt::format("task '{}'", word_of(task_words, plan.task));
}

std::string zero_not_executed(const Plan& plan, const Model&) {
  const bool frozen = plan.task == Task::lora && plan.sharding.zero == Zero::three;
  return frozen ? "adapters with ZeRO-3" : "";
}

constexpr PlanField axis_rows[] = {
    {.key = "task",
     .name = "task",
     .group = Group::task,
     .search = Search::question,
     .not_executed_if = task_not_executed,
     .meaning = "What a step trains: all parameters (pretrain, sft); adapters next to frozen "
                "matrices, which have no weight gradient and no optimizer state (lora; qlora "
                "stores them in 4 bits); or preferences between pairs of answers, which also run "
                "through a frozen reference (dpo)",
     .value = word_at<task_words, &Plan::task>(),
     .column = "task",
     .title = Title::addition,
     .title_label = "task"},
    {.key = "tensor",
     .name = "tensor",
     .group = Group::parallelism,
     .search = Search::tried,
     .meaning = "Ranks that share the matrices of each layer",
     .value = count_at<&Plan::tensor>(1, most_gpus),
     .column = "tp",
     .title = Title::degree,
     .title_label = "TP",
     .by_default = Default::reported,
     .flag = Flag::always},
    {.key = "sequence",
     .name = "sequence parallelism",
     .group = Group::parallelism,
     .search = Search::tried,
     .meaning =
         "Sequence parallelism: outside the matrices, ranks of a tensor group share the tokens",
     .value = flag_at<&Plan::sequence_parallel>(),
     .column = "sequence_parallel",
     .title = Title::addition,
     .title_label = "+ SP",
     .by_default = Default::reported,
     .stack = Stack::has_default},
    {.key = "tensor_overlap",
     .name = "overlap in the tensor group",
     .group = Group::communication,
     .search = Search::stack,
     .recipe = Recipe::of_one_plan,
     .meaning = "Collectives of the tensor group overlap with GEMMs, where the stack can; false: "
                "they wait for each other, as recipes for nvfp4 state",
     .value = flag_at<&Plan::overlap, &OverlapChoices::tensor>(),
     .column = "tp_comm_overlap"},
    {.key = "context",
     .name = "context",
     .group = Group::parallelism,
     .search = Search::tried,
     .meaning = "Ranks that share a sequence",
     .value = count_at<&Plan::context>(1, most_gpus),
     .column = "cp",
     .title = Title::degree_where_used,
     .title_label = "CP",
     .by_default = Default::silent},
    {.key = "context_form",
     .name = "context form",
     .group = Group::parallelism,
     .search = Search::tried,
     .recipe = Recipe::of_one_plan,
     .meaning = "How these ranks attend to the whole sequence: keys and values go round (ring) or "
                "are gathered (all-gather, contiguous), an all-to-all exchanges tokens for heads "
                "(ulysses), or both (hierarchical)",
     .value = word_at<context_form_words, &Plan::context_exchange, &ContextExchange::form>(),
     .column = "cp_comm_type",
     .title = Title::addition,
     .title_label = "by",
     .by_default = Default::silent,
     .read = read_context_form,
     .write = write_context_form,
     .derive = derive_context_form},
    {.key = "context_heads",
     .name = "context heads",
     .group = Group::parallelism,
     .search = Search::tried,
     .meaning = "Of context_form hierarchical: ranks of a group that exchange for heads",
     .value = count_at<&Plan::context_exchange, &ContextExchange::heads>(1, most_gpus),
     .title = Title::addition,
     .title_label = "in groups of",
     .by_default = Default::silent,
     .read = read_context_heads,
     .write = write_context_heads},
    {.key = "pipeline",
     .name = "pipeline",
     .group = Group::parallelism,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "Stages of the pipeline",
     .value = count_at<&Plan::pipeline>(1, most_gpus),
     .column = "pp",
     .title = Title::degree,
     .title_label = "PP",
     .by_default = Default::reported,
     .flag = Flag::always},
    {.key = "virtual_stages",
     .name = "virtual stages",
     .group = Group::parallelism,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "Chunks of layers on each stage",
     .default_words = "1, or the stack's",
     .value = count_at<&Plan::stages, &StageChoices::virtual_stages>(1, most_layers),
     .column = "virtual_stages",
     .title = Title::addition,
     .title_label = "x",
     .by_default = Default::reported},
    {.key = "schedule",
     .name = "schedule",
     .group = Group::parallelism,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "Order in which a stage computes its micro-batches (orrery show schedules)",
     .other_values = "; or FILE.csv, as PyTorch's pipelining writes it",
     .default_words = "1f1b, with virtual stages interleaved-1f1b",
     .value = {.kind = PlanValue::Kind::word, .words = schedule_names},
     .column = "schedule",
     .by_default = Default::reported,
     .read = read_schedule,
     .write = [](const Plan& plan) { return Json(plan.stages.schedule); },
     .derive = derive_schedule},
    {.key = "data",
     .name = "data",
     .group = Group::parallelism,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "Replicas of the model, which train on different sequences",
     .default_words = "the cluster's GPUs over tensor, context and pipeline",
     .value = count_at<&Plan::data>(1, most_gpus),
     .column = "dp",
     .title = Title::degree,
     .title_label = "DP",
     .by_default = Default::reported,
     .flag = Flag::always,
     .derive = derive_data},
    {.key = "rank_order",
     .name = "rank order",
     .group = Group::parallelism,
     .meaning = "How ranks are numbered, the fastest axis first; with tp-cp-ep-pp-dp neighbouring "
                "pipeline stages are adjacent and data-parallel ranks far apart (Megatron-Core's "
                "use_tp_pp_dp_mapping)",
     .value = word_at<rank_order_words, &Plan::rank_order>()},
    {.key = "zero",
     .name = "ZeRO",
     .group = Group::state,
     .search = Search::tried,
     .blocks = Blocks::same,
     .not_executed_if = zero_not_executed,
     .meaning = "ZeRO stage, what replicas shard: nothing (0), optimizer state (1), gradients too "
                "(2), parameters too (3; FSDP)",
     .value = word_at<zero_words, &Plan::sharding, &ShardingChoices::zero>(),
     .column = "zero_stage",
     .title = Title::addition,
     .title_label = "ZeRO-",
     .by_default = Default::reported,
     .stack = Stack::has_default,
     .read = read_zero,
     .write = write_zero},
    {.key = "data_shard",
     .name = "data shard",
     .group = Group::state,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "HSDP: replicas over which state is sharded, with copies along the others",
     .default_words = "all of data",
     .value = count_at<&Plan::sharding, &ShardingChoices::ranks>(0, most_gpus),
     .title = Title::addition,
     .title_label = "in shards of",
     .by_default = Default::silent,
     .write = write_data_shard},
    {.key = "reshard",
     .name = "reshard after forward",
     .group = Group::state,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "ZeRO-3: gathered weights are freed after forward and gathered again in backward",
     .value = flag_at<&Plan::sharding, &ShardingChoices::reshard>()},
    {.key = "prefetch",
     .name = "prefetch",
     .group = Group::state,
     .blocks = Blocks::same,
     .meaning = "ZeRO-3: units of parameters that are gathered ahead of the one that runs",
     .value = count_at<&Plan::sharding, &ShardingChoices::prefetch>(0, most_prefetch)},
    {.key = "offload",
     .name = "offload",
     .group = Group::state,
     .search = Search::tried,
     .meaning =
         "State on the host: optimizer state and its update, or the shards of parameters too",
     .value = word_at<offload_words, &Plan::offload, &OffloadChoices::state>(),
     .column = "offload",
     .title = Title::addition,
     .title_label = "offloading"},
    {.key = "offload_device",
     .name = "offload device",
     .group = Group::state,
     .summary = Summary::stated,
     .not_executed = "state offloaded to the node's storage",
     .meaning = "Where offload and offload_layers keep what they offload: host memory, or the "
                "node's drives, which its ranks share (rates in /cluster/storage)",
     .value = word_at<offload_device_words, &Plan::offload, &OffloadChoices::device>()},
};

}  // namespace

std::span<const PlanField> fields_of_axes() {
  return axis_rows;
}

}  // namespace orrery::models
