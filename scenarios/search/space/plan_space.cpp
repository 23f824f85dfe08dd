#include "scenarios/search/space/plan_space.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "models/operations/blocks.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "models/plan/precision_formats.hpp"
#include "scenarios/search/plan_search.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "scenarios/search/space/plan_values.hpp"

namespace orrery::scenarios {

using models::Plan;
using models::Zero;

namespace {

/// The values of the dimensions that refine, one dimension after the other, that stack, model and
/// schedule allow and the query does not exclude.
/// legal  model and schedule allow the plan itself
std::vector<Plan> refined(const Plan& plan, const SearchBounds& bounds, bool legal) {
  const PlanQuery& query = bounds.query;
  std::vector<Plan> plans{plan};
  for (const SearchDimension& each : search_dimensions()) {
    if (!each.refines || usual_experts(query.model).count == 0) continue;
    if (!each.runs(query.software.runs) && !bounds.states(each.key)) continue;
    std::vector<Plan> further;
    for (const Plan& one : plans) {
      std::ranges::move(each.tries(one, bounds), std::back_inserter(further));
    }
    plans = std::move(further);
    legal = false;
  }
  std::erase_if(plans, [&](const Plan& each) {
    const bool runs = !is_excluded(query, each) && models::runs_experts(each, query.software.runs);
    return !runs || (!legal && !models::conflicts(each, query.model, bounds.gpus).empty());
  });
  return plans;
}

/// Whether the stack has recipes for plans with the same values of the few fields that decide it:
/// looking them up for each plan is slower than enumerating it.
class RecipeMemory {
 public:
  explicit RecipeMemory(const PlanQuery& query) : query_{query} {}

  bool has(const models::Question& question) {
    const Plan& plan = question.plan;
    const models::RecipeDegrees degrees = models::recipe_degrees(plan);
    const auto [known, fresh] =
        has_.try_emplace({degrees.tensor, degrees.pipeline, degrees.virtual_stages, degrees.context,
                          degrees.expert, static_cast<std::int64_t>(plan.recompute.kind),
                          static_cast<std::int64_t>(plan.sharding.zero)},
                         false);
    if (fresh) known->second = has_recipe(query_, question);
    return known->second;
  }

 private:
  const PlanQuery& query_;
  std::map<std::array<std::int64_t, 7>, bool> has_;
};

/// All plans of one number of nodes, dimension by dimension.
class Enumerator {
 public:
  Enumerator(const PlanQuery& query, int nodes, PlanSpace& space)
      : bounds_{query, std::int64_t{nodes} * query.cluster.node.gpus},
        nodes_{nodes},
        question_{question_of(query, {{}, nodes})},
        recipes_{query},
        space_{space} {}

  void run() { vary(first_plan(bounds_.query), search_dimensions()); }

 private:
  void vary(const Plan& plan, std::span<const SearchDimension> left) {
    if (left.empty() || left.front().refines) {
      keep(plan);
      return;
    }
    for (const Plan& each : left.front().tries(plan, bounds_)) vary(each, left.subspan(1));
  }

  void keep(const Plan& plan) {
    const auto conflicts = models::conflicts(plan, bounds_.query.model, bounds_.gpus);
    if (!conflicts.empty()) return rule_out(conflicts.front());
    question_.plan = plan;
    const bool taken = recipes_.has(question_);
    if (taken) take_recipe(bounds_.query, question_);
    std::vector<Plan> found = refined(question_.plan, bounds_, !taken);
    if (found.empty()) return rule_out({"/expert_overlap", why_no_refinement(question_.plan)});
    for (Plan& each : found) {
      note_values(each);
      space_.plans.push_back(
          {.plan = std::move(each), .nodes = nodes_, .number = space_.plans.size()});
    }
  }

  void rule_out(const models::Conflict& found) {
    ++space_.conflicting;
    std::vector<RuledOut>& all = space_.ruled_out;
    auto row = std::ranges::find(all, found.pointer, &RuledOut::pointer);
    if (row == all.end()) row = all.insert(row, {found.pointer, found.problem, 0});
    ++row->count;
  }

  std::string why_no_refinement(const Plan& plan) const {
    const models::Software& stack = bounds_.query.software;
    const std::vector<std::string> lacking = models::not_run(plan, stack.runs, stack.name);
    return lacking.empty() ? "every value is excluded" : lacking.front();
  }

  void note_values(const Plan& plan) {
    for (SearchedValues& each : space_.searched) {
      Json value = value_in(models::plan_field(each.key), plan);
      if (value.is_null() || (!each.values.empty() && each.values.back() == value)) continue;
      if (std::ranges::find(each.values, value) == each.values.end()) {
        each.values.push_back(std::move(value));
      }
    }
  }

