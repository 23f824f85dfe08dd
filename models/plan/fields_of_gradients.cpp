// Rows of a plan's fields: reduction of gradients, layers of each chunk, and CUDA graphs.

#include <fmt/format.h>

#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Kind = PlanValue::Kind;
using Default = PlanField::Default;
using Blocks = PlanField::Blocks;
using Group = PlanField::Group;
using Search = PlanField::Search;
using Recipe = PlanField::Recipe;
using Summary = PlanField::Summary;

constexpr std::string_view by_time = "by-time";

void read_compression_share(const Node& share, Plan& plan) {
  if (plan.compression.kind != Compression::top_k) share.fail("applies only to compression top-k");
  plan.compression.share = share.as<double>();
  if (!(plan.compression.share > 0 && plan.compression.share <= 1)) {
    share.fail_expected("a number above 0, at most 1");
  }
}

Json write_compression_share(const Plan& plan) {
  if (plan.compression.kind != Compression::top_k) return nullptr;
  return plan.compression.share;
}

void read_compression_rank(const Node& rank, Plan& plan) {
  if (plan.compression.kind != Compression::power_sgd)
    rank.fail("applies only to compression power-sgd");
  plan.compression.rank = rank.integer(1, most_lora_rank);
}

std::string derive_compression_rank(Plan& plan, const PlanBasis&) {
  if (plan.compression.kind != Compression::power_sgd) return {};
  return fmt::format("not stated; {} assumed (Vogels et al. 2019, for language models)",
                     plan.compression.rank);
}

Json write_compression_rank(const Plan& plan) {
  if (plan.compression.kind != Compression::power_sgd) return nullptr;
  return plan.compression.rank;
}

void read_stage_layers(const Node& list, Plan& plan) {
  plan.stages.by_time = list.json() == by_time;
  if (plan.stages.by_time) return;
  if (!list.is_array()) list.fail_expected("a list of layers, or \"by-time\"");
  for (const Node& layers : list.elements()) {
    plan.stages.layers.push_back(layers.integer(0, most_layers));
  }
  if (plan.stages.layers.empty()) list.fail("is empty; leave it out for an even split");
}

Json write_stage_layers(const Plan& plan) {
  if (plan.stages.by_time) return by_time;
  if (plan.stages.layers.empty()) return nullptr;
  return plan.stages.layers;
}

std::string derive_stage_layers(Plan& plan, const PlanBasis& basis) {
  const bool cut = plan.chunks() > 1 && !basis.given.has("embedding_counts");
  return cut ? "not stated; as even as possible" : "";
}

void read_overlap_gather(const Node& value, Plan& plan) {
  plan.overlap.gathers = value.as<bool>();
}

Json write_overlap_gather(const Plan& plan) {
  return plan.overlap.gathers ? Json(*plan.overlap.gathers) : Json();
}

std::string compression_not_executed(const Plan& plan, const Model&) {
  const Compression kind = plan.compression.kind;
  if (kind == Compression::int8) return "gradients reduced in 8 bits";
  const bool keeps_rest = kind == Compression::top_k || kind == Compression::power_sgd;
  if (!keeps_rest || plan.formats.precision != Precision::fp16) return {};
  return fmt::format("compression {} in fp16 (its residual is kept under another loss scale)",
                     name(kind));
}

