#pragma once
// Max-min fair rates by progressive filling. The rates of all flows rise together; a flow stops at
// its cap, or when a link that it crosses is full, and what it leaves free the others get. So every
// flow has its cap, or crosses a full link on which no flow is faster.
//
// Equal flows form a flow class. They have one rate; the class's multiplicity on a link is how many
// of them cross it.
//   share of a link = (capacity - rates of its stopped flows) / its open flows
//   level           = least share of the links, or a lower cap: the flows there stop
// Rates are integers in the caller's unit, and shares are rounded down: the flows on a link never
// have more than its capacity together, and no rate depends on the order of links or flows.
// Source  Bertsekas & Gallager 1992, "Data Networks", section 6.5.2

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery {

/// Which links are full at one level: those of exactly the least share, or also those whose shares
/// are larger by less than 2^-32 of it. Where all flows differ, remainders of integer division must
/// not order links that are equal, or equal flows end at many instants.
enum class ShareTies : std::uint8_t { exact, rounded };

class MaxMinFilling {
 public:
  using Rate = std::uint64_t;

  explicit MaxMinFilling(ShareTies ties) : ties_{ties} {}

  /// Begins a filling on links that are numbered below `links`.
  void begin(std::size_t links);
  /// A link on which open flows cross, `flows` in all: what its other flows leave of its capacity.
  void add_link(std::uint32_t link, Rate left, std::uint64_t flows);
  /// The largest rate of an open flow class; none without.
  void add_cap(std::uint32_t flow_class, Rate cap) { caps_.push_back({cap, flow_class}); }

  /// Raises the rates to the next level and stops the flow classes there. Returns the level; 0 when
  /// no class is open.
  /// Flows   what crosses what:
  ///           bool open(flow_class)         takes part and has not stopped yet
  ///           void stop(flow_class, rate)   stops at its cap
  ///           void stop(flow_class, rate, link)   or by a link that is full: of several with
  ///                                               exactly the same share, the one added last
  ///                                               (ShareTies::exact)
  ///           void each_on(link, visit)     calls visit(flow_class), stopped ones included
  ///           void each_crossing(flow_class, visit)   calls visit(link, multiplicity)
  /// Errors  a link with more flows than rate to share: ContractError
  template <class Flows>
  Rate rise(Flows& flows) {
    if (!ordered_) order();
    const Rate lowest = lowest_share();
    while (next_cap_ < caps_.size() && !flows.open(caps_[next_cap_].flow_class)) ++next_cap_;
    const bool capped = next_cap_ < caps_.size();
    if (capped && caps_[next_cap_].rate < lowest) {
      const Cap cap = caps_[next_cap_++];
      flows.stop(cap.flow_class, cap.rate);
      leave_links(flows, cap.flow_class, cap.rate);
      return cap.rate;
    }
    if (lowest == no_link) return 0;
    take_full(lowest);
    for (const LinkLevel& full : full_) {
      flows.each_on(full.link, [&](std::uint32_t flow_class) {
        if (!flows.open(flow_class)) return;
        flows.stop(flow_class, lowest, full.link);
        leave_links(flows, flow_class, lowest);
      });
    }
    for (; next_cap_ < caps_.size() && caps_[next_cap_].rate == lowest; ++next_cap_) {
      const std::uint32_t flow_class = caps_[next_cap_].flow_class;
      if (!flows.open(flow_class)) continue;
      flows.stop(flow_class, lowest);
      leave_links(flows, flow_class, lowest);
    }
    return lowest;
  }

  std::size_t memory() const;  // bytes

 private:
  static constexpr Rate no_link = std::numeric_limits<Rate>::max();

  struct FillingLink {
    Rate left = 0;
    std::uint64_t open = 0;  // flows that have not stopped
  };
  /// A link's share when it was last computed. Shares only grow, so the share now is no less.
  struct LinkLevel {
    Rate least = 0;
    std::uint64_t open = 0;  // at that time
    std::uint32_t link = 0;
    std::uint32_t number = 0;  // of the link, in the order added

    friend bool operator>(const LinkLevel& a, const LinkLevel& b) { return a.least > b.least; }
  };
  struct Cap {
    Rate rate = 0;
    std::uint32_t flow_class = 0;
  };

  void order();
  Rate lowest_share();
  void sink_first();
  void take_full(Rate lowest);

  template <class Flows>
  void leave_links(Flows& flows, std::uint32_t flow_class, Rate rate) {
    flows.each_crossing(flow_class, [&](std::uint32_t link, std::uint64_t multiplicity) {
      links_[link].left -= multiplicity * rate;
      links_[link].open -= multiplicity;
    });
  }

  ShareTies ties_;
  bool ordered_ = false;
  std::vector<FillingLink> links_;
  std::vector<LinkLevel> shares_;  // a min-heap
  std::vector<Cap> caps_;          // ascending
  std::size_t next_cap_ = 0;
  std::vector<LinkLevel> full_;  // links at the present level
};

}  // namespace orrery
