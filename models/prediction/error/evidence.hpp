#pragma once
// Which published runs say how far a predicted step or peak of memory may be off: those of the same
// kind (task and strategy), each with its source left out of the fits. The spread is wider with
// every step from those runs to the question. Leaves out what all runs of a kind have in common and
// the question has not.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/words.hpp"

namespace orrery::models {

struct Question;

/// Kinds of training that are wrong in ways of their own; the first that applies decides.
enum class RunKind : std::uint8_t { adapters, tuning, encoders, experts, sharded, dense };
inline constexpr Words<RunKind, 6> run_kind_words{{{RunKind::adapters, "LoRA"},
                                                   {RunKind::tuning, "full fine-tuning"},
                                                   {RunKind::encoders, "fine-tuning of encoders"},
                                                   {RunKind::experts, "experts"},
                                                   {RunKind::sharded, "FSDP and ZeRO-2, 3"},
                                                   {RunKind::dense, "dense pre-training"}}};

/// What decides how far a question is from published runs.
struct RunTraits {
  std::vector<RunKind> kinds{};  // that apply; the first decides
  std::string stack{}, gpu{};
  int year = 0;  // of the stack; 0: not known
  bool assumes_attention = false, assumes_plan = false;
  bool recurs = false;  // layers whose kernels no fit has seen: Mamba-2, delta rules
};
RunTraits traits_of(const Question& question);

/// Published runs of one source and model on one GPU; in the record, all groups alike in `run`.
struct RunGroup {
  RunTraits run{};
  std::string source{};
  std::int64_t rows = 0, groups = 1;
};

/// Steps from the runs of a kind to a question.
enum class RangeStep : std::uint8_t { stack, gpu, era, attention, plan, recurrence };
inline constexpr Words<RangeStep, 6> range_step_words{
    {{RangeStep::stack, "none with this stack"},
     {RangeStep::gpu, "none on this GPU with this stack"},
     {RangeStep::era, "none of this year with this stack"},
     {RangeStep::attention, "attention kernel assumed"},
     {RangeStep::plan, "plan assumed"},
     {RangeStep::recurrence, "recurrent layers, which no fit has seen"}}};

/// Errors of the runs of one kind as if no step lay between them and the question: `between` groups
/// (80 % quantile of |bias|) and `within` them.
struct KindSpread {
  std::int64_t rows = 0, groups = 0;
  double between = 0, within = 0;
  std::int64_t groups_behind = 0;  // that `between` is of: those of all kinds where the own are few
};

/// All that ranges of predictions come from (models/prediction/published_errors.json).
struct RangeRecord {
  std::vector<RunGroup> groups;
  std::map<RunKind, KindSpread> kinds;
  std::array<double, range_step_words.size()> steps{};  // what each adds, by RangeStep
  /// Where no such run is of the stack: quantiles 10 and 90 % over the 80 % quantile of |.|.
  double unseen_low = 1, unseen_high = 1;

  double spread(RangeStep step) const { return steps.at(static_cast<std::size_t>(step)); }
};

/// The steps from the groups of a kind to a question. `source`: the groups of that one do not
/// count.
std::vector<RangeStep> steps_between(const std::vector<RunGroup>& groups, RunKind kind,
                                     const RunTraits& asked, std::string_view source = {});

/// The nearest published runs, and what follows from them.
struct Evidence {
  std::vector<RunKind> kinds{};
  std::string stack{};                // whose runs they are; empty: all stacks'
  std::string gpu{};                  // that they ran on; empty: others
  std::int64_t rows = 0, groups = 0;  // the nearest
  std::vector<RangeStep> steps{};     // that widen the range
  std::vector<double> factors{};      // by which each widens it, after those before it
  double low = 0, high = 0;           // p10 = predicted e^-low, p90 = predicted e^high
};

///   low, high = sqrt(o^2 (sum over kinds (t(n) b)^2 + sum over steps s^2) + w^2)
/// b, w  between groups of a kind, within those of the first;  s  spreads of the steps from them
/// n     groups behind b;  t(n)  quantile of Student's distribution of n - 1 degrees of freedom
///       over the normal one
/// o     unseen_low and unseen_high where no such run is of the stack, else 1
/// Kinds after the first count unless the stack has runs of all of them together.
Evidence evidence_of(const RangeRecord& record, const RunTraits& asked);

/// Evidence of the record that is built in; of a profile that its user fitted, which no published
/// run is of, its own residuals.
Evidence evidence_for(const Question& question);

/// The same for peak memory, of runs whose peak was measured.
Evidence memory_evidence_for(const Question& question);

/// "12 runs of LoRA in 5 groups with nemo-mlperf; none on this GPU with this stack (x 1.4)".
std::string words_of(const Evidence& evidence);

}  // namespace orrery::models
