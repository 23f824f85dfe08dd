#include "scenarios/validation/statistics.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::scenarios {
namespace {

TEST_CASE("A quantile lies on the line between its neighbours") {
  // Positions 0.5 x 3 = 1.5 and 0.9 x 3 = 2.7 in 1 2 4 8.
  CHECK(quantile({8, 1, 4, 2}, 0.5) == Approx(3.0));
  CHECK(quantile({8, 1, 4, 2}, 0.9) == Approx(4 + 0.7 * 4));
  CHECK(quantile({8, 1, 4, 2}, 0.0) == 1);
  CHECK(quantile({8, 1, 4, 2}, 1.0) == 8);
  CHECK(quantile({5}, 0.9) == 5);
}

TEST_CASE("A quantile of nothing is our mistake") {
  CHECK_THROWS_AS(quantile({}, 0.5), ContractError);
}

TEST_CASE("Errors are summed up by size, their bias by sign") {
  // Sizes 10 20 30 40 50: median 30, mean 30, p90 at position 3.6: 46. Signed -50 -20 10 30 40: 10.
  const ErrorSummary summary = summary_of({10, -20, 30, 40, -50});
  CHECK(summary.rows == 5);
  CHECK(summary.median == Approx(30));
  CHECK(summary.mean == Approx(30));
  CHECK(summary.p90 == Approx(46));
  CHECK(summary.bias == Approx(10));
}

TEST_CASE("The regret is what the plan predicted fastest took longer than the fastest") {
  // Predicted fastest is the one of 11 s; the fastest took 10 s: 10 %. Of the pairs, 10 and 10.4
  // differ by under 5 %; 10-11, 10-12, 10.4-11, 10.4-12, 11-12 count, and 12 is above all others
  // in the prediction, 11 below both others: 3 of 5.
  const Ranking ranking =
      ranking_of({{"g", 10, 5, 0}, {"g", 10.4, 6, 1}, {"g", 11, 4, 2}, {"g", 12, 9, 3}});
  CHECK(ranking.groups == 1);
  CHECK(ranking.mean_regret == Approx(10));
  CHECK(ranking.pairs_in_order == Approx(60));
}

TEST_CASE("What plans of a group do not share is their errors around the group's median") {
  // All twice too long, but for +-1, +-3 %: around ln 2 the distances are 0.01, 0.01, 0.03, 0.03,
  // their median 0.02, and 1.4826 times that the deviation.
  std::vector<RankedRun> group;
  std::size_t plan = 0;
  for (const double error : {-0.03, -0.01, 0.01, 0.03}) {
    const double measured = 10 + static_cast<double>(plan);
    group.push_back({"g", measured, 2 * measured * std::exp(error), plan});
    ++plan;
  }
  CHECK(ranking_of(group).plan_spread == Approx(2.9652));
}

TEST_CASE("Errors of two plans differ by less where they cut the model alike") {
  // Two plans of each cut, errors 0, 1 and 10, 12 %: 1 and 2 % alike; 10, 12, 9 and 11 % others.
  const std::vector<double> errors{0, 0.01, 0.10, 0.12};
  std::vector<RankedRun> group;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double measured = 10 + static_cast<double>(i);
    group.push_back({"g", measured, measured * std::exp(errors[i]), i, i / 2});
  }
  CHECK(ranking_of(group).gap_of_alike == Approx(1.5));
  CHECK(ranking_of(group).gap_of_others == Approx(10.5));
  // Repeats of one plan are no pair.
  group[1].plan = 0;
  CHECK(ranking_of(group).gap_of_alike == Approx(2));
}

TEST_CASE("Groups of three, and groups of equal times, rank nothing") {
  CHECK(ranking_of({{"a", 1, 1, 0}, {"a", 2, 2, 1}, {"a", 3, 3, 2}}).groups == 0);
  CHECK(ranking_of({{"b", 10, 1, 0}, {"b", 10, 2, 1}, {"b", 10.5, 3, 2}, {"b", 11, 4, 3}}).groups ==
        0);
  CHECK(
      ranking_of({{"b", 10, 1, 0}, {"b", 10, 2, 1}, {"b", 10.5, 3, 2}, {"b", 11.1, 4, 3}}).groups ==
      1);
}

TEST_CASE("Repeats of one plan are no pair: nothing that is asked tells them apart") {
  // 10-12, 10-13 and 11-12, 11-13 count; 10-11 and 12-13 are repeats. 11-12 is in the wrong order.
  const Ranking ranking =
      ranking_of({{"g", 10, 5, 7}, {"g", 11, 8, 7}, {"g", 12, 6, 8}, {"g", 13, 9, 8}});
  CHECK(ranking.pairs_in_order == Approx(75));
}

}  // namespace
}  // namespace orrery::scenarios
