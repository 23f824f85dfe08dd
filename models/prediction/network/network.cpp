#include "models/prediction/network/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "models/evaluation/step_times.hpp"
#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/inside_links.hpp"
#include "models/prediction/limits.hpp"
#include "models/prediction/network/network_jobs.hpp"
#include "models/prediction/network/network_losses.hpp"
#include "models/prediction/network/network_phases.hpp"
#include "models/prediction/prediction.hpp"
#include "models/pricing/price.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {

namespace {

/// Why traffic on this cluster cannot be evaluated by events; nullopt if it can.
std::optional<std::string> no_events(const Question& question) {
  const hardware::Cluster& cluster = question.cluster;
  if (cluster.fabric.kind == hardware::FabricKind::none || cluster.node.nics == 0) {
    return "the cluster has no network between nodes";
  }
  if (cluster.fabric.routing == hardware::Routing::adaptive) {
    return "adaptive routing is not simulated; 'spray' is its idealised form";
  }
  return std::nullopt;
}

/// Time of the step as if nothing shared a link.
Time alone_step(const Traffic& traffic, const NetworkSite& site) {
  if (traffic.as_priced) return evaluate_maps(*traffic.priced).step;
  return evaluate_network(traffic_alone(*traffic.priced, site)).times.step;
}

/// Time of the step without the other jobs.
Time step_without_jobs(const PricedProgram& priced, NetworkSite site) {
  site.others.clear();
  const Traffic traffic = traffic_of(priced, site);
  return traffic.maps_exact ? evaluate_maps(priced).step : evaluate_network(traffic).times.step;
}

/// Adds to the prices what ranks wait because kernel times vary.
void vary_kernels(const Question& question, Prediction& result) {
  const std::optional<KernelJitter>& jitter = question.network.jitter;
  if (!jitter) return;
  const Time steady = evaluate_maps(result.priced).step;
  add_jitter(result.priced, *jitter);
  require_exact_times(result.priced);
  result.network.jitter = evaluate_maps(result.priced).step - steady;
  result.assumptions.push_back(
      fmt::format("/perturbations: kernel times vary independently, {} with a standard deviation "
                  "of {}; per step, ranks wait {} on average for the slowest rank that they "
                  "synchronise with; pipeline stages are assumed to add no further wait",
                  word_of(jitter_words, jitter->distribution), format(jitter->deviation),
                  format(result.network.jitter)));
}

void add_static_times(const Question& question, Prediction& result, std::string why) {
  result.priced =
      price_program(*result.program, question.cluster, question.software, result.assumptions,
                    {.order = question.network.order.axes, .nccl = question.network.tuner()});
  require_exact_times(result.priced);
  vary_kernels(question, result);
  result.times = evaluate_maps(result.priced);
  result.network.why = std::move(why);
  result.network.rank_classes = result.program->classes.size();
}

/// What the other jobs that share links with ours cost it, and ours them.
void add_jobs(const Question& question, const NetworkSite& site, const Traffic& traffic,
              const NetworkTimes& times, Prediction& result) {
  if (traffic.others.empty()) return;
  NetworkAnswer& found = result.network;
  if (found.phases.steps.empty()) {
    found.from_jobs = times.times.step - step_without_jobs(result.priced, site);
  }
  for (std::size_t i = 0; i < traffic.others.size(); ++i) {
    const std::vector<Time>& ends = times.other_steps[i];
    const std::size_t number = traffic.other_of_site[i];
    JobAnswer& job = found.jobs[number];
    job.shares_links = true;
    if (ends.empty()) continue;
    job.step = with_unexplained(Time{ends.back().count() / std::ssize(ends)},
                                question.network.jobs[number].question->software);
  }
  result.assumptions.push_back(
      "/jobs: their first steps begin together with this job's step, and further ones follow "
      "without a gap; the contention depends on that");
}

/// Times of the step, and what sharing links cost it: in lockstep, or of the phases asked for.
NetworkTimes times_of(const LaunchPhases& phases, const Traffic& traffic, const NetworkSite& site,
                      Prediction& result) {
  if (phases.count == 0) {
    NetworkTimes times = evaluate_network(traffic);
    result.network.contention = times.times.step - alone_step(traffic, site);
    return times;
  }
  result.assumptions.push_back(
      fmt::format("/network/phases: {} samples with seed {}; in each, transfers and collectives "
                  "between nodes are launched later by random exponential delays of {} on average",
                  phases.count, phases.seed, format(phases.delay)));
  return evaluate_phases(phases, traffic, site, result.network);
}

void evaluate_traffic(const Question& question, const NamedLinks& named, const NetworkSite& site,
                      Prediction& result) {
  const LaunchPhases& phases = question.network.phases;
  const Folding folding = phases.count > 0 ? Folding::always : Folding::classes;
  const Traffic traffic = traffic_of(result.priced, site, folding);
  NetworkAnswer& found = result.network;
  if (traffic.maps_exact && phases.count == 0) {
    result.times = evaluate_maps(result.priced);
    found.evaluation = "maps";
    found.why = fmt::format("none of {} links can be saturated", traffic.links);
    found.rank_classes = result.program->classes.size();
    return;
  }
  result.assumptions.push_back(
      "/network: each ring, tree and message has one flow per NCCL channel on its NICs, each with "
      "its own queue pair; the part of a collective that a stack hides before or after its exposed "
      "part causes no contention");
  const NetworkTimes times = times_of(phases, traffic, site, result);
  result.times = times.times;
  found.evaluation = "events";
  found.why = fmt::format("{} of {} links can be saturated ({} kinds); {} transfers shared them",
                          traffic.contended_links, traffic.links, traffic.link_classes.size(),
                          times.transmissions);
  found.links = links_of(named, traffic, times);
  found.losses = losses_of(traffic, times);
  found.rank_classes = traffic.ranks.size();
  add_jobs(question, site, traffic, times, result);
}

/// Evaluates the step with shared links. Returns why it cannot be simulated, or nullopt.
std::optional<std::string> evaluate_shared(const Question& question, Prediction& result) {
  const auto fabric = std::make_shared<const FabricGraph>(question.cluster);
  NetworkSite site = site_of(question, fabric);
  const std::vector<PricedJob> jobs = priced_jobs(question);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    site.others[i].priced = &jobs[i].priced;
    const auto refused = not_simulated(jobs[i].priced, site_of_other(site, i));
    if (refused) return fmt::format("{}: {}", question.network.jobs[i].pointer, *refused);
  }
  if (auto refused = not_simulated(result.priced, site)) return refused;
  if (!jobs.empty()) {
    result.network.jobs = answers_of_jobs(question, site, evaluate_maps(result.priced).step);
  }
  evaluate_traffic(question, {*fabric, {question.cluster, fabric->links()}}, site, result);
  return std::nullopt;
}

