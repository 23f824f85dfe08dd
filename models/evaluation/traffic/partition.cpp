#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "models/evaluation/traffic/fold.hpp"

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
    begin_entities();
    begin_suspects();
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
        const Colour alike = all_.units_apart ? mixed(stage, all_.unit({j, r})) : stage;
        ranks_.push_back(mixed(alike, std::bit_cast<std::uint64_t>(all_.speed({j, r}))));
      }
    }
  }

  /// The communicator is part of a group's colour: two groups of the same members stay distinct.
  void begin_entities() {
    for (std::size_t j = 0; j < all_.jobs.size(); ++j) {
      for (const TrafficSource& each : all_.jobs[j].all) {
        const Colour kind = mixed(mixed(j, each.group ? 1 : 0), each.id);
        const Colour shared = input_.shared(all_.jobs[j], each) ? 1 : 0;
        sources_.push_back(mixed(mixed(mixed(kind, each.wire), each.full), shared));
      }
    }
  }

  void begin_suspects() {
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
    refine_suspects();
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
        Colour unit = 0;
        for (std::uint32_t t = 0; t < tensor; ++t) unit += mixed(5, ranks_[first + t]);
        for (std::uint32_t t = 0; t < tensor; ++t) around[first + t] += mixed(6, unit);
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r] = mixed(ranks_[r], around[r]);
  }

  void refine_suspects() {
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

}  // namespace

Partition partition_of(const FoldInput& input) {
  return Refinement{input}.run();
}

Partition unfolded_partition(const FoldInput& input) {
  return {counted(input.all.ranks()), counted(input.all.sources()),
          counted(input.contended_links.size())};
}

}  // namespace orrery::models::traffic
