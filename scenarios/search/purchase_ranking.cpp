#include "scenarios/search/purchase_ranking.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Marks the Pareto front of days and cost: from the fastest on, each choice that is cheaper than
/// all before it.
void mark_front(std::vector<PurchaseChoice>& choices) {
  std::vector<PurchaseChoice*> order;
  for (PurchaseChoice& each : choices) order.push_back(&each);
  std::ranges::stable_sort(order, [](const PurchaseChoice* a, const PurchaseChoice* b) {
    return std::tie(a->days, a->cost) < std::tie(b->days, b->cost);
  });
  const PurchaseChoice* cheapest = nullptr;
  for (PurchaseChoice* each : order) {
    each->pareto = cheapest == nullptr || each->cost < cheapest->cost;
    if (each->pareto) cheapest = each;
  }
}

void put_in_order(const PurchaseQuery& query, std::vector<PurchaseChoice>& choices) {
  const bool fastest_first = query.budget && !query.deadline;
  const auto rank = [&](const PurchaseChoice& each) {
    const double days = each.days, cost = each.cost.count();
    if (!each.meets) {
      return std::tuple{1, each.tight(), excess_of(query, days, each.cost), 0.0};
    }
    return fastest_first ? std::tuple{0, each.tight(), days, cost}
                         : std::tuple{0, each.tight(), cost, days};
  };
  std::ranges::stable_sort(choices, {}, rank);
}

/// Merges node types with equal results into one choice.
void merge_equals(std::vector<PurchaseChoice>& choices) {
  std::vector<PurchaseChoice> different;
  for (PurchaseChoice& each : choices) {
    const auto same = std::ranges::find_if(different, [&](const PurchaseChoice& other) {
      return other.nodes == each.nodes && other.days == each.days && other.cost == each.cost;
    });
    if (same != different.end()) {
      same->also.push_back(each.rental.node);
    } else {
      different.push_back(std::move(each));
    }
  }
  choices = std::move(different);
}

}  // namespace

double excess_of(const PurchaseQuery& query, double days, Money cost) {
  double excess = 0;
  if (query.deadline) {
    excess = std::max(excess, days * seconds_per_day / seconds(*query.deadline));
  }
  if (query.budget) excess = std::max(excess, ratio(cost, *query.budget));
  return excess;
}

void rank_choices(const PurchaseQuery& query, std::vector<PurchaseChoice>& choices) {
  merge_equals(choices);
  mark_front(choices);
  put_in_order(query, choices);
}

}  // namespace orrery::scenarios
