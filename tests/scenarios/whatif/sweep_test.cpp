#include "scenarios/whatif/sweep.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <thread>

#include "scenarios/whatif/rate_groups.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

SweepQuestions asked(const std::string& scenario, const std::vector<std::string>& vary,
                     const WhatIfRequest& request = {}) {
  std::vector<ValueList> lists;
  for (const std::string& each : vary) lists.push_back(parse_varied(each));
  const Scenario base = Scenario::load(scenario).replace({{"/cluster/site", Json::object()}});
  return sweep_questions(base, std::move(lists), request);
}

/// Lines of variants drawn at random, shared and alone.
void check_random_variants(const SweepQuestions& questions, int count, unsigned seed) {
  SweepAnswers answers{questions};
  std::mt19937_64 random{seed};
  int predicted = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t index = random() % questions.grid.variants();
    const std::string shared = questions.grid.line(index, answers.row(index));
    const std::string alone = questions.grid.line(index, SweepAnswers::row_alone(questions, index));
    if (shared != alone) {
      INFO(alone);
      REQUIRE(shared == alone);
    }
    predicted += is_predicted(shared) ? 1 : 0;
  }
  CHECK(predicted > count / 20);  // it is no comparison of errors alone
}

std::string all_lines(const SweepQuestions& questions, unsigned threads) {
  SweepAnswers answers{questions};
  std::string all;
  CHECK(sweep_lines(answers, questions.grid, 0, questions.grid.variants(),
                    {.threads = threads, .progress = {}},
                    [&](std::string_view lines, std::uint64_t) { all += lines; }));
  return all;
}

const std::string small_sweep =
    "sweep llama3-8b-8-h100 --vary /plan/micro_batch=1,2,3 --vary /plan/recompute=none,full "
    "--vary '/cluster/fabric/bandwidth=100 Gb/s,200 Gb/s,x' --tokens 1T ";

}  // namespace

TEST_CASE("A variant of a sweep is the same bytes as that variant simulated alone") {
  SECTION("rates, money and plans of one node") {
    check_random_variants(
        asked("llama3-8b-8-h100",
              {"/plan/micro_batch=1,2,3,4", "/cluster/price_per_gpu_hour=$1/h,$2.5/h,null",
               "/plan/tensor=1,2,3", "/cluster/node/gpu/memory_bandwidth=2 TB/s,3.35 TB/s",
               "/plan/recompute=none,selective,full", "/cluster/site/clock=0.9,1",
               "/cluster/node/gpu/memory=40 GiB,79.6 GiB", "/tokens=1T,300B,-1",
               "/cluster/node/scale_up/bandwidth=300 GB/s,450 GB/s",
               "/cluster/node/gpu/power_limit=500 W,700 W,900 W", "/cluster/site/step=0 s,20 ms",
               "/plan/seq_len=4096,8192"}),
        250, 1);
  }
  SECTION("fabric, nodes and degrees of several nodes") {
    check_random_variants(
        asked("llama3-70b-64-h100",
              {"/cluster/nodes=8,16,9", "/cluster/fabric/bandwidth=100 Gb/s,400 Gb/s",
               "/plan/tensor=4,8", "/plan/pipeline=4,8", "/cluster/fabric/latency=2 us,20 us,-1",
               "/cluster/fabric/efficiency=0.5,0.9,2", "/cluster/fabric/hop_latency=1 us,null",
               "/plan/zero=0,1", "/cluster/fabric/oversubscription=1,2",
               "/cluster/price_per_gpu_hour=$2/h,$4/h", "/cluster/site/network=0.7,1",
               "/cluster/site/jitter=0 s,5 us", "/cluster/node/host_power=1 kW,4 kW"},
              {.headroom = 0.2, .tokens = 15e12}),
        60, 2);
  }
  SECTION("other models, stacks, clusters, and links that events share") {
    check_random_variants(
        asked("llama3-8b-8-h100",
              {"/model=llama3-8b,mistral-7b,no-such-model", "/software=nemo,megatron-core,generic",
               R"(/cluster="dgx-h100 x 1","dgx-a100-80gb x 2","dgx-h100 x 2")",
               "/cluster/fabric/bandwidth=100 Gb/s,200 Gb/s", "/network=static,auto,events",
               "/plan/global_batch=32,64", "/model/layers=16,32"}),
        60, 3);
  }
  SECTION("curves and peaks of the GPU") {
    check_random_variants(
        asked("llama3-8b-8-h100",
              {"/cluster/node/gpu/dense_peak/bf16=600 TFLOP/s,989 TFLOP/s,0 TFLOP/s",
               "/cluster/node/gpu/gemm/bf16/compute_share=0.5,0.8,1.5",
               "/cluster/node/gpu/memory_bound/memory_share=0.6,0.9",
               "/cluster/node/gpu/sustained_share=0.8,0.95", "/plan/precision=bf16,fp8",
               "/cluster/node/gpu/memory=79.6 GiB,20 GiB", "/plan/micro_batch=1,2"}),
        120, 4);
  }
}

