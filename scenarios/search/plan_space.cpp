#include "scenarios/search/plan_space.hpp"

#include <algorithm>
#include <utility>

namespace orrery::scenarios {

using models::Plan;
using models::Recompute;
using models::Zero;

namespace {

constexpr std::int64_t most_micro_batch = 16;
constexpr std::int64_t most_virtual_stages = 8;
constexpr std::int64_t most_micro_batch_reduced = 4;

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

constexpr bool power_of_two(std::int64_t n) {
  return (n & (n - 1)) == 0;
}

/// Writes plans down for one number of nodes, dimension by dimension.
class Enumerator {
 public:
  Enumerator(const PlanQuery& query, int nodes, PlanSpace& space)
      : query_{query},
        full_{query.breadth == Breadth::full},
        nodes_{nodes},
        gpus_{std::int64_t{nodes} * query.cluster.node.gpus},
        space_{space} {}

  void run() {
    const models::RunnablePlans& runs = query_.software.runs;
    const std::int64_t most_tensor = runs.tensor ? query_.cluster.node.gpus : 1;
    const std::int64_t most_pipeline = runs.pipeline ? query_.model.layers : 1;
    for (const std::int64_t tensor : divisors(gpus_, most_tensor)) {
      if (query_.model.heads % tensor != 0) continue;
      for (const std::int64_t pipeline : divisors(gpus_ / tensor, most_pipeline)) {
        cut(tensor, pipeline);
      }
    }
  }

 private:
  void cut(std::int64_t tensor, std::int64_t pipeline) {
    Plan plan;
    plan.tensor = tensor;
    plan.pipeline = pipeline;
    plan.data = gpus_ / (tensor * pipeline);
    plan.global_batch = query_.global_batch;
    plan.seq_len = query_.seq_len;
    plan.precision = query_.precision;
    plan.embedding_counts = query_.software.embedding_counts && pipeline > 1;
    if (query_.global_batch % plan.data != 0) return;
    for (const std::int64_t v : virtual_stages(plan)) {
      plan.virtual_stages = v;
      plan.schedule = v > 1 ? "interleaved-1f1b" : "1f1b";
      const std::int64_t most = full_ ? most_micro_batch : most_micro_batch_reduced;
      for (const std::int64_t micro : divisors(query_.global_batch / plan.data, most)) {
        if (!full_ && !power_of_two(micro)) continue;
        plan.micro_batch = micro;
        switches(plan);
      }
    }
  }

  std::vector<std::int64_t> virtual_stages(const Plan& plan) const {
    std::vector<std::int64_t> found{1};
    for (std::int64_t v = 2; plan.pipeline > 1 && v <= most_virtual_stages; ++v) {
      if (!full_ && v != 2 && v != 4) continue;
      if (cuts_evenly(plan.pipeline * v)) found.push_back(v);
    }
    return found;
  }

  /// As many layers on every chunk, or one less on the first and the last, beside embedding and
  /// head: layers_per_chunk leaves the same either way.
  bool cuts_evenly(std::int64_t chunks) const {
    const std::int64_t layers = query_.model.layers;
    const bool alike = layers % chunks == 0 && !query_.software.embedding_counts;
    return alike || ((layers + 2) % chunks == 0 && layers + 2 >= 2 * chunks);
  }

  /// Off before on, so that of plans which tie the plainest stands first.
  std::vector<bool> tries(bool possible) const {
    if (!possible) return {false};
    return full_ ? std::vector<bool>{false, true} : std::vector<bool>{true};
  }

  /// By rising stage, so that the plainest stands first here, too.
  std::vector<Zero> shardings(const Plan& plan) const {
    if (plan.data == 1) return {Zero::none};
    const std::vector<Zero>& known = query_.software.runs.zero;
    const bool has_one = std::find(known.begin(), known.end(), Zero::one) != known.end();
    std::vector<Zero> found;
    for (const Zero each : known) {
      const bool lowered = plan.pipeline == 1 || each == Zero::none || each == Zero::one;
      const bool passed_over = !full_ && each == Zero::none && has_one;
      if (lowered && !passed_over) found.push_back(each);
    }
    return found;
  }

  void switches(Plan plan) {
    for (const bool sequence : tries(plan.tensor > 1)) {
      plan.sequence_parallel = sequence;
      for (const Zero zero : shardings(plan)) {
        plan.zero = zero;
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          plan.recompute = recompute;
          keep(plan);
        }
      }
    }
  }

  void keep(const Plan& plan) {
    if (models::conflicts(plan, query_.model, gpus_).empty()) {
      space_.plans.push_back({plan, nodes_});
    } else {
      ++space_.conflicting;
    }
  }

  const PlanQuery& query_;
  bool full_;
  int nodes_;
  std::int64_t gpus_;
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
  const auto held_from = [&](Zero stage) { return plan.zero >= stage ? plan.data : 1; };
  const std::int64_t states = storage == hardware::DType::fp32 ? 8 : 12;
  const hardware::DType gradient = query.software.gradient_beside(storage);
  return Bytes{parameters / held_from(Zero::three) * hardware::bits(storage) / 8 +
               parameters / held_from(Zero::two) * hardware::bits(gradient) / 8 +
               parameters / held_from(Zero::one) * states} +
         query.software.memory.context + query.software.memory.workspace;
}

}  // namespace orrery::scenarios
