#include "models/prediction/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "models/network/fabric/fabric_graph.hpp"
#include "models/prediction/limits.hpp"
#include "models/prediction/prediction.hpp"
#include "models/pricing/price.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Why events cannot be asked of this cluster at all; nothing: they can.
std::optional<std::string> no_events(const Question& question) {
  const hardware::Cluster& cluster = question.cluster;
  if (cluster.fabric.kind == hardware::FabricKind::none || cluster.node.nics == 0) {
    return "the cluster has no network between nodes";
  }
  if (cluster.fabric.routing == hardware::Routing::adaptive) {
    return "adaptive routing is not simulated; 'spray' is its ideal";
  }
  return std::nullopt;
}

/// Times as long as if nothing shared a link.
Time alone_step(const PricedProgram& priced, Traffic traffic) {
  if (traffic.lossless) return evaluate_maps(priced).step;
  for (TrafficTemplate& each : traffic.templates) each.rows.clear();
  traffic.rows.clear();
  return evaluate_network(priced, traffic).times.step;
}

std::string template_name(const Program& program, const Traffic& traffic, std::uint32_t id) {
  if (id < traffic.channels.size()) {
    const Channel& channel = program.channels[traffic.channels[id].channel];
    return fmt::format("{} from stage {}", program.communicators[channel.communicator].name,
                       program.classes[channel.from].stage);
  }
  const FoldedGroup& group = traffic.groups[id - traffic.channels.size()];
  const std::string& name = program.communicators[group.communicator].name;
  const auto class_of = [&](std::uint32_t rank) { return traffic.ranks[rank].rank_class; };
  const std::uint32_t first = class_of(group.members[0]);
  for (const std::uint32_t member : group.members) {
    if (class_of(member) != first) return name;
  }
  return fmt::format("{} of stage {}", name, program.classes[first].stage);
}

/// To whom, by name.
std::vector<std::pair<std::string, double>> lost_to(
    const Program& program, const Traffic& traffic,
    const std::vector<std::pair<std::uint32_t, double>>& others) {
  std::map<std::string, double> shares;
  for (const auto& [id, share] : others) shares[template_name(program, traffic, id)] += share;
  std::vector<std::pair<std::string, double>> sorted{shares.begin(), shares.end()};
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

/// The most that any class of one name lost.
std::vector<TrafficLoss> losses_of(const Program& program, const Traffic& traffic,
                                   const NetworkTimes& times) {
  std::map<std::string, std::uint32_t> worst;
  for (std::uint32_t id = 0; id < times.lost.size(); ++id) {
    if (times.lost[id] == Time{}) continue;
    const auto [at, fresh] = worst.try_emplace(template_name(program, traffic, id), id);
    if (!fresh && times.lost[at->second] < times.lost[id]) at->second = id;
  }
  std::vector<TrafficLoss> losses;
  for (const auto& [name, id] : worst) {
    losses.push_back({name, times.lost[id], lost_to(program, traffic, times.lost_to[id])});
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const TrafficLoss& a, const TrafficLoss& b) { return a.lost > b.lost; });
  return losses;
}

std::vector<FullLinks> links_of(const FabricGraph& fabric, const Traffic& traffic,
                                const NetworkTimes& times) {
  std::vector<FullLinks> links;
  for (std::size_t row = 0; row < traffic.rows.size(); ++row) {
    if (times.overloaded[row] == Time{}) continue;
    links.push_back({fabric.name(LinkId{traffic.rows[row].link}), traffic.rows[row].alike,
                     times.overloaded[row]});
  }
  std::stable_sort(links.begin(), links.end(), [](const FullLinks& a, const FullLinks& b) {
    return a.overloaded > b.overloaded;
  });
  return links;
}

void add_static_times(const Question& question, Prediction& result, std::string why) {
  result.priced =
      price_program(*result.program, question.cluster, question.software, result.assumptions);
  require_exact_times(result.priced);
  result.times = evaluate_maps(result.priced);
  result.network.why = std::move(why);
  result.network.rank_classes = result.program->classes.size();
}

void evaluate_traffic(const FabricGraph& fabric, const NetworkSite& site, Prediction& result) {
  const Traffic traffic = traffic_of(result.priced, site);
  NetworkAnswer& found = result.network;
  if (traffic.certified) {
    result.times = evaluate_maps(result.priced);
    found.evaluation = "maps";
    found.why = fmt::format("none of {} links can be filled", traffic.links);
    found.rank_classes = result.program->classes.size();
    return;
  }
  result.assumptions.push_back(
      "/network: each ring, tree and message as many flows as NCCL opens channels on its NICs, "
      "with "
      "a queue pair each; what a stack hides of a collective before or after its exposed part "
      "contends for nothing");
  const NetworkTimes times = evaluate_network(result.priced, traffic);
  result.times = times.times;
  found.evaluation = "events";
  found.why =
      fmt::format("{} of {} links can be filled, {} kinds of them; {} transfers shared them",
                  traffic.suspects, traffic.links, traffic.rows.size(), times.items);
  found.contention = times.times.step - alone_step(result.priced, traffic);
  found.links = links_of(fabric, traffic, times);
  found.losses = losses_of(*result.program, traffic, times);
  found.rank_classes = traffic.ranks.size();
}

}  // namespace

void add_network_times(const Question& question, Prediction& result) {
  const NetworkRequest& asked = question.network;
  const bool wanted = asked.mode == NetworkMode::events || asked.particular();
  if (asked.mode == NetworkMode::fixed && asked.particular()) {
    throw InputError{"/network", "static times know no placement and no perturbation"};
  }
  if (!wanted) {
    return add_static_times(question, result,
                            asked.mode == NetworkMode::fixed
                                ? "as asked"
                                : "no placement or perturbation is stated, and events not asked");
  }
  std::optional<std::string> refused = no_events(question);
  const auto begin = std::chrono::steady_clock::now();
  if (!refused) {
    result.priced = price_program(*result.program, question.cluster, question.software,
                                  result.assumptions, LinkSharing::alone);
    require_exact_times(result.priced);
    const auto fabric = std::make_shared<const FabricGraph>(question.cluster);
    const NetworkSite site = site_of(question, fabric);
    refused = not_simulated(result.priced, site);
    if (!refused) evaluate_traffic(*fabric, site, result);
  }
  if (refused) throw InputError{"/network", "traffic is not simulated here: " + *refused};
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  result.network.seconds = taken.count();
}

}  // namespace orrery::models
