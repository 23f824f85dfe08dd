#include "models/evaluation/traffic/fold_views.hpp"

#include <algorithm>

namespace orrery::models::traffic {

namespace {

/// Sorts the counts from `from` on and adds up those of one class.
void sum_up(ClassCounts& counts, std::size_t from) {
  const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(from);
  std::sort(begin, counts.end());
  std::size_t last = from;
  for (std::size_t i = from; i < counts.size(); ++i) {
    if (i > from && counts[i].first == counts[last].first) {
      counts[last].second += counts[i].second;
    } else {
      last = i == from ? from : last + 1;
      counts[last] = counts[i];
    }
  }
  if (counts.size() > from) counts.resize(last + 1);
}

}  // namespace

std::vector<std::uint32_t> first_members(const std::vector<std::uint32_t>& classes) {
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == firsts.size()) firsts.push_back(i);
  }
  return firsts;
}

FoldViews::FoldViews(const FoldInput& input, const Partition& partition)
    : input_{input},
      all_{input.all},
      partition_{partition},
      of_ranks_{all_.ranks(),
                [this](auto add) {
                  input_.each_member([&](std::uint32_t e, std::uint32_t rank, std::uint32_t place) {
                    add(rank, {partition_.sources[e], place > 0 ? 2 * place - 1 : 1});
                  });
                }},
      of_contended_links_{
          input.contended_links.size(), [this](auto add) {
            input_.each_crossing([&](std::uint32_t e, std::uint32_t link, std::uint32_t flows) {
              add(link, {partition_.sources[e], flows});
            });
          }} {}

void FoldViews::rank(std::uint32_t r, ClassCounts& view) const {
  view.clear();
  of_ranks_.append(r, view);
  std::ranges::sort(view);
  const std::size_t own = view.size();
  const AllSources::Local place = all_.rank(r);
  const std::uint32_t tensor = all_.jobs[place.job].tensor;
  const std::uint32_t first = r - place.at % tensor;
  for (std::uint32_t t = 0; t < tensor; ++t) {
    view.emplace_back(partition_.ranks[first + t], 1);
  }
  sum_up(view, own);
}

void FoldViews::source(std::uint32_t e, ClassCounts& view) const {
  view.clear();
  const AllSources::Local place = all_.source(e);
  const JobSources& job = all_.jobs[place.job];
  const TrafficSource& each = job.all[place.at];
  if (!input_.counts(job, each)) return;
  for (const std::uint32_t rank : job.members_of(each)) {
    view.emplace_back(partition_.ranks[all_.first_rank[place.job] + rank], 1);
  }
  if (each.group) sum_up(view, 0);
  const std::size_t members = view.size();
  for (const LinkFlows& flows : job.flows_of(each)) {
    const std::uint32_t contended_link = input_.contended_of_link[flows.link];
    if (contended_link != no_contended_link)
      view.emplace_back(partition_.contended_links[contended_link], flows.flows);
  }
  sum_up(view, members);
}

void FoldViews::contended_link(std::uint32_t s, ClassCounts& view) const {
  view.clear();
  of_contended_links_.append(s, view);
  sum_up(view, 0);
}

}  // namespace orrery::models::traffic
