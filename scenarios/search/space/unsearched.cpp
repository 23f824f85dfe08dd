#include "scenarios/search/space/unsearched.hpp"

#include <algorithm>
#include <array>

#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "scenarios/search/space/plan_values.hpp"

namespace orrery::scenarios {

namespace {

/// Of a field that a search tries: the stack's profile lists no values.
Unsearched why_unsearched(const models::PlanField& field) {
  using Search = models::PlanField::Search;
  switch (field.search) {
    case Search::question:
      return Unsearched::question;
    case Search::result:
      return Unsearched::result;
    case Search::stack:
      return Unsearched::stack;
    case Search::open:
      return Unsearched::open;
    default:
      return Unsearched::lacking;
  }
}

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

std::vector<UnsearchedField> unsearched(const PlanQuery& query, const models::Plan& plan) {
  std::vector<UnsearchedField> found;
  const std::vector<std::string_view> searched = searched_keys(query);
  for (const models::PlanField& field : models::plan_fields()) {
    const bool stated = std::ranges::find(query.stated, field.key) != query.stated.end();
    if (stated || !applies(field.key, query, plan)) continue;
    if (field.search == models::PlanField::Search::open &&
        std::ranges::find(searched, field.key) != searched.end()) {
      continue;
    }
    const Unsearched why = why_unsearched(field);
    if (why != Unsearched::lacking || !is_searched(field.key, query.software)) {
      found.push_back({field.key, value_in(field, plan), why});
    }
  }
  return found;
}

}  // namespace orrery::scenarios
