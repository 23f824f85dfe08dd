#include "models/evaluation/traffic/fold.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

constexpr std::uint32_t no_unit = 0xffffffff;

using Counts = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // class, how often

/// Sorts the counts from `from` on and adds up those of one class.
void sum_up(Counts& counts, std::size_t from) {
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

/// Counts of many, one after another.
class CountLists {
 public:
  /// `visit` is called twice with a function (which one, what it sees).
  template <class Visit>
  CountLists(std::size_t size, Visit visit) : begin_(size + 1, 0) {
    visit([&](std::uint32_t of, std::pair<std::uint32_t, std::uint64_t>) { ++begin_[of + 1]; });
    for (std::size_t i = 0; i < size; ++i) begin_[i + 1] += begin_[i];
    counts_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    visit([&](std::uint32_t of, std::pair<std::uint32_t, std::uint64_t> count) {
      counts_[next[of]++] = count;
    });
  }

  void append(std::uint32_t of, Counts& to) const {
    to.insert(to.end(), counts_.begin() + begin_[of], counts_.begin() + begin_[of + 1]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  Counts counts_;
};

std::vector<std::uint32_t> first_members(const std::vector<std::uint32_t>& classes) {
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == firsts.size()) firsts.push_back(i);
  }
  return firsts;
}

/// What each sees of the others, as counts of classes.
class Views {
 public:
  Views(const FoldInput& input, const Partition& partition)
      : input_{input},
        all_{input.entities},
        partition_{partition},
        of_ranks_{all_.ranks, [this](auto add) { each_member(add); }},
        of_suspects_{input.suspects.size(), [this](auto add) { each_crossing(add); }} {}

  void rank(std::uint32_t r, Counts& view) const {
    view.clear();
    of_ranks_.append(r, view);
    std::sort(view.begin(), view.end());
    const std::size_t own = view.size();
    const std::uint32_t first = r - r % all_.tensor;
    for (std::uint32_t t = 0; t < all_.tensor; ++t) {
      view.emplace_back(partition_.ranks[first + t], 1);
    }
    sum_up(view, own);
  }

  void entity(std::uint32_t e, Counts& view) const {
    view.clear();
    const Entity& each = all_.all[e];
    for (const std::uint32_t rank : all_.members_of(each)) {
      view.emplace_back(partition_.ranks[rank], 1);
    }
    if (each.group) sum_up(view, 0);
    const std::size_t members = view.size();
    for (const LinkFlows& flows : all_.flows_of(each)) {
      const std::uint32_t suspect = input_.suspect_of_link[flows.link];
      if (suspect != no_suspect) view.emplace_back(partition_.suspects[suspect], flows.flows);
    }
    sum_up(view, members);
  }

  void suspect(std::uint32_t s, Counts& view) const {
    view.clear();
    of_suspects_.append(s, view);
    sum_up(view, 0);
  }

 private:
  template <class Add>
  void each_member(Add add) const {
    for (std::size_t e = 0; e < all_.all.size(); ++e) {
      const bool group = all_.all[e].group;
      std::uint32_t place = 0;
      for (const std::uint32_t rank : all_.members_of(all_.all[e])) {
        add(rank, {partition_.entities[e], group ? 1 : 1 + 2 * place++});
      }
    }
  }

  template <class Add>
  void each_crossing(Add add) const {
    for (std::size_t e = 0; e < all_.all.size(); ++e) {
      for (const LinkFlows& flows : all_.flows_of(all_.all[e])) {
        const std::uint32_t suspect = input_.suspect_of_link[flows.link];
        if (suspect != no_suspect) add(suspect, {partition_.entities[e], flows.flows});
      }
    }
  }

  const FoldInput& input_;
  const Entities& all_;
  const Partition& partition_;
  CountLists of_ranks_, of_suspects_;
};

/// `view` puts what one sees into its second argument.
template <class View, class Same>
void verify_classes(const std::vector<std::uint32_t>& classes, View view, Same same) {
  const std::vector<std::uint32_t> firsts = first_members(classes);
  if (firsts.size() == classes.size()) return;
  std::vector<Counts> expected(firsts.size());
  for (std::size_t c = 0; c < firsts.size(); ++c) view(firsts[c], expected[c]);
  Counts seen;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (i == firsts[classes[i]]) continue;
    view(i, seen);
    ensure(same(i, firsts[classes[i]]) && seen == expected[classes[i]],
           "a class of the traffic's fold has members that differ");
  }
}

/// Errors  two of one class that differ: ContractError
void verify(const FoldInput& input, const Partition& partition, const Views& views) {
  const auto same_rank = [&](std::uint32_t a, std::uint32_t b) {
    const auto speed = [&](std::uint32_t r) { return input.speeds.empty() ? 1 : input.speeds[r]; };
    return a / input.entities.replicas == b / input.entities.replicas && speed(a) == speed(b);
  };
  const auto same_entity = [&](std::uint32_t a, std::uint32_t b) {
    const Entity &one = input.entities.all[a], &other = input.entities.all[b];
    return one.group == other.group && one.id == other.id && one.wire == other.wire &&
           one.full == other.full;
  };
  const auto same_suspect = [&](std::uint32_t a, std::uint32_t b) {
    return input.suspects[a].capacity == input.suspects[b].capacity &&
           input.suspects[a].changes == input.suspects[b].changes;
  };
  verify_classes(
      partition.ranks, [&](std::uint32_t r, Counts& to) { views.rank(r, to); }, same_rank);
  verify_classes(
      partition.entities, [&](std::uint32_t e, Counts& to) { views.entity(e, to); }, same_entity);
  verify_classes(
      partition.suspects, [&](std::uint32_t s, Counts& to) { views.suspect(s, to); }, same_suspect);
}

