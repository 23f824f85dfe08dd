#include "models/evaluation/traffic/early.hpp"

#include <algorithm>

namespace orrery::models::traffic {

namespace {

std::uint32_t classes(const std::vector<std::uint32_t>& numbers) {
  return numbers.empty() ? 0 : *std::ranges::max_element(numbers) + 1;
}

/// For the first member of each class of `whole`, its class in `early`.
std::vector<std::uint32_t> seen_early(const std::vector<std::uint32_t>& whole,
                                      const std::vector<std::uint32_t>& early) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == found.size()) found.push_back(early[i]);
  }
  return found;
}

/// The links that could be overloaded by the traffic before the first joint collective.
struct EarlyContendedLinks {
  std::vector<ContendedLink> contended_links;
  std::vector<std::uint32_t> of_link;
  std::vector<std::optional<std::uint32_t>>
      of_contended_link;  // by contended link of the whole step

  explicit EarlyContendedLinks(const FoldInput& input)
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
          loads[flows.link] += Int128{flows.flows} * each.full;
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

/// For the first member of each class of contended links of the whole step, its row in the early
/// part.
std::vector<std::optional<std::uint32_t>> early_rows(const std::vector<std::uint32_t>& whole,
                                                     const EarlyContendedLinks& contended_links,
                                                     const Partition& partition,
                                                     const std::vector<std::uint32_t>& rows) {
  std::vector<std::optional<std::uint32_t>> found;
  for (std::size_t s = 0; s < whole.size(); ++s) {
    if (whole[s] != found.size()) continue;
    const auto early = contended_links.of_contended_link[s];
    found.push_back(early ? std::optional{rows[partition.contended_links[*early]]} : std::nullopt);
  }
  return found;
}

}  // namespace

std::shared_ptr<const EarlyTraffic> early_traffic(const FoldInput& input, const Partition& whole,
                                                  const std::vector<std::uint32_t>& rows,
                                                  const Traffic& made) {
  if (made.structure_of_joint.empty()) return nullptr;
  FoldInput part{input.all, input.contended_links, input.contended_of_link,
                 FoldSpan::before_joints};
  const EarlyContendedLinks contended_links{part};
  const FoldInput early_input{input.all, contended_links.contended_links, contended_links.of_link,
                              FoldSpan::before_joints, &input.contended_of_link};
  const Partition partition = partition_of(early_input);
  if (4 * std::size_t{classes(partition.ranks)} > 3 * std::size_t{classes(whole.ranks)})
    return nullptr;
  EarlyTraffic early;
  early.traffic.priced = made.priced;
  early.traffic.rails = made.rails;
  for (const JobTraffic& each : made.others) {
    early.traffic.others.emplace_back().priced = each.priced;
  }
  const std::vector<std::uint32_t> rows_of_classes = fill(early_input, partition, early.traffic);
  early.ranks = seen_early(whole.ranks, partition.ranks);
  early.templates = seen_early(whole.sources, partition.sources);
  early.rows.resize(made.rows.size());
  const auto found = early_rows(whole.contended_links, contended_links, partition, rows_of_classes);
  for (std::size_t c = 0; c < rows.size(); ++c) early.rows[rows[c]] = found[c];
  return std::make_shared<const EarlyTraffic>(std::move(early));
}

}  // namespace orrery::models::traffic
