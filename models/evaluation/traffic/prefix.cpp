#include "models/evaluation/traffic/prefix.hpp"

#include <algorithm>

namespace orrery::models::traffic {

namespace {

std::uint32_t classes(const std::vector<std::uint32_t>& numbers) {
  return numbers.empty() ? 0 : *std::ranges::max_element(numbers) + 1;
}

/// For the first member of each class of `whole`, its class in `prefix`.
std::vector<std::uint32_t> in_prefix(const std::vector<std::uint32_t>& whole,
                                     const std::vector<std::uint32_t>& prefix) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == found.size()) found.push_back(prefix[i]);
  }
  return found;
}

/// The links that could be overloaded by the traffic before the first joint collective.
struct PrefixLinks {
  std::vector<ContendedLink> contended_links;
  std::vector<std::uint32_t> of_link;
  std::vector<std::optional<std::uint32_t>>
      of_contended_link;  // by contended link of the whole step

  explicit PrefixLinks(const FoldInput& input)
      : of_link(input.contended_of_link.size(), no_contended_link),
        of_contended_link(input.contended_links.size()) {
    const std::vector<Int128> loads = loads_of(input);
    for (std::uint32_t link = 0; link < of_link.size(); ++link) {
      const std::uint32_t whole = input.contended_of_link[link];
      if (whole == no_contended_link || loads[link] <= narrowest(input.contended_links[whole]))
        continue;
      of_link[link] = static_cast<std::uint32_t>(contended_links.size());
      of_contended_link[whole] = of_link[link];
      contended_links.push_back(input.contended_links[whole]);
    }
  }

 private:
  static std::vector<Int128> loads_of(const FoldInput& input) {
    std::vector<Int128> loads(input.contended_of_link.size(), 0);
    for (const JobSources& job : input.all.jobs) {
      for (const TrafficSource& each : job.all) {
        if (!input.counts(job, each)) continue;
        for (const LinkFlows& flows : job.flows_of(each)) {
          loads[flows.link] += Int128{flows.flows} * each.cap;
        }
      }
    }
    return loads;
  }

  static WireRate narrowest(const ContendedLink& each) {
    WireRate least = each.capacity;
    for (const auto& [at, rate] : each.changes) least = std::min(least, rate);
    return least;
  }
};

/// For the first member of each class of contended links of the whole step, its link class in the
/// prefix.
std::vector<std::optional<std::uint32_t>> prefix_link_classes(
    const std::vector<std::uint32_t>& whole, const PrefixLinks& contended_links,
    const Partition& partition, const std::vector<std::uint32_t>& link_classes) {
  std::vector<std::optional<std::uint32_t>> found;
  for (std::size_t s = 0; s < whole.size(); ++s) {
    if (whole[s] != found.size()) continue;
    const auto prefix = contended_links.of_contended_link[s];
    found.push_back(prefix ? std::optional{link_classes[partition.contended_links[*prefix]]}
                           : std::nullopt);
  }
  return found;
}

}  // namespace

std::shared_ptr<const PrefixTraffic> prefix_traffic(const FoldInput& input, const Partition& whole,
                                                    const std::vector<std::uint32_t>& link_classes,
                                                    const Traffic& made) {
  if (made.split_of_joint.empty()) return nullptr;
  FoldInput part{input.all, input.contended_links, input.contended_of_link,
                 FoldSpan::before_joints};
  const PrefixLinks contended_links{part};
  const FoldInput prefix_input{input.all, contended_links.contended_links, contended_links.of_link,
                               FoldSpan::before_joints};
  const Partition partition = partition_of(prefix_input);
  if (4 * std::size_t{classes(partition.ranks)} > 3 * std::size_t{classes(whole.ranks)})
    return nullptr;
  PrefixTraffic prefix;
  prefix.traffic.priced = made.priced;
  prefix.traffic.rails = made.rails;
  for (const JobTraffic& each : made.others) {
    prefix.traffic.others.emplace_back().priced = each.priced;
  }
  const std::vector<std::uint32_t> number_of_class = fill(prefix_input, partition, prefix.traffic);
  prefix.ranks = in_prefix(whole.ranks, partition.ranks);
  prefix.flow_classes = in_prefix(whole.sources, partition.sources);
  prefix.link_classes.resize(made.link_classes.size());
  const auto found =
      prefix_link_classes(whole.contended_links, contended_links, partition, number_of_class);
  for (std::size_t c = 0; c < link_classes.size(); ++c)
    prefix.link_classes[link_classes[c]] = found[c];
  return std::make_shared<const PrefixTraffic>(std::move(prefix));
}

}  // namespace orrery::models::traffic
