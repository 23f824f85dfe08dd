#pragma once
// One measured step time against its prediction: which default, switch of the stack or slow part
// would explain the difference. Leaves out causes that come together: each is tried alone.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario/scenario.hpp"

namespace orrery::scenarios {

/// What a measured run may have done otherwise than its prediction: a field of the plan that is not
/// stated, or a switch of the profile set the other way.
struct StepChange {
  std::string cause;  // "recompute=full", "attention kernel: the other way than nemo"
  std::string flags;  // that predict it; empty: none does
  double prior = 0;   // how likely before the measurement
  std::string basis;  // of the prior
  /// The question with it; nothing where it is refused or changes nothing.
  std::function<std::optional<models::Question>(const models::Question&)> apply;
};
std::vector<StepChange> changes_that_may_explain(const Scenario& scenario,
                                                 const models::Question& question);

/// Prior of parts that are slow: the share of jobs of which that decides (see `explain_measured`).
inline constexpr double share_of_slow_machines = 0.425 * 0.017;
inline constexpr const char* basis_of_slow_machines =
    "slow machines decide 1.7 % of the 42.5 % of jobs that are slowed by 1.1 or more";

/// A cause, and how well it explains the measured step.
struct Explanation {
  std::string cause;  // "recompute=full", "attention kernel the other way", "one NIC at half rate"
  std::string flags;  // that predict it, `--set /plan/recompute=full`; empty: none does
  Time step{};        // predicted with it
  double prior = 0;   // how likely before the measurement
  std::string basis;  // of the prior
  double weight = 0;  // after it; those of all causes and of `none` add up to 1
};

struct ExplainedStep {
  Time measured{}, predicted{};
  bool inside_range = false;  // the measured step, from p10 to p90 of the prediction
  /// That nothing is different from what was assumed: the prediction's own error.
  double weight_of_none = 0;
  /// The likeliest first, the last ones left out. None where the step agrees within 1 %.
  std::vector<Explanation> explanations;
};

/// weight = prior x density of ln(measured / step) around 0, with the standard deviation of a run
/// (0.05, models/prediction/error/uncertainty.hpp); of `none`, with that of the prediction's range.
/// Priors:
///   a field of the plan that is not stated  the share of the stack's published recipes that give
///                                           it this value, with one recipe in ten added for
///                                           every value; 0.1 where none states the field
///   a switch of the profile                 the share of shipped profiles that have it the other
///                                           way; a tenth of it where the stack is known
///   stragglers                              the share of jobs that lose this much to them
///   a slow NIC or GPU                       the share of jobs of which that decides
/// Source  of the last two: Lin et al. 2025, "Understanding stragglers in large model training",
///         arXiv 2505.05713: of 3,079 jobs on 128 GPUs and more 42.5 % are slowed by 1.1 and more,
///         10 % of GPU time is lost at 21.3 % and 1 % at 45 %; of the slowed jobs, a few slow
///         machines dominate in 1.7 %
ExplainedStep explain_measured(const Scenario& scenario, const models::Question& question,
                               const models::Prediction& prediction, Time measured);

/// `{step_time_s, error_pct, inside_range, weight_of_none, explanations[{cause, flags, step_time_s,
/// error_pct, prior, weight, basis}]}`.
Json to_json(const ExplainedStep& found);
std::string text_of(const ExplainedStep& found, bool colour);
/// What a report says where there is no explanation, by `inside_range`.
std::string_view words_without_explanation(bool inside_range);

/// Errors  `--measured: expected a step time such as "1.7 s", found 'x'`
Time read_measured_flag(const std::string& text);

}  // namespace orrery::scenarios