  SearchBounds bounds_;
  int nodes_;
  models::Question question_;  // of which only the plan changes
  RecipeMemory recipes_;
  PlanSpace& space_;
};

}  // namespace

namespace {

/// The numbers of nodes that plans use, the whole cluster first.
std::vector<int> nodes_used(int nodes, Extent extent) {
  std::vector<int> counts{nodes};
  for (int unit = 2; unit <= nodes; unit *= 2) {
    const int whole = nodes - nodes % unit;
    if (whole < counts.back() && 2 * whole > nodes) counts.push_back(whole);
  }
  for (int half = nodes; extent == Extent::fewer_nodes && half % 2 == 0;) {
    half /= 2;
    counts.push_back(half);
  }
  return counts;
}

}  // namespace

PlanSpace enumerate_plans(const PlanQuery& query, Extent extent) {
  PlanSpace space;
  for (const std::string_view key : searched_keys(query)) space.searched.push_back({key, {}});
  for (const int nodes : nodes_used(query.cluster.nodes, extent)) {
    Enumerator{query, nodes, space}.run();
  }
  return space;
}

std::vector<Plan> partly_recomputed(const PlanQuery& query, const Plan& plan) {
  const models::RecomputeChoices& again = plan.recompute;
  const bool whole = again.kind == models::Recompute::full && again.layers == 0 &&
                     again.every == 1 && again.partial_micro_batches == 0;
  if (!whole || query.breadth != Breadth::full) return {};
  const auto searched = searched_keys(query);
  if (std::ranges::find(searched, recomputed_layers_key) == searched.end()) return {};
  const std::vector<std::int64_t> chunks = models::layers_per_chunk(plan, query.model);
  const std::int64_t longest = *std::ranges::max_element(chunks);
  std::vector<Plan> found;
  std::int64_t last = 0;
  for (const std::int64_t quarters : {1, 2, 3}) {
    const std::int64_t layers = (longest * quarters + 2) / 4;
    if (layers <= last || layers >= longest) continue;
    last = layers;
    Plan part = plan;
    part.recompute.layers = layers;
    if (is_excluded(query, part)) continue;
    found.push_back(std::move(part));
  }
  return found;
}

namespace {

using ModuleSet = WordSet<models::RecomputeModule>;

/// Those of the stack's modules that a layer of the model has.
std::vector<models::RecomputeModule> modules_of(const PlanQuery& query) {
  using models::RecomputeModule;
  const bool experts = usual_experts(query.model).count > 0;
  std::vector<RecomputeModule> modules = query.software.runs.recompute_modules;
  std::erase_if(modules, [&](RecomputeModule each) {
    const bool of_experts = each == RecomputeModule::activation || each == RecomputeModule::moe;
    if (of_experts || each == RecomputeModule::mlp) return of_experts != experts;
    return each == RecomputeModule::mla_up_proj && !usual_attention(query.model).latents;
  });
  return modules;
}

}  // namespace

std::vector<Plan> with_other_modules(const PlanQuery& query, const Plan& plan) {
  using models::RecomputeModule;
  const models::RecomputeChoices& again = plan.recompute;
  const bool whole = again.kind == models::Recompute::selective && again.layers == 0 &&
                     again.every == 1 && again.partial_micro_batches == 0;
  if (!whole || query.software.runs.recompute_modules.empty()) return {};
  const auto searched = searched_keys(query);
  if (std::ranges::find(searched, recomputed_modules_key) == searched.end()) return {};
  const std::vector<RecomputeModule> modules = modules_of(query);
  std::vector<Plan> found;
  for (unsigned chosen = 1; chosen < 1U << modules.size(); ++chosen) {
    ModuleSet set;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      if ((chosen >> i & 1U) != 0) set.add(modules[i]);
    }
    const bool twice = set.has(RecomputeModule::moe) && set.has(RecomputeModule::activation);
    if (twice || set == again.modules) continue;
    Plan other = plan;
    other.recompute.modules = set;
    if (!is_excluded(query, other) && models::conflicts(other, query.model, plan.gpus()).empty()) {
      found.push_back(std::move(other));
    }
  }
  return found;
}

std::optional<models::Conflict> refusal(const PlanQuery& query) {
  const std::int64_t gpus = query.cluster.gpus();
  PlanQuery open = query;
  open.fixed = {};
  for (const PlanQuery* asked : {&std::as_const(open), &query}) {
    Plan plan = first_plan(*asked);
    plan.data = gpus;
    plan.batch.global = gpus;
    // What is fixed may need values that the search finds: these are conflicts of single plans.
    const std::vector<models::Conflict> of_plan = asked == &query
                                                      ? models::conflicts(plan, query.model, gpus)
                                                      : std::vector<models::Conflict>{};
    for (models::Conflict& each :
         models::conflicts({query.model, plan, query.cluster, query.software, {}})) {
      const bool cured = std::ranges::any_of(
          of_plan, [&](const models::Conflict& own) { return own.problem == each.problem; });
      if (!cured) return std::move(each);
    }
  }
  return std::nullopt;
}

