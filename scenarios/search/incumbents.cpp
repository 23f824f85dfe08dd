#include "scenarios/search/incumbents.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "models/prediction/error/published_errors.hpp"

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

/// By which share the step of a rival of the best plan may be longer (comparison.hpp).
double rival_spread() {
  return models::published_errors().fitted.plan_spread / 100;
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

void Incumbents::add(const PlacedPlan& placed, double measure, double against, Bytes memory) {
  all_.insert({measure, memory});
  if (wanted_.against != nullptr && !beaten(measure, against)) {
    const auto worse = [&](const auto& each) {
      return each.first >= measure && each.second >= against;
    };
    std::erase_if(front_, worse);
    front_.emplace(measure, against);
  }
  double& of_cut = of_cut_.try_emplace(cut_of(placed.plan), measure).first->second;
  of_cut = std::min(of_cut, measure);
  for (std::size_t i = 0; i < plan_kinds.size(); ++i) {
    if (plan_kinds[i].has(query_, placed)) of_kind_[i] = std::min(of_kind_[i], measure);
  }
}

bool Incumbents::beaten(double measure, double against) const {
  const auto after = front_.upper_bound(measure);
  return after != front_.begin() && std::prev(after)->second <= against;
}

bool Incumbents::wants(const PlacedPlan& placed, double bound, double against) const {
  if (wanted_.best == Wanted::every || all_.empty()) return true;
  const double best = all_.begin()->first;
  if (wanted_.gap > 0) return bound < best * (1 - wanted_.gap);
  if (all_.size() < wanted_.best) return true;
  const auto last = std::next(all_.begin(), static_cast<std::ptrdiff_t>(wanted_.best) - 1);
  if (bound <= last->first) return true;
  if (wanted_.against != nullptr && !beaten(bound, against)) return true;
  if (!wanted_.rivals) return false;
  const double rival = best * (1 + rival_spread());
  if (bound <= rival) {
    const auto own = of_cut_.find(cut_of(placed.plan));
    if (own == of_cut_.end() || own->second > rival) return true;
  }
  for (std::size_t i = 0; i < plan_kinds.size(); ++i) {
    if (bound <= of_kind_[i] && plan_kinds[i].has(query_, placed)) return true;
  }
  return false;
}

}  // namespace orrery::scenarios