TEST_CASE("A run's own price holds in a sweep as alone, whatever the cluster's is") {
  const std::string price = "/cluster/price_per_gpu_hour=$1/h,$9/h";
  const auto cost = [](const SweepQuestions& questions, std::uint64_t index) {
    SweepAnswers answers{questions};
    const std::string shared = questions.grid.line(index, answers.row(index));
    CHECK(shared == questions.grid.line(index, SweepAnswers::row_alone(questions, index)));
    return answers.row(index).figures.cost.value().count();
  };
  const Scenario base = Scenario::load("llama3-8b-8-h100");
  for (const char* run : {R"({"price": "$2/h"})", R"({"own": {"capex": "$31k"}})",
                          R"({"pools": [{"name": "a", "nodes": 1, "price": "$3/h"}]})"}) {
    INFO(run);
    const SweepQuestions questions =
        sweep_questions(base.replace({{"/run", Json::parse(run)}}), {parse_varied(price)}, {});
    CHECK(cost(questions, 0) == cost(questions, 1));
  }
  const SweepQuestions varied =
      sweep_questions(base, {parse_varied(price), parse_varied("/run/price=$2/h,$4/h")}, {});
  CHECK(cost(varied, 1) == Approx(2 * cost(varied, 0)));
  CHECK(cost(varied, 2) == cost(varied, 0));
}

TEST_CASE("A sweep is the same bytes for any number of threads") {
  const SweepQuestions questions =
      asked("llama3-8b-8-h100",
            {"/plan/micro_batch=1,2,3,4", "/plan/recompute=none,full",
             "/cluster/fabric/bandwidth=100 Gb/s,200 Gb/s", "/cluster/site/clock=0.9,1"});
  const std::string one = all_lines(questions, 1);
  CHECK(std::ranges::count(one, '\n') == 32);
  CHECK(all_lines(questions, 2) == one);
  CHECK(all_lines(questions, 7) == one);
}

TEST_CASE("A line of a sweep has its values, figures and, with tokens, days and dollars") {
  const SweepQuestions questions =
      asked("llama3-8b-8-h100", {"/plan/micro_batch=2,3"}, {.headroom = {}, .tokens = 1e12});
  SweepAnswers answers{questions};
  const std::string line = questions.grid.line(0, answers.row(0));
  const Json row = Json::parse(line);
  const Scenario alone = Scenario::load("llama3-8b-8-h100").replace({{"/plan/micro_batch", 2}});
  const models::Prediction found = models::predict(alone.question());
  CHECK(row["index"] == 0);
  CHECK(row["values"] == Json{{"/plan/micro_batch", 2}});
  CHECK(row["error"].is_null());
  CHECK(row["step_time_s"] == seconds(found.step));
  CHECK(row["mfu"] == found.mfu);
  CHECK(row["peak_memory_bytes"] == found.memory[found.fullest].total.count());
  CHECK(row["uncertainty"]["p10"] == seconds(found.uncertainty.p10));
  CHECK(row["days"].get<double>() == Approx(1e12 / found.tokens_per_second / 86400));
  CHECK(row["cost_usd"].get<double>() ==
        Approx(found.cost->count() * 1e12 / found.tokens_per_second / seconds(found.step)));
  CHECK(figure_in(line, "step_time_s") == seconds(found.step));
  CHECK(is_predicted(line));
  CHECK(fits_in(line));
  const std::string impossible = questions.grid.line(1, answers.row(1));
  const Json none = Json::parse(impossible);
  CHECK_FALSE(is_predicted(impossible));
  CHECK(none["error"].is_string());
  CHECK(none["step_time_s"].is_null());
  CHECK(none.size() == row.size());
}

TEST_CASE("A text among the values does not pass for a figure") {
  SweepRow row;
  row.error = R"(,"error":null,"fits":true)";
  const SweepGrid grid{{{"/name", {Json(R"(x,"error":null,"fits":true)")}}}};
  const std::string line = grid.line(0, row);
  CHECK_FALSE(is_predicted(line));
  CHECK(Json::parse(line)["values"]["/name"] == R"(x,"error":null,"fits":true)");
}

