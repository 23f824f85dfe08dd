#include "models/prediction/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "models/evaluation/step_times.hpp"
#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/inside_links.hpp"
#include "models/prediction/limits.hpp"
#include "models/prediction/network_jobs.hpp"
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
  if (traffic.lossless) return evaluate_maps(*traffic.priced).step;
  return evaluate_network(traffic_alone(*traffic.priced, site)).times.step;
}

/// Time of the step without the other jobs.
Time step_without_jobs(const PricedProgram& priced, NetworkSite site) {
  site.others.clear();
  const Traffic traffic = traffic_of(priced, site);
  return traffic.certified ? evaluate_maps(priced).step : evaluate_network(traffic).times.step;
}

std::string template_name(const JobTraffic& job, std::uint32_t id) {
  const Program& program = *job.priced->program;
  if (id < job.channels.size()) {
    const Channel& channel = program.channels[job.channels[id].channel];
    return fmt::format("{} from stage {}", program.communicators[channel.communicator].name,
                       program.classes[channel.from].stage);
  }
  const FoldedGroup& group = job.groups[id - job.channels.size()];
  const std::string& name = program.communicators[group.communicator].name;
  const auto class_of = [&](std::uint32_t rank) { return job.ranks[rank].rank_class; };
  const std::uint32_t first = class_of(group.members[0]);
  for (const std::uint32_t member : group.members) {
    if (class_of(member) != first) return name;
  }
  return fmt::format("{} of stage {}", name, program.classes[first].stage);
}

/// Name of a template of any job; of another job it is "dp of stage 3 of /jobs/0".
std::string name_of(const Traffic& traffic, std::uint32_t id) {
  for (std::size_t i = traffic.others.size(); i-- > 0;) {
    const JobTraffic& job = traffic.others[i];
    if (id < job.first_template) continue;
    return fmt::format("{} of /jobs/{}", template_name(job, id - job.first_template),
                       traffic.other_of_site[i]);
  }
  return template_name(traffic, id);
}

/// To which other traffic a template lost time, by name, largest share first.
std::vector<std::pair<std::string, double>> lost_to(
    const Traffic& traffic, const std::vector<std::pair<std::uint32_t, double>>& others) {
  std::map<std::string, double> shares;
  for (const auto& [id, share] : others) shares[name_of(traffic, id)] += share;
  std::vector<std::pair<std::string, double>> sorted{shares.begin(), shares.end()};
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

/// Losses of our job's traffic: of all templates of one name, the one that lost most.
std::vector<TrafficLoss> losses_of(const Traffic& traffic, const NetworkTimes& times) {
  std::map<std::string, std::uint32_t> worst;
  const auto own = static_cast<std::uint32_t>(traffic.channels.size() + traffic.groups.size());
  for (std::uint32_t id = 0; id < own; ++id) {
    if (times.lost[id] == Time{}) continue;
    const auto [at, fresh] = worst.try_emplace(template_name(traffic, id), id);
    if (!fresh && times.lost[at->second] < times.lost[id]) at->second = id;
  }
  std::vector<TrafficLoss> losses;
  for (const auto& [name, id] : worst) {
    losses.push_back({name, times.lost[id], lost_to(traffic, times.lost_to[id])});
  }
  std::ranges::stable_sort(
      losses, [](const TrafficLoss& a, const TrafficLoss& b) { return a.lost > b.lost; });
  return losses;
}

/// Names of links between nodes, and of those between GPUs and NICs inside them.
struct NamedLinks {
  const FabricGraph& fabric;
  InsideLinks inside;

  std::string name(std::uint32_t link) const {
    return link < fabric.links() ? fabric.name(LinkId{link}) : inside.name(link);
  }
};

std::vector<FullLinks> links_of(const NamedLinks& named, const Traffic& traffic,
                                const NetworkTimes& times) {
  std::vector<FullLinks> links;
  for (std::size_t row = 0; row < traffic.rows.size(); ++row) {
    if (times.overloaded[row] == Time{}) continue;
    links.push_back(
        {named.name(traffic.rows[row].link), traffic.rows[row].alike, times.overloaded[row]});
  }
  std::ranges::stable_sort(
      links, [](const FullLinks& a, const FullLinks& b) { return a.overloaded > b.overloaded; });
  return links;
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
void add_jobs(const NetworkSite& site, const Traffic& traffic, const NetworkTimes& times,
              Prediction& result) {
  if (traffic.others.empty()) return;
  NetworkAnswer& found = result.network;
  found.from_jobs = times.times.step - step_without_jobs(result.priced, site);
  for (std::size_t i = 0; i < traffic.others.size(); ++i) {
    const std::vector<Time>& ends = times.other_steps[i];
    JobAnswer& job = found.jobs[traffic.other_of_site[i]];
    job.shares_links = true;
    if (!ends.empty()) job.step = Time{ends.back().count() / std::ssize(ends)};
  }
  result.assumptions.push_back(
      "/jobs: their first steps begin together with this job's step, and further ones follow "
      "without a gap; the contention depends on that");
}

void evaluate_traffic(const NamedLinks& named, const NetworkSite& site, Prediction& result) {
  const Traffic traffic = traffic_of(result.priced, site);
  NetworkAnswer& found = result.network;
  if (traffic.certified) {
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
  const NetworkTimes times = evaluate_network(traffic);
  result.times = times.times;
  found.evaluation = "events";
  found.why = fmt::format("{} of {} links can be saturated ({} kinds); {} transfers shared them",
                          traffic.contended_links, traffic.links, traffic.rows.size(), times.items);
  found.contention = times.times.step - alone_step(traffic, site);
  found.links = links_of(named, traffic, times);
  found.losses = losses_of(traffic, times);
  found.rank_classes = traffic.ranks.size();
  add_jobs(site, traffic, times, result);
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
  evaluate_traffic({*fabric, {question.cluster, fabric->links()}}, site, result);
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

}  // namespace

void add_lower_bound(const Question& question, Prediction& result) {
  Time& bound = result.network.lower_bound;
  if (result.network.evaluation != "static") {  // its prices are of transfers alone
    bound = evaluate_maps(result.priced).step;
    return;
  }
  std::vector<std::string> known;
  PricedProgram alone = price_program(*result.program, question.cluster, question.software, known,
                                      {.sharing = LinkSharing::alone,
                                       .order = question.network.order.axes,
                                       .nccl = question.network.tuner()});
  if (question.network.jitter) add_jitter(alone, *question.network.jitter);
  bound = evaluate_maps(alone).step;
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
    throw InputError{asked.place("/network"),
                     "--network static cannot evaluate a placement, perturbations or other jobs; "
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
