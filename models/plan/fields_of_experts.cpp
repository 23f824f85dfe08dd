// Rows of a plan's fields: experts, the ranks that hold them and how tokens reach them.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/plan/derived.hpp"
#include "models/plan/expert_counts.hpp"
#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Kind = PlanValue::Kind;
using Title = PlanField::Title;
using Default = PlanField::Default;
using Blocks = PlanField::Blocks;
using Group = PlanField::Group;
using Search = PlanField::Search;

constexpr double most_factor = 1e4;

std::string derive_expert(Plan&, const PlanBasis& basis) {
  return usual_experts(basis.model).count > 0 ? "not stated; 1 assumed: every rank has all experts"
                                              : "";
}

void read_expert_tensor(const Node& degree, Plan& plan) {
  plan.experts.tensor = degree.integer(1, most_gpus);
}

std::string derive_expert_tensor(Plan& plan, const PlanBasis& basis) {
  if (usual_experts(basis.model).count == 0) return {};
  plan.experts.tensor = plan.tensor;
  return plan.tensor > 1 ? fmt::format("not stated; {} assumed, as for tensor", plan.tensor) : "";
}

std::string derive_dispatcher(Plan& plan, const PlanBasis&) {
  return plan.experts.ranks > 1 ? "not stated; alltoall assumed" : "";
}

std::string derive_permute_fusion(Plan&, const PlanBasis& basis) {
  return usual_experts(basis.model).count > 0 ? "not stated; false assumed, as in Megatron-Core"
                                              : "";
}

double read_factor(const Node& number, double least) {
  const double value = number.as<double>();
  if (!(value > 0 && value >= least && value <= most_factor)) {
    number.fail_expected(fmt::format("a number {}, at most {:g}",
                                     least > 0 ? fmt::format("from {:g}", least) : " above 0",
                                     most_factor));
  }
  return value;
}

void read_capacity(const Node& factor, Plan& plan) {
  plan.experts.capacity = read_factor(factor, 0);
}

Json write_capacity(const Plan& plan) {
  return plan.experts.capacity > 0 ? Json(plan.experts.capacity) : Json(nullptr);
}

std::string derive_capacity(Plan&, const PlanBasis& basis) {
  return usual_experts(basis.model).count > 0 ? "not stated; no limit assumed: no token is dropped"
                                              : "";
}

/// Equal layers become one number. Otherwise the plan has each layer's number and their mean, which
/// applies to layers outside the model's own, such as those that predict further tokens (MTP).
void take_imbalances(const std::vector<double>& of_layers, Plan& plan) {
  const auto layers = static_cast<double>(of_layers.size());
  plan.experts.imbalance = std::accumulate(of_layers.begin(), of_layers.end(), 0.0) / layers;
  const auto differs = [&](double each) { return each != of_layers.front(); };
  plan.experts.layer_imbalance.clear();
  if (std::ranges::any_of(of_layers, differs)) plan.experts.layer_imbalance = of_layers;
}

/// A number, a list of one for each layer with experts, or a file of counted tokens, from which the
/// busiest rank follows by the degree `expert`.
void read_imbalance(const Node& factor, Plan& plan) {
  if (factor.is_array()) {
    std::vector<double> of_layers;
    for (const Node& each : factor.elements()) of_layers.push_back(read_factor(each, 1));
    if (of_layers.empty()) factor.fail_expected("a number from 1 for each layer with experts");
    return take_imbalances(of_layers, plan);
  }
  if (!factor.is_string()) {
    plan.experts.imbalance = read_factor(factor, 1);
    return;
  }
  const auto file = factor.as<std::string>();
  if (!file.ends_with(".csv") && !file.ends_with(".json")) {
    factor.fail_expected("a number from 1, or a file of counted tokens (.csv, .json)");
  }
  const ExpertCounts counts = load_expert_counts(file);
  if (counts.experts() % plan.experts.ranks != 0) {
    factor.fail(fmt::format("expert {} does not divide the {} experts counted in {}",
                            plan.experts.ranks, counts.experts(), file));
  }
  take_imbalances(counts.imbalances(plan.experts.ranks), plan);
}

