#include "scenarios/exchange/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <span>

#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "models/software/runnable.hpp"
#include "models/software/software.hpp"
#include "scenarios/exchange/facts.hpp"
#include "scenarios/exchange/import.hpp"
#include "scenarios/exchange/meanings.hpp"
#include "scenarios/exchange/writers.hpp"
#include "sim/input/text.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

/// A target as the user names it.
struct LaunchTarget {
  const LaunchTool* tool = nullptr;
  std::string_view list;  // "torchtitan@0.2.2"

  bool is_launcher() const { return tool->software.empty(); }
  /// "fsdp@1.15.0", whose list is accelerate's.
  std::string shown() const {
    return std::string{tool->name} + std::string{list.substr(list.find('@'))};
  }
};

/// Tools that are written; the others are read only.
constexpr std::array<std::string_view, 13> written_tools{
    "megatron", "megatron-bridge", "deepspeed", "torchtitan", "fsdp",     "accelerate", "axolotl",
    "primus",   "maxtext",         "slurm",     "k8s",        "torchrun", "skypilot"};

std::span<const std::string_view> versions_of(const LaunchTool& tool) {
  return std::span{tool.lists}.first(tool.wraps ? 1 : tool.lists.size());
}

LaunchTarget target_of(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  const bool known = std::ranges::find(written_tools, name) != written_tools.end();
  if (!known) {
    const auto near = nearest(name, written_tools);
    throw InputError{"--to", fmt::format("unknown '{}'{}; known: {}", printable(name, 40),
                                         near.empty() ? "" : fmt::format("; is it '{}'?", near),
                                         export_targets())};
  }
  const LaunchTool& tool = launch_tool(name);
  for (const std::string_view list : versions_of(tool)) {
    if (at == std::string::npos || list.substr(list.find('@')) == text.substr(at))
      return {&tool, list};
  }
  throw InputError{"--to", fmt::format("unknown version '{}'; known: {}", printable(text, 40),
                                       fmt::join(versions_of(tool), " "))};
}

/// A fact that says what fields of a plan say, where a tool has an option for it.
struct Replacement {
  std::string_view fact;
  std::vector<std::string_view> fields;
};
const std::vector<Replacement>& replacements() {
  static const std::vector<Replacement> all{
      {"stage_layout", {"stage_layers", "virtual_stages", "embedding_counts"}},
      {"recompute_mode", {"recompute", "recompute_every"}},
      {"layers_per_virtual_stage", {"virtual_stages"}},
      {"first_less", {"embedding_counts"}},
      {"recompute_number", {"recompute_layers"}},
      {"shard_copies", {"data_shard"}},
      {"shard_degree", {"data_shard"}},
      {"bucket_elements", {"bucket"}},
      {"bucket_mib", {"bucket"}},
      {"context_sizes", {"context_heads"}},
      {"prefetch_elements", {"prefetch"}},
      {"local_batch", {"micro_batch"}},
      {"offload_optimizer", {"offload", "offload_device"}},
      {"all_layers_offloaded", {"offload_layers"}}};
  return all;
}

Json value_of_text(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (const auto integer = orrery::number_in<std::int64_t>(text)) return *integer;
  if (const auto number = orrery::number_in<double>(text)) return *number;
  return text;
}

using FieldNames = std::set<std::string, std::less<>>;

/// Fields that the user's own plan has.
FieldNames stated_fields(const ExportRequest& request) {
  FieldNames fields;
  if (!request.plan.is_object()) return fields;
  for (const auto& [key, value] : request.plan.items()) {
    if (!value.is_null()) fields.insert(key);
  }
  return fields;
}

