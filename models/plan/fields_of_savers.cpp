// Rows of a plan's fields: what is trained, and options that save memory.

#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/plan/derived.hpp"
#include "models/plan/field_groups.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {
namespace {

using Default = PlanField::Default;
using Blocks = PlanField::Blocks;
using Group = PlanField::Group;
using Search = PlanField::Search;
using Recipe = PlanField::Recipe;
using Summary = PlanField::Summary;

void require_adapters(const Node& given, const Plan& plan) {
  if (!trains_adapters(plan)) given.fail("applies only to tasks lora and qlora");
}

void read_lora_rank(const Node& rank, Plan& plan) {
  require_adapters(rank, plan);
  plan.adapters.rank = rank.integer(1, most_lora_rank);
}

void read_lora_dropout(const Node& drops, Plan& plan) {
  require_adapters(drops, plan);
  plan.adapters.dropout = drops.as<bool>();
}

/// Hugging Face's words for matrices that are modules of their own here, too.
constexpr std::array<std::pair<std::string_view, LoraTarget>, 2> other_target_words{
    {{"o_proj", LoraTarget::projection}, {"down_proj", LoraTarget::down}}};

LoraTarget target_of(const Node& word) {
  for (const auto& [text, target] : other_target_words) {
    if (word.json() == text) return target;
  }
  return word.word(lora_target_words);
}

void read_lora_targets(const Node& list, Plan& plan) {
  require_adapters(list, plan);
  plan.adapters.targets = {};
  for (const Node& each : list.elements()) {
    const LoraTarget target = target_of(each);
    if (plan.adapters.targets.has(target)) each.fail("is listed twice");
    plan.adapters.targets.add(target);
  }
  if (plan.adapters.targets.empty()) list.fail("is empty; leave it out to use the default");
}

std::string derive_lora_rank(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? fmt::format("not stated; {} assumed", plan.adapters.rank) : "";
}

std::string derive_lora_targets(Plan& plan, const PlanBasis&) {
  return trains_adapters(plan) ? "not stated; qkv and projection assumed" : "";
}

Json write_lora_rank(const Plan& plan) {
  return trains_adapters(plan) ? Json(plan.adapters.rank) : Json(nullptr);
}

Json write_fused_amax(const Plan& plan) {
  if (plan.formats.fused_amax.empty()) return nullptr;
  return words_of_set<amax_kernel_words, &Plan::formats, &FormatChoices::fused_amax>(plan);
}

Json write_lora_targets(const Plan& plan) {
  if (!trains_adapters(plan)) return nullptr;
  return words_of_set<lora_target_words, &Plan::adapters, &AdapterChoices::targets>(plan);
}

Json write_lora_dropout(const Plan& plan) {
  return trains_adapters(plan) && plan.adapters.dropout ? Json(true) : Json(nullptr);
}

void read_sequence_lengths(const Node& list, Plan& plan) {
  plan.batch.documents.clear();
  for (const Node& each : list.elements()) {
    plan.batch.documents.push_back(each.integer(1, most_seq_len));
  }
  if (plan.batch.documents.empty()) list.fail("is empty; leave it out for whole sequences");
}

Json write_sequence_lengths(const Plan& plan) {
  if (plan.batch.documents.empty()) return nullptr;
  return plan.batch.documents;
}

void read_offload_share(const Node& share, Plan& plan) {
  plan.offload.share = share.as<double>();
  if (!(plan.offload.share > 0 && plan.offload.share <= 1)) {
    share.fail_expected("a number above 0, at most 1");
  }
}

std::string kbit_upcast_conflict(const Plan& plan, const Model&) {
  if (plan.task != Task::qlora) {
    return fmt::format("needs frozen weights in 4 bits, task qlora; task is {}",
                       word_of(task_words, plan.task));
  }
  if (plan.tensor > 1) return "is not simulated with tensor above 1";
  return plan.kernels.mlp_tiles > 1 ? "is not simulated with tiled_mlp" : "";
}

std::string state_precision_not_executed(const Plan& plan, const Model&) {
  if (plan.formats.state != StatePrecision::pure) return {};
  if (storage_dtype(plan.formats.precision) == hardware::DType::fp16) {
    return "fp16 weights without masters";
  }
  return plan.optimizer.moments == Moments::int8 ? "8-bit moments without masters" : "";
}

std::string lora_dropout_not_executed(const Plan& plan, const Model&) {
  const bool drops = plan.task == Task::lora && plan.adapters.dropout;
  return drops ? "dropout before adapters" : "";
}

std::string fused_cross_entropy_not_executed(const Plan& plan, const Model&) {
  const bool sharded =
      plan.kernels.fused_cross_entropy && shards_gradients(plan) && plan.pipeline == 1;
  return sharded ? "fused cross-entropy with sharded gradients" : "";
}

constexpr PlanField saver_rows[] = {
    {.key = "lora_rank",
     .name = "adapters' rank",
     .group = Group::task,
     .search = Search::result,
     .summary = Summary::stated,
     .meaning = "Rank of the adapters, of task lora and qlora",
     .value = count_at<&Plan::adapters, &AdapterChoices::rank>(1, most_lora_rank),
     .by_default = Default::silent,
     .read = read_lora_rank,
     .write = write_lora_rank,
     .derive = derive_lora_rank},
    {.key = "lora_targets",
     .name = "adapters' targets",
     .group = Group::task,
     .search = Search::result,
     .summary = Summary::stated,
     .meaning =
         "Matrices that have an adapter: of a layer, one for queries, keys and values together "
         "(qkv) or one for each of them that is listed, and alike for gate and up (up); the "
         "embedding table; the vocabulary head",
     .other_values = "; o_proj is projection, down_proj is down",
     .value = words_at<lora_target_words, &Plan::adapters, &AdapterChoices::targets>(),
     .by_default = Default::silent,
     .read = read_lora_targets,
     .write = write_lora_targets,
     .derive = derive_lora_targets},
    {.key = "lora_dropout",
     .name = "adapters' dropout",
     .group = Group::task,
     .search = Search::result,
     .not_executed_if = lora_dropout_not_executed,
     .meaning = "Dropout on the adapters' input",
     .value = flag_at<&Plan::adapters, &AdapterChoices::dropout>(),
     .by_default = Default::silent,
     .read = read_lora_dropout,
     .write = write_lora_dropout},
    {.key = "sequence_lengths",
     .name = "packed lengths",
     .group = Group::task,
     .search = Search::question,
     .summary = Summary::stated,
     .meaning = "Lengths of the documents that are packed into each sequence, equally frequent; a "
                "token attends only to its own document",
     .default_words = "one document as long as the sequence",
     .value = {.kind = PlanValue::Kind::counts,
               .least = 1,
               .most = most_seq_len,
               .key = key_of<&Plan::batch, &BatchSizes::documents>},
     .by_default = Default::silent,
     .read = read_sequence_lengths,
     .write = write_sequence_lengths},
    {.key = "optimizer",
     .name = "optimizer",
     .group = Group::state,
     .search = Search::result,
     .summary = Summary::stated,
     .not_executed = "the optimizer Muon",
     .meaning = "adam: AdamW for all parameters; muon: Muon for the matrices of layers, AdamW for "
                "the rest",
     .value = word_at<optimizer_words, &Plan::optimizer, &OptimizerChoices::kind>()},
    {.key = "moments",
     .name = "moments",
     .group = Group::state,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .meaning = "Format of Adam's moments: that of the master weights (full), bf16, or 8 bits",
     .value = word_at<moments_words, &Plan::optimizer, &OptimizerChoices::moments>(),
     .column = "moments"},
    {.key = "paged_optimizer",
     .name = "paged optimizer",
     .group = Group::state,
     .blocks = Blocks::same,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "a paged optimizer",
     .meaning =
         "Optimizer state is in unified memory: what does not fit on the GPU is on the host, "
         "and crosses the host_link twice in every step",
     .value = flag_at<&Plan::optimizer, &OptimizerChoices::paged>()},
    {.key = "optimizer_offload_fraction",
     .name = "share of the optimizer on the host",
     .group = Group::state,
     .blocks = Blocks::same,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "an optimizer that is partly on the host",
     .meaning = "With offload=optimizer: share of the parameters whose state is on the host, which "
                "updates them after the GPU has updated the others",
     .value = {.kind = PlanValue::Kind::share,
               .write = [](const Plan& plan) { return Json(plan.offload.share); }},
     .read = read_offload_share},
    {.key = "state_precision",
     .name = "state precision",
     .group = Group::state,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed_if = state_precision_not_executed,
     .meaning = "Master weights and full moments: fp32 (full), or 16-bit weights are their own "
                "masters (pure)",
     .value = word_at<state_precision_words, &Plan::formats, &FormatChoices::state>(),
     .column = "state_precision"},
    {.key = "gradient_dtype",
     .name = "gradients",
     .group = Group::state,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .meaning = "Format in which gradients are accumulated and reduced, if not the stack's",
     .value = word_at<gradient_format_words, &Plan::formats, &FormatChoices::gradient>(),
     .column = "gradient_dtype"},
    {.key = "kbit_upcast",
     .name = "upcast next to 4-bit weights",
     .group = Group::task,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "fp32 next to 4-bit weights",
     .meaning = "Of task qlora: parameters that are not in 4 bits (norms, embeddings, head) are in "
                "fp32, and so the activations between matrices, as peft's "
                "prepare_model_for_kbit_training leaves them",
     .value = flag_at<&Plan::formats, &FormatChoices::kbit_upcast>(),
     .column = "kbit_upcast",
     .conflict = kbit_upcast_conflict},
    {.key = "fused_cross_entropy",
     .name = "fused cross-entropy",
     .group = Group::precision,
     .summary = Summary::stated,
     .not_executed_if = fused_cross_entropy_not_executed,
     .meaning = "Head and loss are computed piece by piece, so that no logits are kept",
     .value = flag_at<&Plan::kernels, &PlanKernels::fused_cross_entropy>(),
     .column = "fused_cross_entropy"},
    {.key = "tiled_mlp",
     .name = "tiles of the MLP",
     .group = Group::activations,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "an MLP computed in tiles",
     .meaning =
         "Tiles of its tokens that the MLP computes one after another; backward computes each "
         "again, so that only the MLP's input is kept",
     .value = count_at<&Plan::kernels, &PlanKernels::mlp_tiles>(1, most_mlp_tiles)},
    {.key = "low_precision_gather",
     .name = "gather in 8 bits",
     .group = Group::state,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "weights gathered in 8 bits",
     .meaning = "ZeRO gathers weights in the 8 bits of the GEMMs, and adapters' frozen weights are "
                "kept in them",
     .value = flag_at<&Plan::formats, &FormatChoices::low_precision_gather>()},
    {.key = "attention",
     .name = "attention",
     .group = Group::precision,
     .search = Search::stack,
     .summary = Summary::stated,
     .meaning = "Attention kernel, if not the one that the stack has on this GPU",
     .value = word_at<attention_kernel_words, &Plan::kernels, &PlanKernels::attention>()},
    {.key = "low_precision_attention",
     .name = "attention in 8 bits",
     .group = Group::precision,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "attention in 8 bits",
     .meaning = "The GEMMs of attention are in fp8, with casts around them",
     .value = flag_at<&Plan::formats, &FormatChoices::low_precision_attention>()},
    {.key = "low_precision_activation",
     .name = "activation inputs kept in 8 bits",
     .group = Group::precision,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "activation inputs kept in 8 bits",
     .meaning = "Inputs of gated SiLU are kept in 8 bits until backward",
     .value = flag_at<&Plan::formats, &FormatChoices::low_precision_activation>()},
    {.key = "transpose_weights",
     .name = "weights transposed in backward",
     .group = Group::precision,
     .summary = Summary::stated,
     .not_executed = "weights of 8 bits transposed in backward",
     .meaning =
         "No transposed copy of 8 bit weights is kept: Hopper transposes them in each backward",
     .value = flag_at<&Plan::formats, &FormatChoices::transpose_weights>()},
    {.key = "hadamard_pass",
     .name = "Hadamard transform in its own pass",
     .group = Group::precision,
     .search = Search::stack,
     .summary = Summary::stated,
     .not_executed = "the random Hadamard transform",
     .meaning = "nvfp4: the random Hadamard transform is a pass of its own, as up to Transformer "
                "Engine 2.13",
     .value = flag_at<&Plan::formats, &FormatChoices::hadamard_pass>()},
    {.key = "fused_amax",
     .name = "amax found by",
     .group = Group::precision,
     .search = Search::stack,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "amax found by norms and activations",
     .meaning = "Kernels that find the largest number of what they write, so that quantising it "
                "needs no pass for that",
     .value = words_at<amax_kernel_words, &Plan::formats, &FormatChoices::fused_amax>(),
     .by_default = Default::silent,
     .write = write_fused_amax},
    {.key = "start_layers_bf16",
     .name = "first layers in bf16",
     .group = Group::precision,
     .search = Search::result,
     .summary = Summary::stated,
     .not_executed = "layers left in bf16",
     .meaning = "First layers of the model that stay in bf16",
     .value = count_at<&Plan::formats, &FormatChoices::start_layers_bf16>(0, most_layers)},
    {.key = "end_layers_bf16",
     .name = "last layers in bf16",
     .group = Group::precision,
     .search = Search::result,
     .summary = Summary::stated,
     .recipe = Recipe::of_one_plan,
     .not_executed = "layers left in bf16",
     .meaning = "Last layers of the model that stay in bf16",
     .value = count_at<&Plan::formats, &FormatChoices::end_layers_bf16>(0, most_layers)},
};

}  // namespace

std::span<const PlanField> fields_of_savers() {
  return saver_rows;
}

}  // namespace orrery::models