std::string remark_imbalance(const Plan& plan, const PlanBasis& basis) {
  const auto given = basis.given.find("imbalance");
  if (given && given->is_array()) {
    const std::int64_t found = std::ssize(given->elements()), wanted = expert_layers(basis.model);
    if (found == wanted) return {};
    given->fail(fmt::format("has {} numbers, the model has {} layers with experts", found, wanted));
  }
  if (!given || !given->is_string()) return {};
  const auto file = given->as<std::string>();
  const ExpertCounts counts = load_expert_counts(file);
  if (counts.experts() != usual_experts(basis.model).count) {
    given->fail(fmt::format("{} counts {} experts, the model has {}", file, counts.experts(),
                            usual_experts(basis.model).count));
  }
  const std::int64_t layers = std::ssize(counts.layers), due = expert_layers(basis.model);
  if (layers > 1 && layers != due) {
    given->fail(
        fmt::format("{} counts {} layers, the model has {} with experts", file, layers, due));
  }
  const auto [least, most] =
      std::minmax_element(plan.experts.layer_imbalance.begin(), plan.experts.layer_imbalance.end());
  return fmt::format(
      "{:.3g}: rows of the busiest of {} ranks over the mean, {}, from {}", plan.experts.imbalance,
      plan.experts.ranks,
      plan.experts.layer_imbalance.empty()
          ? "equal in every layer"
          : fmt::format("mean of {} layers ({:.3g} to {:.3g}), each priced separately", layers,
                        *least, *most),
      file);
}

Json write_imbalance(const Plan& plan) {
  if (!plan.experts.layer_imbalance.empty()) return plan.experts.layer_imbalance;
  return plan.experts.imbalance > 1 ? Json(plan.experts.imbalance) : Json(nullptr);
}

void key_of_imbalance(const Plan& plan, std::string& bytes) {
  add_bytes(plan.experts.imbalance, bytes);
  add_bytes(plan.experts.layer_imbalance, bytes);
}

std::string derive_imbalance(Plan& plan, const PlanBasis& basis) {
  const bool free = usual_experts(basis.model).count > 0 && plan.experts.capacity == 0;
  return free ? "not stated; 1 assumed: all experts get equally many tokens" : "";
}

void read_expert_room(const Node& factor, Plan& plan) {
  plan.experts.room = read_factor(factor, 1);
}

Json write_expert_room(const Plan& plan) {
  return plan.experts.room > 1 ? Json(plan.experts.room) : Json(nullptr);
}

std::string imbalance_not_executed(const Plan& plan, const Model&) {
  return plan.experts.layer_imbalance.empty() ? "" : "a separate imbalance for each layer";
}

std::string expert_tensor_not_executed(const Plan& plan, const Model& model) {
  const bool cut =
      usual_experts(model).count > 0 && usual_mlp(model).bias && expert_tensor_of(plan) > 1;
  return cut ? "expert biases with expert tensor parallelism" : "";
}

std::string dispatcher_not_executed(const Plan& plan, const Model& model) {
  if (usual_experts(model).count == 0 || plan.experts.dispatcher == Dispatcher::all_to_all)
    return {};
  return fmt::format("dispatcher '{}'", word_of(dispatcher_words, plan.experts.dispatcher));
}

std::string expert_overlap_not_executed(const Plan& plan, const Model& model) {
  const bool two =
      usual_experts(model).count > 0 && plan.experts.overlap == ExpertOverlap::micro_batches;
  return two ? "experts' all-to-alls overlapped with another micro-batch" : "";
}

std::string expert_gemms_not_executed(const Plan& plan, const Model&) {
  return plan.experts.gemms == ExpertGemms::grouped ? "" : "experts multiplied one by one";
}

