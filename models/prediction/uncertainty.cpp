#include "models/prediction/uncertainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/plan/derived.hpp"
#include "models/prediction/published_errors.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

double widening(std::int64_t fallbacks) {
  return std::pow(widening_of_a_fallback_curve, static_cast<double>(fallbacks));
}

namespace {

Residuals of_generic() {
  static const Residuals residuals = [] {
    const Document document = Document::from(software_profile("generic"), "generic");
    const Software generic = read_software(document.root());
    ensure(generic.residuals.has_value(), "the generic profile states its uncertainty");
    return *generic.residuals;
  }();
  return residuals;
}

/// The interval contains the prediction, even where all published runs were off in one direction.
Residuals of_sharded(const Software& software) {
  const auto [errors, own] = sharded_errors_of(software);
  return {.p10 = std::min(0.0, errors.log_p10),
          .p90 = std::max(0.0, errors.log_p90),
          .rows = errors.rows,
          .source = published_errors().source,
          .of = own ? "ZeRO-2, ZeRO-3 and FSDP on this stack"
                    : "ZeRO-2, ZeRO-3 and FSDP on all stacks"};
}

bool ran_at(const Residuals& residuals, const std::string& site) {
  return std::ranges::any_of(residuals.places,
                             [&](const FittedPlace& each) { return each.site == site; });
}

double square(double value) {
  return value * value;
}

}  // namespace

Distance distance_of(const Software& software, const hardware::Cluster& cluster) {
  if (!software.residuals) {
    return software.lineage.empty() ? Distance::unknown_stack : Distance::unseen_stack;
  }
  const Residuals& own = *software.residuals;
  if (own.places.empty()) return Distance::same_site;
  if (software.year != 0 && (software.year < own.from_year || software.year > own.to_year)) {
    return Distance::another_era;
  }
  return ran_at(own, cluster.site.name) ? Distance::same_site : Distance::another_site;
}

std::string_view name(Distance distance) {
  constexpr std::array<std::string_view, 5> names{
      "at the same site", "at another site", "of another era",
      "wider for a stack without runs of its own", "of an unknown stack"};
  return names[static_cast<std::size_t>(distance)];
}

Residuals at_distance(const Residuals& own, Distance distance) {
  constexpr double of_run = 0.05, of_site = 0.07, of_era = 0.06, of_stack = 0.07;
  Residuals wider = own;
  if (distance == Distance::same_site || distance == Distance::unknown_stack) return wider;
  if (distance == Distance::unseen_stack) {
    const double spread = std::sqrt(square(of_run) + square(of_site) + square(of_stack));
    wider.p10 = -0.7 * spread;
    wider.p90 = 1.7 * spread;
    return wider;
  }
  const double era = distance == Distance::another_era ? of_era : 0;
  const double more = square(1.28) * (square(of_site) + square(era));
  wider.p10 = -std::sqrt(square(own.p10) + more);
  wider.p90 = std::sqrt(square(own.p90) + more);
  return wider;
}

Residuals residuals_of(const Software& software, const Plan& plan,
                       const hardware::Cluster& cluster) {
  const Residuals own = residuals_of(software, plan);
  if (shards_gradients(plan)) return own;
  const Distance distance = distance_of(software, cluster);
  Residuals wider = at_distance(own, distance);
  if (distance != Distance::same_site && distance != Distance::unknown_stack) {
    wider.of = std::string{distance == Distance::unseen_stack ? "all stacks" : own.of} + ", " +
               std::string{name(distance)};
  }
  return wider;
}

Residuals residuals_of(const Software& software, const Plan& plan) {
  if (shards_gradients(plan)) return of_sharded(software);
  return software.residuals ? *software.residuals : of_generic();
}

Uncertainty uncertainty_of(Time step, const Residuals& residuals, std::int64_t fallbacks,
                           double of_curves) {
  constexpr double decile = 1.28;  // of a normal error, in standard deviations
  const double wider = widening(fallbacks);
  const auto away = [&](double quantile) {
    return std::hypot(wider * quantile, decile * of_curves);
  };
  return {.p10 = scaled(step, std::exp(-away(residuals.p10))),
          .p50 = step,
          .p90 = scaled(step, std::exp(away(residuals.p90)))};
}

}  // namespace orrery::models
