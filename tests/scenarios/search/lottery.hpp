#pragma once
// Random legal plans of a search, and the searches that they are drawn for.

#include <algorithm>
#include <random>

#include "models/software/runnable.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {

inline PlanQuery search_query(const std::string& model, const std::string& cluster,
                              const std::string& stack, std::int64_t global_batch,
                              std::int64_t seq_len) {
  PlanQuery query = plan_query(model, cluster, global_batch, seq_len, Breadth::full);
  const Document profile = Document::from(models::software_profile(stack), "profile");
  query.software = models::read_software(profile.root());
  return query;
}

inline PlanQuery dense_search() {
  return search_query("llama3-8b", "dgx-h100 x 2", "megatron-core", 64, 8192);
}
inline PlanQuery mixture_search() {
  return search_query("qwen3-30b-a3b", "dgx-h100 x 2", "megatron-core", 64, 4096);
}
inline PlanQuery adapter_search() {
  PlanQuery query = search_query("llama3-8b", "dgx-h100", "nemo", 32, 4096);
  query.fixed.task = models::Task::lora;
  query.stated = {"task"};
  return query;
}

/// Draws plans from all values that a search lists for a field, in combinations that it does not
/// try, too: ZeRO-3 in a pipeline, any micro-batch, virtual stages that do not divide the layers.
class Lottery {
 public:
  Lottery(const PlanQuery& query, unsigned seed) : query_{query}, random_{seed} {}

  /// A legal plan: neither model nor stack nor schedule forbids it.
  models::Plan draw() {
    for (;;) {
      models::Question question = question_of(query_, {any(), query_.cluster.nodes});
      take_recipe(query_, question);
      const models::Plan& plan = question.plan;
      if (!models::not_run(plan, query_.software.runs, "").empty()) continue;
      if (models::conflicts(question).empty()) return plan;
    }
  }

 private:
  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values[random_() % values.size()];
  }

  std::int64_t divisor(std::int64_t n, std::int64_t most) {
    std::vector<std::int64_t> found;
    for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
      if (n % d == 0) found.push_back(d);
    }
    return one_of(found);
  }

  models::Plan any() {
    models::Plan plan = first_plan(query_);
    const models::Software& stack = query_.software;
    const std::int64_t gpus = query_.cluster.gpus();
    plan.tensor = divisor(gpus, query_.cluster.node.gpus);
    plan.pipeline = divisor(gpus / plan.tensor, query_.model.layers.size());
    plan.context = divisor(gpus / plan.tensor / plan.pipeline, 4);
    plan.data = gpus / plan.tensor / plan.pipeline / plan.context;
    if (plan.context > 1 && !stack.runs.context.empty()) {
      plan.context_exchange.form = one_of(stack.runs.context);
    }
    plan.sequence_parallel =
        plan.tensor > 1 && (usual_experts(query_.model).count > 0 || random_() % 2 == 0);
    plan.stages.virtual_stages = plan.pipeline > 1 ? 1 + random_() % 8 : 1;
    plan.stages.schedule = models::default_schedule(plan.stages.virtual_stages);
    plan.stages.embedding_counts = stack.embedding_counts && plan.pipeline > 1;
    plan.batch.micro = divisor(std::max<std::int64_t>(1, plan.batch.global / plan.data), 16);
    plan.sharding.zero = plan.replicas() > 1 ? one_of(stack.runs.zero) : models::Zero::none;
    plan.recompute.kind = one_of<models::Recompute>(
        {models::Recompute::none, models::Recompute::selective, models::Recompute::full});
    const std::vector<models::Plan> others = with_other_modules(query_, plan);
    if (!others.empty() && random_() % 2 == 0) plan = one_of(others);
    if (usual_experts(query_.model).count > 0) of_experts(plan);
    return plan;
  }

  void of_experts(models::Plan& plan) {
    plan.experts.ranks =
        divisor(usual_experts(query_.model).count, plan.tensor * plan.context * plan.data);
    plan.experts.tensor = random_() % 2 == 0 ? 1 : plan.tensor;
    if (!query_.software.runs.dispatchers.empty()) {
      plan.experts.dispatcher = one_of(query_.software.runs.dispatchers);
    }
    std::vector<models::ExpertOverlap> overlaps = query_.software.runs.expert_overlaps;
    overlaps.push_back(models::ExpertOverlap::none);
    plan.experts.overlap = one_of(overlaps);
  }

  const PlanQuery& query_;
  std::mt19937 random_;
};

}  // namespace orrery::scenarios
