#include "models/evaluation/traffic/fold.hpp"

#include <algorithm>

#include "models/evaluation/traffic/fold_views.hpp"
#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

constexpr std::uint32_t no_unit = 0xffffffff;

/// Checks that members of a class are the same and have the same neighbours. `view` writes the
/// neighbours of its first argument to its second.
template <class View, class Same>
void verify_classes(const std::vector<std::uint32_t>& classes, View view, Same same) {
  const std::vector<std::uint32_t> firsts = first_members(classes);
  if (firsts.size() == classes.size()) return;
  std::vector<ClassCounts> expected(firsts.size());
  for (std::size_t c = 0; c < firsts.size(); ++c) view(firsts[c], expected[c]);
  ClassCounts seen;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (i == firsts[classes[i]]) continue;
    view(i, seen);
    ensure(same(i, firsts[classes[i]]) && seen == expected[classes[i]],
           "a class of the traffic's fold has members that differ");
  }
}

/// Errors  two members of one class that differ: ContractError
void verify(const FoldInput& input, const Partition& partition, const FoldViews& views) {
  const AllSources& all = input.all;
  const auto same_rank = [&](std::uint32_t a, std::uint32_t b) {
    const AllSources::Local one = all.rank(a), other = all.rank(b);
    const std::uint32_t replicas = all.jobs[one.job].replicas;
    return one.job == other.job && one.at / replicas == other.at / replicas &&
           all.speed(one) == all.speed(other) &&
           (!all.units_apart || all.unit(one) == all.unit(other));
  };
  const auto same_entity = [&](std::uint32_t a, std::uint32_t b) {
    const AllSources::Local first = all.source(a), second = all.source(b);
    const TrafficSource &one = all.jobs[first.job].all[first.at],
                        &other = all.jobs[second.job].all[second.at];
    return first.job == second.job && one.group == other.group && one.id == other.id &&
           one.wire == other.wire && one.full == other.full &&
           input.shared(all.jobs[first.job], one) == input.shared(all.jobs[first.job], other);
  };
  const auto same_contended_link = [&](std::uint32_t a, std::uint32_t b) {
    return input.contended_links[a].capacity == input.contended_links[b].capacity &&
           input.contended_links[a].changes == input.contended_links[b].changes;
  };
  verify_classes(
      partition.ranks, [&](std::uint32_t r, ClassCounts& to) { views.rank(r, to); }, same_rank);
  verify_classes(
      partition.sources, [&](std::uint32_t e, ClassCounts& to) { views.source(e, to); },
      same_entity);
  verify_classes(
      partition.contended_links,
      [&](std::uint32_t s, ClassCounts& to) { views.contended_link(s, to); }, same_contended_link);
}

/// Makes the JobTraffic of one job from its part of a partition.
class JobFiller {
 public:
  /// How many classes of ranks and sources come before those of this job.
  struct Classes {
    std::uint32_t ranks = 0, sources = 0;
  };
  JobFiller(const FoldInput& input, const Partition& partition, std::size_t job, Classes before,
            JobTraffic& made)
      : input_{input},
        all_{input.all},
        own_{input.all.jobs[job]},
        partition_{partition},
        job_{job},
        before_{before},
        made_{made} {}

  void run(std::vector<TrafficTemplate>& templates) {
    made_.first_template = before_.sources;
    add_ranks();
    add_units();
    add_entities(templates);
    made_.structure_of_joint = own_.structure_of_joint;
    made_.inside = own_.inside;
    for (std::uint32_t r = 0; r < own_.ranks; ++r) {
      made_.folded.insert(made_.folded.end(), own_.rails, class_of(r));
    }
  }

 private:
  std::uint32_t class_of(std::uint32_t rank) const {
    return partition_.ranks[all_.first_rank[job_] + rank] - before_.ranks;
  }

  void add_ranks() {
    for (std::uint32_t r = 0; r < own_.ranks; ++r) {
      const std::uint32_t c = class_of(r);
      if (c == made_.ranks.size()) {
        FoldedRank& rank = made_.ranks.emplace_back();
        rank.rank_class = r / own_.replicas;
        rank.first = r * own_.rails;
        rank.unit = no_unit;
        rank.speed = all_.speed({job_, r});
      }
      made_.ranks[c].size += own_.rails;
    }
  }

  void add_units() {
    for (std::uint32_t c = 0; c < made_.ranks.size(); ++c) {
      if (made_.ranks[c].unit != no_unit) continue;
      const std::uint32_t rank = made_.ranks[c].first / own_.rails;
      const std::uint32_t first = rank - rank % own_.tensor;
      std::vector<std::uint32_t>& unit = made_.units.emplace_back();
      for (std::uint32_t t = 0; t < own_.tensor; ++t) {
        const std::uint32_t member = class_of(first + t);
        if (made_.ranks[member].unit != no_unit) continue;
        made_.ranks[member].unit = static_cast<std::uint32_t>(made_.units.size() - 1);
        unit.push_back(member);
      }
    }
  }

