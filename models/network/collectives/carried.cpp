#include "models/network/collectives/carried.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/collectives/fitted_line.hpp"
#include "models/network/collectives/measured.hpp"
#include "sim/input/units.hpp"

namespace orrery::models::collectives {
namespace {

using hardware::CollectiveTable;
using Point = hardware::SizeTable::Point;
using Points = std::vector<Point>;

bool is_carried_to(Collective collective) {
  return collective != Collective::all_reduce && collective != Collective::gather &&
         collective != Collective::scatter;
}

/// The measured all-reduces over their cost model.
struct Measured {
  double latency = 1;
  double per_byte = 1;
  bool shows_rate = false;
};

/// The middle one of these points, ordered by `of`.
template <class Of>
Point middle(Points::const_iterator first, Points::const_iterator last, Of of) {
  Points few(first, last);
  std::ranges::sort(few, {}, of);
  return few[few.size() / 2];
}

Measured compared(const CostCall& call, const CollectiveTable& table) {
  const CostCall reduction = measured_call(call, table, Collective::all_reduce);
  const Points& points = table.times.points();
  const auto taken = std::min<std::ptrdiff_t>(3, std::ssize(points) / 2);
  const Point small = middle(points.begin(), points.begin() + taken, &Point::second);
  const Point large = middle(points.end() - taken, points.end(), [](const Point& each) {
    return seconds(each.second) / static_cast<double>(each.first.count());
  });
  const Time latency = modelled(reduction, small.first).time;
  const Time expected = modelled(reduction, large.first).time - latency;
  Measured measured{.latency = ratio(small.second, latency)};
  measured.shows_rate = large.second > small.second * 2 && expected > Time{};
  if (measured.shows_rate) measured.per_byte = ratio(large.second - small.second, expected);
  return measured;
}

/// Part of `size` that crosses the group's busiest link, as the bus bandwidth counts it.
double crossing(const CostCall& call) {
  const double n = call.group.ranks, p = call.ranks_inside();
  const bool all_pairs =
      call.collective == Collective::all_to_all || call.collective == Collective::all_to_all_v;
  if (all_pairs && call.group.nodes > 1) return p * (n - p) / n;
  return bus_factor(call.collective, call.group.ranks);
}

/// b of the header.
double fluid_factor(const CostCall& call, const Measured& measured) {
  if (!measured.shows_rate) return 1;
  CostCall reduction = call;
  reduction.collective = Collective::all_reduce;
  const double on_wire = seconds(modelled(reduction, large_message).fluid) / crossing(reduction);
  const double own = seconds(modelled(call, large_message).fluid) / crossing(call);
  return std::max(std::min(measured.per_byte, 1.0), measured.per_byte * on_wire / own);
}

}  // namespace

const CollectiveTable* carrying_table(const CostCall& call) {
  if (!is_carried_to(call.collective) || nearest_table(call, call.collective)) return nullptr;
  const CollectiveTable* table = nearest_table(call, Collective::all_reduce);
  return table && table->times.points().size() >= 2 ? table : nullptr;
}

void carry_over(const CostCall& call, std::vector<CollectiveTime>& candidates) {
  const CollectiveTable* table = carrying_table(call);
  if (!table) return;
  const Measured measured = compared(call, *table);
  const Time more = scaled(modelled(call, Bytes{1}).time, measured.latency - 1);
  const double slower = fluid_factor(call, measured);
  for (CollectiveTime& one : candidates) {
    one.fluid = scaled(one.fluid, slower);
    one.links = {.nic = scaled(one.links.nic, slower), .nvlink = scaled(one.links.nvlink, slower)};
    one.latency = std::max(Time{}, one.latency + more);
    one.time = one.latency + one.fluid;
  }
}

std::string carried_note(const CostCall& call) {
  const CollectiveTable& table = *carrying_table(call);
  const CostCall reduction = measured_call(call, table, Collective::all_reduce);
  const Measured measured = compared(call, table);
  const FittedLine line = fitted_line(table.times.points());
  const std::string rate = measured.shows_rate
                               ? fmt::format(", {} of bus bandwidth",
                                             format(Bandwidth{crossing(reduction) / line.per_byte}))
                               : "";
  return fmt::format(
      "{} of {}: not measured; its cost model with {:.3g} times the latency and {:.3g} times the "
      "time on links, as the all_reduce table of {} shows ({}{})",
      name(call.collective), ranks_text(call.group), measured.latency, fluid_factor(call, measured),
      ranks_text(reduction.group), format(from_seconds(line.latency)), rate);
}

}  // namespace orrery::models::collectives
