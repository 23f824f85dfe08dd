#include "scenarios/plan_words.hpp"

#include <fmt/format.h>

#include "models/plan/derived.hpp"
#include "models/prediction/published_errors.hpp"

namespace orrery::scenarios {

std::optional<std::string> sharded_note(const models::Plan& plan,
                                        const models::Software& software) {
  if (!models::shards_gradients(plan)) return std::nullopt;
  const auto [errors, own] = models::sharded_errors_of(software);
  return fmt::format(
      "ZeRO-{}: no stack is fitted to ZeRO-2, ZeRO-3 and FSDP. Predictions of their {} published "
      "runs on {} were off by {:.1f} % (median; 90th percentile {:.0f} %, bias {:+.1f} %)",
      word_of(models::zero_words, plan.zero), errors.rows, own ? "this stack" : "all stacks",
      errors.median_pct, errors.p90_pct, errors.bias_pct);
}

Json sharded_json(const models::Software& software) {
  const auto [errors, own] = models::sharded_errors_of(software);
  return {{"rows", errors.rows},
          {"of", own ? "this stack" : "all stacks"},
          {"median_abs_error_pct", errors.median_pct},
          {"p90_abs_error_pct", errors.p90_pct},
          {"bias_pct", errors.bias_pct}};
}

std::string fit_words(models::Fit fit, double probability, double headroom) {
  const std::string chance = fmt::format("{:.0f} % of {} measured peaks would fit",
                                         100 * probability, models::published_errors().memory_rows);
  switch (fit) {
    case models::Fit::yes:
      return "fits: " + chance;
    case models::Fit::tight:
      return fmt::format("fits tightly, with less than {:.1f} % to spare: {}", 100 * headroom,
                         chance);
    case models::Fit::doubtful:
      return "may not fit: " + chance;
    default:
      return "does not fit: " + chance;
  }
}

}  // namespace orrery::scenarios
