#include <algorithm>
#include <bit>
#include <unordered_map>

#include "models/evaluation/traffic/fold.hpp"

namespace orrery::models::traffic {

namespace {

using Colour = std::uint64_t;

/// Source  Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"
Colour mixed(Colour a, Colour b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::size_t distinct(std::vector<Colour> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

class Refinement {
 public:
  explicit Refinement(const FoldInput& input) : input_{input}, all_{input.entities} {
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
    return {numbered(ranks_), numbered(entities_), numbered(suspects_)};
  }

 private:
  void begin_ranks() {
    ranks_.resize(all_.ranks);
    for (std::uint32_t r = 0; r < all_.ranks; ++r) {
      const double speed = input_.speeds.empty() ? 1 : input_.speeds[r];
      ranks_[r] = mixed(r / all_.replicas, std::bit_cast<std::uint64_t>(speed));
    }
  }

  /// The communicator is part of a group's colour: two with the same members are two.
  void begin_entities() {
    for (const Entity& each : all_.all) {
      const Colour kind = mixed(each.group ? 1 : 0, each.id);
      entities_.push_back(mixed(mixed(kind, each.wire), each.full));
    }
  }

  void begin_suspects() {
    for (const Suspect& each : input_.suspects) {
      Colour colour = mixed(3, each.capacity);
      for (const auto& [at, rate] : each.changes) {
        colour = mixed(mixed(colour, static_cast<Colour>(at.count())), rate);
      }
      suspects_.push_back(colour);
    }
  }

  std::size_t count() const { return distinct(ranks_) + distinct(entities_) + distinct(suspects_); }

  /// Multisets are sums of mixed colours, so their order does not matter and their counts do.
  void refine() {
    std::vector<Colour> of_entities(entities_.size(), 0);
    for (std::size_t e = 0; e < entities_.size(); ++e) {
      const Entity& each = all_.all[e];
      Colour members = 0;
      std::uint32_t place = 0;
      for (const std::uint32_t rank : all_.members_of(each)) {
        members += mixed(ranks_[rank], each.group ? 0 : ++place);  // ends of a channel are ordered
      }
      Colour crossed = 0;
      for (const LinkFlows& flows : all_.flows_of(each)) {
        const std::uint32_t suspect = input_.suspect_of_link[flows.link];
        if (suspect != no_suspect) crossed += mixed(suspects_[suspect], flows.flows);
      }
      of_entities[e] = mixed(mixed(entities_[e], members), crossed);
    }
    entities_ = std::move(of_entities);
    refine_ranks();
    refine_suspects();
  }

  void refine_ranks() {
    std::vector<Colour> around(ranks_.size(), 0);
    for (std::size_t e = 0; e < entities_.size(); ++e) {
      const Entity& each = all_.all[e];
      std::uint32_t place = 0;
      for (const std::uint32_t rank : all_.members_of(each)) {
        around[rank] += mixed(entities_[e], each.group ? 0 : ++place);
      }
    }
    for (std::uint32_t first = 0; first < all_.ranks; first += all_.tensor) {
      Colour unit = 0;
      for (std::uint32_t t = 0; t < all_.tensor; ++t) unit += mixed(5, ranks_[first + t]);
      for (std::uint32_t t = 0; t < all_.tensor; ++t) around[first + t] += mixed(6, unit);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r] = mixed(ranks_[r], around[r]);
  }

  void refine_suspects() {
    std::vector<Colour> crossing(suspects_.size(), 0);
    for (std::size_t e = 0; e < entities_.size(); ++e) {
      for (const LinkFlows& flows : all_.flows_of(all_.all[e])) {
        const std::uint32_t suspect = input_.suspect_of_link[flows.link];
        if (suspect != no_suspect) crossing[suspect] += mixed(entities_[e], flows.flows);
      }
    }
    for (std::size_t s = 0; s < suspects_.size(); ++s) {
      suspects_[s] = mixed(suspects_[s], crossing[s]);
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
  const Entities& all_;
  std::vector<Colour> ranks_, entities_, suspects_;
};

std::vector<std::uint32_t> counted(std::size_t size) {
  std::vector<std::uint32_t> numbers(size);
  for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<std::uint32_t>(i);
  return numbers;
}

}  // namespace

Partition partition_of(const FoldInput& input) {
  return Refinement{input}.run();
}

Partition unfolded_partition(const FoldInput& input) {
  return {counted(input.entities.ranks), counted(input.entities.all.size()),
          counted(input.suspects.size())};
}

}  // namespace orrery::models::traffic
