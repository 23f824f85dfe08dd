#include "scenarios/purchase/purchase_ranking.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Marks the Pareto front of days and cost: from the fastest on, each choice that is cheaper than
/// all before it. Only among the best known prices: an indication displaces no offer.
void mark_front(std::vector<PurchaseChoice>& choices) {
  std::vector<PurchaseChoice*> order;
  int best = 2;
  for (const PurchaseChoice& each : choices) best = std::min(best, each.price_rank());
  for (PurchaseChoice& each : choices) {
    if (each.cost && each.price_rank() == best) order.push_back(&each);
  }
  std::ranges::stable_sort(order, [](const PurchaseChoice* a, const PurchaseChoice* b) {
    return std::tie(a->days, *a->cost) < std::tie(b->days, *b->cost);
  });
  const PurchaseChoice* cheapest = nullptr;
  for (PurchaseChoice* each : order) {
    each->pareto = cheapest == nullptr || *each->cost < *cheapest->cost;
    if (each->pareto) cheapest = each;
  }
}

void put_in_order(const PurchaseQuery& query, std::vector<PurchaseChoice>& choices) {
  const bool fastest_first = query.budget && !query.deadline_days;
  const auto rank = [&](const PurchaseChoice& each) {
    const double days = each.days, cost = each.cost.value_or(Money{}).count();
    const int price = each.price_rank();
    if (!each.meets) {
      const double excess = excess_of(query, each.limit_days, each.limit_cost);
      return std::tuple{1, price, each.tight(), excess, 0.0};
    }
    return fastest_first ? std::tuple{0, price, each.tight(), days, cost}
                         : std::tuple{0, price, each.tight(), cost, days};
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
      same->also.push_back(each.node);
    } else {
      different.push_back(std::move(each));
    }
  }
  choices = std::move(different);
}

}  // namespace

double excess_of(const PurchaseQuery& query, double days, std::optional<Money> cost) {
  double excess = 0;
  if (query.deadline_days) excess = days / *query.deadline_days;
  if (!query.budget) return excess;
  if (!cost) return std::numeric_limits<double>::infinity();
  return std::max(excess, ratio(*cost, *query.budget));
}

void rank_choices(const PurchaseQuery& query, std::vector<PurchaseChoice>& choices) {
  merge_equals(choices);
  mark_front(choices);
  put_in_order(query, choices);
}

}  // namespace orrery::scenarios
