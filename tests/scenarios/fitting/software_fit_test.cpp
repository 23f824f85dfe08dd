#include "scenarios/fitting/profile/software_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "scenarios/fitting/profile/leave_out_groups.hpp"
#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {
namespace {

const std::string header =
    "run,software,software_year,task,family,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,"
    "gpu,gpus,gpus_per_node,network,tp,pp,dp,zero_stage,recompute,precision,micro_batch,"
    "global_batch,step_time_s,set_aside\n";

/// Three models at two micro-batches on eight A100, all again and again; times as measured.
std::string runs_of(const std::string& stack, const std::vector<double>& times, int year = 2021,
                    int repeats = 1) {
  std::string text = header;
  std::size_t i = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const int hidden : {4096, 6144, 8192}) {
      for (const int micro : {2, 4}) {
        text += fmt::format(
            "r{},{},{},pretrain,gpt,h{},24,{},32,{},51200,2048,a100-sxm-80gb,8,8,,2,1,4,0,none,"
            "fp16,{},64,{},\n",
            i, stack, year, hidden, hidden, 4 * hidden, micro, i < times.size() ? times[i] : 1.0);
        ++i;
      }
    }
  }
  return text;
}

/// What a profile predicts for those rows, as if measured, in turn `noise` too slow and too fast.
orrery::Table table_by(const models::Software& software, const std::string& stack, double noise = 0,
                       int repeats = 1) {
  const orrery::Table ones = orrery::Table::parse(runs_of(stack, {}, 2021, repeats), "runs.csv");
  std::vector<double> times;
  ValidationOptions options;
  options.profiles.push_back(software);
  for (const RunResult& each : validate(read_runs(ones), options)) {
    times.push_back(each.predicted.value() * (1 + noise));
    noise = -noise;
  }
  return orrery::Table::parse(runs_of(stack, times, 2021, repeats), "runs.csv");
}

/// As it was in the year of the runs.
models::Software shipped(const std::string& name, int year = 2021) {
  const Document document = Document::from(models::software_profile(name, year), name);
  return models::read_software(document.root());
}

const FittedNumber& number_of(const SoftwareFit& fit, const std::string& pointer) {
  for (const FittedNumber& each : fit.numbers) {
    if (profile_numbers()[each.number].pointer == pointer) return each;
  }
  throw std::runtime_error{"no number " + pointer};
}

TEST_CASE("A fit to many runs finds the numbers of the machine that made them") {
  // Products 10 % and memory traffic 40 % slower than the shipped profile says: the rows are the
  // simulator's own, so nothing else can differ.
  models::Software slow = shipped("megatron-lm");
  const double gemm = 1.1 * slow.kernels.gemm_derate.at("default");
  const double memory = 1.4 * slow.kernels.memory_derate;
  slow.kernels.gemm_derate["default"] = gemm;
  slow.kernels.memory_derate = memory;
  const SoftwareFits fits = fit_software(table_by(slow, "megatron-lm", 0, 20), {});
  REQUIRE(fits.complete);
  REQUIRE(fits.fits.size() == 1);
  const SoftwareFit& fit = fits.fits[0];
  CHECK(fit.name == "megatron-lm");
  CHECK(number_of(fit, "/kernels/gemm_derate/default").value == Approx(gemm).epsilon(0.03));
  CHECK(number_of(fit, "/kernels/memory_derate").value == Approx(memory).epsilon(0.10));
  CHECK(summary_of(percents(fit.at_start)).median > 10);
  CHECK(summary_of(percents(fit.in_sample)).median < 1);
  CHECK(summary_of(percents(fit.left_out)).median < 2);
  CHECK(fit.left_out_by == "model,gpu");
  CHECK(fit.groups == 3);
}

TEST_CASE("Runs that say nothing about a number leave it where it was, and the fit says so") {
  // One node, long kernels: the host runs ahead, and no network between nodes is used.
  const SoftwareFits fits = fit_software(table_by(shipped("megatron-lm"), "megatron-lm", 0.02), {});
  const FittedNumber& launch = number_of(fits.fits.at(0), "/host/forward_launch");
  CHECK(launch.value == Approx(launch.start).epsilon(1e-3));
  CHECK_FALSE(launch.determined());
}