TEST_CASE("A value that several threads ask for is made once, and old ones are forgotten") {
  OnceMap<int> kept{10 * 1024};
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t key = 0; key < 3; ++key) {
        const auto value = kept.get(key, [&] {
          ++made;
          return std::pair{std::make_shared<const int>(static_cast<int>(key)), std::size_t{10}};
        });
        if (*value != static_cast<int>(key)) made += 1000;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(made == 3);
  // 4 KiB each: at most two at once.
  const auto get = [&](std::uint64_t key) {
    kept.get(key, [&] {
      ++made;
      return std::pair{std::make_shared<const int>(0), std::size_t{4096}};
    });
  };
  made = 0;
  for (const std::uint64_t key : {10, 11, 10, 12, 10, 11}) get(key);
  CHECK(made == 4);  // 11 was forgotten for 12; 10 was used in between
}

TEST_CASE("A sweep without an answer says why its first variant has none") {
  const Scratch scratch;
  const Ran ran = orrery("sweep llama3-8b-8-h100 --vary /plan/tensor=3,5 --store " +
                         scratch.path("none.jsonl"));
  CHECK(ran.exit_code == 1);
  CHECK(ran.out.find("2 are impossible") != std::string::npos);
  CHECK(ran.out.find("the first of these: ") != std::string::npos);
}

TEST_CASE("The fastest of a sweep fits as predicted where some variant does") {
  const auto line = [](const char* fit, int tokens) {
    return R"({"index":0,"error":null,"gpus":8,"step_time_s":1,"tokens_per_s":)" +
           std::to_string(tokens) + R"(,"fits":true,"fit":")" + fit +
           R"(","cost_usd_per_step":null})";
  };
  SweepTotals totals;
  totals.add(line("doubtful", 900));
  totals.add(line("doubtful", 950));
  CHECK(totals.fastest == line("doubtful", 950));
  totals.add(line("tight", 500));
  totals.add(line("doubtful", 990));
  totals.add(line("yes", 400));
  CHECK(totals.fastest == line("tight", 500));
  CHECK(totals.fits == 5);
  CHECK(totals.doubtful == 3);
}

TEST_CASE("A shard is a contiguous part, and all shards are the whole") {
  for (const std::uint64_t variants : {0, 1, 7, 100}) {
    for (const std::uint64_t of : {1, 3, 8}) {
      std::uint64_t next = 0;
      for (std::uint64_t i = 1; i <= of; ++i) {
        const SweepShard shard{i, of};
        CHECK(shard.begin(variants) == next);
        CHECK(shard.end(variants) - next <= variants / of + 1);
        next = shard.end(variants);
      }
      CHECK(next == variants);
    }
  }
  CHECK(parse_shard("2/8").number == 2);
  const std::string wanted =
      "--shard: expected NUMBER/OF such as 2/8, numbered from 1 to at most 1000000, found ";
  for (const char* wrong : {"0/8", "9/8", "2", "2/8/3", "a/b", "-1/2", "1/1000001"}) {
    CHECK_THROWS_WITH(parse_shard(wrong), wanted + "'" + wrong + "'");
  }
}

TEST_CASE("A sweep of nothing that exists, of too much or of one pointer twice is refused") {
  const auto of = [](const std::vector<std::string>& vary) {
    return [vary] { return asked("llama3-8b-8-h100", vary); };
  };
  CHECK_THROWS_WITH(of({"/plan_/tensor=1,2"})(),
                    Catch::StartsWith("--vary /plan_/tensor: no such value; the scenario has: "));
  CHECK_THROWS_WITH(of({"/plan/tensor=1,2", "/plan/tensor=4"})(),
                    "--vary: /plan/tensor is listed twice");
  CHECK_THROWS_WITH(of({"plan/tensor=1,2"})(),
                    "--vary: expected POINTER=A,B,C such as /plan/tensor=2,4,8, found "
                    "'plan/tensor=1,2'");
  const ValueList thousand{"/plan/global_batch", std::vector<Json>(1000, 64)};
  const ValueList more{"/plan/seq_len", std::vector<Json>(10001, 64)};
  CHECK_THROWS_WITH(sweep_questions(Scenario::load("llama3-8b-8-h100"), {thousand, more}, {}),
                    "--vary: the lists have 10,001,000 combinations, more than 10,000,000; list "
                    "fewer values, or allow them with --limit 10001000");
  CHECK(sweep_questions(Scenario::load("llama3-8b-8-h100"), {thousand, more}, {}, 20'000'000)
            .grid.variants() == 10'001'000);
  CHECK(parse_varied("/plan/tensor=4").values == std::vector<Json>{4});
}

