// Twenty steps or fewer: the parent's numbers, moved no further than they say.

#include "scenarios/fitting/prior_fit.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "scenarios/fitting/software_fit.hpp"
#include "scenarios/fitting/software_rows.hpp"
#include "scenarios/validation/validation.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

models::Software parent() {
  return models::read_software(
      Document::from(models::software_profile("megatron-lm", 2021), "megatron-lm").root());
}

/// Steps of one node as `software` predicts them, or in what the parent does where it is left out,
/// each of them `factor` times as long.
std::string steps_by(const models::Software& software, int rows, double factor = 1) {
  const std::string header =
      "run,software,software_year,task,family,model,layers,hidden,heads,seq_len,gpu,gpus,"
      "gpus_per_node,tp,pp,dp,zero_stage,recompute,precision,micro_batch,global_batch,step_time_"
      "s\n";
  const auto text = [&](const std::vector<double>& times) {
    std::string all = header;
    for (int i = 0; i < rows; ++i) {
      all += fmt::format(
          "r{},megatron-lm,2021,pretrain,gpt,h,24,{},32,2048,a100-sxm-80gb,8,8,2,1,4,0,none,fp16,"
          "{},64,{}\n",
          i, 4096 + 1024 * (i % 3), 1 << (i % 2), times.empty() ? 1.0 : times.at(std::size_t(i)));
    }
    return all;
  };
  std::vector<double> times;
  ValidationOptions options;
  options.profiles.push_back(software);
  for (const RunResult& each :
       validate(read_runs(orrery::Table::parse(text({}), "runs.csv")), options)) {
    times.push_back(factor * *each.predicted);
  }
  return text(times);
}

SoftwareFit fit_of(const std::string& csv) {
  SoftwareFitOptions options;
  options.most_runs_with_prior = most_steps_with_a_prior;
  return fit_software(orrery::Table::parse(csv, "mine.csv"), options).fits.at(0);
}

const FittedPriorNumber& number(const PriorFit& few, const std::string& pointer) {
  for (const FittedPriorNumber& each : few.numbers) {
    if (inherited_numbers()[each.number].pointer == pointer) return each;
  }
  throw std::runtime_error{"no number " + pointer};
}

TEST_CASE("Steps as the parent predicts them move nothing and make it surer") {
  const SoftwareFit fit = fit_of(steps_by(parent(), 6));
  REQUIRE(fit.prior_fit);
  const FittedPriorNumber& gemm = number(*fit.prior_fit, "/kernels/gemm_derate/default");
  CHECK(gemm.value == Approx(gemm.prior).epsilon(1e-3));
  CHECK(gemm.spread_left < gemm.spread_before);
  // One node has no network between nodes: nothing is learned of it.
  const FittedPriorNumber& network = number(*fit.prior_fit, "/overlap/data_efficiency");
  CHECK(fit.prior_fit->factor == Approx(0).margin(1e-3));
  CHECK(network.spread_left > 0.5 * network.spread_before);
}

TEST_CASE("Slower products move that number most, and by less than all of it from few steps") {
  models::Software slow = parent();
  slow.kernels.gemm_derate["default"] *= 1.10;
  const SoftwareFit two = fit_of(steps_by(slow, 2));
  const SoftwareFit twelve = fit_of(steps_by(slow, 12));
  const auto moved = [](const SoftwareFit& fit) {
    const FittedPriorNumber& gemm = number(*fit.prior_fit, "/kernels/gemm_derate/default");
    return gemm.value / gemm.prior - 1;
  };
  CHECK(moved(two) > 0.005);
  CHECK(moved(twelve) > moved(two));
  CHECK(moved(twelve) < 0.10);
  // What a place may have done is a site's block: slower products are a lower clock.
  CHECK(twelve.prior_fit->site.at("clock").get<double>() ==
        Approx(1 / (1 + moved(twelve))).margin(2e-3));
  // The rest is a factor: the steps themselves come out right.
  for (const double each : twelve.prior_fit->fitted) CHECK(std::abs(each) < 0.03);
}