/// The options of one tool that say a plan.
class OptionWriter {
 public:
  OptionWriter(const LaunchTarget& target, const models::Question& question,
               const ExportRequest& request, const Facts& given, Exported& result)
      : target_{target},
        question_{question},
        stated_{stated_fields(request)},
        facts_{given},
        result_{result} {
    for (const Replacement& each : replacements()) {
      if (!facts_.has(each.fact) || !says(each.fact)) continue;
      for (const std::string_view field : each.fields) facts_.erase(std::string{field});
    }
    std::set<std::string, std::less<>> seen;
    for (const Meaning& row : meanings_of(*target_.tool)) {
      if (seen.insert(row.field).second && facts_.has(row.field)) write(row.field);
    }
    for (const models::PlanField& field : models::plan_fields()) {
      if (!facts_.has(field.key) || seen.contains(field.key)) continue;
      // Where the plan states no cut, the fact is that of an uneven one.
      const bool acts = field.is_set(question_.plan) || field.key == "stage_layers";
      const bool lacks = others_say(field.key) && acts;
      if (lacks) {
        refuse(field.key, fmt::format("{} has no option for it", target_.shown()));
      } else {
        unsaid(field.key, false);
      }
    }
  }

  std::vector<WrittenOption> plan{}, model{};

 private:
  /// The tool's name for an option of the table, in this version; empty: it has none.
  std::string listed(const std::string& option) const {
    std::string name = listed_in(target_.list, option);
    if (!name.empty() || !target_.tool->wraps) return name;
    for (const std::string_view list : target_.tool->lists) {
      if (name.empty()) name = listed_in(list, option);
    }
    return name;
  }

  std::string listed_in(std::string_view list, const std::string& option) const {
    const auto& options = options_in(list);
    if (options.contains(option)) return option;
    for (const std::string_view section : split(target_.tool->sections, ' ')) {
      std::string name = std::string{section} + "." + option;
      if (options.contains(name)) return name;
    }
    return {};
  }

  /// Another version of the tool has the option, this one has not.
  bool is_of_others(const std::string& option) const {
    if (!listed(option).empty()) return false;
    return std::ranges::any_of(target_.tool->lists, [&](std::string_view list) {
      return !listed_in(list, option).empty();
    });
  }

  bool is_option(const Meaning& row) const {
    return row.option != "-" && row.option != "!" && row.option != "#" &&
           row.way != Meaning::Way::in && row.is_of_version(target_.list);
  }

  bool says(std::string_view fact) const {
    return std::ranges::any_of(meanings_of(*target_.tool), [&](const Meaning& row) {
      return row.field == fact && is_option(row) && row.states(facts_.text(fact)) &&
             !listed(row.option).empty();
    });
  }

  /// Does another version say the fact that stands for a field?
  bool others_say(std::string_view field) const {
    return std::ranges::any_of(replacements(), [&](const Replacement& each) {
      if (std::ranges::find(each.fields, field) == each.fields.end()) return false;
      if (!facts_.has(each.fact) || says(each.fact)) return false;
      return std::ranges::any_of(meanings_of(*target_.tool), [&](const Meaning& row) {
        return row.field == each.fact && is_option(row) && row.states(facts_.text(each.fact)) &&
               is_of_others(row.option);
      });
    });
  }

  /// A row for the exporter alone may need an option that rows before it have written; any row a
  /// value that one of them has been given, OPTION=VALUE.
  bool has_what_it_needs(const Meaning& row) const {
    const bool needs_value = std::ranges::any_of(
        row.needs, [](const std::string& each) { return each.find('=') != std::string::npos; });
    if (row.needs.empty() || (row.way != Meaning::Way::out && !needs_value)) return true;
    return std::ranges::any_of(row.needs,
                               [&](const std::string& each) { return is_written(each); });
  }

  /// needed  OPTION or OPTION=VALUE
  bool is_written(const std::string& needed) const {
    return std::ranges::any_of(plan, [&](const WrittenOption& each) {
      const auto is_value = [&](const Json& value) {
        return needed ==
               each.option + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
      };
      return needed == each.option || is_value(each.value) ||
             (each.value.is_array() && std::ranges::any_of(each.value, is_value));
    });
  }