constexpr PlanField expert_rows[] = {
    {.key = "expert",
     .name = "expert",
     .group = Group::experts,
     .search = Search::tried,
     .meaning = "Ranks of a stage over which a layer's experts are distributed",
     .value = count_at<&Plan::experts, &ExpertChoices::ranks>(1, most_gpus),
     .column = "ep",
     .title = Title::addition,
     .title_label = "EP",
     .derive = derive_expert},
    {.key = "expert_tensor",
     .name = "expert tensor",
     .group = Group::experts,
     .search = Search::tried,
     .not_executed_if = expert_tensor_not_executed,
     .meaning = "Ranks that share the matrices of each expert",
     .default_words = "as tensor",
     .value = {.most = most_gpus, .key = key_of<&Plan::experts, &ExpertChoices::tensor>},
     .title = Title::addition,
     .title_label = "ETP",
     .read = read_expert_tensor,
     .write = [](const Plan& plan) { return Json(plan.experts.tensor); },
     .derive = derive_expert_tensor},
    {.key = "dispatcher",
     .name = "dispatcher",
     .group = Group::experts,
     .search = Search::tried,
     .not_executed_if = dispatcher_not_executed,
     .meaning = "How tokens reach their experts: every copy in an all-to-all, or once to each node "
                "that has any of their experts (deepep, hybridep)",
     .value = word_at<dispatcher_words, &Plan::experts, &ExpertChoices::dispatcher>(),
     .title = Title::addition,
     .title_label = "by",
     .derive = derive_dispatcher},
    {.key = "expert_overlap",
     .name = "expert overlap",
     .group = Group::experts,
     .search = Search::tried,
     .not_executed_if = expert_overlap_not_executed,
     .meaning = "What overlaps with the experts' all-to-alls: nothing, the shared expert, or "
                "another micro-batch",
     .value = word_at<expert_overlap_words, &Plan::experts, &ExpertChoices::overlap>(),
     .title = Title::addition,
     .title_label = "overlapping"},
    {.key = "permute_fusion",
     .name = "fused permutation",
     .group = Group::experts,
     .meaning =
         "One kernel sorts tokens by expert and one restores their order, instead of several",
     .value = flag_at<&Plan::experts, &ExpertChoices::permute_fusion>(),
     .derive = derive_permute_fusion},
    {.key = "expert_gemms",
     .name = "experts' GEMMs",
     .group = Group::experts,
     .search = Search::stack,
     .not_executed_if = expert_gemms_not_executed,
     .meaning =
         "How a rank's experts are multiplied: in one grouped GEMM, one after another, or in "
         "a loop that selects and adds up each expert's rows (eager transformers)",
     .value = word_at<expert_gemms_words, &Plan::experts, &ExpertChoices::gemms>(),
     .title = Title::addition,
     .title_label = "experts",
     .stack = PlanField::Stack::has_default},
    {.key = "capacity",
     .name = "capacity",
     .group = Group::experts,
     .search = Search::result,
     .meaning =
         "Capacity factor: rows that an expert takes, over the mean; tokens beyond it are dropped",
     .other_values = " above 0",
     .default_words = "no limit",
     .value = {.kind = Kind::factor, .key = key_of<&Plan::experts, &ExpertChoices::capacity>},
     .by_default = Default::silent,
     .read = read_capacity,
     .write = write_capacity,
     .derive = derive_capacity},
    {.key = "pad_to_capacity",
     .name = "padding to capacity",
     .group = Group::experts,
     .search = Search::result,
     .meaning = "With a capacity: slots without a token are sent and multiplied as well",
     .value = flag_at<&Plan::experts, &ExpertChoices::pad_to_capacity>()},
    {.key = "imbalance",
     .name = "imbalance",
     .group = Group::experts,
     .search = Search::question,
     .not_executed_if = imbalance_not_executed,
     .meaning = "Without a capacity: rows of the busiest rank's experts, over the mean",
     .other_values = " from 1; one for each layer with experts; or a file of tokens counted by "
                     "expert and layer (.csv, .json)",
     .value = {.kind = Kind::factor,
               .write = [](const Plan& plan) { return Json(plan.experts.imbalance); },
               .key = key_of_imbalance},
     .by_default = Default::silent,
     .read = read_imbalance,
     .write = write_imbalance,
     .derive = derive_imbalance,
     .remark = remark_imbalance},
    {.key = "expert_room",
     .name = "room for experts",
     .group = Group::experts,
     .search = Search::stack,
     .meaning = "Without a capacity: rows for which an expert has memory, over the mean",
     .other_values = " from 1",
     .value = {.kind = Kind::factor,
               .write = [](const Plan& plan) { return Json(plan.experts.room); },
               .key = key_of<&Plan::experts, &ExpertChoices::room>},
     .by_default = Default::silent,
     .read = read_expert_room,
     .write = write_expert_room},
};

}  // namespace

std::span<const PlanField> fields_of_experts() {
  return expert_rows;
}

}  // namespace orrery::models
