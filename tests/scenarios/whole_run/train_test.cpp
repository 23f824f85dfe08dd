#include <catch2/catch.hpp>
#include <cmath>
#include <regex>

#include "scenarios/whole_run/whole_run.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// 100,000 steps of 10 s on 100 nodes, 2 % MFU for nothing.
RunModel model_of_steps() {
  RunModel model;
  model.phases = {{.tokens = 1e9,
                   .seq_len = 1000,
                   .global_batch = 10,
                   .gpus = 800,
                   .nodes = 100,
                   .paid_gpus = 800,
                   .steps = 100'000,
                   .step = Seconds{10},
                   .low = 0.1,
                   .high = 0.2,
                   .mfu = 0.4}};
  model.recovery.stages = {{"all", Seconds{600}, 2}};
  model.rate = prior_of(0.0045, 0.46);
  model.interval = model.optimum = Seconds{1000};
  model.stall = Seconds{2};
  model.residual_median = 1.03;
  model.residual_spread = 0.08;
  model.paid_gpus = 800;
  model.price = Price{2};
  model.running = Power{1e6};
  model.pausing = Power{5e5};
  return model;
}

/// Nothing is unknown and nothing fails.
RunModel certain() {
  RunModel model = model_of_steps();
  model.phases.front().low = model.phases.front().high = 0;
  model.rate = {1, HUGE_VAL};
  model.residual_median = 1;
  model.residual_spread = model.restart_spread = 0;
  return model;
}

WholeRun runs_of(const RunModel& model, std::size_t samples = 500, unsigned threads = 1) {
  return simulate_runs(model, samples, 1, {.threads = threads, .progress = {}});
}

double sum_of(const std::vector<Share>& shares) {
  double sum = 0;
  for (const Share& each : shares) sum += each.second;
  return sum;
}

double share_of(const WholeRun& run, const std::string& name) {
  for (const auto& [cause, share] : run.ledger) {
    if (cause == name) return share;
  }
  return -1;
}

}  // namespace