  /// Channels come first in `JobSources`, so their classes do too.
  void add_entities(std::vector<TrafficTemplate>& templates) {
    std::uint32_t next = before_.sources;
    for (std::uint32_t e = 0; e < own_.all.size(); ++e) {
      if (partition_.sources[all_.first_entity[job_] + e] != next) continue;
      ++next;
      const TrafficSource& each = own_.all[e];
      templates.push_back({each.wire, each.full, {}, input_.shared(own_, each)});
      each.group ? add_group(each) : add_channel(each);
    }
  }

  void add_channel(const TrafficSource& each) {
    const auto members = own_.members_of(each);
    const auto number = static_cast<std::uint32_t>(made_.channels.size());
    made_.channels.push_back({each.id, class_of(members[0]), class_of(members[1])});
    for (const std::uint32_t end : {members[0], members[1]}) {
      made_.ranks[class_of(end)].channels.emplace_back(each.id, number);
    }
  }

  void add_group(const TrafficSource& each) {
    const auto number = static_cast<std::uint32_t>(made_.groups.size());
    FoldedGroup& group = made_.groups.emplace_back();
    group.structure = each.id;
    group.communicator = own_.structures[each.id].communicator;
    for (const std::uint32_t rank : own_.members_of(each)) group.members.push_back(class_of(rank));
    std::ranges::sort(group.members);
    group.members.erase(std::unique(group.members.begin(), group.members.end()),
                        group.members.end());
    for (const std::uint32_t c : group.members) made_.ranks[c].groups.emplace_back(each.id, number);
  }

  const FoldInput& input_;
  const AllSources& all_;
  const JobSources& own_;
  const Partition& partition_;
  std::size_t job_;
  Classes before_;
  JobTraffic& made_;
};

/// Makes the Traffic of a partition.
class Filler {
 public:
  Filler(const FoldInput& input, const Partition& partition, Traffic& traffic)
      : partition_{partition}, views_{input, partition}, input_{input}, traffic_{traffic} {}

  std::vector<std::uint32_t> run() {
    verify(input_, partition_, views_);
    JobFiller::Classes before;
    for (std::size_t j = 0; j < input_.all.jobs.size(); ++j) {
      JobTraffic& made = j == 0 ? static_cast<JobTraffic&>(traffic_) : traffic_.others[j - 1];
      JobFiller{input_, partition_, j, before, made}.run(traffic_.templates);
      before.ranks += static_cast<std::uint32_t>(made.ranks.size());
      before.sources = static_cast<std::uint32_t>(traffic_.templates.size());
    }
    return add_rows();
  }

 private:
  /// Adds rows. Those that the same flows cross become one, with the lower capacity.
  std::vector<std::uint32_t> add_rows() {
    std::vector<std::uint32_t> row_of_class;
    std::vector<std::pair<ClassCounts, std::uint32_t>> known;
    std::vector<std::uint32_t> alike(first_members(partition_.contended_links).size(), 0);
    for (const std::uint32_t c : partition_.contended_links) alike[c] += input_.all.jobs[0].rails;
    for (const std::uint32_t s : first_members(partition_.contended_links)) {
      const ContendedLink& contended_link = input_.contended_links[s];
      ClassCounts view;
      views_.contended_link(s, view);
      const auto same = [&](const auto& each) {
        return each.first == view && traffic_.rows[each.second].changes.empty();
      };
      const auto at = std::ranges::find_if(known, same);
      if (at != known.end() && contended_link.changes.empty()) {
        LinkRow& row = traffic_.rows[at->second];
        row_of_class.push_back(at->second);
        row.alike += alike[partition_.contended_links[s]];
        if (contended_link.capacity < row.capacity) {
          row.capacity = contended_link.capacity;
          row.link = contended_link.link;
        }
        continue;
      }
      const auto number = static_cast<std::uint32_t>(traffic_.rows.size());
      traffic_.rows.push_back({contended_link.capacity, contended_link.link,
                               alike[partition_.contended_links[s]], contended_link.changes});
      for (const auto& [of, flows] : view) {
        traffic_.templates[of].rows.push_back({number, static_cast<std::uint32_t>(flows)});
      }
      known.emplace_back(std::move(view), number);
      row_of_class.push_back(number);
    }
    return row_of_class;
  }

  const Partition& partition_;
  FoldViews views_;
  const FoldInput& input_;
  Traffic& traffic_;
};

}  // namespace

std::vector<std::uint32_t> fill(const FoldInput& input, const Partition& partition,
                                Traffic& traffic) {
  return Filler{input, partition, traffic}.run();
}

}  // namespace orrery::models::traffic
