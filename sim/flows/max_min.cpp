#include "sim/flows/max_min.hpp"

#include <functional>

#include "sim/errors.hpp"

namespace orrery {

void MaxMinFilling::begin(std::size_t links) {
  links_.resize(std::max(links_.size(), links));
  shares_.clear();
  caps_.clear();
  next_cap_ = 0;
  ordered_ = false;
}

void MaxMinFilling::add_link(std::uint32_t link, Rate left, std::uint64_t flows) {
  links_[link] = {.left = left, .open = flows};
  shares_.push_back({.least = left / flows,
                     .open = flows,
                     .link = link,
                     .number = static_cast<std::uint32_t>(shares_.size())});
}

void MaxMinFilling::order() {
  std::make_heap(shares_.begin(), shares_.end(), std::greater<>{});
  std::ranges::sort(caps_, {}, &Cap::rate);
  ordered_ = true;
}

/// The least share of all links with open flows, `no_link` if there are none; that link is then at
/// the heap's front. Entries that are out of date are computed anew on the way.
MaxMinFilling::Rate MaxMinFilling::lowest_share() {
  while (!shares_.empty()) {
    LinkLevel& first = shares_.front();
    const FillingLink& link = links_[first.link];
    if (link.open == first.open) return first.least;
    if (link.open > 0) {
      first.least = link.left / link.open;
      first.open = link.open;
      sink_first();
    } else {
      std::pop_heap(shares_.begin(), shares_.end(), std::greater<>{});
      shares_.pop_back();
    }
  }
  return no_link;
}

/// Sifts down the heap's first entry, whose share has grown.
void MaxMinFilling::sink_first() {
  const LinkLevel sunk = shares_.front();
  std::size_t at = 0;
  for (std::size_t child = 1; child < shares_.size(); child = 2 * at + 1) {
    if (child + 1 < shares_.size() && shares_[child] > shares_[child + 1]) ++child;
    if (!(sunk > shares_[child])) break;
    shares_[at] = shares_[child];
    at = child;
  }
  shares_[at] = sunk;
}

/// Moves the links that are full at this level from the heap to `full_`, where they stop classes.
void MaxMinFilling::take_full(Rate lowest) {
  ensure(lowest > 0, "a link has more flows than it has rate to share");
  full_.clear();
  const Rate tied = ties_ == ShareTies::exact ? lowest : lowest + (lowest >> 32);
  for (Rate next = lowest; next <= tied; next = lowest_share()) {
    std::pop_heap(shares_.begin(), shares_.end(), std::greater<>{});
    full_.push_back(shares_.back());
    shares_.pop_back();
  }
  if (ties_ == ShareTies::exact) std::ranges::sort(full_, std::greater<>{}, &LinkLevel::number);
}

std::size_t MaxMinFilling::memory() const {
  const auto held = [](const auto& all) { return all.capacity() * sizeof(all.front()); };
  return held(links_) + held(shares_) + held(caps_) + held(full_);
}

}  // namespace orrery
