#include "models/software/software.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/plan/fields.hpp"

namespace orrery::models {

namespace {

constexpr Words<Communication, 2> communication_words{
    {{Communication::itself, "itself"}, {Communication::blocking, "blocking"}}};
constexpr Words<Scope::Nodes, 3> scope_words{
    {{Scope::Nodes::any, "any"}, {Scope::Nodes::one, "one"}, {Scope::Nodes::several, "several"}}};
constexpr Words<Accumulation, 3> accumulation_words{{{Accumulation::fused, "fused"},
                                                     {Accumulation::separate, "separate"},
                                                     {Accumulation::in_place, "in_place"}}};
constexpr Words<ReportedMemory, 2> reported_memory_words{
    {{ReportedMemory::device, "device"}, {ReportedMemory::allocator, "allocator"}}};
constexpr Words<ZeroGather, 2> zero_gather_words{
    {{ZeroGather::all_gather, "all_gather"}, {ZeroGather::broadcast, "broadcast"}}};
constexpr Words<Gathered, 2> gathered_words{
    {{Gathered::in_backward, "again"}, {Gathered::kept, "kept"}}};

/// The entry of a GPU generation, or the entry "default".
template <class Map>
const typename Map::mapped_type& of_generation(const Map& map, std::string_view generation) {
  const auto found = map.find(std::string{generation});
  return found != map.end() ? found->second : map.at("default");
}

/// A share or factor, within bounds; `otherwise` where the key is absent.
double number(const Node& parent, std::string_view key, double otherwise, double low, double high) {
  const auto node = parent.find(key);
  if (!node) return otherwise;
  const double value = node->as<double>();
  if (!(value >= low && value <= high)) {
    node->fail_expected("a number from " + fmt::format("{:g} to {:g}", low, high));
  }
  return value;
}

HostCosts read_host(const Node& node) {
  node.only({"forward_launch", "backward_launch", "communication_launch", "graph_launch",
             "expert_layer", "expert_launch", "sharded_adapter", "jitter", "step", "synchronous",
             "blocking_receive", "communication", "waits_for_tensor"});
  const auto graph = node.find("graph_launch");
  return {
      .forward_launch = node["forward_launch"].as<Time>(),
      .backward_launch = node["backward_launch"].as<Time>(),
      .communication_launch = node["communication_launch"].as<Time>(),
      .graph_launch = graph ? std::optional{graph->as<Time>()} : std::nullopt,
      .expert_layer = node.value_or("expert_layer", Time{}),
      .expert_launch = node.value_or("expert_launch", Time{}),
      .sharded_adapter = node.value_or("sharded_adapter", Time{}),
      .jitter = node.value_or("jitter", Time{}),
      .step = node.value_or("step", Time{}),
      .synchronous = node.value_or("synchronous", false),
      .blocking_receive = node.value_or("blocking_receive", false),
      .communication = node.word_or("communication", communication_words, Communication::itself),
      .waits_for_tensor = node.value_or("waits_for_tensor", false)};
}

KernelChoices read_kernels(const Node& node) {
  node.only({"gemm_derate", "quantised_derate", "fp4_derate", "quantised_start", "memory_derate",
             "mixed_derate", "attention", "attention_derate", "scan_derate", "loss_forward_bytes",
             "loss_backward_bytes", "predicted_share", "dropout", "optimizer_derate",
             "accumulate_derate", "accumulate_exposed", "softmax_in_fours",
             "clamped_forward_passes", "clamped_backward_passes"});
  KernelChoices kernels;
  for (const auto& [generation, value] : node["gemm_derate"].members()) {
    kernels.gemm_derate[generation] = number(node["gemm_derate"], generation, 1, 0.2, 20);
  }
  const auto of_few_bits = [&](const char* key, std::map<std::string, double>& derates) {
    const auto stated = node.find(key);
    if (!stated) return;
    for (const auto& [generation, value] : stated->members()) {
      derates[generation] = number(*stated, generation, 1, 0.2, 20);
    }
  };
  of_few_bits("quantised_derate", kernels.quantised_derate);
  of_few_bits("fp4_derate", kernels.fp4_derate);
  if (const auto starts = node.find("quantised_start")) {
    for (const auto& [generation, value] : starts->members()) {
      kernels.quantised_gemm_overhead[generation] = value.as<Time>();
    }
  }
  for (const auto& [generation, value] : node["attention"].members()) {
    kernels.attention[generation] = value.as<std::string>();
  }
  if (kernels.gemm_derate.count("default") == 0) node["gemm_derate"].fail("'default' is missing");
  if (kernels.attention.count("default") == 0) node["attention"].fail("'default' is missing");
  kernels.memory_derate = number(node, "memory_derate", 1, 0.2, 20);
  if (node.find("optimizer_derate")) {
    kernels.optimizer_derate = number(node, "optimizer_derate", 1, 0.2, 20);
  }
  kernels.mixed_derate = number(node, "mixed_derate", 1, 0.2, 20);
  kernels.attention_derate = number(node, "attention_derate", 1, 0.2, 20);
  kernels.scan_derate = number(node, "scan_derate", 1, 0.2, 20);
  kernels.loss_forward_bytes = number(node, "loss_forward_bytes", 32, 0, 1000);
  kernels.loss_backward_bytes = number(node, "loss_backward_bytes", 24, 0, 1000);
  kernels.predicted_share = number(node, "predicted_share", 1, 0.001, 1);
  kernels.clamped_forward_passes =
      number(node, "clamped_forward_passes", kernels.clamped_forward_passes, 0, 1000);
  kernels.clamped_backward_passes =
      number(node, "clamped_backward_passes", kernels.clamped_backward_passes, 0, 1000);
  kernels.dropout = node.value_or("dropout", false);
  kernels.accumulate_derate = number(node, "accumulate_derate", 1, 0.2, 20);
  kernels.accumulate_exposed = number(node, "accumulate_exposed", 0, 0, 1);
  kernels.softmax_in_fours = node.value_or("softmax_in_fours", false);
  return kernels;
}

Overlap read_overlap(const Node& node) {
  node.only({"tensor_backward", "tensor_exposed", "gradients", "sharded_gradients",
             "gradients_across_tensor", "data_efficiency", "dispatch_efficiency", "data_exposed",
             "contention", "bucket", "broadcast_per_rank", "broadcast_group"});
  const bool gradients = node.value_or("gradients", true);
  const Overlap usual;
  return {.tensor_backward = node.value_or("tensor_backward", false),
          .tensor_exposed = number(node, "tensor_exposed", 1, 0, 4),
          .data_exposed = number(node, "data_exposed", 1, 0, 1),
          .gradients = gradients,
          .sharded_gradients = node.value_or("sharded_gradients", gradients),
          .gradients_across_tensor = node.value_or("gradients_across_tensor", true),
          .contention = number(node, "contention", 0, 0, 1),
          .data_efficiency = number(node, "data_efficiency", 1, 0.01, 1.5),
          .dispatch_efficiency =
              number(node, "dispatch_efficiency", usual.dispatch_efficiency, 0.01, 1.5),
          .bucket = node.value_or("bucket", Bytes{}),
          .broadcast_per_rank = node.value_or("broadcast_per_rank", Time{}),
          .broadcast_group = node.integer_or("broadcast_group", 1, most_gpus, 0)};
}

/// Whole copies of the logits, or the part of the saved one that is written over.
double read_copies(const Node& node) {
  const double copies = number(node, "loss_copies", 0, -1, 8);
  if (copies > 0 && copies != std::floor(copies)) {
    node["loss_copies"].fail_expected("a whole number of copies");
  }
  return copies;
}

MemoryAllowances read_memory(const Node& node) {
  node.only({"context", "workspace", "per_communicator", "fragmentation", "state_fragmentation",
             "sent_kept", "masters_alone", "saves_unfused", "loss_copies", "reported"});
  return {.context = node.value_or("context", Bytes{}),
          .workspace = node.value_or("workspace", Bytes{}),
          .per_communicator = node.value_or("per_communicator", Bytes{}),
          .fragmentation = number(node, "fragmentation", 0, 0, 1),
          .state_fragmentation = number(node, "state_fragmentation", 0, 0, 1),
          .sent_kept = node.value_or("sent_kept", false),
          .masters_alone = node.value_or("masters_alone", false),
          .saves_unfused = node.value_or("saves_unfused", false),
          .loss_copies = read_copies(node),
          .reported = node.word_or("reported", reported_memory_words, ReportedMemory::device)};
}

/// Reads the gradient format: one for every run, or {"default": ..., "fp16": ...}, where "fp16" is
/// that of runs in fp16.
void read_gradient(const Node& node, Software& software) {
  using hardware::DType;
  const auto type_of = [](const Node& word, DType narrow) {
    return word.one_of({"fp32", "bf16", "fp16"}) == 0 ? DType::fp32 : narrow;
  };
  if (!node.json().is_object()) {
    software.gradient = type_of(node, DType::bf16);
    return;
  }
  node.only({"default", "fp16"});
  software.gradient = type_of(node["default"], DType::bf16);
  if (const auto own = node.find("fp16")) software.gradient_of_fp16 = type_of(*own, DType::fp16);
}

RunDefaults read_defaults(const Node& node) {
  std::vector<std::string_view> keys{"vocab", "layers_per_chunk"};
  RunDefaults defaults;
  for (const PlanField& field : plan_fields()) {
    if (field.stack != PlanField::Stack::has_default) continue;
    keys.push_back(field.key);
    const auto value = node.find(field.key);
    if (!value) continue;
    field.read_value(*value, defaults.plan);
    defaults.stated.emplace_back(field.key);
  }
  node.only(keys);
  defaults.vocab = node.integer_or("vocab", 1, 1 << 24, defaults.vocab);
  defaults.layers_per_chunk = node.integer_or("layers_per_chunk", 1, 1 << 12, 0);
  return defaults;
}

FittedPlace read_place(const Node& node) {
  node.only({"site", "gpu", "network"});
  return {.site = node["site"].as<std::string>(),
          .gpu = node["gpu"].as<std::string>(),
          .network = node.value_or<std::string>("network", "")};
}

/// How uncertain a fitted number is: a standard deviation of its logarithm, or a time.
void read_spread(const Node& numbers, const std::string& pointer, const Node& spread) {
  if (spread.json().is_string()) {
    spread.as<Time>();
  } else {
    number(numbers, pointer, 0, 0, 3);
  }
}

Residuals read_residuals(const Node& node) {
  node.only({"p10", "p90", "rows", "of", "source", "places", "years", "numbers"});
  node["p10"];
  node["p90"];
  Residuals read{.p10 = number(node, "p10", 0, -3, 0),
                 .p90 = number(node, "p90", 0, 0, 3),
                 .rows = node["rows"].integer(1, 1'000'000),
                 .source = node["source"].as<std::string>(),
                 .of = node.value_or<std::string>("of", "this stack")};
  if (const auto numbers = node.find("numbers")) {  // for people: no prediction reads them
    for (const auto& [pointer, spread] : numbers->members()) read_spread(*numbers, pointer, spread);
  }
  if (const auto places = node.find("places")) {
    for (const Node& each : places->elements()) read.places.push_back(read_place(each));
  }
  if (const auto years = node.find("years")) {
    const std::vector<Node> both = years->elements();
    if (both.size() != 2) years->fail_expected("the first and the last year");
    read.from_year = static_cast<int>(both[0].integer(2012, 2100));
    read.to_year = static_cast<int>(both[1].integer(read.from_year, 2100));
  }
  return read;
}

Scope read_scope(const Node& node) {
  node.only({"stack", "from_year", "to_year", "nodes", "site"});
  Scope scope;
  scope.stack = node["stack"].as<std::string>();
  scope.from_year = static_cast<int>(node.integer_or("from_year", 2012, 2100, scope.from_year));
  scope.to_year = static_cast<int>(node.integer_or("to_year", 2012, 2100, scope.to_year));
  scope.nodes = node.word_or("nodes", scope_words, scope.nodes);
  scope.site = node.value_or<std::string>("site", {});
  return scope;
}

}  // namespace

bool Scope::holds(const StackRun& run) const {
  const bool in_time = run.year >= from_year && run.year <= to_year;
  const bool in_size = nodes == Nodes::any || (nodes == Nodes::one) == (run.nodes == 1);
  return run.stack == stack && in_time && in_size && (site.empty() || run.site == site);
}

hardware::DType Software::gradient_dtype_for(hardware::DType type) const {
  return type == hardware::DType::fp16 ? gradient_of_fp16.value_or(gradient) : gradient;
}

double Software::gemm_derate(std::string_view generation) const {
  return of_generation(kernels.gemm_derate, generation);
}

double Software::low_precision_gemm_derate(std::string_view generation,
                                           hardware::DType type) const {
  const auto& derates = hardware::bits(type) == 4 ? kernels.fp4_derate : kernels.quantised_derate;
  const auto found = derates.find(std::string{generation});
  return found == derates.end() ? 1 : found->second;
}

Time Software::quantised_gemm_overhead(std::string_view generation) const {
  const auto found = kernels.quantised_gemm_overhead.find(std::string{generation});
  return found == kernels.quantised_gemm_overhead.end() ? Time{} : found->second;
}

std::string_view Software::attention(std::string_view generation) const {
  return of_generation(kernels.attention, generation);
}

std::string_view Software::attention(std::string_view generation, AttentionKernel chosen) const {
  const bool own = chosen == AttentionKernel::of_stack;
  return own ? attention(generation) : word_of(attention_kernel_words, chosen);
}

Software with_attention(Software software, const std::string& kernel) {
  if (!kernel.empty()) software.kernels.attention = {{"default", kernel}};
  return software;
}

Software at_site(Software software, const hardware::Site& site) {
  software.overlap.tensor_exposed *= site.tensor;
  software.overlap.data_efficiency *= site.network;
  software.overlap.dispatch_efficiency *= site.network;
  software.host.jitter += site.jitter;
  software.host.step += site.step;
  for (auto& [generation, derate] : software.kernels.gemm_derate) derate /= site.clock;
  return software;
}

Time with_unexplained(Time explained, const Software& software) {
  return software.unexplained == 1 ? explained : scaled(explained, software.unexplained);
}

Software read_software(const Node& node) {
  node.only({"name",        "year",     "source",           "defaults",     "stands_for",
             "host",        "kernels",  "overlap",          "accumulation", "gradient",
             "zero_gather", "gathered", "embedding_counts", "memory",       "unexplained",
             "uncertainty", "limits",   "fitted",           "runs",         "lineage"});
  Software software;
  software.name = node["name"].as<std::string>();
  software.year = static_cast<int>(node.integer_or("year", 2012, 2100, 0));
  software.source = node["source"].as<std::string>();
  software.host = read_host(node["host"]);
  software.kernels = read_kernels(node["kernels"]);
  software.overlap = read_overlap(node["overlap"]);
  software.accumulation = node["accumulation"].word(accumulation_words);
  read_gradient(node["gradient"], software);
  software.zero_gather = node.word_or("zero_gather", zero_gather_words, software.zero_gather);
  software.gathered = node.word_or("gathered", gathered_words, software.gathered);
  software.embedding_counts = node.value_or("embedding_counts", false);
  software.memory = read_memory(node["memory"]);
  if (const auto defaults = node.find("defaults")) software.defaults = read_defaults(*defaults);
  if (const auto runs = node.find("runs")) software.runs = read_runnable(*runs);
  software.limits = node.value_or<std::string>("limits", "");
  software.lineage = node.value_or<std::string>("lineage", "");
  // Whether a number is fitted to runs of the stack: scenarios/validation/ranges.cpp asks for it.
  if (const auto fitted = node.find("fitted")) fitted->as<bool>();
  software.unexplained = number(node, "unexplained", 1, 0.01, 100);
  if (const auto quantiles = node.find("uncertainty")) {
    software.residuals = read_residuals(*quantiles);
  }
  if (const auto scopes = node.find("stands_for")) {
    for (const Node& each : scopes->elements()) software.stands_for.push_back(read_scope(each));
  }
  return software;
}

}  // namespace orrery::models
