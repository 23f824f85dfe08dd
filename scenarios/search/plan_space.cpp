#include "scenarios/search/plan_space.hpp"

#include <algorithm>
#include <utility>

#include "scenarios/search/dimensions.hpp"

namespace orrery::scenarios {

using models::Plan;
using models::Zero;

namespace {

/// All plans of one number of nodes, dimension by dimension.
class Enumerator {
 public:
  Enumerator(const PlanQuery& query, int nodes, PlanSpace& space)
      : bounds_{query, std::int64_t{nodes} * query.cluster.node.gpus},
        nodes_{nodes},
        space_{space} {}

  void run() {
    Plan plan;
    plan.global_batch = bounds_.query.global_batch;
    plan.seq_len = bounds_.query.seq_len;
    plan.precision = bounds_.query.precision;
    vary(plan, search_dimensions());
  }

 private:
  void vary(const Plan& plan, std::span<const SearchDimension> left) {
    if (left.empty()) {
      keep(plan);
      return;
    }
    for (const Plan& each : left.front().tries(plan, bounds_)) vary(each, left.subspan(1));
  }

  void keep(const Plan& plan) {
    if (models::conflicts(plan, bounds_.query.model, bounds_.gpus).empty()) {
      space_.plans.push_back({plan, nodes_});
    } else {
      ++space_.conflicting;
    }
  }

  SearchBounds bounds_;
  int nodes_;
  PlanSpace& space_;
};

}  // namespace

PlanSpace enumerate_plans(const PlanQuery& query, Extent extent) {
  PlanSpace space;
  for (int nodes = query.cluster.nodes; nodes >= 1; nodes /= 2) {
    Enumerator{query, nodes, space}.run();
    if (extent == Extent::all_nodes || nodes % 2 != 0) break;
  }
  return space;
}

std::optional<models::Conflict> refusal(const PlanQuery& query) {
  Plan plan;
  plan.data = query.cluster.gpus();
  plan.global_batch = plan.data;
  plan.seq_len = query.seq_len;
  plan.precision = query.precision;
  std::vector<models::Conflict> found =
      models::conflicts({query.model, plan, query.cluster, query.software, {}});
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Bytes least_memory(const PlanQuery& query, const Plan& plan) {
  const models::Model& model = query.model;
  const std::int64_t queries = model.heads * model.head_dim;
  const std::int64_t keys = model.kv_heads * model.head_dim;
  const std::int64_t mlp = (model.gated_mlp ? 3 : 2) * model.ffn_hidden;
  const std::int64_t layer = model.hidden * (2 * queries + 2 * keys + mlp) / plan.tensor;
  const std::int64_t vocabulary = model.hidden * model.vocab / plan.tensor;
  const std::vector<std::int64_t> chunks = models::layers_per_chunk(plan, model);
  std::vector<std::int64_t> held(static_cast<std::size_t>(plan.pipeline), 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) held[c % held.size()] += chunks[c] * layer;
  held.front() += vocabulary;
  if (plan.pipeline > 1) held.back() += vocabulary;
  const std::int64_t parameters = *std::max_element(held.begin(), held.end());

  const hardware::DType storage = models::storage_dtype(plan.precision);
  const auto held_from = [&](Zero stage) { return plan.zero >= stage ? plan.replicas() : 1; };
  const std::int64_t states = storage == hardware::DType::fp32 ? 8 : 12;
  const hardware::DType gradient = query.software.gradient_beside(storage);
  return Bytes{parameters / held_from(Zero::three) * hardware::bits(storage) / 8 +
               parameters / held_from(Zero::two) * hardware::bits(gradient) / 8 +
               parameters / held_from(Zero::one) * states} +
         query.software.memory.context + query.software.memory.workspace;
}

}  // namespace orrery::scenarios
