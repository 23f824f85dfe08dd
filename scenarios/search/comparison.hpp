#pragma once
// Compares the best plans: which of them cannot be distinguished, and why each is slower.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

/// Plans whose objective is within this share of the best one's cannot be distinguished. The share
/// is the median difference between the errors of two published plans: `alike` for plans with the
/// same tensor, pipeline and micro-batch sizes, which share most of their error, and `others`. With
/// a profile that is not fitted to the stack, `others` is by how much the published plan that was
/// predicted fastest was slower than the fastest measured one.
struct Indistinguishable {
  double alike = 0, others = 0;  // shares

  double of(const models::Plan& best, const models::Plan& plan) const;
};
Indistinguishable indistinguishable(const models::Software& software);
/// The same in a sentence, with the data that it rests on.
std::string words_of_ties(const models::Software& software);

/// Expected time of the plan that is predicted fastest, corrected for the winner's curse: the best
/// of many predictions is probably one with a favourable error.
///   step e^(s m(n)),  m(n) = Phi^-1((n - 0.375) / (n + 0.25))
/// s    spread of the errors that plans of one model do not share, with fitted profiles; with
///      another profile the error of a plan's kind is systematic, and its mean is not known
///      (models/prediction/error/published_errors.hpp)
/// n    distinct cuts (tensor, pipeline, micro-batch) whose best plan is predicted within s of the
///      first
/// Source  m(n): mean of the largest of n normal errors, Blom 1958, "Statistical Estimates and
///         Transformed Beta-Variables"
struct ExpectedStep {
  Time step{};
  std::size_t rivals = 0;  // n
};
ExpectedStep expected_of(const PlanAnswer& answer, const Objective& objective);

/// By which share the objective of a plan is above the best plan's: on shared links if both were
/// evaluated there, else as both were searched.
double excess_over(const Candidate& best, const Candidate& plan, const Objective& objective);

/// One of the best plans.
struct RankedPlan {
  Candidate candidate;
  /// Of the objective over the best plan's, as a share: both on shared links, or both as searched.
  double excess = 0;
  bool as_good = false;  // cannot be distinguished from the best
  /// Waterfall parts of its step less the best plan's; they add up to the difference of the two
  /// steps, and are 0 for the best plan. Parts of a plan on more nodes are multiplied by the ratio
  /// of nodes: the same GPU time, as if spent on the best plan's GPUs.
  std::vector<models::WaterfallPart> against_best;
};

/// What a search has proven about its best plan: nothing that fits as well has, with the values
/// that were searched, a smaller measure of the objective than `bound`. All are of the figure that
/// ranks: with traffic on links where plans were evaluated so.
struct Certificate {
  double bound = 0;
  double gap = 0;         // 1 - bound / the best plan's measure
  bool proven = false;    // `bound` is the best plan's own measure
  bool searched = false;  // no plan is better than the best one of the search, by static figures
};
/// Nothing without a plan, and where the search was stopped before there was a bound.
std::optional<Certificate> certificate_of(const PlanAnswer& answer, const Objective& objective);

/// Plans with the same tensor, pipeline and micro-batch sizes that cannot be distinguished from the
/// best one, of those that were estimated.
struct PlanClass {
  const Candidate* best = nullptr;
  double excess = 0;  // of its best plan's objective over that of the best of all, as a share
  std::int64_t plans = 0;
  std::vector<SearchedValues> free;  // other searched fields in which they differ, and the values
};
/// The best plan's own class first. `open` receives how many plans that were not estimated cannot
/// be distinguished, at most.
std::vector<PlanClass> classes_of(const PlanQuery& query, const PlanAnswer& answer,
                                  const Objective& objective, std::int64_t& open);

/// The first `top` of an answer's plans.
std::vector<RankedPlan> compare_best(const PlanQuery& query, const PlanAnswer& answer,
                                     const Objective& objective, std::size_t top);

/// The best `top` of the tightly fitting plans that would beat the best plan; none if that one fits
/// tightly, too.
std::vector<RankedPlan> tight_ahead(const PlanQuery& query, const PlanAnswer& answer,
                                    const Objective& objective, std::size_t top);

/// The parts that differ most, increases first: "+1.20 s pipeline bubble, -0.40 s host". At most
/// three, none below a hundredth of the largest difference. Empty if nothing differs.
std::string why(const RankedPlan& plan);

/// What every search leaves out or assumes, one sentence each.
std::vector<std::string> search_assumptions(const PlanQuery& query);

}  // namespace orrery::scenarios
