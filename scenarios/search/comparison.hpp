#pragma once
// The best plans side by side: which of them cannot be distinguished, and why each loses.

#include <string>
#include <vector>

#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

/// Plans whose objective is within this share of the best one's cannot be distinguished. Plans that
/// cut the model alike, with the same tensor, pipeline and micro-batch sizes, share most of what is
/// missed of them: of such plans and of others by how much errors of two published plans differed
/// as often as not. By a profile that is not the stack's own, of others how much longer the
/// published plan that is predicted fastest took than the fastest one.
struct Indistinguishable {
  double alike = 0, others = 0;  // shares

  double of(const models::Plan& best, const models::Plan& plan) const;
};
Indistinguishable indistinguishable(const models::Software& software);
/// The same in a sentence, with what it rests on.
std::string words_of_ties(const models::Software& software);

/// What the plan predicted fastest takes on average.
///   step e^(r50 + s m(n)),  m(n) = Phi^-1((n - 0.375) / (n + 0.25))
/// r50  median of ln(measured / predicted) of the stack (models/prediction/uncertainty.hpp)
/// s    errors that plans of one model do not share, by profiles of their stacks; what another
///      profile misses of a plan's kind is not chance, and no mean of it is known
///      (models/prediction/published_errors.hpp)
/// n    ways to cut the model whose best plan cannot be distinguished from the first: the first of
///      them is the one whose error flatters it most
/// Source  m(n): mean of the largest of n normal errors, Blom 1958, "Statistical Estimates and
///         Transformed Beta-Variables"
struct ExpectedStep {
  Time step{};
  std::size_t rivals = 0;  // n
};
ExpectedStep expected_of(const PlanQuery& query, const PlanAnswer& answer,
                         const Objective& objective);

/// One of the best plans.
struct RankedPlan {
  Candidate candidate;
  double excess = 0;     // of the objective over the best plan's, as a share
  bool as_good = false;  // cannot be distinguished from the best
  /// Parts of its step less the best plan's, in the order of a waterfall: they add up to the
  /// difference of the two steps. Of the best plan all are 0. Where one takes more nodes, its parts
  /// count as often: the same GPU time, as if it were spent on the best plan's GPUs.
  std::vector<models::WaterfallPart> against_best;
};

/// The first `top` of an answer's plans.
std::vector<RankedPlan> compare_best(const PlanQuery& query, const PlanAnswer& answer,
                                     const Objective& objective, std::size_t top);

/// Of the plans that fit tightly the best `top` that would beat the best one; none where that one
/// fits tightly, too.
std::vector<RankedPlan> tight_ahead(const PlanQuery& query, const PlanAnswer& answer,
                                    const Objective& objective, std::size_t top);

/// The parts that differ most, those that grow first: "+1.20 s pipeline bubble, -0.40 s host". At
/// most three, none below a hundredth of the difference's largest part. Empty if nothing differs.
std::string why(const RankedPlan& plan);

/// What every search leaves out or takes for granted, one sentence each.
std::vector<std::string> search_assumptions(const PlanQuery& query);

}  // namespace orrery::scenarios