/// Do experts have ranks or replicas other than those of the dense layers?
bool folds_experts(const Program& program) {
  const auto of_experts = [&](std::uint16_t communicator) {
    const AxisSet along = program.communicators.at(communicator).axes;
    return along.has(MeshAxis::expert) || along.has(MeshAxis::expert_data);
  };
  const Mesh& mesh = program.mesh;
  return mesh.degree(MeshAxis::expert) > 1 ||
         mesh.degree(MeshAxis::expert_tensor) != mesh.degree(MeshAxis::tensor) ||
         std::ranges::any_of(program.collectives, [&](const JointCollective& joint) {
           return of_experts(joint.communicator);
         });
}

/// Source  Megatron-LM, parallel_state.py: an order ends with pp, or experts' data-parallel ranks
/// are as many as the data-parallel ones
void refuse_order(const NetworkRequest& asked, const Program& program) {
  if (asked.order.axes.keeps_stages(program.mesh) || !folds_experts(program)) return;
  throw InputError{asked.place("/placement/order"),
                   "with experts over several ranks, pp must be last, or experts need as many "
                   "ranks as tensor x context"};
}

/// Why a step is evaluated without shared links; nullopt where they are asked for.
std::optional<std::string> why_static(const NetworkRequest& asked) {
  if (asked.mode == NetworkMode::fixed) return "as requested";
  if (asked.mode == NetworkMode::events || asked.prefers_events()) return std::nullopt;
  return "no placement, perturbation or other job is stated, and events were not requested";
}

