#include "scenarios/scenario/plan_words.hpp"

#include <fmt/format.h>

#include "models/plan/derived.hpp"
#include "models/prediction/error/published_errors.hpp"

namespace orrery::scenarios {

std::optional<std::string> sharded_note(const models::Plan& plan) {
  if (!models::shards_gradients(plan)) return std::nullopt;
  const models::StepErrors& errors = models::published_errors().sharded;
  return fmt::format(
      "ZeRO-{}: no stack is fitted to ZeRO-2, ZeRO-3 and FSDP. Predictions of their {} published "
      "runs were off by {:.1f} % (median; 90th percentile {:.0f} %, bias {:+.1f} %)",
      word_of(models::zero_words, plan.sharding.zero), errors.rows, errors.median_pct,
      errors.p90_pct, errors.bias_pct);
}

Json sharded_json() {
  const models::StepErrors& errors = models::published_errors().sharded;
  return {{"rows", errors.rows},
          {"median_abs_error_pct", errors.median_pct},
          {"p90_abs_error_pct", errors.p90_pct},
          {"bias_pct", errors.bias_pct}};
}

Json to_json(const models::Evidence& evidence) {
  Json kinds = Json::array(), steps = Json::array();
  for (const models::RunKind kind : evidence.kinds) {
    kinds.push_back(word_of(models::run_kind_words, kind));
  }
  for (std::size_t i = 0; i < evidence.steps.size(); ++i) {
    steps.push_back({{"step", word_of(models::range_step_words, evidence.steps[i])},
                     {"factor", evidence.factors[i]}});
  }
  const auto named = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return {{"kinds", kinds},
          {"runs", evidence.rows},
          {"groups", evidence.groups},
          {"stack", named(evidence.stack)},
          {"gpu", named(evidence.gpu)},
          {"widened_by", steps}};
}

std::string fit_words(models::Fit fit, double probability, double headroom) {
  const std::string chance = fmt::format("{:.0f} % of measured peaks would fit", 100 * probability);
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
