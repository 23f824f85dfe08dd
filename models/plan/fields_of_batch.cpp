// Rows of a plan's fields: batches and sequences, precision, recomputation and offloaded
// activations.

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

constexpr std::int64_t most_batch = std::int64_t{1} << 31;

std::string derive_global_batch(Plan& plan, const PlanBasis&) {
  plan.batch.global = plan.data * plan.batch.micro * plan.pipeline;
  return fmt::format("not stated; {} assumed, data x micro_batch x pipeline", plan.batch.global);
}

std::string derive_seq_len(Plan& plan, const PlanBasis& basis) {
  if (basis.model.embedding.max_positions < 1) {
    basis.given.fail("seq_len is missing, and the model does not state its longest sequence");
  }
  plan.batch.seq_len = basis.model.embedding.max_positions;
  return fmt::format("not stated; {} assumed, the model's longest sequence", plan.batch.seq_len);
}

/// What a longer sequence does to the positions.
std::string_view words_of(Positions positions) {
  switch (positions) {
    case Positions::rotary:
      return "its rotary angles are extrapolated";
    case Positions::alibi:
      return "its biases by distance are extrapolated";
    default:
      return "its layers use no positions";
  }
}

/// Learned positions beyond their table are a conflict of the plan instead.
std::string remark_seq_len(const Plan& plan, const PlanBasis& basis) {
  const Model& model = basis.model;
  const bool beyond =
      model.embedding.max_positions > 0 && plan.batch.seq_len > model.embedding.max_positions;
  if (!beyond || model.embedding.positions == Positions::learned) return {};
  return fmt::format("{} is longer than the model's longest sequence, {}; {}", plan.batch.seq_len,
                     model.embedding.max_positions, words_of(model.embedding.positions));
}

Json write_recompute_modules(const Plan& plan) {
  if (plan.recompute.kind != Recompute::selective) return nullptr;
  if (plan.recompute.modules == Plan{}.recompute.modules) return nullptr;
  return words_of_set<recompute_module_words, &Plan::recompute, &RecomputeChoices::modules>(plan);
}

Json write_recompute_elsewhere(const Plan& plan) {
  if (plan.recompute.elsewhere.empty()) return nullptr;
  return words_of_set<recompute_module_words, &Plan::recompute, &RecomputeChoices::elsewhere>(plan);
}

std::string partial_recompute_conflict(const Plan& plan, const Model&) {
  const RecomputeChoices& again = plan.recompute;
  if (again.kind == Recompute::none || (again.layers == 0 && again.every == 1)) {
    return "needs recompute_layers or recompute_every, the part that these micro-batches recompute";
  }
  if (plan.pipeline == 1) return "has no effect: without a pipeline one micro-batch is in flight";
  if (!again.elsewhere.empty()) return "is not simulated with recompute_elsewhere";
  if (plan.offload.layers > 0) return "is not simulated with offload_layers";
  return plan.task == Task::dpo ? "is not simulated with task dpo" : "";
}

std::string offload_layers_not_executed(const Plan& plan, const Model&) {
  const bool staged = plan.offload.layers > 0 && plan.pipeline > 1;
  return staged ? "offloaded activations in a pipeline" : "";
}

