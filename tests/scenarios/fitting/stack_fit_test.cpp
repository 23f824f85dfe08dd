// The parent's numbers, moved no further than the steps say.

#include "scenarios/fitting/profile/stack_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "scenarios/fitting/profile/software_fit.hpp"
#include "scenarios/fitting/profile/software_rows.hpp"
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
  return fit_software(orrery::Table::parse(csv, "mine.csv"), {}).fits.at(0);
}

const FittedNumber& number(const SoftwareFit& fit, const std::string& pointer) {
  for (const FittedNumber& each : fit.numbers) {
    if (profile_numbers()[each.number].pointer == pointer) return each;
  }
  throw std::runtime_error{"no number " + pointer};
}

TEST_CASE("Steps as the parent predicts them move nothing and make it surer") {
  const SoftwareFit fit = fit_of(steps_by(parent(), 6));
  const FittedNumber& gemm = number(fit, "/kernels/gemm_derate/default");
  CHECK(gemm.value == Approx(gemm.start).epsilon(1e-3));
  CHECK(gemm.spread_left < gemm.spread_before);
  // One node has no network between nodes: nothing is learned of it.
  const FittedNumber& network = number(fit, "/overlap/data_efficiency");
  CHECK(fit.unexplained == Approx(1).margin(1e-3));
  CHECK(network.spread_left > 0.5 * network.spread_before);
  CHECK_FALSE(network.determined());
  // Its uncertainty is in the profile.
  const Json& stated = fit.profile.at("uncertainty").at("numbers");
  CHECK(stated.at(Json::json_pointer{"/~1kernels~1gemm_derate~1default"}).get<double>() ==
        Approx(gemm.spread_left).margin(1e-3));
  CHECK(stated.at(Json::json_pointer{"/~1host~1step"}).is_string());
}

TEST_CASE("Slower products move that number most, and by less than all of it from few steps") {
  models::Software slow = parent();
  slow.kernels.gemm_derate["default"] *= 1.10;
  const SoftwareFit two = fit_of(steps_by(slow, 2));
  const SoftwareFit twelve = fit_of(steps_by(slow, 12));
  const auto moved = [](const SoftwareFit& fit) {
    const FittedNumber& gemm = number(fit, "/kernels/gemm_derate/default");
    return gemm.value / gemm.start - 1;
  };
  CHECK(moved(two) > 0.005);
  CHECK(moved(twelve) > moved(two));
  CHECK(moved(twelve) < 0.10);
  // What a place may have done is a site's block: slower products are a lower clock.
  CHECK(twelve.site.at("clock").get<double>() == Approx(1 / (1 + moved(twelve))).margin(2e-3));
  // The rest is a factor: the steps themselves come out right.
  for (const double each : twelve.in_sample) CHECK(std::abs(each) < 0.03);
}

/// Rows of megatron-lm in a file, with `source` as their source where it is stated.
StackFit fit_to(const std::string& csv) {
  const orrery::Table table = orrery::Table::parse(csv, "mine.csv");
  SoftwareRows rows = software_rows(read_runs(table), {}, {}, Apart::used);
  return {std::move(rows.by_profile.at("megatron-lm")), parent(), {.threads = 1, .keep_going = {}}};
}

TEST_CASE("Numbers far from the prior are found by linearising around the best ones again") {
  models::Software slow = parent();
  slow.kernels.memory_derate *= 4;
  slow.kernels.gemm_derate["default"] *= 1.5;
  slow.host.forward_launch = scaled(slow.host.forward_launch, 6);
  const StackFit fit = fit_to(steps_by(slow, 12));
  const std::vector<std::size_t> all = all_rows(fit);
  const Eigen::VectorXd prior = coordinates_of(parent());
  Eigen::VectorXd spreads(prior.size());
  for (Eigen::Index k = 0; k < spreads.size(); ++k) spreads[k] = profile_numbers()[k].spread;
  const LinearRows there = fit.rows_at(all, prior);
  const auto misfit_of = [&](const Posterior& at) {
    LinearRows rows = there;
    rows.errors = fit.errors(all, prior + at.moves);
    return misfit(at, rows, spreads);
  };
  const Posterior none{.moves = Eigen::VectorXd::Zero(prior.size()),
                       .covariance = {},
                       .factors = Eigen::VectorXd::Zero(1)};
  const Posterior once = posterior_of(there, spreads);
  const FittedStack found = fit.fit(all, prior);
  const Posterior best{
      .moves = found.coordinates - prior, .covariance = {}, .factors = found.factors};
  CHECK(misfit_of(best) < misfit_of(once));  // which one linearisation finds
  CHECK(misfit_of(best) < 0.5 * misfit_of(none));
}

