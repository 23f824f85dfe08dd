#include "models/evaluation/traffic/traffic.hpp"

#include <algorithm>
#include <map>

#include "models/evaluation/traffic/fold.hpp"
#include "models/evaluation/traffic/inside_kinds.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

std::uint32_t found_in(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs,
                       std::uint32_t key) {
  for (const auto& [each, value] : pairs) {
    if (each == key) return value;
  }
  throw ContractError{"a rank takes part in what its class does not know"};
}

using traffic::Entities;
using traffic::Entity;
using traffic::GroupStructure;
using traffic::LinkFlows;
using traffic::Suspect;
using Load = Int128;

/// Finds the links that could be overloaded, and what each template reaches alone.
class SuspectSearch {
 public:
  SuspectSearch(const NetworkSite& site, Entities& entities) : site_{site}, all_{entities} {
    for (const LinkChange& each : site.changes) {
      changes_[each.link].emplace_back(each.at, wire_rate(each.bandwidth));
    }
    for (const std::uint32_t link : entities.links) {
      widest_.push_back(wire_rate(site.links[link]));
      narrowest_.push_back(widest_.back());
      const auto at = changes_.find(link);
      if (at == changes_.end()) continue;
      for (const auto& [time, rate] : at->second) {
        widest_.back() = std::max(widest_.back(), rate);
        narrowest_.back() = std::min(narrowest_.back(), rate);
      }
    }
  }

  /// First with what each flow wants, then with what it reaches alone.
  void run() {
    for (Entity& each : all_.all) each.full = each.wire;
    drop();
    if (suspects.empty()) return;
    for (Entity& each : all_.all) {
      for (const LinkFlows& flows : all_.flows_of(each)) {
        each.full = std::min<WireRate>(each.full, widest_[flows.link] / flows.flows);
      }
    }
    drop();
  }

  std::vector<Suspect> suspects;
  std::vector<std::uint32_t> suspect_of_link;

 private:
  /// A joint group of everyone is on no link while another joint one is: one queue.
  void drop() {
    std::vector<Load> channels(all_.links.size(), 0), groups = channels, everyone = channels;
    for (const Entity& each : all_.all) {
      const bool joint = each.group && !all_.structures[each.id].inside;
      const bool whole = joint && all_.structures[each.id].everyone;
      std::vector<Load>& loads = whole ? everyone : joint ? groups : channels;
      for (const LinkFlows& flows : all_.flows_of(each)) {
        const Load more = Load{flows.flows} * each.full;
        loads[flows.link] = whole ? std::max(loads[flows.link], more) : loads[flows.link] + more;
      }
    }
    suspects.clear();
    suspect_of_link.assign(all_.links.size(), traffic::no_suspect);
    for (std::uint32_t at = 0; at < all_.links.size(); ++at) {
      if (channels[at] + std::max(groups[at], everyone[at]) <= narrowest_[at]) continue;
      suspect_of_link[at] = static_cast<std::uint32_t>(suspects.size());
      const std::uint32_t link = all_.links[at];
      suspects.push_back({link, wire_rate(site_.links[link]), changes_of(link)});
    }
  }

  std::vector<std::pair<Time, WireRate>> changes_of(std::uint32_t link) const {
    const auto at = changes_.find(link);
    if (at == changes_.end()) return {};
    std::vector<std::pair<Time, WireRate>> sorted = at->second;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return sorted;
  }

  const NetworkSite& site_;
  Entities& all_;
  std::vector<WireRate> widest_, narrowest_;  // of all that a link carries during the step
  std::map<std::uint32_t, std::vector<std::pair<Time, WireRate>>> changes_;
};

bool uniform(const std::vector<double>& speeds) {
  return std::all_of(speeds.begin(), speeds.end(), [](double each) { return each == 1; });
}

}  // namespace

std::uint32_t FoldedRank::channel(std::uint32_t id) const {
  return found_in(channels, id);
}

std::uint32_t FoldedRank::group(std::uint32_t structure) const {
  return found_in(groups, structure);
}

std::optional<std::string> not_simulated(const PricedProgram& priced, const NetworkSite& site) {
  for (const Block& block : priced.program->blocks) {
    for (const Operation& op : block.operations) {
      if (op.queue == Lane::data) return "blocks have operations on comm:dp";
    }
  }
  if (!traffic::meets_inside(priced, site)) return std::nullopt;
  return traffic::unordered_inside(*priced.program);
}

Traffic traffic_of(const PricedProgram& priced, const NetworkSite& site, Folding folding) {
  const auto refused = not_simulated(priced, site);
  if (refused) throw ContractError{"traffic is not simulated: " + *refused};
  Traffic found;
  found.rails = folding == Folding::classes ? traffic::rails_of(priced, site) : 1;
  Entities entities = traffic::entities_of(priced, site, found.rails);
  SuspectSearch search{site, entities};
  search.run();
  found.links = site.links.size();
  found.suspects = search.suspects.size() * found.rails;
  bool lossless = true;
  for (const Entity& each : entities.all) lossless = lossless && each.full == each.wire;
  found.lossless = lossless && uniform(site.speeds);
  found.certified = search.suspects.empty() && found.lossless;
  if (found.certified && folding == Folding::classes) return found;
  std::vector<double> speeds;
  for (std::size_t r = 0; r < site.speeds.size(); r += found.rails) {
    speeds.push_back(site.speeds[r]);
  }
  const traffic::FoldInput input{*priced.program, entities, speeds, search.suspects,
                                 search.suspect_of_link};
  const traffic::Partition partition =
      folding == Folding::classes ? partition_of(input) : unfolded_partition(input);
  fill(input, partition, found);
  return found;
}

}  // namespace orrery::models
