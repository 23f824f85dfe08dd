#pragma once
// The neighbours of ranks, sources and links in a partition, as counts of classes. They are equal
// for all members of a class, or the partition is not equitable.

#include <cstdint>
#include <utility>
#include <vector>

#include "models/evaluation/traffic/fold.hpp"

namespace orrery::models::traffic {

using ClassCounts = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // (class, neighbours)

/// The first member of each class.
std::vector<std::uint32_t> first_members(const std::vector<std::uint32_t>& classes);

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

/// The neighbours of each rank, source and contended link.
class FoldViews {
 public:
  FoldViews(const FoldInput& input, const Partition& partition);

  // Each replaces what `view` holds.
  void rank(std::uint32_t r, ClassCounts& view) const;
  void source(std::uint32_t e, ClassCounts& view) const;
  void contended_link(std::uint32_t s, ClassCounts& view) const;

 private:
  const FoldInput& input_;
  const AllSources& all_;
  const Partition& partition_;
  ClassCountLists of_ranks_, of_contended_links_;
};

}  // namespace orrery::models::traffic
