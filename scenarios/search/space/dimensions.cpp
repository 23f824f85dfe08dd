#include "scenarios/search/space/dimensions.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "models/plan/derived.hpp"
#include "models/prediction/fused_attention.hpp"
#include "scenarios/search/space/plan_values.hpp"

namespace orrery::scenarios {

using models::BatchSizes;
using models::ContextExchange;
using models::ExpertChoices;
using models::Plan;
using models::RecomputeChoices;
using models::RunnablePlans;
using models::ShardingChoices;
using models::StageChoices;
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

/// Copies of the plan, one with each value of a field.
template <auto... path>
std::vector<Plan> with_each(const Plan& plan,
                            const std::vector<models::MemberAt<path...>>& values) {
  std::vector<Plan> plans(values.size(), plan);
  for (std::size_t i = 0; i < values.size(); ++i) models::member_at<path...>(plans[i]) = values[i];
  return plans;
}

bool has_tensor(const RunnablePlans& stack) {
  return stack.tensor;
}
bool has_pipeline(const RunnablePlans& stack) {
  return stack.pipeline;
}

bool has_context(const RunnablePlans& stack) {
  return !stack.context.empty();
}

/// Tensor degrees up to the GPUs of a node that divide the heads.
std::vector<Plan> tensors(const Plan& plan, const SearchBounds& bounds) {
  const PlanQuery& query = bounds.query;
  std::vector<std::int64_t> degrees =
      divisors(bounds.gpus, has_tensor(query.software.runs) ? query.cluster.node.gpus : 1);
  std::erase_if(degrees, [&](std::int64_t each) {
    return query.model.layers.any([&](const models::Layer& layer) {
      return layer.attention() != nullptr && layer.attention()->heads % each != 0;
    });
  });
  degrees = bounds.fixed_or<&Plan::tensor>("tensor", degrees);
  std::erase_if(degrees, [&](std::int64_t each) { return bounds.gpus % each != 0; });
  return with_each<&Plan::tensor>(plan, degrees);
}

/// Context parallelism over `ranks` in each form that the stack runs; if reduced, the first that
/// applies.
std::vector<Plan> forms_of(const Plan& plan, std::int64_t ranks, const SearchBounds& bounds) {
  const PlanQuery& query = bounds.query;
  const std::int64_t in_node = query.cluster.node.gpus / plan.tensor;
  std::vector<Plan> found;
  for (const models::ContextForm form :
       bounds.fixed_or<&Plan::context_exchange, &ContextExchange::form>(
           "context_form", query.software.runs.context)) {
    Plan each = plan;
    each.context = ranks;
    each.context_exchange.form = form;
    const bool grouped = form == models::ContextForm::hierarchical;
    if (!bounds.states("context_heads")) each.context_exchange.heads = grouped ? in_node : 1;
    if (grouped && (in_node < 2 || ranks <= in_node || ranks % in_node != 0)) continue;
    const bool windows = query.model.layers.any([](const models::Layer& layer) {
      return layer.attention() != nullptr && layer.attention()->window > 0;
    });
    if (windows && form != models::ContextForm::ulysses) continue;
    found.push_back(each);
    if (!bounds.full()) break;
  }
  return found;
}

/// Context degrees in powers of two, for long causal sequences, as long as each rank's pieces are
/// long enough for attention kernels. None where the stack has no fused kernel.
std::vector<Plan> contexts(const Plan& plan, const SearchBounds& bounds) {
  const PlanQuery& query = bounds.query;
  constexpr std::int64_t shortest_piece = 1024, shortest_sequence = 8192;
  if (bounds.states("context")) {
    if (bounds.gpus / plan.tensor % query.fixed.context != 0) return {};
    return query.fixed.context == 1 ? std::vector<Plan>{plan}
                                    : forms_of(plan, query.fixed.context, bounds);
  }
  std::vector<Plan> plans{plan};
  const bool has =
      has_context(query.software.runs) && query.model.causal && query.seq_len >= shortest_sequence;
  const bool attends = models::attends_over_context(query.software, query.cluster.gpu(),
                                                    query.precision, plan.kernels.attention);
  if (!has || !attends) return plans;
  for (std::int64_t ranks = 2; ranks * 2 * shortest_piece <= query.seq_len; ranks *= 2) {
    if (bounds.gpus / plan.tensor % ranks != 0) break;
    const std::vector<Plan> forms = forms_of(plan, ranks, bounds);
    plans.insert(plans.end(), forms.begin(), forms.end());
  }
  return plans;
}

/// Every divisor as the pipeline degree; the remaining GPUs are data parallel, if they divide the
/// batch.
std::vector<Plan> pipelines(const Plan& plan, const SearchBounds& bounds) {
  const PlanQuery& query = bounds.query;
  const std::int64_t most = has_pipeline(query.software.runs) ? query.model.layers.size() : 1;
  const std::int64_t ranks = bounds.gpus / (plan.tensor * plan.context);
  std::vector<std::int64_t> degrees =
      bounds.fixed_or<&Plan::pipeline>("pipeline", divisors(ranks, most));
  std::erase_if(degrees, [&](std::int64_t each) { return ranks % each != 0; });
  std::vector<Plan> plans = with_each<&Plan::pipeline>(plan, degrees);
  const bool cut = bounds.states("embedding_counts") || bounds.states("stage_layers");
  for (Plan& each : plans) {
    each.data = ranks / each.pipeline;
    if (!cut) each.stages.embedding_counts = query.software.embedding_counts && each.pipeline > 1;
  }
  std::erase_if(plans, [&](const Plan& each) {
    const bool other = bounds.states("data") && each.data != query.fixed.data;
    return other || each.batch.global % each.data != 0;
  });
  return plans;
}

/// Whether layers divide evenly over the chunks, or do so with embedding and head counted as one
/// layer each, so that the first and the last chunk have one less (as layers_per_chunk does).
bool cuts_evenly(const PlanQuery& query, std::int64_t chunks) {
  const std::int64_t layers = query.model.layers.size();
  const bool alike = layers % chunks == 0 && !query.software.embedding_counts;
  return alike || ((layers + 2) % chunks == 0 && layers + 2 >= 2 * chunks);
}

std::vector<Plan> virtual_stages(const Plan& plan, const SearchBounds& bounds) {
  std::vector<std::int64_t> counts{1};
  for (std::int64_t v = 2; plan.pipeline > 1 && v <= most_virtual_stages; ++v) {
    if (!bounds.full() && v != 2 && v != 4) continue;
    if (cuts_evenly(bounds.query, plan.pipeline * v)) counts.push_back(v);
  }
  counts = bounds.fixed_or<&Plan::stages, &StageChoices::virtual_stages>("virtual_stages", counts);
  std::vector<Plan> plans = with_each<&Plan::stages, &StageChoices::virtual_stages>(plan, counts);
  for (Plan& each : plans)
    each.stages.schedule = models::default_schedule(each.stages.virtual_stages);
  return plans;
}

bool has_schedules(const RunnablePlans& stack) {
  return !stack.schedules.empty();
}

/// The usual schedule, and those of the stack for this number of chunks per stage.
std::vector<Plan> schedules(const Plan& plan, const SearchBounds& bounds) {
  if (bounds.states("schedule"))
    return with_each<&Plan::stages, &StageChoices::schedule>(plan,
                                                             {bounds.query.fixed.stages.schedule});
  std::vector<Plan> plans{plan};
  for (const std::string& name : bounds.query.software.runs.schedules) {
    const models::Schedule& row = models::builtin_schedules().at(name);
    const bool one = row.chunks == models::ChunksPerStage::one;
    if (plan.pipeline == 1 || one != (plan.stages.virtual_stages == 1)) continue;
    Plan other = plan;
    other.stages.schedule = name;
    if (!row.unmet || row.unmet(other.shape()).empty()) plans.push_back(other);
  }
  return plans;
}

std::vector<Plan> micro_batches(const Plan& plan, const SearchBounds& bounds) {
  // A sample of a list of operations is one "token": as many as there are may share a kernel.
  const std::int64_t each_rank = plan.batch.global / plan.data;
  const std::int64_t most = bounds.query.model.list ? each_rank
                            : bounds.full()         ? most_micro_batch
                                                    : most_micro_batch_reduced;
  std::vector<std::int64_t> sizes = divisors(each_rank, most);
  std::erase_if(sizes, [&](std::int64_t each) { return !bounds.full() && !power_of_two(each); });
  return with_each<&Plan::batch, &BatchSizes::micro>(
      plan, bounds.fixed_or<&Plan::batch, &BatchSizes::micro>("micro_batch", sizes));
}

/// On and off; if reduced, on wherever there is tensor parallelism.
std::vector<Plan> sequence_parallelism(const Plan& plan, const SearchBounds& bounds) {
  if (plan.tensor == 1 && !bounds.states("sequence")) return {plan};
  const std::vector<bool> tried =
      bounds.full() ? std::vector<bool>{false, true} : std::vector<bool>{true};
  return with_each<&Plan::sequence_parallel>(
      plan, bounds.fixed_or<&Plan::sequence_parallel>("sequence", tried));
}

/// The stack's ZeRO stages in rising order; stages 2 and 3 in a pipeline only where the stack has
/// them there.
std::vector<Plan> shardings(const Plan& plan, const SearchBounds& bounds) {
  if (bounds.states("zero"))
    return with_each<&Plan::sharding, &ShardingChoices::zero>(plan,
                                                              {bounds.query.fixed.sharding.zero});
  if (plan.replicas() == 1)
    return with_each<&Plan::sharding, &ShardingChoices::zero>(plan, {Zero::none});
  const std::vector<Zero>& known = bounds.query.software.runs.zero;
  const bool has_one = std::ranges::find(known, Zero::one) != known.end();
  const bool sharded_pipelines = bounds.full() && bounds.query.software.runs.shards_in_pipelines;
  std::vector<Zero> found;
  for (const Zero each : known) {
    const bool lowered =
        plan.pipeline == 1 || sharded_pipelines || each == Zero::none || each == Zero::one;
    const bool passed_over = !bounds.full() && each == Zero::none && has_one;
    if (lowered && !passed_over) found.push_back(each);
  }
  return with_each<&Plan::sharding, &ShardingChoices::zero>(plan, found);
}

bool has_sharded_weights(const RunnablePlans& stack) {
  return std::ranges::find(stack.zero, Zero::three) != stack.zero.end();
}

/// HSDP: state sharded over all replicas, or over those of a node with copies on the others.
std::vector<Plan> data_shards(const Plan& plan, const SearchBounds& bounds) {
  std::vector<std::int64_t> tried{0};
  const std::int64_t in_node = bounds.query.cluster.node.gpus /
                               std::gcd(bounds.query.cluster.node.gpus, plan.tensor * plan.context);
  const bool several = in_node > 1 && plan.data > in_node && plan.data % in_node == 0;
  if (bounds.full() && plan.sharding.zero == Zero::three && several) tried.push_back(in_node);
  return with_each<&Plan::sharding, &ShardingChoices::ranks>(
      plan, bounds.fixed_or<&Plan::sharding, &ShardingChoices::ranks>("data_shard", tried));
}

/// ZeRO-3: weights gathered again in backward, or kept from forward.
std::vector<Plan> resharding(const Plan& plan, const SearchBounds& bounds) {
  std::vector<bool> tried{true};
  if (bounds.full() && plan.sharding.zero == Zero::three) tried.push_back(false);
  return with_each<&Plan::sharding, &ShardingChoices::reshard>(
      plan, bounds.fixed_or<&Plan::sharding, &ShardingChoices::reshard>("reshard", tried));
}

/// Optimizer state on the host where weights, gradients and state alone do not fit on the GPU, and
/// under ZeRO-3 also the shards of parameters where the rest does not either: elsewhere the GPU's
/// update is faster, and weights need no copies.
std::vector<Plan> offloads(const Plan& plan, const SearchBounds& bounds) {
  using models::Offload;
  std::vector<Offload> tried{Offload::none};
  const hardware::Gpu& gpu = bounds.query.cluster.gpu();
  const bool can = bounds.full() && gpu.host_link.count() > 0 && plan.sharding.zero != Zero::none &&
                   !models::trains_adapters(plan) &&
                   plan.optimizer.moments == models::Moments::full;
  if (can && least_memory(bounds.query, plan) > gpu.memory) {
    tried.push_back(Offload::optimizer);
    Plan on_host = plan;
    on_host.offload.state = Offload::optimizer;
    const bool more = least_memory(bounds.query, on_host) > gpu.memory;
    if (more && plan.sharding.zero == Zero::three) tried.push_back(Offload::parameters);
  }
  return with_each<&Plan::offload, &models::OffloadChoices::state>(
      plan, bounds.fixed_or<&Plan::offload, &models::OffloadChoices::state>("offload", tried));
}

/// Expert-parallel degrees: divisors of the experts that divide a stage's ranks; if reduced, powers
/// of two.
std::vector<Plan> experts(const Plan& plan, const SearchBounds& bounds) {
  if (bounds.states("expert"))
    return with_each<&Plan::experts, &ExpertChoices::ranks>(plan,
                                                            {bounds.query.fixed.experts.ranks});
  if (usual_experts(bounds.query.model).count == 0) return {plan};
  const std::int64_t ranks = plan.tensor * plan.context * plan.data;
  std::vector<std::int64_t> degrees = divisors(usual_experts(bounds.query.model).count, ranks);
  std::erase_if(degrees, [&](std::int64_t each) {
    return ranks % each != 0 || (!bounds.full() && !power_of_two(each));
  });
  return with_each<&Plan::experts, &ExpertChoices::ranks>(plan, degrees);
}

/// Expert tensor parallelism: none, or the tensor degree of the dense layers.
std::vector<Plan> expert_cuts(const Plan& plan, const SearchBounds& bounds) {
  if (bounds.states("expert_tensor")) {
    return with_each<&Plan::experts, &ExpertChoices::tensor>(plan,
                                                             {bounds.query.fixed.experts.tensor});
  }
  if (usual_experts(bounds.query.model).count == 0) return {plan};
  std::vector<std::int64_t> degrees{1};
  const bool fits = plan.context * plan.data % plan.experts.ranks == 0;
  if (plan.tensor > 1 && fits) degrees.push_back(plan.tensor);
  return with_each<&Plan::experts, &ExpertChoices::tensor>(plan, degrees);
}

std::vector<Plan> recomputations(const Plan& plan, const SearchBounds& bounds) {
  using models::Recompute;
  return with_each<&Plan::recompute, &RecomputeChoices::kind>(
      plan, bounds.fixed_or<&Plan::recompute, &RecomputeChoices::kind>(
                "recompute", {Recompute::none, Recompute::selective, Recompute::full}));
}

bool has_dispatchers(const RunnablePlans& stack) {
  return !stack.dispatchers.empty();
}

/// The stack's dispatchers; of those that the cost model prices alike, which are all but alltoall,
/// the first.
std::vector<Plan> dispatchers(const Plan& plan, const SearchBounds& bounds) {
  using models::Dispatcher;
  std::vector<Dispatcher> tried;
  for (const Dispatcher each : bounds.query.software.runs.dispatchers) {
    const bool alike =
        each != Dispatcher::all_to_all && !tried.empty() && tried.back() != Dispatcher::all_to_all;
    Plan other = plan;
    other.experts.dispatcher = each;
    if (!alike && !is_excluded(bounds.query, other)) tried.push_back(each);
  }
  if (plan.experts.ranks == 1) tried = {plan.experts.dispatcher};
  return with_each<&Plan::experts, &ExpertChoices::dispatcher>(
      plan, bounds.fixed_or<&Plan::experts, &ExpertChoices::dispatcher>("dispatcher", tried));
}

bool has_expert_overlaps(const RunnablePlans& stack) {
  return !stack.expert_overlaps.empty();
}

/// No overlap of the experts' all-to-alls, and those of the stack.
std::vector<Plan> expert_overlaps(const Plan& plan, const SearchBounds& bounds) {
  using models::ExpertOverlap;
  std::vector<ExpertOverlap> tried{ExpertOverlap::none};
  for (const ExpertOverlap each : bounds.query.software.runs.expert_overlaps) {
    const bool without =
        each == ExpertOverlap::shared && usual_experts(bounds.query.model).shared_width == 0;
    if (plan.experts.ranks > 1 && !without) tried.push_back(each);
  }
  return with_each<&Plan::experts, &ExpertChoices::overlap>(
      plan, bounds.fixed_or<&Plan::experts, &ExpertChoices::overlap>("expert_overlap", tried));
}

constexpr std::array<SearchDimension, 16> dimensions{{
    {"tensor", "tensor within a node", tensors, has_tensor},
    {"context", "context of 8,192 tokens and more", contexts, has_context},
    {"pipeline", "pipeline", pipelines, has_pipeline},
    {"virtual_stages", "virtual stages", virtual_stages, has_pipeline},
    {"micro_batch", "micro-batch", micro_batches},
    {"schedule", "schedule", schedules, has_schedules},
    {"sequence", "sequence parallelism", sequence_parallelism, has_tensor},
    {"zero", "ZeRO", shardings},
    {"data_shard", "shards inside a node (HSDP)", data_shards, has_sharded_weights},
    {"reshard", "resharding after forward", resharding, has_sharded_weights},
    {"expert", "experts over ranks", experts},
    {"expert_tensor", "each expert over ranks", expert_cuts},
    {"offload", "state on the host", offloads},
    {"recompute", "recomputation", recomputations},
    {"dispatcher", "dispatchers of experts", dispatchers, has_dispatchers, true},
    {"expert_overlap", "overlap of experts' all-to-alls", expert_overlaps, has_expert_overlaps,
     true},
}};

}  // namespace