constexpr PlanField batch_rows[] = {
    {.key = "micro_batch",
     .name = "micro-batch",
     .group = Group::batch,
     .search = Search::tried,
     .meaning = "Sequences that a replica computes at once",
     .value = count_at<&Plan::batch, &BatchSizes::micro>(1, most_gpus),
     .column = "micro_batch",
     .title = Title::choice,
     .title_label = "micro-batch",
     .heading = "micro",
     .by_default = Default::reported,
     .flag = Flag::always},
    {.key = "global_batch",
     .name = "batch",
     .group = Group::batch,
     .search = Search::tried,
     .blocks = Blocks::same,
     .meaning = "Sequences of one step, over all replicas",
     .default_words = "data x micro_batch x pipeline",
     .value = count_at<&Plan::batch, &BatchSizes::global>(1, most_batch),
     .column = "global_batch",
     .by_default = Default::reported,
     .flag = Flag::always,
     .derive = derive_global_batch},
    {.key = "seq_len",
     .name = "sequence length",
     .group = Group::batch,
     .search = Search::tried,
     .meaning = "Tokens of a sequence",
     .default_words = "the model's longest sequence",
     .value = count_at<&Plan::batch, &BatchSizes::seq_len>(1, most_seq_len),
     .column = "seq_len",
     .by_default = Default::reported,
     .flag = Flag::always,
     .derive = derive_seq_len,
     .remark = remark_seq_len},
    {.key = "precision",
     .name = "precision",
     .group = Group::precision,
     .search = Search::tried,
     .meaning = "Format of GEMMs and storage; the 8 and 4 bit formats are Transformer Engine's "
                "recipes, with their quantisation kernels",
     .default_words = "bf16",
     .value = word_at<precision_words, &Plan::formats, &FormatChoices::precision>(),
     .column = "precision",
     .by_default = Default::reported,
     .flag = Flag::always,
     .stack = Stack::has_default},
    {.key = "recompute",
     .name = "recompute",
     .group = Group::activations,
     .search = Search::tried,
     .recipe = Recipe::of_one_plan,
     .meaning = "Activations that backward computes again: none, those of recompute_modules "
                "(selective), or all but each layer's input (full)",
     .value = word_at<recompute_words, &Plan::recompute, &RecomputeChoices::kind>(),
     .column = "recompute",
     .title = Title::choice,
     .title_label = "recompute",
     .by_default = Default::reported,
     .flag = Flag::always,
     .stack = Stack::has_default},
    {.key = "recompute_modules",
     .name = "recomputed modules",
     .group = Group::activations,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .meaning = "Modules that recompute=selective computes again",
     .value = words_at<recompute_module_words, &Plan::recompute, &RecomputeChoices::modules>(),
     .by_default = Default::silent,
     .write = write_recompute_modules},
    {.key = "recompute_layers",
     .name = "recomputed layers",
     .group = Group::activations,
     .blocks = Blocks::differ_where_set,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .meaning = "First layers of each chunk that recompute; 0: all",
     .value = count_at<&Plan::recompute, &RecomputeChoices::layers>(0, most_layers),
     .column = "recompute_layers"},
    {.key = "recompute_every",
     .name = "recomputed every",
     .group = Group::activations,
     .blocks = Blocks::differ_where_set,
     .summary = Summary::stated,
     .meaning = "Of those layers, one in every so many recomputes",
     .value = count_at<&Plan::recompute, &RecomputeChoices::every>(1, most_layers)},
    {.key = "recompute_elsewhere",
     .name = "recomputed elsewhere",
     .group = Group::activations,
     .summary = Summary::stated,
     .meaning = "Modules that the other layers recompute",
     .value = words_at<recompute_module_words, &Plan::recompute, &RecomputeChoices::elsewhere>(),
     .by_default = Default::silent,
     .write = write_recompute_elsewhere},
    {.key = "partial_recompute_micro_batches",
     .name = "micro-batches that recompute in part",
     .group = Group::activations,
     .blocks = Blocks::same,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "micro-batches that recompute less than others",
     .meaning = "Of the micro-batches in flight on a stage, those of which only recompute_layers "
                "and recompute_every recompute; the others recompute all layers (Megatron-Core's "
                "num_microbatches_with_partial_activation_checkpoints); 0: all alike",
     .value = count_at<&Plan::recompute, &RecomputeChoices::partial_micro_batches>(0, most_batch),
     .conflict = partial_recompute_conflict},
    {.key = "offload_layers",
     .name = "offloaded layers",
     .group = Group::activations,
     .blocks = Blocks::same,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed_if = offload_layers_not_executed,
     .meaning = "First layers of each chunk whose activations go to the host until backward, over "
                "the GPU's host_link",
     .value = count_at<&Plan::offload, &OffloadChoices::layers>(0, most_layers)},
};

}  // namespace

std::span<const PlanField> fields_of_batch() {
  return batch_rows;
}

}  // namespace orrery::models
