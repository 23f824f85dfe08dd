#include "models/evaluation/traffic/traffic.hpp"

#include <algorithm>
#include <map>

#include "models/evaluation/traffic/block_collectives.hpp"
#include "models/evaluation/traffic/fold.hpp"
#include "models/evaluation/traffic/prefix.hpp"
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

using traffic::AllSources;
using traffic::ContendedLink;
using traffic::JobSources;
using traffic::TrafficSource;
using Load = Int128;

/// Finds the links that could be overloaded, and the rate that the flows of each channel and group
/// reach with all else idle.
class ContendedLinkSearch {
 public:
  ContendedLinkSearch(const NetworkSite& site, AllSources& all) : site_{site}, all_{all} {
    for (const LinkChange& each : site.changes) {
      changes_[each.link].emplace_back(each.at, wire_rate(each.bandwidth));
    }
    for (const std::uint32_t link : all.links) {
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

  /// First with each flow at its wire rate, then at the rate that it reaches alone.
  void run() {
    for (JobSources& job : all_.jobs) {
      for (TrafficSource& each : job.all) each.cap = each.wire;
    }
    drop();
    if (contended_links.empty()) return;
    for (JobSources& job : all_.jobs) {
      for (TrafficSource& each : job.all) {
        for (const LinkFlows& flows : job.flows_of(each)) {
          each.cap = std::min<WireRate>(each.cap, widest_[flows.link] / flows.flows);
        }
      }
    }
    drop();
  }

  /// Drops all contended links, as if nothing shared a link.
  void drop_all() {
    contended_links.clear();
    contended_of_link.assign(all_.links.size(), traffic::no_contended_link);
  }

  /// Tells sources whether they cross contended links.
  void mark_sources() {
    for (JobSources& job : all_.jobs) {
      for (TrafficSource& each : job.all) {
        each.contended = std::ranges::any_of(job.flows_of(each), [&](const LinkFlows& flows) {
          return contended_of_link[flows.link] != traffic::no_contended_link;
        });
      }
    }
  }

  /// By job: can it delay the first one, over a shared link or through others?
  std::vector<char> connected() const {
    std::vector<char> found(all_.jobs.size(), 0), reached(contended_links.size(), 0);
    found[0] = 1;
    for (bool more = true; more;) {
      more = false;
      for (std::size_t j = 0; j < all_.jobs.size(); ++j) {
        if (found[j] != 0) mark(all_.jobs[j], reached);
      }
      for (std::size_t j = 0; j < all_.jobs.size(); ++j) {
        if (found[j] != 0 || !crosses(all_.jobs[j], reached)) continue;
        found[j] = 1;
        more = true;
      }
    }
    return found;
  }

  std::vector<ContendedLink> contended_links;
  std::vector<std::uint32_t> contended_of_link;

 private:
  void mark(const JobSources& job, std::vector<char>& reached) const {
    for (const LinkFlows& flows : job.flows) {
      const std::uint32_t contended_link = contended_of_link[flows.link];
      if (contended_link != traffic::no_contended_link) reached[contended_link] = 1;
    }
  }

  bool crosses(const JobSources& job, const std::vector<char>& reached) const {
    return std::ranges::any_of(job.flows, [&](const LinkFlows& flows) {
      const std::uint32_t contended_link = contended_of_link[flows.link];
      return contended_link != traffic::no_contended_link && reached[contended_link] != 0;
    });
  }

  /// Adds a job's loads. Its joint collectives over all ranks never run concurrently with its other
  /// joint ones, because they share a queue: the larger load counts.
  void add_loads(const JobSources& job, std::vector<Load>& loads) const {
    std::vector<Load> groups(loads.size(), 0), everyone = groups;
    for (const TrafficSource& each : job.all) {
      const bool joint = job.joint(each);
      const bool whole = joint && job.splits[each.id].everyone;
      std::vector<Load>& sums = whole ? everyone : joint ? groups : loads;
      for (const LinkFlows& flows : job.flows_of(each)) {
        const Load more = Load{flows.flows} * each.cap;
        sums[flows.link] = whole ? std::max(sums[flows.link], more) : sums[flows.link] + more;
      }
    }
    for (std::size_t i = 0; i < loads.size(); ++i) loads[i] += std::max(groups[i], everyone[i]);
  }

  void drop() {
    std::vector<Load> loads(all_.links.size(), 0);
    for (const JobSources& job : all_.jobs) add_loads(job, loads);
    contended_links.clear();
    contended_of_link.assign(all_.links.size(), traffic::no_contended_link);
    for (std::uint32_t at = 0; at < all_.links.size(); ++at) {
      if (loads[at] <= narrowest_[at]) continue;
      contended_of_link[at] = static_cast<std::uint32_t>(contended_links.size());
      const std::uint32_t link = all_.links[at];
      contended_links.push_back({link, wire_rate(site_.links[link]), changes_of(link)});
    }
  }

  std::vector<std::pair<Time, WireRate>> changes_of(std::uint32_t link) const {
    const auto at = changes_.find(link);
    if (at == changes_.end()) return {};
    std::vector<std::pair<Time, WireRate>> sorted = at->second;
    std::ranges::stable_sort(sorted,
                             [](const auto& a, const auto& b) { return a.first < b.first; });
    return sorted;
  }

  const NetworkSite& site_;
  AllSources& all_;
  std::vector<WireRate> widest_, narrowest_;  // bandwidth of each link during the step
  std::map<std::uint32_t, std::vector<std::pair<Time, WireRate>>> changes_;
};

bool uniform(const std::vector<double>& speeds) {
  return std::ranges::all_of(speeds, [](double each) { return each == 1; });
}

}  // namespace

std::uint32_t FoldedRank::channel(std::uint32_t id) const {
  return found_in(channels, id);
}

std::uint32_t FoldedRank::group(std::uint32_t split) const {
  return found_in(groups, split);
}

std::optional<std::string> not_simulated(const PricedProgram& priced, const NetworkSite& site) {
  for (const Block& block : priced.program->blocks) {
    for (const Operation& op : block.operations) {
      if (op.queue == Lane::data) return "blocks have operations on comm:dp";
    }
  }
  if (!traffic::block_collectives_differ(priced, site)) return std::nullopt;
  return traffic::unordered_block_collectives(*priced.program);
}

namespace {

/// A job and where it runs.
struct JobSite {
  const PricedProgram* priced = nullptr;
  const NetworkSite* site = nullptr;
};

std::uint32_t rails_of_all(const std::vector<JobSite>& jobs) {
  const std::uint32_t rails = traffic::rails_of(*jobs[0].priced, *jobs[0].site);
  for (const JobSite& each : jobs) {
    if (traffic::rails_of(*each.priced, *each.site) != rails) return 1;
  }
  return rails;
}

enum class LinkUse : std::uint8_t { shared, alone };

/// Makes the Traffic of the first job, with those of the other jobs that can delay it.
class TrafficMaker {
 public:
  TrafficMaker(const PricedProgram& priced, const NetworkSite& site, Folding folding)
      : site_{site}, folding_{folding}, jobs_{{&priced, &site}} {
    sites_.reserve(site.others.size());
    for (std::uint32_t other = 0; other < site.others.size(); ++other) {
      sites_.push_back(site_of_other(site, other));
      jobs_.push_back({site.others[other].priced, &sites_.back()});
      found_.other_of_site.push_back(other);
    }
  }