TEST_CASE("A stack that nobody knows gets a profile of its own, that can be read") {
  models::Software own = shipped("generic");
  own.kernels.gemm_derate["default"] = 1.2;
  own.stands_for.push_back({.stack = "our-stack"});
  const SoftwareFits fits = fit_software(table_by(own, "our-stack"), {});
  const SoftwareFit& fit = fits.fits.at(0);
  CHECK(fit.name == "our-stack");
  const Document document = Document::from(fit.profile, "ours");
  const models::Software read = models::read_software(document.root());
  CHECK(read.name == "our-stack");
  CHECK(read.kernels.gemm_derate.at("default") > own.kernels.gemm_derate.at("hopper"));
  CHECK(read.unexplained > 1);
  CHECK(summary_of(percents(fit.in_sample)).median < 2);
  // Of these runs and their year, not of the profile that it started from.
  CHECK(read.year == 2021);
  CHECK(read.source ==
        "orrery fit software: 6 runs of runs.csv; numbers that they do not determine as in the "
        "profile generic, what is no number as in generic");
}

TEST_CASE("Noise moves the numbers less than it is itself") {
  const std::vector<double> noise{1.29, 1.41, 0.78, 0.73, 1.45, 1.09};
  const auto ones = orrery::Table::parse(runs_of("our-stack", {}, 2024), "runs.csv");
  std::vector<double> times;
  for (const RunResult& each : validate(read_runs(ones), {})) {
    times.push_back(each.predicted.value() * noise[each.row]);
  }
  const SoftwareFits fits =
      fit_software(orrery::Table::parse(runs_of("our-stack", times, 2024), "runs.csv"), {});
  const models::Software generic = shipped("generic", 2024);
  for (const FittedNumber& each : fits.fits.at(0).numbers) {
    const ProfileNumber& number = profile_numbers()[each.number];
    INFO(number.pointer);
    CHECK(each.start == Approx(number.get(generic)));
    const double moved = number.coordinate(each.value) - number.coordinate(each.start);
    CHECK(std::abs(moved) < 1.5 * each.spread_before);
  }
}

TEST_CASE("A fit accounts for every row") {
  const std::string good = runs_of("megatron-lm", {3, 3, 6, 6, 10, 10});
  const auto fit = [&](const std::string& last) {
    const auto table = orrery::Table::parse(good + last, "runs.csv");
    const SoftwareFits fits = fit_software(table, {});
    return std::pair{to_json(table, fits), table_of(table, fits)};
  };
  const std::string shape = "24,4096,32,16384,51200,2048,";
  const auto [unknown, text] = fit("a1,megatron-lm,2021,pretrain,gpt,h4096," + shape +
                                   "H100,8,8,,2,1,4,0,none,fp16,2,64,2.6,\n");
  CHECK(unknown["rows"] == 7);
  CHECK(unknown["used"] == 6);
  CHECK(unknown["unused"][0]["run"] == "a1");
  CHECK(text.find("runs.csv: 7 rows, 6 used; a1: unknown GPU 'H100'; known: ") == 0);
  CHECK(fit("a1,megatron-lm,2021,pretrain,gpt,h4096," + shape +
            "a100-sxm-80gb,8,8,,2,1,4,0,none,fp16,2,64,2600,\n")
            .second.find("; a1: 2600 s measured are ") != std::string::npos);
  CHECK(fit("a1,megatron-lm,2021,pretrain,gpt,h4096," + shape +
            "a100-sxm-80gb,8,8,,2,1,4,0,none,fp16,2,64,2.6,a guess\n")
            .second.find("; a1: set aside: a guess\n") != std::string::npos);
}

