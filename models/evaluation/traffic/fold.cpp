#include "models/evaluation/traffic/fold.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

using Colour = std::uint64_t;

/// A hash of two numbers.
/// Source  Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"
Colour mixed(Colour a, Colour b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::size_t distinct(std::vector<Colour> colours) {
  std::ranges::sort(colours);
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

/// Colour refinement: a colour is a hash of a member and, step by step, of its neighbours' colours.
class Refinement {
 public:
  explicit Refinement(const FoldInput& input) : input_{input}, all_{input.all} {
    begin_ranks();
    begin_sources();
    begin_links();
  }

  Partition run() {
    for (std::size_t before = 0, now = count(); now != before;) {
      before = now;
      refine();
      now = count();
    }
    return {numbered(ranks_), numbered(sources_), numbered(contended_links_)};
  }

 private:
  void begin_ranks() {
    for (std::size_t j = 0; j < all_.jobs.size(); ++j) {
      for (std::uint32_t r = 0; r < all_.jobs[j].ranks; ++r) {
        const Colour stage = mixed(j, r / all_.jobs[j].replicas);
        const Colour alike =
            all_.tensor_groups_apart ? mixed(stage, all_.tensor_group({j, r})) : stage;
        ranks_.push_back(mixed(alike, std::bit_cast<std::uint64_t>(all_.speed({j, r}))));
      }
    }
  }

  /// The communicator is part of a group's colour: two groups of the same members stay distinct.
  void begin_sources() {
    for (std::size_t j = 0; j < all_.jobs.size(); ++j) {
      for (const TrafficSource& each : all_.jobs[j].all) {
        const Colour kind = mixed(mixed(j, each.group ? 1 : 0), each.id);
        const Colour contended = each.contended ? 1 : 0;
        sources_.push_back(mixed(mixed(mixed(kind, each.wire), each.cap), contended));
      }
    }
  }

  void begin_links() {
    for (const ContendedLink& each : input_.contended_links) {
      Colour colour = mixed(3, each.capacity);
      for (const auto& [at, rate] : each.changes) {
        colour = mixed(mixed(colour, static_cast<Colour>(at.count())), rate);
      }
      contended_links_.push_back(colour);
    }
  }

  std::size_t count() const {
    return distinct(ranks_) + distinct(sources_) + distinct(contended_links_);
  }

  /// A multiset is hashed as the sum of its mixed colours, so that order does not matter and counts
  /// do.
  void refine() {
    std::vector<Colour> members(sources_.size(), 0), crossed(sources_.size(), 0);
    input_.each_member([&](std::uint32_t e, std::uint32_t rank, std::uint32_t place) {
      members[e] += mixed(ranks_[rank], place);
    });
    input_.each_crossing([&](std::uint32_t e, std::uint32_t link, std::uint32_t flows) {
      crossed[e] += mixed(contended_links_[link], flows);
    });
    for (std::size_t e = 0; e < sources_.size(); ++e) {
      sources_[e] = mixed(mixed(sources_[e], members[e]), crossed[e]);
    }
    refine_ranks();
    refine_links();
  }

  void refine_ranks() {
    std::vector<Colour> around(ranks_.size(), 0);
    input_.each_member([&](std::uint32_t e, std::uint32_t rank, std::uint32_t place) {
      around[rank] += mixed(sources_[e], place);
    });
    for (std::size_t j = 0; j < all_.jobs.size(); ++j) {
      const std::uint32_t tensor = all_.jobs[j].tensor;
      for (std::uint32_t first = all_.first_rank[j]; first < all_.first_rank[j + 1];
           first += tensor) {
        Colour tensor_group = 0;
        for (std::uint32_t t = 0; t < tensor; ++t) tensor_group += mixed(5, ranks_[first + t]);
        for (std::uint32_t t = 0; t < tensor; ++t) around[first + t] += mixed(6, tensor_group);
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r] = mixed(ranks_[r], around[r]);
  }

  void refine_links() {
    std::vector<Colour> crossing(contended_links_.size(), 0);
    input_.each_crossing([&](std::uint32_t e, std::uint32_t link, std::uint32_t flows) {
      crossing[link] += mixed(sources_[e], flows);
    });
    for (std::size_t s = 0; s < contended_links_.size(); ++s) {
      contended_links_[s] = mixed(contended_links_[s], crossing[s]);
    }
  }

  static std::vector<std::uint32_t> numbered(const std::vector<Colour>& colours) {
    std::unordered_map<Colour, std::uint32_t> numbers;
    std::vector<std::uint32_t> classes;
    classes.reserve(colours.size());
    for (const Colour each : colours) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      classes.push_back(numbers.try_emplace(each, next).first->second);
    }
    return classes;
  }

  const FoldInput& input_;
  const AllSources& all_;
  std::vector<Colour> ranks_, sources_, contended_links_;
};

std::vector<std::uint32_t> counted(std::size_t size) {
  std::vector<std::uint32_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

using ClassCounts = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // (class, neighbours)

/// Class counts of many items in one array.
class ClassCountLists {
 public:
  /// `visit` is called twice with a function that takes (item, one class count of it).
  template <class Visit>
  ClassCountLists(std::size_t size, Visit visit) : begin_(size + 1, 0) {
    visit([&](std::uint32_t of, std::pair<std::uint32_t, std::uint64_t>) { ++begin_[of + 1]; });
    for (std::size_t i = 0; i < size; ++i) begin_[i + 1] += begin_[i];
    counts_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    visit([&](std::uint32_t of, std::pair<std::uint32_t, std::uint64_t> count) {
      counts_[next[of]++] = count;
    });
  }

  void append(std::uint32_t of, ClassCounts& to) const {
    to.insert(to.end(), counts_.begin() + begin_[of], counts_.begin() + begin_[of + 1]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  ClassCounts counts_;
};

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

/// The first member of each class.
std::vector<std::uint32_t> first_members(const std::vector<std::uint32_t>& classes) {
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == firsts.size()) firsts.push_back(i);
  }
  return firsts;
}

/// The neighbours of each rank, source and contended link in a partition, as counts of classes.
class Neighbours {
 public:
  Neighbours(const FoldInput& input, const Partition& partition)
      : input_{input},
        all_{input.all},
        partition_{partition},
        of_ranks_{
            all_.ranks(),
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

  // Each replaces what `view` holds.
  void rank(std::uint32_t r, ClassCounts& view) const {
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

  void source(std::uint32_t e, ClassCounts& view) const {
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

  void link(std::uint32_t s, ClassCounts& view) const {
    view.clear();
    of_contended_links_.append(s, view);
    sum_up(view, 0);
  }

 private:
  const FoldInput& input_;
  const AllSources& all_;
  const Partition& partition_;
  ClassCountLists of_ranks_, of_contended_links_;
};

constexpr std::uint32_t no_tensor_group = 0xffffffff;

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
void verify(const FoldInput& input, const Partition& partition, const Neighbours& neighbours) {
  const AllSources& all = input.all;
  const auto same_rank = [&](std::uint32_t a, std::uint32_t b) {
    const AllSources::Local one = all.rank(a), other = all.rank(b);
    const std::uint32_t replicas = all.jobs[one.job].replicas;
    return one.job == other.job && one.at / replicas == other.at / replicas &&
           all.speed(one) == all.speed(other) &&
           (!all.tensor_groups_apart || all.tensor_group(one) == all.tensor_group(other));
  };
  const auto same_source = [&](std::uint32_t a, std::uint32_t b) {
    const AllSources::Local first = all.source(a), second = all.source(b);
    const TrafficSource &one = all.jobs[first.job].all[first.at],
                        &other = all.jobs[second.job].all[second.at];
    return first.job == second.job && one.group == other.group && one.id == other.id &&
           one.wire == other.wire && one.cap == other.cap && one.contended == other.contended;
  };
  const auto same_link = [&](std::uint32_t a, std::uint32_t b) {
    return input.contended_links[a].capacity == input.contended_links[b].capacity &&
           input.contended_links[a].changes == input.contended_links[b].changes;
  };
  verify_classes(
      partition.ranks, [&](std::uint32_t r, ClassCounts& to) { neighbours.rank(r, to); },
      same_rank);
  verify_classes(
      partition.sources, [&](std::uint32_t e, ClassCounts& to) { neighbours.source(e, to); },
      same_source);
  verify_classes(
      partition.contended_links, [&](std::uint32_t s, ClassCounts& to) { neighbours.link(s, to); },
      same_link);
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
      : all_{input.all},
        own_{input.all.jobs[job]},
        partition_{partition},
        job_{job},
        before_{before},
        made_{made} {}

  void run(std::vector<FlowClass>& flow_classes) {
    made_.first_flow_class = before_.sources;
    add_ranks();
    add_tensor_groups();
    add_sources(flow_classes);
    made_.split_of_joint = own_.split_of_joint;
    made_.block_collectives = own_.block_collectives;
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
        rank.tensor_group = no_tensor_group;
        rank.speed = all_.speed({job_, r});
      }
      made_.ranks[c].size += own_.rails;
    }
  }

  void add_tensor_groups() {
    for (std::uint32_t c = 0; c < made_.ranks.size(); ++c) {
      if (made_.ranks[c].tensor_group != no_tensor_group) continue;
      const std::uint32_t rank = made_.ranks[c].first / own_.rails;
      const std::uint32_t first = rank - rank % own_.tensor;
      std::vector<std::uint32_t>& tensor_group = made_.tensor_groups.emplace_back();
      for (std::uint32_t t = 0; t < own_.tensor; ++t) {
        const std::uint32_t member = class_of(first + t);
        if (made_.ranks[member].tensor_group != no_tensor_group) continue;
        made_.ranks[member].tensor_group =
            static_cast<std::uint32_t>(made_.tensor_groups.size() - 1);
        tensor_group.push_back(member);
      }
    }
  }

  /// Channels come first in `JobSources`, so their classes do too.
  void add_sources(std::vector<FlowClass>& flow_classes) {
    std::uint32_t next = before_.sources;
    for (std::uint32_t e = 0; e < own_.all.size(); ++e) {
      if (partition_.sources[all_.first_source[job_] + e] != next) continue;
      ++next;
      const TrafficSource& each = own_.all[e];
      flow_classes.push_back({each.wire, each.cap, {}, each.contended});
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
    group.split = each.id;
    group.communicator = own_.splits[each.id].communicator;
    for (const std::uint32_t rank : own_.members_of(each)) group.members.push_back(class_of(rank));
    std::ranges::sort(group.members);
    group.members.erase(std::unique(group.members.begin(), group.members.end()),
                        group.members.end());
    for (const std::uint32_t c : group.members) made_.ranks[c].groups.emplace_back(each.id, number);
  }

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
      : partition_{partition}, neighbours_{input, partition}, input_{input}, traffic_{traffic} {}

  std::vector<std::uint32_t> run() {
    verify(input_, partition_, neighbours_);
    JobFiller::Classes before;
    for (std::size_t j = 0; j < input_.all.jobs.size(); ++j) {
      JobTraffic& made = j == 0 ? static_cast<JobTraffic&>(traffic_) : traffic_.others[j - 1];
      JobFiller{input_, partition_, j, before, made}.run(traffic_.flow_classes);
      before.ranks += static_cast<std::uint32_t>(made.ranks.size());
      before.sources = static_cast<std::uint32_t>(traffic_.flow_classes.size());
    }
    return add_link_classes();
  }

 private:
  /// Adds link classes. Those that the same flows cross become one, with the lower capacity.
  std::vector<std::uint32_t> add_link_classes() {
    std::vector<std::uint32_t> number_of_class;
    std::vector<std::pair<ClassCounts, std::uint32_t>> known;
    std::vector<std::uint32_t> sizes(first_members(partition_.contended_links).size(), 0);
    for (const std::uint32_t c : partition_.contended_links) sizes[c] += input_.all.jobs[0].rails;
    for (const std::uint32_t s : first_members(partition_.contended_links)) {
      const ContendedLink& contended_link = input_.contended_links[s];
      ClassCounts view;
      neighbours_.link(s, view);
      const auto same = [&](const auto& each) {
        return each.first == view && traffic_.link_classes[each.second].changes.empty();
      };
      const auto at = std::ranges::find_if(known, same);
      if (at != known.end() && contended_link.changes.empty()) {
        LinkClass& known_class = traffic_.link_classes[at->second];
        number_of_class.push_back(at->second);
        known_class.size += sizes[partition_.contended_links[s]];
        if (contended_link.capacity < known_class.capacity) {
          known_class.capacity = contended_link.capacity;
          known_class.link = contended_link.link;
        }
        continue;
      }
      const auto number = static_cast<std::uint32_t>(traffic_.link_classes.size());
      traffic_.link_classes.push_back({contended_link.capacity, contended_link.link,
                                       sizes[partition_.contended_links[s]],
                                       contended_link.changes});
      for (const auto& [of, flows] : view) {
        traffic_.flow_classes[of].links.push_back({number, static_cast<std::uint32_t>(flows)});
      }
      known.emplace_back(std::move(view), number);
      number_of_class.push_back(number);
    }
    return number_of_class;
  }

  const Partition& partition_;
  Neighbours neighbours_;
  const FoldInput& input_;
  Traffic& traffic_;
};

}  // namespace

std::vector<std::uint32_t> fill(const FoldInput& input, const Partition& partition,
                                Traffic& traffic) {
  return Filler{input, partition, traffic}.run();
}

Partition partition_of(const FoldInput& input) {
  return Refinement{input}.run();
}

Partition unfolded_partition(const FoldInput& input) {
  return {counted(input.all.ranks()), counted(input.all.sources()),
          counted(input.contended_links.size())};
}

}  // namespace orrery::models::traffic
