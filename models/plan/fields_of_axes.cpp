// Rows of a plan's fields: degrees along the axes of the mesh, and the sharding and offload of
// state.

#include <fmt/format.h>

#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Kind = PlanField::Kind;
using Title = PlanField::Title;
using Default = PlanField::Default;
using Flag = PlanField::Flag;
using Stack = PlanField::Stack;
using Written = PlanField::Written;

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
     .kind = Kind::word,
     .column = "task",
     .title = Title::addition,
     .title_label = "task",
     .by_default = Default::silent,
     .words = words_in<task_words>,
     .read = read_word<&Plan::task, task_words>,
     .write = write_word<&Plan::task, task_words>,
     .written = Written::where_changed},
    {.key = "tensor",
     .name = "tensor",
     .column = "tp",
     .title = Title::degree,
     .title_label = "TP",
     .flag = Flag::always,
     .count = &Plan::tensor,
     .most = most_gpus},
    {.key = "sequence",  // sequence parallelism in the tensor group
     .name = "sequence parallelism",
     .kind = Kind::flag,
     .column = "sequence_parallel",
     .title = Title::addition,
     .title_label = "+ SP",
     .stack = Stack::has_default,
     .on = &Plan::sequence_parallel},
    {.key = "tensor_overlap",  // false: tensor-parallel collectives and GEMMs wait for each other,
                               // even if the stack could overlap them
     .name = "overlap in the tensor group",
     .kind = Kind::flag,
     .column = "tp_comm_overlap",
     .by_default = Default::silent,
     .on = &Plan::tensor_overlap,
     .written = Written::where_changed},
    {.key = "context",  // ranks that share a sequence
     .name = "context",
     .column = "cp",
     .title = Title::degree_where_used,
     .title_label = "CP",
     .by_default = Default::silent,
     .count = &Plan::context,
     .most = most_gpus},
    {.key = "context_form",
     .name = "context form",
     .kind = Kind::word,
     .column = "cp_comm_type",
     .title = Title::addition,
     .title_label = "by",
     .by_default = Default::silent,
     .words = words_in<context_form_words>,
     .read = read_context_form,
     .write = write_context_form,
     .derive = derive_context_form},
    {.key = "context_heads",  // of hierarchical: ranks of a group that exchange for heads
     .name = "context heads",
     .title = Title::addition,
     .title_label = "in groups of",
     .by_default = Default::silent,
     .count = &Plan::context_heads,
     .most = most_gpus,
     .read = read_context_heads,
     .write = write_context_heads},
    {.key = "pipeline",
     .name = "pipeline",
     .column = "pp",
     .title = Title::degree,
     .title_label = "PP",
     .flag = Flag::always,
     .count = &Plan::pipeline,
     .most = most_gpus},
    {.key = "virtual_stages",
     .name = "virtual stages",
     .column = "virtual_stages",
     .title = Title::addition,
     .title_label = "x",
     .count = &Plan::virtual_stages,
     .most = most_layers},
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
     .title_label = "DP",
     .flag = Flag::always,
     .count = &Plan::data,
     .most = most_gpus,
     .derive = derive_data},
    {.key = "zero",  // what data-parallel ranks shard
     .name = "ZeRO",
     .kind = Kind::word,
     .column = "zero_stage",
     .title = Title::addition,
     .title_label = "ZeRO-",
     .stack = Stack::has_default,
     .words = words_in<zero_words>,
     .read = read_zero,
     .write = write_zero},
    {.key = "data_shard",  // HSDP: ranks over which state is sharded; 0: all of data
     .name = "data shard",
     .title = Title::addition,
     .title_label = "in shards of",
     .by_default = Default::silent,
     .count = &Plan::data_shard,
     .least = 0,
     .most = most_gpus,
     .write = write_data_shard},
    {.key = "reshard",  // ZeRO-3: free gathered weights after forward
     .name = "reshard after forward",
     .kind = Kind::flag,
     .by_default = Default::silent,
     .on = &Plan::reshard,
     .written = Written::where_changed},
    {.key = "prefetch",  // ZeRO-3: units gathered ahead of the one that runs
     .name = "prefetch",
     .by_default = Default::silent,
     .count = &Plan::prefetch,
     .least = 0,
     .most = most_prefetch,
     .written = Written::where_changed},
    {.key = "offload",  // of sharded state to the host
     .name = "offload",
     .kind = Kind::word,
     .column = "offload",
     .title = Title::addition,
     .title_label = "offloading",
     .by_default = Default::silent,
     .words = words_in<offload_words>,
     .read = read_word<&Plan::offload, offload_words>,
     .write = write_word<&Plan::offload, offload_words>,
     .written = Written::where_changed},
    {.key = "offload_device",  // where `offload` and `offload_layers` keep what they offload
     .name = "offload device",
     .kind = Kind::word,
     .by_default = Default::silent,
     .words = words_in<offload_device_words>,
     .read = read_word<&Plan::offload_device, offload_device_words>,
     .write = write_word<&Plan::offload_device, offload_device_words>,
     .written = Written::where_changed},
};

}  // namespace

std::span<const PlanField> fields_of_axes() {
  return axis_rows;
}

}  // namespace orrery::models
