#include "scenarios/whole_run/published.hpp"

#include <catch2/catch.hpp>

#include "scenarios/whole_run/whole_run.hpp"

namespace orrery::scenarios {

TEST_CASE("Published trainings: the prior of --all-in and its range with operators left out") {
  const Table table =
      Table::load(std::string{ORRERY_SOURCE} + "/scenarios/whole_run/whole_runs.csv");
  REQUIRE(holds_whole_runs(table));
  const PublishedRunsReport report = compare_whole_runs(table, {.threads = 2, .progress = {}});
  CHECK(report.json["rows"] == 58);
  CHECK(report.json["scored"] == published_runs.runs);
  CHECK(report.json["simulated"].get<int>() >= 7);
  // The two numbers that the product carries are this fit's; predictions of the step move it a
  // little.
  CHECK(report.json["fit"]["ln_mean"].get<double>() == Approx(published_runs.mean).margin(0.05));
  CHECK(report.json["fit"]["ln_deviation"].get<double>() ==
        Approx(published_runs.deviation).margin(0.04));
  CHECK(report.json["ratio"]["p10"].get<double>() == Approx(published_runs.p10).margin(0.05));
  CHECK(report.json["ratio"]["p50"].get<double>() == Approx(published_runs.p50).margin(0.07));
  CHECK(report.json["ratio"]["p90"].get<double>() == Approx(published_runs.p90).margin(0.15));
  const double inside = report.json["interval"]["inside_pct"].get<double>();
  CHECK(inside >= 70);
  CHECK(inside <= 90);
}

TEST_CASE("A row of published trainings is refused with its line") {
  const auto compare = [](const std::string& row) {
    return compare_whole_runs(
        Table::parse("run,operator,gpu_hours,alone_gpu_hours\n" + row, "runs.csv"), {});
  };
  CHECK_THROWS_WITH(compare("a,b,0,5\n"),
                    "runs.csv:line 2: column 'gpu_hours': expected hours above 0, found \"0\"");
  CHECK_THROWS(compare("a,b,5,\n"));
  CHECK(compare("a,b,10,5\nc,d,12,6\n").json["runs"][0]["ratio"] == 2);
}

}  // namespace orrery::scenarios