TEST_CASE("Numbers far from the prior are found by linearising around the best ones again") {
  models::Software slow = parent();
  slow.kernels.memory_derate *= 4;
  slow.kernels.gemm_derate["default"] *= 1.5;
  slow.host.forward_launch = scaled(slow.host.forward_launch, 6);
  const orrery::Table table = orrery::Table::parse(steps_by(slow, 12), "mine.csv");
  SoftwareRows rows = software_rows(read_runs(table), {}, {}, Apart::used);
  const std::vector<std::size_t> cells(12, 0), all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const StackFit fit{std::move(rows.by_profile.at("megatron-lm")), cells, parent(), 1};
  const std::vector<double> prior = coordinates_of(parent());
  std::vector<double> spreads;
  for (const InheritedNumber& each : inherited_numbers()) spreads.push_back(each.spread);
  const auto misfit_of = [&](const Posterior& at) {
    std::vector<double> there = prior;
    for (std::size_t k = 0; k < there.size(); ++k) there[k] += at.moves[k];
    return misfit(at, fit.errors(all, there), cells, spreads);
  };
  const Posterior none{
      .moves = std::vector<double>(prior.size(), 0), .spreads = {}, .factors = {0}};
  const Posterior once = posterior_of(fit.rows_at(all, prior), spreads);
  const FittedStack found = fit.fit(all, prior);
  Posterior best{.moves = found.coordinates, .spreads = {}, .factors = found.factors};
  for (std::size_t k = 0; k < prior.size(); ++k) best.moves[k] -= prior[k];
  CHECK(misfit_of(best) < misfit_of(once));  // which one linearisation finds
  CHECK(misfit_of(best) < 0.5 * misfit_of(none));
}

TEST_CASE("A fitted profile predicts the rows that it was fitted to within its stated error") {
  // The parent's times, all longer or shorter by a tenth: no number of the profile does that to
  // all of them, so the rest is a part of the step of its own.
  for (const double factor : {1.1, 0.9}) {
    for (const std::size_t with_prior : {most_steps_with_a_prior, std::size_t{0}}) {
      const orrery::Table table = orrery::Table::parse(steps_by(parent(), 12, factor), "mine.csv");
      SoftwareFitOptions options;
      options.most_runs_with_prior = with_prior;
      const SoftwareFit fit = fit_software(table, options).fits.at(0);
      ValidationOptions mine;
      mine.profiles.push_back(
          models::read_software(Document::from(fit.profile, "mine.json").root()));
      std::vector<double> errors;
      const std::vector<MeasuredRun> runs = read_runs(table);
      const std::vector<RunResult> results = validate(runs, mine);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const RunResult& each = results[i];
        const double measured = *runs[i].step_time;
        INFO("row " << i << ", factor " << factor << ", prior " << with_prior);
        // With many rows the interval is of one in ten left out at either end; with few it is of
        // what is left of the numbers' spreads, and holds all of them.
        if (with_prior > 0) CHECK(*each.p10 < measured);
        if (with_prior > 0) CHECK(measured < *each.p90);
        CHECK(std::abs(*each.error_pct) < 5);
        // The report's own error of this row is that of the profile which it writes.
        CHECK(std::log(*each.predicted / measured) == Approx(fit.in_sample.at(i)).margin(0.01));
        errors.push_back(*each.error_pct);
      }
      CHECK(std::abs(summary_of(errors).bias) < 2);
    }
  }
}

TEST_CASE("Rows that no number of a profile can explain leave a factor, not a one-sided interval") {
  // Nine times as long: further than the numbers may move.
  const orrery::Table table = orrery::Table::parse(steps_by(parent(), 12, 9), "mine.csv");
  const SoftwareFit fit = fit_software(table, {}).fits.at(0);
  CHECK(fit.profile.at("unexplained").get<double>() == fit.unexplained);
  CHECK(fit.unexplained > 1.2);
  const Json& interval = fit.profile.at("uncertainty");
  CHECK(interval.at("p10").get<double>() <= 0);
  CHECK(interval.at("p90").get<double>() >= 0);
}

TEST_CASE("fit software from few steps prints what moved, a site and what to measure next") {
  const Scratch scratch;
  models::Software slow = parent();
  slow.kernels.gemm_derate["default"] *= 1.10;
  const std::string file = scratch.write("mine.csv", steps_by(slow, 4));
  const Ran ran = orrery("fit software --from " + file + " --out " + scratch.path("mine.json"));
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("your site, as a cluster's \"site\": {") != std::string::npos);
  CHECK(ran.out.find("\n  measure next  /") != std::string::npos);
  CHECK(ran.out.find("/kernels/gemm_derate/default") != std::string::npos);
  // The profile that it writes can be used.
  const Ran used = orrery("validate " + file + " --software " + scratch.path("mine.json"));
  CHECK(used.exit_code == 0);
}

}  // namespace
}  // namespace orrery::scenarios