TEST_CASE("Ten sweeps killed at random moments end with the same bytes") {
  const Scratch scratch;
  const std::string many =
      "sweep llama3-70b-64-h100 --site '{}' --vary /plan/micro_batch=1,2 --vary /plan/zero=0,1 "
      "--vary /plan/tensor=4,8 --vary "
      "'/cluster/fabric/bandwidth=100 Gb/s,200 Gb/s,300 Gb/s,400 Gb/s' --vary "
      "/cluster/site/clock=0.8,0.9,1,1.1 ";
  const Ran whole = orrery(many + "--threads 1 --store " + scratch.path("whole"));
  INFO(whole.error);
  REQUIRE(whole.exit_code == 0);
  std::mt19937 random{7};
  for (int sweep = 0; sweep < 10; ++sweep) {
    const std::string store = scratch.path("killed-" + std::to_string(sweep));
    for (int kill = 0; kill < 3; ++kill) {
      const double after = whole.seconds * static_cast<double>(1 + random() % 60) / 100;
      std::system(("timeout -s KILL " + std::to_string(after) + " " + ORRERY_COMMAND + " " + many +
                   "--store " + store + " >" + scratch.path("out") + " 2>&1")
                      .c_str());
    }
    if (sweep % 2 == 0 && std::filesystem::exists(store)) {  // a torn last line, for certain
      const auto size = std::filesystem::file_size(store);
      if (size > 10) std::filesystem::resize_file(store, size - 10);
    }
    const Ran last = orrery(many + "--store " + store);
    INFO(last.error);
    CHECK(last.exit_code == 0);
    REQUIRE(scratch.read("killed-" + std::to_string(sweep)) == scratch.read("whole"));
  }
}

TEST_CASE("A store of another sweep, another file and a damaged line are refused") {
  const Scratch scratch;
  const std::string store = scratch.path("f.jsonl");
  const Ran first = orrery(small_sweep + "--json --store " + store);
  INFO(first.error);
  REQUIRE(first.exit_code == 0);
  const Json summary = parsed(first.out);
  CHECK(summary["variants"] == 18);
  CHECK(summary["rows"] == 18);
  CHECK(summary["rows_before"] == 0);
  CHECK(summary["complete"] == true);
  CHECK(summary["refused"].get<int>() >= 6);  // 'x' is no bandwidth
  CHECK(summary["fastest"]["fits"] == true);
  const Ran again = orrery(small_sweep + "--json --store " + store);
  CHECK(parsed(again.out)["rows_before"] == 18);
  CHECK(parsed(again.out)["fastest"] == summary["fastest"]);

  const std::string advice = "; state another --store, or remove this file";
  CHECK(refused_line("sweep llama3-8b-8-h100 --vary /plan/micro_batch=1,2 --tokens 1T --store " +
                     store) == store + ": is the store of another sweep, of other values" + advice);
  CHECK(refused_line(small_sweep + "--set /plan/seq_len=4096 --store " + store) ==
        store + ": is the store of another sweep, of another scenario, or of other changes to it" +
            advice);
  CHECK(refused_line(small_sweep + "--shard 1/2 --store " + store) ==
        store + ": is the store of another sweep, of another shard" + advice);
  CHECK(refused_line("sweep llama3-8b-8-h100 --vary /plan/micro_batch=1 --store " +
                     scratch.write("notes", "hello\n")) ==
        scratch.path("notes") + ": expected the store of a sweep, found another file" + advice);
  const std::string bytes = scratch.read("f.jsonl");
  std::string damaged = bytes;
  damaged[damaged.find("{\"index\":4,") + 1] = ' ';
  scratch.write("f.jsonl", damaged);
  CHECK(refused_line(small_sweep + "--store " + store) ==
        store +
            ": line 6 is not that of variant 4; remove the file, or all lines from that one on");
  // A build that predicts otherwise does not continue what another one began.
  std::string otherwise = bytes.substr(0, bytes.find("{\"index\":1,"));
  const std::size_t digit = otherwise.find("\"mfu\":0.") + 8;
  otherwise[digit] = otherwise[digit] == '1' ? '2' : '1';
  scratch.write("f.jsonl", otherwise);
  CHECK(refused_line(small_sweep + "--store " + store) ==
        store +
            ": this build predicts variant 0 otherwise than the one that began the file; state "
            "another --store, or remove it");
}