  void write(const std::string& field) {
    const std::string value = facts_.text(field);
    if (field == "recompute_modules" || field == "lora_targets") return write_list(field, value);
    bool written = false, refuses = false, lacks = false, only_comments = false;
    Facts said;  // as an importer reads what is written
    for (const Meaning& row : meanings_of(*target_.tool)) {
      if (row.field != field || row.way == Meaning::Way::in || !has_what_it_needs(row)) continue;
      if (row.option == "-" && row.states(value)) return;
      refuses = refuses || (row.option == "!" && row.states(value));
      only_comments = only_comments || row.option == "#";
      if (!is_option(row) || !row.states(value)) continue;
      const std::string name = listed(row.option);
      lacks = lacks || is_of_others(row.option);
      if (name.empty()) continue;
      add(field, {name, json_of(row, value)});
      if (row.means != std::vector<std::string>{"*"}) said.narrow(field, row.means);
      written = true;
    }
    const bool ambiguous = said.has(field) && said.text(field) != value;
    if (lacks && !only_comments && (!written || ambiguous)) return lacked(field);
    if (!written) unsaid(field, refuses);
  }

  /// This version of the tool cannot do what another one can.
  void lacked(const std::string& field) {
    const auto& fields = models::plan_fields();
    const auto row = std::ranges::find(fields, field, &models::PlanField::key);
    const bool is_default = row != fields.end() && !row->is_set(question_.plan);
    if (is_default && !differs_from_tool(field)) return;
    // A fact that follows from fields of the plan is refused by their names.
    const bool own =
        row != fields.end() || field.starts_with("model.") || field.starts_with("software.");
    if (!own) return;
    refuse(field, fmt::format("{} has no option for it; {} has", target_.shown(), having(field)));
  }

  /// Does the tool do something else where nothing is written?
  bool differs_from_tool(const std::string& field) const {
    bool known = false, same = false;
    for (const Meaning& row : meanings_of(*target_.tool)) {
      if (row.field != field || row.option != "-" || row.means.empty()) continue;
      known = true;
      same = same || row.states(facts_.text(field));
    }
    return known && !same;
  }

  /// The version that has an option for a field, the newest.
  std::string having(const std::string& field) const {
    for (const std::string_view list : target_.tool->lists) {
      for (const Meaning& row : meanings_of(*target_.tool)) {
        if (row.field == field && is_option(row) && row.states(facts_.text(field)) &&
            is_of_others(row.option) && !listed_in(list, row.option).empty()) {
          return std::string{list};
        }
      }
    }
    return "another version";
  }

  void refuse(std::string_view field, std::string why) {
    const UnsaidOption made{target_.shown(), fmt::format("{}={}", field, facts_.text(field)),
                            std::move(why)};
    const bool known = std::ranges::any_of(result_.refused, [&](const UnsaidOption& each) {
      return each.target == made.target && each.option.rfind(std::string{field} + "=", 0) == 0;
    });
    if (!known) result_.refused.push_back(made);
  }

  static Json json_of(const Meaning& row, const std::string& value) {
    if (row.option == "model.converters" || row.option == "plugins") {
      return Json::array({row.value});
    }
    if (row.field == "selective_option") return value;  // torchtitan reads digits from text
    if (row.value != "*") return value_of_text(row.value);
    if (value.find(':') == std::string::npos || row.field.rfind("model.name", 0) == 0) {
      return value_of_text(value);
    }
    Json list = Json::array();
    for (const std::string_view each : split(value, ':'))
      list.push_back(value_of_text(std::string{each}));
    return list;
  }

  void write_list(const std::string& field, const std::string& value) {
    Json list = Json::array();
    std::string name;
    for (const std::string_view element : split(value, ':')) {
      bool said = false;
      for (const Meaning& row : meanings_of(*target_.tool)) {
        if (row.field != field || !is_option(row) || row.means[0] != element) continue;
        if (is_of_others(row.option)) return lacked(field);
        name = listed(row.option);
        if (std::ranges::find(list, Json(row.value)) == list.end()) list.push_back(row.value);
        said = true;
      }
      if (!said) return unsaid(field, true);
    }
    if (name.empty()) return unsaid(field, true);
    add(field, {name, list});
  }

  void add(const std::string& field, WrittenOption option) {
    std::vector<WrittenOption>& part = field.rfind("model.", 0) == 0 ? model : plan;
    const auto same = std::ranges::find(part, option.option, &WrittenOption::option);
    if (same == part.end()) part.push_back(std::move(option));
  }

