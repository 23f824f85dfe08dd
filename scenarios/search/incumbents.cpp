#include "scenarios/search/incumbents.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "models/prediction/published_errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::array<PlanKind, 2> plan_kinds{{
    {"best_without_zero3", "without ZeRO-3",
     [](const PlanQuery&, const PlacedPlan& placed) {
       return placed.plan.sharding.zero != models::Zero::three;
     }},
    {"best_on_all_nodes", "on all nodes",
     [](const PlanQuery& query, const PlacedPlan& placed) {
       return placed.nodes == query.cluster.nodes;
     }},
}};

/// The largest share by which two plans may differ that a report still calls similar.
double widest_gap() {
  const models::Ordering& fitted = models::published_errors().fitted;
  const models::Ordering& unfitted = models::published_errors().unfitted;
  return std::max({fitted.plan_spread, fitted.gap_of_alike, fitted.gap_of_others,
                   unfitted.gap_of_alike, unfitted.mean_regret}) /
         100;
}

}  // namespace

std::span<const PlanKind> named_kinds() {
  return plan_kinds;
}

const Candidate* best_of_kind(const PlanQuery& query, const PlanAnswer& answer,
                              const PlanKind& kind) {
  const auto found = std::ranges::find_if(
      answer.fitting, [&](const Candidate& each) { return kind.has(query, each.placed); });
  const bool any = found != answer.fitting.end() && found != answer.fitting.begin();
  return any && found->estimate.fit == answer.fitting.front().estimate.fit ? &*found : nullptr;
}

Incumbents::Incumbents(const PlanQuery& query, Wanted wanted)
    : query_{query},
      wanted_{wanted},
      of_kind_(plan_kinds.size(), std::numeric_limits<double>::infinity()) {}

void Incumbents::add(const PlacedPlan& placed, double measure, Bytes memory) {
  all_.insert({measure, memory});
  for (std::size_t i = 0; i < plan_kinds.size(); ++i) {
    if (plan_kinds[i].has(query_, placed)) of_kind_[i] = std::min(of_kind_[i], measure);
  }
}

bool Incumbents::wants(const PlacedPlan& placed, double bound) const {
  if (wanted_.best == Wanted::every || all_.empty()) return true;
  const double best = all_.begin()->first;
  if (wanted_.gap > 0) return bound < best * (1 - wanted_.gap);
  if (all_.size() < wanted_.best) return true;
  const auto last = std::next(all_.begin(), static_cast<std::ptrdiff_t>(wanted_.best) - 1);
  if (bound <= std::max(last->first, best * (1 + widest_gap()))) return true;
  for (std::size_t i = 0; i < plan_kinds.size(); ++i) {
    if (bound <= of_kind_[i] && plan_kinds[i].has(query_, placed)) return true;
  }
  return false;
}

}  // namespace orrery::scenarios