TEST_CASE("orrery report refuses a store in Parquet and says what makes its page") {
  const Scratch scratch;
  const std::string parquet = scratch.path("f.parquet"), page = scratch.path("page.html");
  std::ofstream{parquet} << "PAR1 and the rest";
  const Ran ran = orrery("report " + parquet + " --out " + page);
  CHECK(ran.exit_code == 2);
  CHECK_THAT(ran.error, Catch::StartsWith(parquet + ": is a Parquet store"));
  CHECK(!std::filesystem::exists(page));
}

TEST_CASE("Shards of a sweep merge to the bytes of the whole, and what is missing is named") {
  const Scratch scratch;
  REQUIRE(orrery(small_sweep + "--store " + scratch.path("whole")).exit_code == 0);
  std::string files;
  for (int i = 1; i <= 4; ++i) {
    const std::string store = scratch.path("part-" + std::to_string(i));
    const Ran ran = orrery(small_sweep + "--shard " + std::to_string(i) + "/4 --store " + store);
    INFO(ran.error);
    CHECK(ran.exit_code <= 1);
    files = store + " " + files;
  }
  const Ran merged = orrery("merge " + files + "--store " + scratch.path("merged"));
  CHECK(merged.out ==
        "wrote " + scratch.path("merged") + ": 18 variants of llama3-8b-8-h100 in 4 shards\n");
  CHECK(scratch.read("merged") == scratch.read("whole"));
  CHECK(orrery("merge " + files).out == scratch.read("whole"));
  const std::string second = scratch.path("part-2"), third = scratch.path("part-3");
  CHECK(refused_line("merge " + second) == "merge: of 4 shards these are missing: 1, 3, 4");
  CHECK(refused_line("merge " + second + " " + second) ==
        second + ": is shard 2/4, as is " + second);
  CHECK(refused_line("merge " + second + " " + scratch.path("whole")) ==
        scratch.path("whole") + ": is a shard of 1, and " + second + " one of 4");
  const std::string lines = scratch.read("part-3");
  scratch.write("part-3", lines.substr(0, lines.size() - 20));
  CHECK(refused_line("merge " + files) == third +
                                              ": has 3 of the 4 variants of shard 3/4; the command "
                                              "that began it continues it");
}

TEST_CASE("An interrupted sweep keeps its lines and says how to go on") {
  const Scratch scratch;
  const std::string values = [] {
    std::string list = "8";
    for (int i = 2; i < 900; ++i) list += "," + std::to_string(8 * i);
    return list;
  }();
  const std::string store = scratch.path("f.jsonl");
  const std::string line = std::string{"timeout --foreground -s INT 0.4 "} + ORRERY_COMMAND +
                           " sweep llama3-70b-64-h100 --vary /plan/global_batch=" + values +
                           " --vary /plan/seq_len=1024,2048,4096,8192 --threads 2 --store " +
                           store + " >" + scratch.path("out") + " 2>" + scratch.path("error");
  const int status = std::system(("sh -c 'trap - INT; " + line + "'").c_str());
  // Its own code is 130; without --foreground the group gets a second signal, which ends it at
  // once.
  CHECK(WEXITSTATUS(status) == 124);
  const std::string said = scratch.read("error");
  CHECK(said.find("; the same command continues " + store) != std::string::npos);
  const std::string kept = scratch.read("f.jsonl");
  CHECK(kept.ends_with("}\n"));
}

TEST_CASE("Rates are numbers that no plan depends on") {
  const Json cluster = Scenario::load("llama3-8b-8-h100").json().at("cluster");
  CHECK(rate_group("/cluster/fabric/bandwidth", cluster) == RateGroup::fabric);
  CHECK(rate_group("/cluster/node/gpu/dense_peak/bf16", cluster) == RateGroup::node);
  CHECK(rate_group("/cluster/price_per_gpu_hour", cluster) == RateGroup::price);
  // A peak that the GPU lacks would be a new format, and counts and kinds change Programs.
  for (const char* shape : {"/cluster/node/gpu/dense_peak/nvfp4", "/cluster/nodes", "/cluster",
                            "/cluster/node/gpu/gemm", "/cluster/fabric/kind", "/plan/tensor"}) {
    CHECK_FALSE(rate_group(shape, cluster));
  }
}

}  // namespace orrery::scenarios