  /// No option says this value. A plan's default needs none.
  void unsaid(std::string_view field, bool refuses) {
    const auto& fields = models::plan_fields();
    const auto row = std::ranges::find(fields, field, &models::PlanField::key);
    if (field.starts_with("model.") && facts_.text(field) != "false") {
      result_.not_said.push_back({target_.shown(), fmt::format("{}={}", field, facts_.text(field)),
                                  fmt::format("{} has no option for it", target_.shown())});
    }
    if (row == fields.end() || field == "data") return;
    // A default is left out, unless options say the field and none says this value.
    const bool said_by_options =
        std::ranges::any_of(meanings_of(*target_.tool), [&](const Meaning& each) {
          return each.field == field && is_option(each) && !listed(each.option).empty();
        });
    const bool is_set = row->is_set(question_.plan), differs = refuses && said_by_options;
    if (!is_set && !differs && !stated_.contains(field)) return;
    const std::string why = fmt::format("{} has no option for it", target_.shown());
    if (refuses && (is_set || differs)) return refuse(field, why);
    const bool known = std::ranges::any_of(result_.refused, [&](const UnsaidOption& each) {
      return each.target == target_.shown() && each.option.rfind(std::string{field} + "=", 0) == 0;
    });
    if (known) return;
    result_.not_said.push_back(
        {target_.shown(), fmt::format("{}={}", field, facts_.text(field)), why});
  }

  const LaunchTarget& target_;
  const models::Question& question_;
  FieldNames stated_;
  Facts facts_;
  Exported& result_;
};

double gradient_bytes_of(const models::Question& question) {
  const std::string format{hardware::name(question.software.gradient)};
  return format == "bf16" || format == "fp16" ? 2 : 4;
}

/// Name and flavor of the catalogue's model as torchtitan has them.
void add_titan_model(const std::string& name, Facts& facts) {
  const ModelFlavor* flavor = flavor_of(name);
  if (flavor == nullptr) return;
  facts.set("model.family", std::string{flavor->family});
  facts.set("model.size", std::string{flavor->flavor});
}

/// MaxText's axes, each cut into devices of one node and nodes: those that communicate most take
/// the devices of a node first.
/// Source  MaxText, configs/base.yml: products of ici_ axes are the devices of a slice, those of
///         dcn_ axes the slices
void add_mesh_axes(const models::Question& question, Facts& facts) {
  const models::Plan& plan = question.plan;
  const bool shards = plan.sharding.zero == models::Zero::three;
  const std::int64_t fsdp = shards ? plan.data_shards() : 1;
  const std::pair<const char*, std::int64_t> axes[] = {{"tensor", plan.tensor},
                                                       {"context", plan.context},
                                                       {"fsdp", fsdp},
                                                       {"data", plan.data / fsdp}};
  std::int64_t devices = std::min<std::int64_t>(question.cluster.node.gpus, plan.gpus());
  for (const auto& [axis, degree] : axes) {
    const std::int64_t inside = std::gcd(degree, devices);
    facts.set(fmt::format("ici.{}", axis), std::to_string(inside));
    facts.set(fmt::format("dcn.{}", axis), std::to_string(degree / inside));
    devices /= inside;
  }
  const double rows = static_cast<double>(plan.batch.micro * plan.data);
  facts.set("per_device_batch", fmt::format("{}", rows / static_cast<double>(plan.gpus())));
}

/// Do collectives of the tensor group overlap with GEMMs in the prediction? A tool's own default
/// may be that they do not.
bool overlaps_tensor(const models::Question& question) {
  const models::Plan& plan = question.plan;
  return plan.tensor > 1 && plan.overlap.tensor && question.software.overlap.tensor_exposed < 1;
}

/// Megatron's user buffers need sequence parallelism.
/// Source  Megatron-LM, training/arguments.py, validate_args: tp_comm_overlap asserts
///         sequence_parallel
void settle_tensor_overlap(const models::Question& question, const LaunchTarget& target,
                           Facts& facts, Exported& result) {
  if (!overlaps_tensor(question) && !facts.is("tensor_overlap", "true")) return;
  facts.set("tensor_overlap", "true");
  if (target.tool->table != "megatron" || question.plan.sequence_parallel) return;
  facts.erase("tensor_overlap");
  result.not_said.push_back(
      {target.shown(), "tensor_overlap=true",
       "tp_comm_overlap needs sequence parallelism; the prediction overlaps without it"});
}

