// Rows of a plan's fields: reduction of gradients, layers of each chunk, and CUDA graphs.

#include <fmt/format.h>

#include "models/plan/field_groups.hpp"

namespace orrery::models {
namespace {

using Kind = PlanValue::Kind;
using Default = PlanField::Default;

constexpr std::string_view by_time = "by-time";

void read_compression_share(const Node& share, Plan& plan) {
  if (plan.compression != Compression::top_k) share.fail("applies only to compression top-k");
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
  if (plan.compression != Compression::power_sgd)
    rank.fail("applies only to compression power-sgd");
  plan.compression_rank = rank.integer(1, most_lora_rank);
}

std::string derive_compression_rank(Plan& plan, const PlanBasis&) {
  if (plan.compression != Compression::power_sgd) return {};
  return fmt::format("not stated; {} assumed (Vogels et al. 2019, for language models)",
                     plan.compression_rank);
}

Json write_compression_rank(const Plan& plan) {
  if (plan.compression != Compression::power_sgd) return nullptr;
  return plan.compression_rank;
}

void read_stage_layers(const Node& list, Plan& plan) {
  plan.layers_by_time = list.json() == by_time;
  if (plan.layers_by_time) return;
  if (!list.is_array()) list.fail_expected("a list of layers, or \"by-time\"");
  for (const Node& layers : list.elements()) {
    plan.stage_layers.push_back(layers.integer(0, most_layers));
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
  return cut ? "not stated; as even as possible" : "";
}

void read_overlap_gather(const Node& value, Plan& plan) {
  plan.overlap_gathers = value.as<bool>();
}

Json write_overlap_gather(const Plan& plan) {
  return plan.overlap_gathers ? Json(*plan.overlap_gathers) : Json();
}

constexpr PlanField gradient_rows[] = {
    {.key = "overlap",  // of gradient reductions with backward
     .name = "overlap",
     .value = flag_at(&Plan::overlap_gradients),
     .by_default = Default::reported},
    {.key = "overlap_gather",  // of parameter gathers with forward; absent: as overlap
     .name = "overlap gather",
     .value = {.kind = Kind::flag, .read = read_overlap_gather, .write = write_overlap_gather}},
    {.key = "deferred_head_gradients",  // micro-batches whose head weight gradients come last
     .name = "deferred head gradients",
     .value = count_at(&Plan::deferred_head_gradients, 0, 1 << 20)},
    {.key = "bucket",  // bytes of gradients that are reduced at once
     .name = "bucket",
     .value = {Kind::bytes},
     .by_default = Default::reported,
     .read = [](const Node& value, Plan& plan) { plan.bucket = value.as<Bytes>(); },
     .write = [](const Plan& plan) { return Json(fmt::format("{} B", plan.bucket.count())); },
     .derive = [](Plan&, const PlanBasis&) -> std::string {
       return "not stated; the software's gradient bucket assumed";
     }},
    {.key = "compression",  // of gradients; needs zero 0 and data above 1
     .name = "compression",
     .value = word_at<&Plan::compression, compression_words>()},
    {.key = "compression_share",  // of each bucket's gradients that top-k sends
     .name = "compression share",
     .value = {Kind::share},
     .by_default = Default::silent,
     .read = read_compression_share,
     .write = write_compression_share},
    {.key = "compression_rank",  // of power-sgd's factors
     .name = "compression rank",
     .value = count_at(&Plan::compression_rank, 1, most_lora_rank),
     .by_default = Default::silent,
     .read = read_compression_rank,
     .write = write_compression_rank,
     .derive = derive_compression_rank},
    {.key = "stage_layers",  // layers of each chunk, [7, 8, 8, 7]; "by-time": from predicted times
     .name = "stage layers",
     .value = {Kind::counts, 0, most_layers},
     .by_default = Default::reported,
     .read = read_stage_layers,
     .write = write_stage_layers,
     .derive = derive_stage_layers},
    {.key = "embedding_counts",  // embedding and head count as a layer each
     .name = "embedding counts",
     .value = flag_at(&Plan::embedding_counts),
     .by_default = Default::silent},
    {.key = "cuda_graphs",  // where the stack launches ahead: models/program/graph_segments.hpp
     .name = "CUDA graphs",
     .value = flag_at(&Plan::cuda_graphs)},
};

}  // namespace

std::span<const PlanField> fields_of_gradients() {
  return gradient_rows;
}

}  // namespace orrery::models