/// Puts a partition into the form in which it is evaluated.
class Filler {
 public:
  Filler(const FoldInput& input, const Partition& partition, Traffic& traffic)
      : all_{input.entities},
        partition_{partition},
        views_{input, partition},
        input_{input},
        traffic_{traffic} {}

  void run() {
    verify(input_, partition_, views_);
    add_ranks();
    add_units();
    add_entities();
    add_rows();
    traffic_.structure_of_joint = all_.structure_of_joint;
    traffic_.inside = all_.inside;
    for (const std::uint32_t c : partition_.ranks) {
      traffic_.folded.insert(traffic_.folded.end(), all_.rails, c);
    }
  }

 private:
  void add_ranks() {
    for (std::uint32_t r = 0; r < all_.ranks; ++r) {
      const std::uint32_t c = partition_.ranks[r];
      if (c == traffic_.ranks.size()) {
        FoldedRank& made = traffic_.ranks.emplace_back();
        made.rank_class = r / all_.replicas;
        made.first = r * all_.rails;
        made.unit = no_unit;
        made.speed = input_.speeds.empty() ? 1 : input_.speeds[r];
      }
      traffic_.ranks[c].size += all_.rails;
    }
  }

  void add_units() {
    for (std::uint32_t c = 0; c < traffic_.ranks.size(); ++c) {
      if (traffic_.ranks[c].unit != no_unit) continue;
      const std::uint32_t rank = traffic_.ranks[c].first / all_.rails;
      const std::uint32_t first = rank - rank % all_.tensor;
      std::vector<std::uint32_t>& unit = traffic_.units.emplace_back();
      for (std::uint32_t t = 0; t < all_.tensor; ++t) {
        const std::uint32_t member = partition_.ranks[first + t];
        if (traffic_.ranks[member].unit != no_unit) continue;
        traffic_.ranks[member].unit = static_cast<std::uint32_t>(traffic_.units.size() - 1);
        unit.push_back(member);
      }
    }
  }

  /// Channels come first in `Entities`, so their classes do too.
  void add_entities() {
    for (const std::uint32_t e : first_members(partition_.entities)) {
      const Entity& each = all_.all[e];
      traffic_.templates.push_back({each.wire, each.full, {}});
      const auto members = all_.members_of(each);
      if (!each.group) {
        const auto number = static_cast<std::uint32_t>(traffic_.channels.size());
        traffic_.channels.push_back(
            {each.id, partition_.ranks[members[0]], partition_.ranks[members[1]]});
        for (const std::uint32_t end : {members[0], members[1]}) {
          traffic_.ranks[partition_.ranks[end]].channels.emplace_back(each.id, number);
        }
        continue;
      }
      const auto number = static_cast<std::uint32_t>(traffic_.groups.size());
      FoldedGroup& group = traffic_.groups.emplace_back();
      group.structure = each.id;
      group.communicator = all_.structures[each.id].communicator;
      for (const std::uint32_t rank : members) group.members.push_back(partition_.ranks[rank]);
      std::sort(group.members.begin(), group.members.end());
      group.members.erase(std::unique(group.members.begin(), group.members.end()),
                          group.members.end());
      for (const std::uint32_t c : group.members) {
        traffic_.ranks[c].groups.emplace_back(each.id, number);
      }
    }
  }

  /// Rows that the same flows cross are one, the narrower.
  void add_rows() {
    std::vector<std::pair<Counts, std::uint32_t>> known;
    std::vector<std::uint32_t> alike(first_members(partition_.suspects).size(), 0);
    for (const std::uint32_t c : partition_.suspects) alike[c] += all_.rails;
    for (const std::uint32_t s : first_members(partition_.suspects)) {
      const Suspect& suspect = input_.suspects[s];
      Counts view;
      views_.suspect(s, view);
      const auto same = [&](const auto& each) {
        return each.first == view && traffic_.rows[each.second].changes.empty();
      };
      const auto at = std::find_if(known.begin(), known.end(), same);
      if (at != known.end() && suspect.changes.empty()) {
        LinkRow& row = traffic_.rows[at->second];
        row.alike += alike[partition_.suspects[s]];
        if (suspect.capacity < row.capacity) {
          row.capacity = suspect.capacity;
          row.link = suspect.link;
        }
        continue;
      }
      const auto number = static_cast<std::uint32_t>(traffic_.rows.size());
      traffic_.rows.push_back(
          {suspect.capacity, suspect.link, alike[partition_.suspects[s]], suspect.changes});
      for (const auto& [of, flows] : view) {
        traffic_.templates[of].rows.push_back({number, static_cast<std::uint32_t>(flows)});
      }
      known.emplace_back(std::move(view), number);
    }
  }

  const Entities& all_;
  const Partition& partition_;
  Views views_;
  const FoldInput& input_;
  Traffic& traffic_;
};

}  // namespace

void fill(const FoldInput& input, const Partition& partition, Traffic& traffic) {
  Filler{input, partition, traffic}.run();
}

}  // namespace orrery::models::traffic