/// The facts that options are written from.
Facts launch_facts(const models::Question& question, const LaunchTarget& target,
                   const ExportRequest& request, Exported& result) {
  const LaunchTool& tool = *target.tool;
  const FactBasis basis{.model = &question.model,
                        .gpus = question.cluster.gpus(),
                        .gradient_bytes = gradient_bytes_of(question),
                        .stated = stated_fields(request)};
  Facts facts = facts_of(question.plan, basis);
  settle_tensor_overlap(question, target, facts, result);
  if (tool.table == "megatron") {
    std::vector<std::string> sentences;
    const Facts model = facts_of(question.model, sentences);
    for (std::string& each : sentences) {
      result.not_said.push_back({target.shown(), "", std::move(each)});
    }
    for (const std::string& each : model.fields()) facts.set(each, model.text(each));
    if (tool.name == "primus") facts.erase("model.name");  // which preset is stated apart
  } else if (tool.name == "torchtitan") {
    add_titan_model(question.model.name, facts);
    if (!facts.has("model.family")) {
      result.not_said.push_back(
          {target.shown(), "",
           fmt::format("model {}: state model.name and model.flavor", question.model.name)});
    }
  }
  if (tool.name == "axolotl" || tool.name == "maxtext") {
    facts.set("model.name", question.model.name);
  }
  if (tool.name == "maxtext") add_mesh_axes(question, facts);
  // A default of plans that is not torchao's.
  if (tool.table == "accelerate" && !facts.has("low_precision_gather"))
    facts.set("low_precision_gather", "false");
  const std::string gradient{hardware::name(question.software.gradient)};
  if (gradient == "bf16" || gradient == "fp32") facts.set("software.gradient", gradient);
  facts.set("cluster.nodes", std::to_string(question.cluster.nodes));
  facts.set("cluster.gpus", std::to_string(question.cluster.gpus()));
  return facts;
}

void refuse_what_stack_lacks(const models::Question& question, const LaunchTarget& target,
                             Exported& result) {
  const Document profile = Document::from(models::software_profile(target.tool->software),
                                          std::string{target.tool->software});
  const models::Software stack = models::read_software(profile.root());
  for (const std::string& why : models::not_run(question.plan, stack.runs, stack.name)) {
    const std::size_t colon = why.find(": ");
    const std::string field = why.substr(6, colon - 6);  // after "/plan/"
    result.refused.push_back(
        {target.shown(), fmt::format("{}={}", field, models::plan_field(field).text(question.plan)),
         why.substr(colon + 2)});
  }
}

