// Rows of a plan's fields: degrees along the axes of the mesh, and the sharding and offload of
// state.

#include <fmt/format.h>

#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Title = PlanField::Title;
using Default = PlanField::Default;
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
  plan.context_form = word.word(context_form_words);
}

Json write_context_form(const Plan& plan) {
  if (plan.context == 1) return nullptr;
  return word_of(context_form_words, plan.context_form);
}

std::string derive_context_form(Plan& plan, const PlanBasis&) {
  if (plan.context == 1) return {};
  return "not stated; ring assumed";
}

void read_context_heads(const Node& ranks, Plan& plan) {
  if (plan.context == 1 || plan.context_form != ContextForm::hierarchical) {
    ranks.fail("applies only to context_form hierarchical");
  }
  plan.context_heads = ranks.integer(1, most_gpus);
}

Json write_context_heads(const Plan& plan) {
  if (plan.context == 1 || plan.context_form != ContextForm::hierarchical) return nullptr;
  return plan.context_heads;
}

std::string derive_schedule(Plan& plan, const PlanBasis&) {
  plan.schedule = default_schedule(plan.virtual_stages);
  return fmt::format("not stated; {} assumed", plan.schedule);
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

constexpr PlanField axis_rows[] = {
    {.key = "task",
     .name = "task",
     .value = word_at<&Plan::task, task_words>(),
     .column = "task",
     .title = Title::addition,
     .title_label = "task"},
    {.key = "tensor",
     .name = "tensor",
     .value = count_at(&Plan::tensor, 1, most_gpus),
     .column = "tp",
     .title = Title::degree,
     .title_label = "TP",
     .by_default = Default::reported,
     .flag = Flag::always},
    {.key = "sequence",  // sequence parallelism in the tensor group
     .name = "sequence parallelism",
     .value = flag_at(&Plan::sequence_parallel),
     .column = "sequence_parallel",
     .title = Title::addition,
     .title_label = "+ SP",
     .by_default = Default::reported,
     .stack = Stack::has_default},
    {.key = "tensor_overlap",  // false: tensor-parallel collectives and GEMMs wait for each other,
                               // even if the stack could overlap them
     .name = "overlap in the tensor group",
     .value = flag_at(&Plan::tensor_overlap),
     .column = "tp_comm_overlap"},
    {.key = "context",  // ranks that share a sequence
     .name = "context",
     .value = count_at(&Plan::context, 1, most_gpus),
     .column = "cp",
     .title = Title::degree_where_used,
     .title_label = "CP",
     .by_default = Default::silent},
    {.key = "context_form",
     .name = "context form",
     .value = word_at<&Plan::context_form, context_form_words>(),
     .column = "cp_comm_type",
     .title = Title::addition,
     .title_label = "by",
     .by_default = Default::silent,
     .read = read_context_form,
     .write = write_context_form,
     .derive = derive_context_form},
    {.key = "context_heads",  // of hierarchical: ranks of a group that exchange for heads
     .name = "context heads",
     .value = count_at(&Plan::context_heads, 1, most_gpus),
     .title = Title::addition,
     .title_label = "in groups of",
     .by_default = Default::silent,
     .read = read_context_heads,
     .write = write_context_heads},
    {.key = "pipeline",
     .name = "pipeline",
     .value = count_at(&Plan::pipeline, 1, most_gpus),
     .column = "pp",
     .title = Title::degree,
     .title_label = "PP",
     .by_default = Default::reported,
     .flag = Flag::always},
    {.key = "virtual_stages",
     .name = "virtual stages",
     .value = count_at(&Plan::virtual_stages, 1, most_layers),
     .column = "virtual_stages",
     .title = Title::addition,
     .title_label = "x",
     .by_default = Default::reported},
    {.key = "schedule",
     .name = "schedule",
     .value = {.kind = PlanValue::Kind::word, .words = schedule_names},
     .column = "schedule",
     .by_default = Default::reported,
     .read = read_schedule,
     .write = [](const Plan& plan) { return Json(plan.schedule); },
     .derive = derive_schedule},
    {.key = "data",
     .name = "data",
     .value = count_at(&Plan::data, 1, most_gpus),
     .column = "dp",
     .title = Title::degree,
     .title_label = "DP",
     .by_default = Default::reported,
     .flag = Flag::always,
     .derive = derive_data},
    {.key = "rank_order",  // which ranks are adjacent, and so on one node
     .name = "rank order",
     .value = word_at<&Plan::rank_order, rank_order_words>()},
    {.key = "zero",  // what data-parallel ranks shard
     .name = "ZeRO",
     .value = word_at<&Plan::zero, zero_words>(),
     .column = "zero_stage",
     .title = Title::addition,
     .title_label = "ZeRO-",
     .by_default = Default::reported,
     .stack = Stack::has_default,
     .read = read_zero,
     .write = write_zero},
    {.key = "data_shard",  // HSDP: ranks over which state is sharded; 0: all of data
     .name = "data shard",
     .value = count_at(&Plan::data_shard, 0, most_gpus),
     .title = Title::addition,
     .title_label = "in shards of",
     .by_default = Default::silent,
     .write = write_data_shard},
    {.key = "reshard",  // ZeRO-3: free gathered weights after forward
     .name = "reshard after forward",
     .value = flag_at(&Plan::reshard)},
    {.key = "prefetch",  // ZeRO-3: units gathered ahead of the one that runs
     .name = "prefetch",
     .value = count_at(&Plan::prefetch, 0, most_prefetch)},
    {.key = "offload",  // of sharded state to the host
     .name = "offload",
     .value = word_at<&Plan::offload, offload_words>(),
     .column = "offload",
     .title = Title::addition,
     .title_label = "offloading"},
    {.key = "offload_device",  // where `offload` and `offload_layers` keep what they offload
     .name = "offload device",
     .value = word_at<&Plan::offload_device, offload_device_words>()},
};

}  // namespace

std::span<const PlanField> fields_of_axes() {
  return axis_rows;
}

}  // namespace orrery::models