  Traffic run(LinkUse use) {
    for (const JobSite& each : jobs_) {
      const auto refused = not_simulated(*each.priced, *each.site);
      if (refused) throw ContractError{"traffic is not simulated: " + *refused};
    }
    AllSources all = all_sources();
    ContendedLinkSearch search{site_, all};
    search.run();
    if (use == LinkUse::alone) search.drop_all();
    search.mark_sources();
    if (keep(search.connected())) return run(use);
    found_.links = site_.links.size();
    found_.contended_links = search.contended_links.size() * found_.rails;
    const std::vector<TrafficSource>& own = all.jobs[0].all;
    found_.as_priced =
        uniform(site_.speeds) &&
        std::ranges::all_of(own, [](const TrafficSource& each) { return each.cap == each.wire; });
    found_.maps_exact = search.contended_links.empty() && found_.as_priced;
    found_.priced = jobs_[0].priced;
    if (found_.maps_exact && folding_ == Folding::classes) return std::move(found_);
    for (std::size_t j = 1; j < jobs_.size(); ++j) {
      found_.others.emplace_back().priced = jobs_[j].priced;
    }
    const traffic::FoldInput input{all, search.contended_links, search.contended_of_link};
    if (folding_ == Folding::none) {
      fill(input, unfolded_partition(input), found_);
      return std::move(found_);
    }
    const traffic::Partition partition = partition_of(input);
    const std::vector<std::uint32_t> link_classes = fill(input, partition, found_);
    found_.prefix = traffic::prefix_traffic(input, partition, link_classes, found_);
    return std::move(found_);
  }

 private:
  AllSources all_sources() {
    found_.rails = folding_ == Folding::none ? 1 : rails_of_all(jobs_);
    AllSources all;
    all.tensor_groups_apart = folding_ == Folding::always;
    for (const JobSite& each : jobs_) {
      std::vector<double> speeds;
      for (std::size_t r = 0; r < each.site->speeds.size(); r += found_.rails) {
        speeds.push_back(each.site->speeds[r]);
      }
      all.add(traffic::sources_of(*each.priced, *each.site, found_.rails), std::move(speeds));
    }
    return all;
  }

  /// Keeps only these jobs; true if any is dropped. Without the others fewer links are contended.
  bool keep(const std::vector<char>& kept) {
    const std::size_t before = jobs_.size();
    for (std::size_t j = before; j-- > 1;) {
      if (kept[j] != 0) continue;
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(j));
      found_.other_of_site.erase(found_.other_of_site.begin() + static_cast<std::ptrdiff_t>(j - 1));
    }
    return jobs_.size() < before;
  }

  const NetworkSite& site_;
  Folding folding_;
  std::vector<NetworkSite> sites_;  // of the other jobs
  std::vector<JobSite> jobs_;
  Traffic found_;
};

}  // namespace

NetworkSite site_of_other(const NetworkSite& site, std::size_t other) {
  NetworkSite seen = site;
  seen.placement = site.others[other].placement;
  seen.speeds = site.others[other].speeds;
  seen.others.clear();
  return seen;
}

Traffic traffic_of(const PricedProgram& priced, const NetworkSite& site, Folding folding) {
  return TrafficMaker{priced, site, folding}.run(LinkUse::shared);
}

Traffic traffic_alone(const PricedProgram& priced, NetworkSite site, Folding folding) {
  site.others.clear();
  return TrafficMaker{priced, site, folding}.run(LinkUse::alone);
}

}  // namespace orrery::models