TEST_CASE("Runs that are reported separately are not fitted to, and none to fit is an error") {
  std::string text = runs_of("megatron-lm", {});
  text.replace(text.find(",set_aside"), 10, ",set_aside,reported_apart");
  for (std::size_t at = text.find(",\n"); at != std::string::npos; at = text.find(",\n", at + 2)) {
    text.replace(at, 1, ",,later");
  }
  CHECK_THROWS_WITH(fit_software(orrery::Table::parse(text, "runs.csv"), {}),
                    "runs.csv: no run to fit: 6 rows, 0 used; r0: reported separately: later; r1: "
                    "reported separately: later; r2: reported separately: later; ...");
}

TEST_CASE("A run that the generic profile cannot simulate has no error by it, the others have") {
  // Adapters of a recipe that has attention in fp8, for which generic's kernel on H200 has no
  // curve.
  const std::string text =
      "run,software,software_year,task,family,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,"
      "seq_len,gpu,gpus,gpus_per_node,tp,pp,cp,dp,precision,micro_batch,global_batch,step_time_s\n"
      "a,nemo-mlperf,2025,lora,llama,l,80,8192,64,8,28672,32000,8192,h200-sxm-141gb,8,8,4,1,1,2,"
      "fp8,"
      "1,8,3.2\n"
      "b,nemo-mlperf,2025,pretrain,llama,l,32,4096,32,8,14336,32000,8192,h200-sxm-141gb,8,8,2,1,1,"
      "4,"
      "bf16,1,32,4\n";
  const std::vector<MeasuredRun> runs = read_runs(orrery::Table::parse(text, "runs.csv"));
  const auto errors = errors_of_generic(runs, {0, 1});
  REQUIRE(errors.size() == 2);
  CHECK_FALSE(errors[0].has_value());
  CHECK(errors[1].has_value());
}

TEST_CASE("A fit that is asked to stop says that it is not complete") {
  SoftwareFitOptions options;
  options.trials.keep_going = [trials = 0]() mutable { return ++trials < 5; };
  const auto table = orrery::Table::parse(runs_of("megatron-lm", {}), "runs.csv");
  CHECK_FALSE(fit_software(table, options).complete);
}

TEST_CASE("A fit is the same with any number of threads") {
  const auto table = orrery::Table::parse(runs_of("megatron-lm", {1, 2, 3, 4, 5, 6}), "runs.csv");
  SoftwareFitOptions one, three;
  one.trials.threads = 1;
  three.trials.threads = 3;
  CHECK(to_json(table, fit_software(table, one)) == to_json(table, fit_software(table, three)));
}

TEST_CASE("A time is written in two digits with its unit, a factor in hundredths") {
  const auto number = [](const char* pointer) {
    return *std::ranges::find(profile_numbers(), pointer, &ProfileNumber::pointer);
  };
  CHECK(number("/host/forward_launch").written(24.6e-6) == "25 us");
  CHECK(number("/host/step").written(0.029) == "29 ms");
  CHECK(number("/kernels/memory_derate").written(1.2345) == 1.23);
  CHECK(number("/kernels/memory_derate").written_spread(0.12345) == 0.123);
  CHECK(number("/host/step").written_spread(0.004) == "4 ms");
}

TEST_CASE("A group is left out whole") {
  const auto table = orrery::Table::parse(runs_of("megatron-lm", {}), "runs.csv");
  std::vector<BenchRow> rows(6);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].row = i;
  const LeaveOutGroups groups = leave_out_groups(table, rows, {"model"});
  CHECK(groups.folds == 3);
  for (const std::size_t first : {0, 2, 4}) CHECK(groups.fold[first] == groups.fold[first + 1]);
  CHECK(std::set<std::size_t>(groups.fold.begin(), groups.fold.end()).size() == 3);
  CHECK_THROWS_WITH(leave_out_groups(table, {rows[0]}, {"colour"}),
                    "--leave-out: unknown column 'colour' in runs.csv");
  // By the size of their models: 24 layers of 12 h^2, 4.8, 10.9 and 19.3 billion parameters, and
  // an embedding of 51200 h.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].question.model.parameters = i < 2 ? 5'000'000'000 : 12'000'000'000;
  }
  CHECK(leave_out_groups(table, rows, {"size"}).groups == 2);
}

}  // namespace
}  // namespace orrery::scenarios