/// The plan as --plan takes it, with what was stated though it is a default.
std::string plan_line(const models::Question& question, const ExportRequest& request) {
  std::string text = models::to_text(question.plan);
  const FieldNames stated = stated_fields(request);
  const Json shown = models::plan_from_text(text);
  for (const models::PlanField& field : models::plan_fields()) {
    if (!stated.contains(field.key) || shown.contains(std::string{field.key})) continue;
    const Json value = (field.write ? field.write : field.value.write)(question.plan);
    const bool plain = value.is_boolean() || value.is_number() || value.is_string();
    if (plain)
      text += fmt::format(",{}={}", field.key,
                          value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

std::vector<std::string> head_comments(const models::Question& question, const LaunchTarget& target,
                                       const ExportRequest& request, const Exported& result) {
  std::vector<std::string> lines{
      fmt::format("{}: {} on {}, written by orrery export", target.shown(), question.model.name,
                  request.cluster.empty() ? fmt::format("{} GPUs", question.cluster.gpus())
                                          : request.cluster),
      "plan: " + plan_line(question, request)};
  for (const UnsaidOption& each : result.not_said) {
    if (each.target == target.shown())
      lines.push_back(fmt::format("not said here: {}{}{}", each.option,
                                  each.option.empty() ? "" : ": ", each.why));
  }
  return lines;
}

LaunchJob job_of(const models::Question& question, const ExportRequest& request) {
  LaunchJob job{.name = request.job,
                .nodes = question.cluster.nodes,
                .gpus_per_node = question.cluster.node.gpus,
                .command = {}};
  if (request.collectives.is_object()) {
    for (const auto& [name, value] : request.collectives.items()) {
      const bool plain =
          name.rfind("NCCL_", 0) == 0 && std::ranges::all_of(name, [](unsigned char c) {
            return std::isupper(c) || std::isdigit(c) || c == '_';
          });
      if (plain)
        job.environment.emplace_back(name,
                                     value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return job;
}

/// Variables that the tool itself needs.
/// Source  Megatron-LM, arguments.py: tensor or context parallelism before Blackwell needs one
/// queue
void add_tool_environment(const models::Question& question, const LaunchTool& tool,
                          LaunchJob& job) {
  const bool groups = question.plan.tensor > 1 || question.plan.context > 1;
  const bool sharded = question.plan.sharding.zero == models::Zero::two ||
                       question.plan.sharding.zero == models::Zero::three;
  if (tool.name == "megatron" && groups && !sharded &&
      question.cluster.node.gpu.generation.name != "blackwell") {
    job.environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  }
}

/// The constant part of accelerate's configuration.
std::vector<WrittenOption> accelerate_head() {
  return {{"compute_environment", "LOCAL_MACHINE"}, {"debug", false},         {"machine_rank", 0},
          {"main_training_function", "main"},       {"rdzv_backend", "c10d"}, {"use_cpu", false}};
}

/// Primus: Megatron-LM's options as overrides of a preset, whose model's sizes are among them.
std::string primus_text(const std::string& model, const std::vector<WrittenOption>& options,
                        LaunchJob job) {
  const std::string name = plain_name(model, false);
  const Json module{{"framework", "megatron"},
                    {"config", "pre_trainer.yaml"},
                    {"model", name + ".yaml"},
                    {"overrides", nested_options(options)}};
  job.comments.push_back(
      "model is to be one of Primus's presets; the sizes below stand before it.");
  return yaml_text({{"work_group", "orrery"},
                    {"user_name", "orrery"},
                    {"exp_name", plain_name(job.name, false)},
                    {"workspace", "./output"},
                    {"modules", {{"pre_trainer", module}}}},
                   job.comments);
}

LaunchText tool_text(const models::Question& question, const LaunchTarget& target,
                     const ExportRequest& request, Exported& result) {
  const std::string name{target.tool->name};
  const OptionWriter written{target, question, request,
                             launch_facts(question, target, request, result), result};
  LaunchJob job = job_of(question, request);
  add_tool_environment(question, *target.tool, job);
  job.comments = head_comments(question, target, request, result);
  std::vector<WrittenOption> all = written.model;
  all.insert(all.end(), written.plan.begin(), written.plan.end());
  if (name == "megatron") {
    return {target.shown(), "megatron.sh", megatron_script(written.model, written.plan, job)};
  }
  if (name == "torchtitan")
    return {target.shown(), "torchtitan.toml", toml_text(nested_options(all), job.comments)};
  if (name == "deepspeed") {
    Json document{{"_orrery", job.comments}};  // JSON has no comments; DeepSpeed ignores the key
    document.update(nested_options(all));
    return {target.shown(), "deepspeed.json", document.dump(2) + "\n"};
  }
  if (name == "axolotl") {
    job.comments.emplace_back("base_model is to be the model's folder or its name on the hub.");
  }
  if (name == "primus") {
    return {target.shown(), "primus.yaml", primus_text(question.model.name, all, std::move(job))};
  }
  if (name == "maxtext") {
    job.comments.emplace_back("model_name is to be one of MaxText's, where it has another for it.");
    const std::vector<WrittenOption> head{{"base_config", "base.yml"},
                                          {"run_name", plain_name(job.name, false)},
                                          {"hardware", "gpu_multiprocess"}};
    all.insert(all.begin(), head.begin(), head.end());
  }
  if (target.tool->table == "accelerate") {
    std::vector<WrittenOption> head = accelerate_head();
    all.insert(all.begin(), head.begin(), head.end());
  }
  return {target.shown(), name + ".yaml", yaml_text(nested_options(all), job.comments)};
}

/// Every field as it acts: what is left to other fields is written out.
models::Plan acting(models::Plan plan, const models::Model& model) {
  if (plan.pipeline > 1) {
    plan.stages.layers = layers_per_chunk(plan, model);
    plan.stages.embedding_counts = false;  // the cut says it
  }
  plan.overlap.gathers = plan.overlap.with_forward();
  plan.experts.tensor = models::expert_tensor_of(plan);
  return plan;
}

/// Says what an import of the written file would not give back.
void check_read_back(const models::Question& question, const LaunchText& text, Exported& result) {
  const std::vector<LaunchFile> files{read_launch_file(text.text, text.name)};
  const ImportedLaunch imported = import_launch(
      files, {.files = {}, .known_model = &question.model, .gpus = question.cluster.gpus()});
  const Document plan = Document::from(imported.plan, text.name);
  std::vector<std::string> assumptions;
  const models::Plan given = acting(question.plan, question.model);
  const models::Plan read =
      acting(models::read_plan(plan.root(), question.model, question.cluster.gpus(), assumptions),
             question.model);
  const FactBasis basis{.model = &question.model,
                        .gpus = question.cluster.gpus(),
                        .gradient_bytes = gradient_bytes_of(question)};
  const Facts facts = facts_of(given, basis), back = facts_of(read, basis);
  for (const models::PlanField& field : models::plan_fields()) {
    if (facts.text(field.key) == back.text(field.key)) continue;
    const std::string said = fmt::format("{}={}", field.key, field.text(given));
    const bool known = std::ranges::any_of(result.not_said, [&](const UnsaidOption& each) {
      return each.target == text.target && each.option.rfind(std::string{field.key} + "=", 0) == 0;
    });
    if (!known) {
      result.not_said.push_back(
          {text.target, said, fmt::format("{} does not give it back when imported", text.target)});
    }
  }
}

std::vector<std::string> command_of(const std::string& tool_file, std::string_view tool) {
  if (tool == "torchtitan") return {"-m", "torchtitan.train", "--job.config_file", tool_file};
  // Source  Primus, examples/run_pretrain.sh
  if (tool == "primus") return {"primus/cli/main.py", "train", "pretrain", "--config", tool_file};
  if (tool == "axolotl") return {"-m", "axolotl.cli.train", tool_file};
  if (tool == "deepspeed") return {"train.py", "--deepspeed", "--deepspeed_config", tool_file};
  return {"train.py"};
}

/// What SkyPilot calls a GPU of the catalogue; empty: not known.
/// Source  SkyPilot 0.14.1, `sky show-gpus`
std::string skypilot_name(std::string_view gpu) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> names{
      {{"h100-sxm-80gb", "H100"},
       {"h200-sxm-141gb", "H200"},
       {"b200-sxm", "B200"},
       {"b300-sxm", "B300"},
       {"gb200", "GB200"},
       {"a100-sxm-80gb", "A100-80GB"},
       {"a100-pcie-80gb", "A100-80GB"},
       {"a100-sxm-40gb", "A100"},
       {"a100-pcie-40gb", "A100"},
       {"v100-sxm-16gb", "V100"},
       {"v100-sxm-32gb", "V100-32GB"},
       {"l40s", "L40S"},
       {"l4", "L4"},
       {"a10", "A10"},
       {"a10g", "A10G"},
       {"mi300x", "MI300X"}}};
  const auto* found = std::ranges::find(names, gpu, [](const auto& each) { return each.first; });
  return found == names.end() ? std::string{} : std::string{found->second};
}

LaunchText launcher_text(const models::Question& question, const LaunchTarget& target,
                         const ExportRequest& request, Exported& result) {
  LaunchJob job = job_of(question, request);
  job.command = {"train.py"};
  job.comments = {fmt::format("{}: {} node{} of {} GPU{}, written by orrery export", target.shown(),
                              job.nodes, job.nodes == 1 ? "" : "s", job.gpus_per_node,
                              job.gpus_per_node == 1 ? "" : "s")};
  for (const LaunchText& file : result.files) {
    const std::string_view tool = std::string_view{file.target}.substr(0, file.target.find('@'));
    if (launch_tool(tool).software.empty()) continue;
    if (tool == "megatron")
      job.script = file.name;
    else
      job.command = command_of(file.name, tool);
    if (tool == "accelerate" || tool == "fsdp") job.accelerate_file = file.name;
  }
  const bool starts_jax = std::ranges::any_of(
      result.files, [](const LaunchText& file) { return file.target.starts_with("maxtext@"); });
  if (starts_jax) {
    result.refused.push_back(
        {target.shown(), "", "starts torchrun, and MaxText is a program of JAX"});
  }
  if (target.tool->name == "k8s" && !job.accelerate_file.empty()) {
    result.refused.push_back(
        {target.shown(), "", "starts torchrun, which does not read " + job.accelerate_file});
  }
  if (job.script.empty() && job.command.front() == "train.py")
    job.comments.emplace_back("train.py is to be replaced by the training script.");
  if (target.tool->name == "skypilot") {
    const std::string gpu = question.cluster.gpu().name, known = skypilot_name(gpu);
    job.accelerator = known.empty() ? plain_name(gpu, false) : known;
    if (known.empty()) {
      result.not_said.push_back({target.shown(), "resources.accelerators",
                                 fmt::format("{}: state the name that SkyPilot has for it", gpu)});
      job.comments.emplace_back("accelerators: state the name that SkyPilot has for this GPU.");
    }
    return {target.shown(), "skypilot.yaml", skypilot_task(job)};
  }
  if (target.tool->name == "slurm") return {target.shown(), "job.sbatch", slurm_script(job)};
  if (target.tool->name == "k8s") return {target.shown(), "pytorchjob.yaml", pytorch_job(job)};
  return {target.shown(), "torchrun.sh", torchrun_script(job)};
}

}  // namespace

std::string export_targets() {
  std::string text;
  for (const std::string_view name : written_tools) {
    for (const std::string_view list : versions_of(launch_tool(name))) {
      text +=
          fmt::format("{}{}@{}", text.empty() ? "" : " ", name, list.substr(list.find('@') + 1));
    }
  }
  return text;
}

Exported export_launch(const models::Question& question, const std::vector<std::string>& targets,
                       const ExportRequest& request) {
  Exported result;
  std::vector<LaunchTarget> asked;
  for (const std::string& each : targets) asked.push_back(target_of(each));
  std::ranges::stable_partition(asked,
                                [](const LaunchTarget& each) { return !each.is_launcher(); });
  for (const LaunchTarget& target : asked) {
    if (target.is_launcher()) {
      result.files.push_back(launcher_text(question, target, request, result));
      continue;
    }
    refuse_what_stack_lacks(question, target, result);
    const LaunchText first = tool_text(question, target, request, result);
    if (!result.refused.empty()) continue;
    const std::size_t said = result.not_said.size();
    check_read_back(question, first, result);
    Exported again;  // its comments also name what the first text did not tell
    again.not_said.assign(result.not_said.begin() + static_cast<std::ptrdiff_t>(said),
                          result.not_said.end());
    result.files.push_back(again.not_said.empty() ? first
                                                  : tool_text(question, target, request, again));
  }
  if (!result.refused.empty()) result.files.clear();
  return result;
}

Json to_json(const Exported& exported) {
  Json files = Json::array();
  for (const LaunchText& each : exported.files) {
    files.push_back({{"target", each.target}, {"name", each.name}, {"text", each.text}});
  }
  const auto list = [](const std::vector<UnsaidOption>& options) {
    Json json = Json::array();
    for (const UnsaidOption& each : options) {
      json.push_back(
          {{"target", each.target}, {"option", or_null(each.option)}, {"why", each.why}});
    }
    return json;
  };
  return {
      {"files", files}, {"refused", list(exported.refused)}, {"not_said", list(exported.not_said)}};
}

}  // namespace orrery::scenarios
