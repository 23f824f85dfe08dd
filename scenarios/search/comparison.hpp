#pragma once
// The best plans side by side: which of them cannot be told apart, and why each loses.

#include <string>
#include <vector>

#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

/// Plans whose objective is within this share of the best one's cannot be told apart.
/// Source  `orrery validate` of 743 published training runs on 11 stacks: the median error of a
///         predicted step is 4.9 %
inline constexpr double indistinguishable = 0.05;

/// One of the best plans.
struct RankedPlan {
  Candidate candidate;
  double excess = 0;     // of the objective over the best plan's, as a share
  bool as_good = false;  // cannot be told apart from the best
  /// Parts of its step less the best plan's, in the order of a waterfall: they add up to the
  /// difference of the two steps. Of the best plan all are 0. Where one takes more nodes, its parts
  /// count as often: the same GPU time, as if it were spent on the best plan's GPUs.
  std::vector<models::WaterfallPart> against_best;
};

/// The first `top` of an answer's plans.
std::vector<RankedPlan> compare_best(const PlanQuery& query, const PlanAnswer& answer,
                                     Objective objective, std::size_t top);

/// The parts that differ most, those that grow first: "+1.20 s pipeline bubble, -0.40 s host". At
/// most three, none below a hundredth of the difference's largest part. Empty if nothing differs.
std::string why(const RankedPlan& plan);

/// A plan in a line of words: "TP 8 + SP · PP 16 x 6 · DP 8 ZeRO-1 · micro-batch 2 · recompute
/// none".
std::string words_of(const models::Plan& plan);

/// What `--plan` takes to mean this plan: "tensor=8,sequence=true,pipeline=16,...".
std::string flag_of(const models::Plan& plan);

/// What every search leaves out or takes for granted, one sentence each.
std::vector<std::string> search_assumptions(const PlanQuery& query);

}  // namespace orrery::scenarios