/// The same steps with a column `source`.
std::string with_source(std::string csv, const std::string& source) {
  std::string result;
  std::istringstream lines{csv};
  for (std::string line; std::getline(lines, line);) {
    result += line + "," + (result.empty() ? "source" : source) + "\n";
  }
  return result;
}

TEST_CASE("Rows of a sweep count once together, and so do repeats of one source") {
  // Of twelve rows on one node six have an equal hidden size and micro-batch as another.
  const std::string csv = with_source(steps_by(parent(), 12), "a paper");
  const StackFit fit = fit_to(csv);
  const LinearRows rows = fit.rows_at(all_rows(fit), coordinates_of(parent()));
  for (const double each : rows.weights) CHECK(each == 0.5);
  const StackFit alone = fit_to(steps_by(parent(), 12));
  CHECK(alone.rows_at(all_rows(alone), coordinates_of(parent())).weights.sum() == 12);
}

TEST_CASE("A sweep has other layers, batches and pipelines of the same kernels on one node") {
  MeasuredRun run;
  run.source = "a paper";
  run.layers = 12;
  run.hidden = 1024;
  run.gpus = 2;
  run.plan = {{"tensor", "2"}, {"pipeline", "1"}, {"global_batch", "8"}, {"micro_batch", "1"}};
  MeasuredRun deeper = run, wider = run;
  deeper.layers = 24;
  deeper.gpus = 4;
  deeper.plan["pipeline"] = "2";
  deeper.plan["global_batch"] = "16";
  wider.hidden = 2048;
  CHECK(sweep_of(deeper, 1) == sweep_of(run, 1));
  CHECK(sweep_of(wider, 1) != sweep_of(run, 1));
  CHECK(sweep_of(deeper, 2) != sweep_of(run, 2));  // between nodes it sends more
  deeper.gpus = run.gpus;
  deeper.plan["pipeline"] = "1";
  CHECK(sweep_of(deeper, 2) == sweep_of(run, 2));
}

TEST_CASE("A GPU generation has its own factor where large models ran on it and on another") {
  const std::string header =
      "run,software,software_year,task,family,model,layers,hidden,heads,seq_len,gpu,gpus,"
      "gpus_per_node,tp,pp,dp,zero_stage,recompute,precision,micro_batch,global_batch,step_time_"
      "s\n";
  const auto row = [](const char* run, int hidden, const char* gpu) {
    return fmt::format(
        "{},megatron-lm,2021,pretrain,gpt,h,24,{},32,2048,{},8,8,2,1,4,0,none,fp16,"
        "1,64,4\n",
        run, hidden, gpu);
  };
  const auto found =
      std::ranges::find(profile_numbers(), "/kernels/gemm_derate/hopper", &ProfileNumber::pointer);
  REQUIRE(found != profile_numbers().end());
  const auto determines = [&](const std::string& rows) {
    const StackFit fit = fit_to(header + rows);
    return fit.determines(all_rows(fit), *found);
  };
  // 24 layers of 12 h^2: 1.3 billion parameters with h = 2048, 5.3 with 4224.
  const std::string ampere = row("a", 2048, "a100-sxm-80gb");
  CHECK_FALSE(determines(ampere + row("b", 2048, "h100-sxm-80gb")));
  CHECK(determines(ampere + row("b", 4224, "h100-sxm-80gb")));
  CHECK_FALSE(determines(row("b", 4224, "h100-sxm-80gb")));
}

TEST_CASE("A fitted profile predicts the rows that it was fitted to within its stated error") {
  // The parent's times, all longer or shorter by a tenth: no number of the profile does that to
  // all of them, so the rest is a part of the step of its own. Few rows and many.
  for (const double factor : {1.1, 0.9}) {
    for (const int rows : {12, 24}) {
      const orrery::Table table =
          orrery::Table::parse(steps_by(parent(), rows, factor), "mine.csv");
      const SoftwareFit fit = fit_software(table, {}).fits.at(0);
      ValidationOptions mine;
      mine.profiles.push_back(
          models::read_software(Document::from(fit.profile, "mine.json").root()));
      std::vector<double> errors;
      const std::vector<MeasuredRun> runs = read_runs(table);
      const std::vector<RunResult> results = validate(runs, mine);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const RunResult& each = results[i];
        const double measured = *runs[i].step_time;
        INFO("row " << i << " of " << rows << ", factor " << factor);
        // With many rows the interval is of one in ten left out at either end; with few it is of
        // what is left of the numbers' spreads, and holds all of them.
        if (rows == 12) CHECK(*each.p10 < measured);
        if (rows == 12) CHECK(measured < *each.p90);
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
  const orrery::Table table = orrery::Table::parse(steps_by(parent(), 24, 9), "mine.csv");
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