Plan first_plan(const PlanQuery& query) {
  Plan plan = query.fixed;
  plan.batch.global = query.global_batch;
  plan.batch.seq_len = query.seq_len;
  plan.formats.precision = query.precision;
  return plan;
}

namespace {

/// Lower bound of a layer's dense parameters on a rank: the least of all kinds; latent attention
/// counts as 0.
std::int64_t least_of_layer(const models::Model& model, const Plan& plan) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const models::Layer& kind : model.layers.kinds()) {
    std::int64_t own = 0;
    for (const models::LayerMatrix& each : matrices_of(kind, model.hidden)) {
      const bool cut =
          each.copies == 1 && each.name != "router" &&
          (kind.attention() == nullptr || !kind.attention()->latents ||
           each.target == models::LoraTarget::up || each.target == models::LoraTarget::down);
      if (cut) own += each.in * each.out;
    }
    least = std::min(least, own);
  }
  return least / plan.tensor;
}

/// Lower bound of the expert parameters on a rank of the stage that has most: an even share of
/// layers.
std::int64_t least_of_experts(const models::Model& model, const Plan& plan) {
  const models::ExpertsPart& experts = usual_experts(model);
  if (experts.count == 0) return 0;
  const std::int64_t expert = (experts.mlp.gated ? 3 : 2) * model.hidden * experts.mlp.width;
  const std::int64_t held =
      experts.count / plan.experts.ranks * expert / models::expert_tensor_of(plan);
  return expert_layers(model) / plan.pipeline * held;
}

}  // namespace

Bytes least_state(const PlanQuery& query, const Plan& plan, std::int64_t dense,
                  std::int64_t experts) {
  const hardware::DType storage = models::storage_dtype(plan.formats.precision);
  const hardware::DType gradient = models::gradient_dtype(plan, query.software);
  const bool on_host = plan.offload.state != models::Offload::none;
  const bool weights_on_host = plan.offload.state == models::Offload::parameters;
  const std::int64_t master = on_host || storage == models::master_dtype(plan) ? 0 : 4;
  const bool masters_alone = query.software.memory.masters_alone && !on_host &&
                             plan.sharding.zero == Zero::three && master > 0;
  const int stored = masters_alone || weights_on_host ? 0 : hardware::bits(storage);
  const auto state_of = [&](std::int64_t elements, std::int64_t replicas) {
    const auto held_from = [&](Zero stage) {
      return elements / (plan.sharding.zero >= stage ? replicas : 1);
    };
    const std::int64_t owned = held_from(Zero::one);
    Bytes sum{held_from(Zero::three) * stored / 8 +
              held_from(Zero::two) * hardware::bits(gradient) / 8 + owned * master};
    if (on_host) return sum;
    return sum + (plan.optimizer.kind == models::Optimizer::muon
                      ? models::momentum_bytes(plan, owned)
                      : models::moments_bytes(plan, owned));
  };
  const std::int64_t of_expert =
      std::max<std::int64_t>(1, plan.tensor * plan.context * plan.data /
                                    (plan.experts.ranks * models::expert_tensor_of(plan)));
  return state_of(dense, plan.replicas()) + state_of(experts, of_expert);
}

Bytes least_memory(const PlanQuery& query, const Plan& plan) {
  const models::Model& model = query.model;
  const std::int64_t layer = least_of_layer(model, plan);
  const std::int64_t vocabulary = model.hidden * model.embedding.vocab / plan.tensor;
  const std::vector<std::int64_t> chunks = models::layers_per_chunk(plan, model);
  std::vector<std::int64_t> held(static_cast<std::size_t>(plan.pipeline), 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) held[c % held.size()] += chunks[c] * layer;
  held.front() += vocabulary;
  if (plan.pipeline > 1) held.back() += vocabulary;
  const std::int64_t parameters = *std::ranges::max_element(held);

  const Bytes libraries = query.software.memory.context + query.software.memory.workspace;
  if (models::trains_adapters(plan)) {
    if (plan.offload.state == models::Offload::parameters) return libraries;
    const int wide = plan.formats.low_precision_gather
                         ? 8
                         : hardware::bits(models::storage_dtype(plan.formats.precision));
    const int bits = plan.task == models::Task::qlora ? 4 : wide;
    const std::int64_t shards = plan.sharding.zero == Zero::three ? plan.replicas() : 1;
    return Bytes{parameters / shards * bits / 8} + libraries;
  }
  // The stage with most experts may be another one than that with most dense parameters.
  return std::max(least_state(query, plan, parameters, 0),
                  least_state(query, plan, 0, least_of_experts(model, plan))) +
         libraries;
}

}  // namespace orrery::scenarios