constexpr PlanField gradient_rows[] = {
    {.key = "overlap",
     .name = "overlap",
     .group = Group::communication,
     .search = Search::stack,
     .blocks = Blocks::same,
     .meaning = "Gradients are reduced concurrently with backward",
     .value = flag_at<&Plan::overlap, &OverlapChoices::gradients>(),
     .by_default = Default::reported},
    {.key = "overlap_gather",
     .name = "overlap gather",
     .group = Group::communication,
     .search = Search::stack,
     .blocks = Blocks::same,
     .meaning = "Parameters are gathered concurrently with forward",
     .default_words = "as overlap",
     .value = {.kind = Kind::flag},
     .read = read_overlap_gather,
     .write = write_overlap_gather},
    {.key = "overlap_p2p",
     .name = "overlap between stages",
     .group = Group::communication,
     .search = Search::stack,
     .blocks = Blocks::same,
     .recipe = Recipe::of_one_plan,
     .meaning = "Transfers between pipeline stages overlap with kernels; false: the host waits for "
                "each to arrive before it launches more",
     .default_words = "the stack's",
     .value = {.kind = Kind::flag},
     .read = [](const Node& value, Plan& plan) { plan.overlap.transfers = value.as<bool>(); },
     .write =
         [](const Plan& plan) {
           return plan.overlap.transfers ? Json(*plan.overlap.transfers) : Json();
         }},
    {.key = "deferred_head_gradients",
     .name = "deferred head gradients",
     .group = Group::communication,
     .blocks = Blocks::same,
     .recipe = Recipe::of_one_plan,
     .meaning = "Micro-batches whose weight gradients of the head wait until the last stage would "
                "be idle (Megatron-Core's defer_embedding_wgrad_compute)",
     .value = count_at<&Plan::stages, &StageChoices::deferred_head_gradients>(0, 1 << 20)},
    {.key = "bucket",
     .name = "bucket",
     .group = Group::communication,
     .search = Search::stack,
     .blocks = Blocks::same,
     .meaning = "Bytes of gradients that are reduced at once",
     .default_words = "the stack's",
     .value = {Kind::bytes},
     .by_default = Default::reported,
     .read = [](const Node& value, Plan& plan) { plan.sharding.bucket = value.as<Bytes>(); },
     .write =
         [](const Plan& plan) { return Json(fmt::format("{} B", plan.sharding.bucket.count())); },
     .derive = [](Plan&, const PlanBasis&) -> std::string {
       return "not stated; the software's gradient bucket assumed";
     }},
    {.key = "compression",
     .name = "compression",
     .group = Group::communication,
     .search = Search::result,
     .blocks = Blocks::same,
     .summary = Summary::stated,
     .not_executed_if = compression_not_executed,
     .meaning = "Compression of the gradients that replicas reduce; needs zero 0",
     .value = word_at<compression_words, &Plan::compression, &CompressionChoices::kind>()},
    {.key = "compression_share",
     .name = "compression share",
     .group = Group::communication,
     .search = Search::result,
     .blocks = Blocks::same,
     .meaning = "Of compression top-k: share of a bucket's gradients that is sent",
     .value = {.kind = Kind::share,
               .write = [](const Plan& plan) { return Json(plan.compression.share); }},
     .by_default = Default::silent,
     .read = read_compression_share,
     .write = write_compression_share},
    {.key = "compression_rank",
     .name = "compression rank",
     .group = Group::communication,
     .search = Search::result,
     .blocks = Blocks::same,
     .meaning = "Of compression power-sgd: rank of the two factors",
     .value = count_at<&Plan::compression, &CompressionChoices::rank>(1, most_lora_rank),
     .by_default = Default::silent,
     .read = read_compression_rank,
     .write = write_compression_rank,
     .derive = derive_compression_rank},
    {.key = "stage_layers",
     .name = "stage layers",
     .group = Group::parallelism,
     .blocks = Blocks::same,
     .recipe = Recipe::of_one_plan,
     .meaning = "Layers of each chunk, as in 7:8:8:7",
     .other_values = "; or by-time: cut by predicted times",
     .default_words = "as even as possible",
     .value = {Kind::counts, 0, most_layers},
     .by_default = Default::reported,
     .read = read_stage_layers,
     .write = write_stage_layers,
     .derive = derive_stage_layers},
    {.key = "embedding_counts",
     .name = "embedding counts",
     .group = Group::parallelism,
     .search = Search::stack,
     .blocks = Blocks::same,
     .recipe = Recipe::of_one_plan,
     .meaning = "Embedding and head count as a layer each when layers are divided into chunks",
     .default_words = "false, or the stack's",
     .value = flag_at<&Plan::stages, &StageChoices::embedding_counts>(),
     .by_default = Default::silent},
    {.key = "cuda_graphs",
     .name = "CUDA graphs",
     .group = Group::precision,
     .recipe = Recipe::of_one_plan,
     .meaning = "Kernels of a block are launched as CUDA graphs, where the stack launches ahead",
     .value = flag_at<&Plan::kernels, &PlanKernels::graphs>()},
};

}  // namespace

std::span<const PlanField> fields_of_gradients() {
  return gradient_rows;
}

}  // namespace orrery::models