TEST_CASE("Without failures a run is steps x step time, and its cost hours x price") {
  RunModel model = certain();
  model.stall = Seconds{0};
  const WholeRun run = runs_of(model, 20);
  CHECK(run.days.p10 == 1e6 / 86'400);
  CHECK(run.days.p90 == 1e6 / 86'400);
  CHECK(run.interruptions.p90 == 0);
  CHECK(share_of(run, "useful") == 1);
  CHECK(run.ettr.p50 == 1);
  CHECK(run.goodput.p50 == Approx(0.4));
  CHECK(run.gpu_hours.p50 == Approx(1e6 / 3600 * 800));
  CHECK(run.cost->p50 == Approx(2 * 1e6 / 3600 * 800));
  CHECK(run.energy_mwh.p50 == Approx(1e6 / 3600));  // 1 MW
}

TEST_CASE("A phase on half of the nodes is paid half as much") {
  RunModel model = certain();
  PlannedPhase half = model.phases.front();
  half.gpus = half.paid_gpus = 400;
  half.nodes = 50;
  model.phases.push_back(half);
  const WholeRun one = runs_of(certain(), 20), both = runs_of(model, 20);
  CHECK(both.days.p50 == Approx(2 * one.days.p50));
  CHECK(both.gpu_hours.p50 == Approx(1.5 * one.gpu_hours.p50));
  CHECK(both.cost->p50 == Approx(1.5 * one.cost->p50));
  CHECK(both.energy_mwh.p50 == Approx(1.5 * one.energy_mwh.p50));
  CHECK(model.gpu_hours_alone() == Approx(1.5 * certain().gpu_hours_alone()));
}

TEST_CASE("Replicas that fail faster than they return are refused, not simulated for ever") {
  RunModel model = model_of_steps();
  model.rate = prior_of(1000, 0.1);
  model.replicas = Replicas{.count = 4, .stall = Seconds{10}, .out = Seconds{3600}};
  CHECK_THROWS_WITH(runs_of(model, 1), Catch::EndsWith("the run never ends"));
}

TEST_CASE("The ledger adds up to 1, and the mean agrees with the closed form") {
  RunModel model = model_of_steps();
  model.evaluation = Recurring{Seconds{7200}, Seconds{120}};
  const WholeRun run = runs_of(model, 2000);
  CHECK(sum_of(run.ledger) == Approx(1).epsilon(1e-12));
  REQUIRE(run.expected_days);
  CHECK(std::abs(run.days.mean - *run.expected_days) < 3.5 * run.error_of_mean);
  CHECK(std::abs(run.days.mean / *run.expected_days - 1) < 0.002);
  // A minute an hour of steps.
  CHECK(share_of(run, "evaluation") == Approx(share_of(run, "useful") / 60).epsilon(0.05));
  model.maintenance = Recurring{Seconds{86'400}, Seconds{864}};
  const WholeRun stopped = runs_of(model, 2000);
  CHECK(sum_of(stopped.ledger) == Approx(1).epsilon(1e-12));
  CHECK(share_of(stopped, "maintenance") == Approx(0.0099).margin(0.001));
}

TEST_CASE("A run has the same bytes for a seed on any number of threads") {
  const WholeRun one = runs_of(model_of_steps(), 300, 1), four = runs_of(model_of_steps(), 300, 4);
  CHECK(one.sorted_days == four.sorted_days);
  CHECK(one.ledger == four.ledger);
  CHECK(simulate_runs(model_of_steps(), 300, 2, {}).sorted_days != one.sorted_days);
}

TEST_CASE("Laws of a whole run") {
  const WholeRun base = runs_of(model_of_steps());
  SECTION("price x 2 is cost x 2") {
    RunModel model = model_of_steps();
    model.price = Price{4};
    CHECK(runs_of(model).cost->p90 == 2 * base.cost->p90);
  }
  SECTION("N nodes at a rate are 2 N at half of it") {
    RunModel model = model_of_steps();
    model.phases.front().nodes = 200;
    model.rate.exposure *= 2;
    CHECK(runs_of(model).sorted_days == base.sorted_days);
  }
  SECTION("all times x 3 are days x 3") {
    RunModel model = model_of_steps();
    model.phases.front().step = Seconds{30};
    model.recovery.stages.front().mean = Seconds{1800};
    model.rate.exposure *= 3;
    model.interval = Seconds{3000};
    model.stall = Seconds{6};
    CHECK(runs_of(model).days.p50 == Approx(3 * base.days.p50).epsilon(1e-6));
  }
  SECTION("one replica is synchronous") {
    RunModel model = model_of_steps();
    model.replicas = Replicas{1, Seconds{60}, Seconds{600}};
    CHECK(runs_of(model).sorted_days == base.sorted_days);
  }
  SECTION("more failures are more days, and a shorter restart fewer") {
    RunModel failing = model_of_steps(), slow = model_of_steps();
    failing.rate.exposure /= 20;
    slow.recovery.stages.front().mean = Seconds{6000};
    CHECK(runs_of(failing).days.mean > base.days.mean);
    CHECK(runs_of(slow).days.mean > base.days.mean);
  }
  SECTION("phases are runs after each other") {
    RunModel halves = certain();
    halves.stall = Seconds{0};
    halves.phases.front().steps = 50'000;
    halves.phases.push_back(halves.phases.front());
    halves.phases.back().step = Seconds{20};
    CHECK(runs_of(halves, 20).days.p50 == Approx((50'000 * 10 + 50'000 * 20) / 86'400.0));
  }
}

// 2.9 failures in 1,000 node-days: prior 4.18 and 887, 10 in 3,000 -> 3.65; 3 in 300 -> 6.04.
TEST_CASE("Counted failures move the prior of the rate") {
  const RatePrior prior{4.18, 887};
  CHECK(1000 * prior.observed(10, 3000).mean() == Approx(3.65).margin(0.005));
  CHECK(1000 * prior.observed(3, 300).mean() == Approx(6.05).margin(0.01));
  // Fleets at 4.7 per 1000 would count 14 in 30 node-days once in 1e15: the count stands alone.
  CHECK(1000 * prior.observed(14, 30).mean() == Approx(1000 * 14.5 / 30));
  CHECK(prior.observed(0, 30).mean() == Approx(4.18 / 917));
  const RatePrior moments = prior_of(0.00454, 0.46);
  CHECK(moments.shape == Approx(4.24).margin(0.01));
  CHECK(moments.at(0.5) == Approx(0.00454).epsilon(0.04));
}

// Six fleets without Llama 3's: 6.50, 2.34, 4.23, 2.98, 8.40 and 6.51 per 1000 node-days. It
// counted 419 in 54 days of 2,048 nodes.
TEST_CASE("Llama 3's interruptions lie in the range of fleets that are not its own") {
  const double rates[] = {6.50, 2.34, 4.23, 2.98, 8.40, 6.51};
  double sum = 0, squares = 0;
  for (const double each : rates) sum += std::log(each) / 6;
  for (const double each : rates) squares += std::pow(std::log(each) - sum, 2) / 5;
  const RatePrior prior = prior_of(std::exp(sum) / 1000, std::sqrt(squares));
  const double node_days = 54 * 2048;
  CHECK(prior.at(0.1) * node_days < 419);
  CHECK(prior.at(0.9) * node_days > 419);
}

// Model card: 30.84M GPU-hours on 16,384 GPUs. No number of the model is taken from this run but
// its rate of failures, one of the seven of the prior.
TEST_CASE("Llama 3.1 405B's published hours lie in the range of its stated plan") {
  const Json run = parsed(
      orrery("train --model llama3.1-405b --cluster 'dgx-h100 x 2048' --software megatron-core "
             "--plan tensor=8,sequence=true,pipeline=16,virtual_stages=7,data=128,zero=1,"
             "micro_batch=1,global_batch=2048,seq_len=8192 --tokens 15.6T --samples 400 --json")
          .out);
  INFO(run["days"].dump());
  const double published = 30.84e6 / 16'384 / 24;
  CHECK(run["days"]["p10"].get<double>() < published);
  CHECK(run["days"]["p90"].get<double>() > published);
  CHECK(run["days"]["p90"].get<double>() / run["days"]["p10"].get<double>() < 1.6);
}

// Worked values of ownership: a hall of one's own, colocation, and a straight line over five years.
TEST_CASE("What an owned GPU-hour costs") {
  OwnedGpu own;
  CHECK(hourly_price(own).count() == Approx(1.916).margin(0.001));
  own.used = 0.85;
  CHECK(hourly_price(own).count() == Approx(2.254).margin(0.001));
  OwnedGpu rack{.capex = Money{46'000}, .colocation = 180};
  CHECK(hourly_price(rack).count() == Approx(2.019).margin(0.003));
  const OwnedGpu line{
      .capex = Money{49'248}, .life_years = 5, .residual = 0, .wacc = 0, .kilowatts = 1.275};
  // 49,248 / 5 / 8,766 = 1.1236; energy 0.0956, staff 0.057, maintenance 0.112 an hour
  CHECK(hourly_price(line).count() == Approx(1.1236 + 0.0956 + 0.0570 + 0.1124).margin(0.001));
}

TEST_CASE("A spot pool: what is paid is used or not, and a market without drops is a fixed job") {
  RunModel model = certain();
  model.phases.front().nodes = 16;
  model.phases.front().gpus = 128;
  model.phases.front().steps = 20'000;
  model.spot = SpotInputs{.market = {.nodes = 16, .per_node_hour = 0}};
  model.sizes.unit = 1;
  model.sizes.reconfigure = run_time(Seconds{60});
  const WholeRun calm = runs_of(model, 20);
  CHECK(calm.days.p50 == Approx(20'000 * 10 * 1.002 / 86'400).epsilon(1e-3));
  model.spot->market = {.nodes = 16, .per_node_hour = 0.1, .drop = 2, .refill = Seconds{1800}};
  const WholeRun taken = runs_of(model, 20);
  CHECK(taken.days.p50 > 1.05 * calm.days.p50);
  CHECK(sum_of(taken.ledger) == Approx(1).epsilon(1e-9));
  CHECK(share_of(taken, "reconfiguration") > 0.01);
  // The market takes nodes faster than a checkpoint is made: no end.
  model.spot->market.per_node_hour = 60;
  CHECK_THROWS_WITH(runs_of(model, 20),
                    Catch::Matchers::StartsWith("/run/spot: the job makes too little progress"));
}

TEST_CASE("orrery train: a report, JSON with a ledger that closes, a picture and an exit code") {
  const Scratch scratch;
  const std::string svg = scratch.path("run.svg");
  const std::string call = "train llama3-8b-8-h100 --tokens 100B --samples 200 ";
  const Ran ran = orrery(call + "--json --deadline 60d --svg " + svg);
  CHECK(ran.exit_code == 0);
  const Json json = parsed(ran.out);
  double sum = 0;
  for (const auto& [cause, share] : json["ledger"].items()) sum += share.get<double>();
  CHECK(sum == Approx(1).epsilon(1e-9));
  for (const char* key : {"days", "gpu_hours", "cost_usd", "energy_mwh", "co2_t", "ettr", "goodput",
                          "interruptions"}) {
    CHECK(json[key]["p10"].get<double>() <= json[key]["p90"].get<double>());
  }
  CHECK(json["deadline"]["probability"] == 1);
  CHECK(json["compared"]["runs"] == 46);
  CHECK(scratch.read("run.svg").starts_with("<svg"));
  Json again = parsed(orrery(call + "--json --deadline 60d").out), without = json;
  for (Json* each : {&again, &without}) each->erase("inputs");  // one names its picture
  CHECK(again == without);
  CHECK(orrery(call + "--deadline 10d").exit_code == 1);
  CHECK(orrery(call + "--budget 1000").exit_code == 1);
  CHECK(orrery(call + "--budget 100M").exit_code == 0);
  const std::string text = unwrapped(orrery(call).out);
  CHECK(text.find("in 8 of 10 cases") != std::string::npos);
  CHECK(text.find("46 published runs needed 0.93 to 2.22 times the hours") != std::string::npos);
  // 14 failures in 30 node-days are 92 times the usual rate; (4.17 + 14) / (824 + 30) of it 4.2.
  const Json often = parsed(orrery(call + "--json --failures 14/30d").out);
  CHECK(often["interruptions"]["mean"].get<double>() >
        2 * json["interruptions"]["mean"].get<double>());
  CHECK(refused_line(call + "--failures 14") ==
        "--failures: expected failures of this cluster over a time, such as 14/30d, found '14'");
  const std::string failures = call + "--set /run/failures/";
  CHECK(refused_line(failures + "rate=0 --failures 3/30d") ==
        "/run/failures/rate: is 0, but failures were counted");
  CHECK(refused_line(failures + "observed='{\"failures\":-1,\"days\":30}'")
            .find("a number from 0 to") != std::string::npos);
  CHECK(refused_line(call + "--set /run/evaluation='{\"every\":\"1 min\",\"time\":\"2 min\"}'")
            .find("not less than `time`") != std::string::npos);
  CHECK(refused_line(call + "--set /run/restarts=1").find("/run") != std::string::npos);
  CHECK(refused_line(call + "--set /run/restart/detect=2").find("a time such as") !=
        std::string::npos);
}

TEST_CASE("Evaluations and checkpoints may be counted in steps") {
  const std::string call = "train llama3-8b-8-h100 --samples 50 --json --tokens 100B ";
  const auto run = [&](const std::string& set) { return parsed(orrery(call + set).out); };
  // A forward pass is a third of a step's FLOPs without recomputation: 30 of them every 100 steps
  // are a tenth of the time of steps.
  const Json counted =
      run("--set '/run/evaluation={\"every_steps\":100,\"iterations\":30}' "
          "--set /plan/recompute=none");
  const auto share = [](const Json& of, const char* part) {
    return of["ledger"][part].get<double>();
  };
  CHECK(share(counted, "evaluation") ==
        Approx(0.1 * (share(counted, "useful") + share(counted, "unexplained"))).epsilon(0.01));
  const double step = counted["phases"][0]["step_time_s"].get<double>();
  const Json saved = run("--set /run/checkpoint/every_steps=500");
  CHECK(saved["checkpoint"]["interval_s"].get<double>() == Approx(500 * step).epsilon(0.01));
  const std::string plain = "train llama3-8b-8-h100 --tokens 100B --set ";
  const auto refused = [&](const std::string& set, const std::string& why) {
    return refused_line(plain + set).find(why) != std::string::npos;
  };
  CHECK(refused("'/run/evaluation={\"every_steps\":100}'",
                "/run/evaluation: needs one of time and iterations, batches that run forward"));
  CHECK(refused("'/run/checkpoint={\"every\":\"1 h\",\"every_steps\":5}'",
                "/run/checkpoint/every_steps: stated twice: `every` says it"));
}

TEST_CASE("Short runs are said in hours throughout, long ones in days") {
  const std::string brief = orrery("train llama3-8b-8-h100 --tokens 1B --samples 50").out;
  CHECK(std::regex_search(brief,
                          std::regex{"Whole run +[0-9.]+ hours +[0-9.]+ to [0-9.]+ hours in"}));
  CHECK(brief.find("interruptions to be expected") != std::string::npos);
  const std::string extended = orrery("train llama3-8b-8-h100 --tokens 1T --samples 50").out;
  CHECK(std::regex_search(extended, std::regex{"Whole run +[0-9.]+ days +[0-9]+ to [0-9]+ in 8"}));
}

TEST_CASE("A stated interval that writes cannot keep up with is replaced, and said") {
  const std::string text =
      orrery("train llama3-8b-8-h100 --tokens 1T --samples 20 --set '/run/checkpoint/every=1 s'")
          .out;
  CHECK(text.find("no sooner than the last one is written") != std::string::npos);
  CHECK(text.find("/run/checkpoint/every:") != std::string::npos);
  // The shares of the store's rate that saves and loads reach are assumptions like others.
  CHECK(text.find("/run/checkpoint/write:") != std::string::npos);
  CHECK(text.find("16 % of the store's rate of 625 MB/s") != std::string::npos);
  CHECK(text.find("20 % of the store's rate of 1.25 GB/s") != std::string::npos);
  const std::string stated =
      orrery(
          "train llama3-8b-8-h100 --tokens 1T --samples 20 --set '/run/checkpoint/write=10 s' "
          "--set '/run/checkpoint/load=20 s'")
          .out;
  CHECK(stated.find("of the store's rate") == std::string::npos);
}

TEST_CASE("Phases, spares, own price and checkpoints are stated in /run") {
  const std::string call = "train llama3-8b-8-h100 --samples 50 --json --tokens 100B ";
  const Json phases =
      parsed(orrery(call + "--set '/run/phases=[{\"tokens\":\"60B\"},{\"tokens\":\"40B\","
                           "\"seq_len\":16384,\"global_batch\":64}]'")
                 .out);
  REQUIRE(phases["phases"].size() == 2);
  CHECK(phases["phases"][1]["step_time_s"] > phases["phases"][0]["step_time_s"]);
  // A field of the plan for one phase alone; a length is the phase's own member.
  const std::string recomputed = "'/run/phases=[{\"tokens\":\"60B\"},{\"tokens\":\"40B\",\"plan\":";
  const Json planned =
      parsed(orrery(call + "--set " + recomputed + "{\"recompute\":\"full\"}}]'").out);
  CHECK(planned["phases"][0]["step_time_s"] == phases["phases"][0]["step_time_s"]);
  CHECK(planned["phases"][1]["step_time_s"].get<double>() >
        1.15 * planned["phases"][0]["step_time_s"].get<double>());
  const std::string wrong =
      refused_line("train llama3-8b-8-h100 --tokens 100B --set " + recomputed + "{\"tp\":8}}]'");
  CHECK(wrong.find("/run/phases/1/plan") != std::string::npos);
  CHECK(wrong.find("tp") != std::string::npos);
  CHECK(refused_line(
            "train llama3-8b-8-h100 --tokens 100B --set '/run/phases=[{\"tokens\":\"60B\"}]'")
            .find("/run/phases") == 0);
  const Json owned = parsed(orrery(call + "--set /run/own='{\"used\":0.85}'").out);
  CHECK(owned["price"]["usd_per_gpu_hour"].get<double>() == Approx(2.254).margin(0.001));
  const Json saved = parsed(
      orrery(call + "--set /run/checkpoint/every='10 min' --set /run/checkpoint/asynchronous=false")
          .out);
  // A whole number of steps, and all of the write is stall: 105 GiB at 16 % of 625 MB/s.
  const double step = saved["phases"][0]["step_time_s"].get<double>();
  const double steps = saved["checkpoint"]["interval_s"].get<double>() / step;
  CHECK(steps == Approx(std::round(steps)).margin(1e-6));
  CHECK(saved["checkpoint"]["stall_s"].get<double>() ==
        Approx(saved["checkpoint"]["bytes"].get<double>() / (0.16 * 0.625e9)));
  // 14 bytes for each of 8.03 billion parameters.
  CHECK(saved["checkpoint"]["bytes"].get<double>() == Approx(14 * 8.03e9).epsilon(0.01));
  const Json spares = parsed(orrery(call + "--set /run/spares/nodes=1").out);
  CHECK(spares["price"]["gpus"] == 16);
}

}  // namespace orrery::scenarios