std::span<const SearchDimension> search_dimensions() {
  return dimensions;
}

std::vector<std::string_view> searched_keys(const PlanQuery& query) {
  std::vector<std::string_view> keys;
  for (const SearchDimension& each : dimensions) {
    const bool lacking =
        each.refines && (usual_experts(query.model).count == 0 || !each.runs(query.software.runs));
    if (lacking) continue;
    keys.push_back(each.key);
    if (each.key == "context") keys.emplace_back("context_form");
    if (each.key == "pipeline") keys.emplace_back("data");
  }
  const SearchBounds bounds{query};
  const bool stated = bounds.states("recompute_layers") || bounds.states("recompute_every");
  if (bounds.full() && !stated && !query.model.list) keys.push_back(recomputed_layers_key);
  const bool modules = !query.software.runs.recompute_modules.empty();
  if (bounds.full() && modules && !bounds.states(recomputed_modules_key) && !query.model.list) {
    keys.push_back(recomputed_modules_key);
  }
  return keys;
}

bool SearchBounds::states(std::string_view key) const {
  return std::ranges::find(query.stated, key) != query.stated.end();
}

bool is_searched(std::string_view key, const models::Software& software) {
  // What recipes must not decide.
  if (key == "stage_layers" || key == "embedding_counts") return true;
  const auto dimensions = search_dimensions();
  const auto row = std::ranges::find(dimensions, key, &SearchDimension::key);
  if (row != dimensions.end()) return !row->refines || row->runs(software.runs);
  // The rest of the mesh, and flags.
  return models::plan_field(key).search == models::PlanField::Search::tried;
}

}  // namespace orrery::scenarios