/// Prices transfers alone and evaluates them on shared links. Returns why they cannot be simulated,
/// or nullopt.
std::optional<std::string> add_shared_times(const Question& question, Prediction& result) {
  if (auto refused = no_events(question)) return refused;
  const auto begin = std::chrono::steady_clock::now();
  result.priced =
      price_program(*result.program, question.cluster, question.software, result.assumptions,
                    {.sharing = LinkSharing::alone,
                     .order = question.network.order.axes,
                     .nccl = question.network.tuner()});
  require_exact_times(result.priced);
  vary_kernels(question, result);
  if (auto refused = evaluate_shared(question, result)) return refused;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  result.network.seconds = taken.count();
  return std::nullopt;
}

bool same_times(const std::vector<PricedOperation>& a, const std::vector<PricedOperation>& b) {
  return std::ranges::equal(a, b, [](const PricedOperation& one, const PricedOperation& other) {
    return one.launch == other.launch && one.duration == other.duration && one.lead == other.lead &&
           one.trail == other.trail;
  });
}

/// Does all that evaluate_maps reads of two prices of one Program by the same stack agree?
bool same_times(const PricedProgram& a, const PricedProgram& b) {
  return a.channels == b.channels && a.carried == b.carried && a.bound.time == b.bound.time &&
         a.transfer_launch == b.transfer_launch && a.step_launch == b.step_launch &&
         same_times(a.collectives, b.collectives) &&
         std::ranges::equal(a.blocks, b.blocks, [](const auto& one, const auto& other) {
           return same_times(one, other);
         });
}

}  // namespace

void add_lower_bound(const Question& question, Prediction& result) {
  Time& bound = result.network.lower_bound;
  if (result.network.evaluation != "static") {  // its prices are of transfers alone
    bound = evaluate_maps(result.priced).step;
    return;
  }
  const bool priced = result.priced.program != nullptr;
  std::vector<std::string> known;
  PricedProgram alone = price_program(*result.program, question.cluster, question.software, known,
                                      {.sharing = LinkSharing::alone,
                                       .order = question.network.order.axes,
                                       .nccl = question.network.tuner()},
                                      priced ? &result.priced.counts : nullptr);
  if (question.network.jitter) add_jitter(alone, *question.network.jitter);
  bound =
      priced && same_times(alone, result.priced) ? result.times.step : evaluate_maps(alone).step;
}

void add_network_times(const Question& question, Prediction& result) {
  const NetworkRequest& asked = question.network;
  refuse_order(asked, *result.program);
  if (asked.tuner()) {
    result.assumptions.push_back(
        "/collectives: algorithms and protocols are those that NCCL 2.30's tuner chooses; times "
        "are from the cost models");
  }
  if (asked.mode == NetworkMode::fixed && asked.needs_events()) {
    throw InputError{
        asked.place("/network"),
        "--network static cannot evaluate a placement, perturbations, phases or other jobs; "
        "use auto or events"};
  }
  if (auto why = why_static(asked)) return add_static_times(question, result, *std::move(why));
  std::vector<std::string> assumptions = result.assumptions;
  const auto refused = add_shared_times(question, result);
  if (!refused) return;
  // Kernels may vary without shared links; all else that is stated needs these.
  if (asked.mode == NetworkMode::automatic && !asked.needs_events()) {
    result.assumptions = std::move(assumptions);
    return add_static_times(question, result,
                            "links are not shared, though kernels vary: " + *refused);
  }
  throw InputError{asked.place("/network"),
                   "the network traffic of this plan cannot be simulated: " + *refused};
}

}  // namespace orrery::models
