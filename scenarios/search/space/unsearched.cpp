#include "scenarios/search/space/unsearched.hpp"

#include <algorithm>
#include <array>

#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "scenarios/search/space/plan_values.hpp"

namespace orrery::scenarios {

namespace {

using Why = Unsearched;

constexpr std::array<UnsearchedRow, 48> left_alone{{
    {"task", Why::question},
    {"tensor_overlap", Why::stack},
    {"rank_order", Why::open},
    {"prefetch", Why::open},
    {"offload_device", Why::open},
    {"permute_fusion", Why::open},
    {"expert_gemms", Why::stack},
    {"capacity", Why::result},
    {"pad_to_capacity", Why::result},
    {"imbalance", Why::question},
    {"expert_room", Why::stack},
    {"recompute_modules", Why::open},
    {"recompute_layers", Why::open},
    {"recompute_every", Why::open},
    {"recompute_elsewhere", Why::open},
    {"offload_layers", Why::open},
    {"lora_rank", Why::result},
    {"lora_targets", Why::result},
    {"lora_dropout", Why::result},
    {"sequence_lengths", Why::question},
    {"optimizer", Why::result},
    {"moments", Why::result},
    {"paged_optimizer", Why::open},
    {"optimizer_offload_fraction", Why::open},
    {"tiled_mlp", Why::open},
    {"state_precision", Why::result},
    {"gradient_dtype", Why::result},
    {"fused_cross_entropy", Why::open},
    {"low_precision_gather", Why::result},
    {"attention", Why::stack},
    {"low_precision_attention", Why::result},
    {"low_precision_activation", Why::result},
    {"transpose_weights", Why::open},
    {"hadamard_pass", Why::stack},
    {"fused_amax", Why::stack},
    {"start_layers_bf16", Why::result},
    {"end_layers_bf16", Why::result},
    {"overlap", Why::stack},
    {"overlap_gather", Why::stack},
    {"overlap_p2p", Why::stack},
    {"deferred_head_gradients", Why::open},
    {"bucket", Why::stack},
    {"compression", Why::result},
    {"compression_share", Why::result},
    {"compression_rank", Why::result},
    {"stage_layers", Why::open},
    {"embedding_counts", Why::stack},
    {"cuda_graphs", Why::open},
}};

/// Fields that mean something only together with another one.
bool applies(std::string_view key, const PlanQuery& query, const models::Plan& plan) {
  constexpr std::string_view of_experts[] = {"permute_fusion", "capacity",    "pad_to_capacity",
                                             "imbalance",      "expert_room", "dispatcher",
                                             "expert_overlap", "expert_gemms"};
  constexpr std::string_view of_compression[] = {"compression_share", "compression_rank"};
  const auto among = [&](const auto& keys) {
    return std::ranges::find(keys, key) != std::end(keys);
  };
  if (key.starts_with("lora_")) return models::trains_adapters(plan);
  if (among(of_compression)) return plan.compression.kind != models::Compression::none;
  if (key == "optimizer_offload_fraction") return plan.offload.state == models::Offload::optimizer;
  if (key == "overlap_p2p") return plan.pipeline > 1;
  if (key == "pad_to_capacity") return plan.experts.capacity > 0;
  return usual_experts(query.model).count > 0 || !among(of_experts);
}

}  // namespace

std::string_view words_of(Unsearched why) {
  switch (why) {
    case Unsearched::question:
      return "part of the question";
    case Unsearched::result:
      return "changes what is computed, or in which format";
    case Unsearched::stack:
      return "as the stack and its recipes have it";
    case Unsearched::open:
      return "another value may be faster or need less memory";
    default:
      return "the stack's profile lists no values";
  }
}

std::span<const UnsearchedRow> unsearched_rows() {
  return left_alone;
}

std::vector<UnsearchedField> unsearched(const PlanQuery& query, const models::Plan& plan) {
  std::vector<UnsearchedField> found;
  for (const models::PlanField& field : models::plan_fields()) {
    const bool stated = std::ranges::find(query.stated, field.key) != query.stated.end();
    if (stated || !applies(field.key, query, plan)) continue;
    const auto row = std::ranges::find(left_alone, field.key, &UnsearchedRow::key);
    if (row != left_alone.end()) {
      found.push_back({field.key, value_in(field, plan), row->why});
    } else if (!is_searched(field.key, query.software)) {
      found.push_back({field.key, value_in(field, plan), Unsearched::lacking});
    }
  }
  return found;
}

}  // namespace orrery::scenarios
