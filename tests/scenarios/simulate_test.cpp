#include <set>

#include "models/prediction/prediction.hpp"
#include "scenarios/report/result.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

Json simulated(const std::string& arguments) {
  const Ran ran = orrery("simulate " + arguments + " --json");
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.error.empty());
  return parsed(ran.out);
}

}  // namespace

TEST_CASE("The JSON of a simulation has days, GPU-hours and dollars of the tokens asked for") {
  const Json json = parsed(orrery("simulate llama3-70b-64-h100 --tokens 1T --json").out);
  CHECK(json["tokens"] == 1e12);
  // 10^12 tokens, step by step, on 64 GPUs.
  const double hours = 1e12 / json["tokens_per_s"].get<double>() / 3600;
  CHECK(json["days"].get<double>() == Approx(hours / 24));
  CHECK(json["gpu_hours"].get<double>() == Approx(hours * 64));
  CHECK(json["cost_usd"].get<double>() ==
        Approx(hours * 64 * json["price"]["usd_per_gpu_hour"].get<double>()));
  // The scenario's own tokens do the same.
  const Json own = parsed(orrery("simulate llama3-70b-64-h100 --set /tokens=1T --json").out);
  CHECK(own["cost_usd"] == json["cost_usd"]);
  const Json without = parsed(
      orrery("simulate --model gpt2 --cluster dgx-h100 --plan zero=1,global_batch=64 --json").out);
  for (const char* key : {"tokens", "days", "gpu_hours", "cost_usd"}) {
    INFO(key);
    CHECK(without.at(key).is_null());
  }
}

TEST_CASE("Runs like published ones draw three quarters of what their servers are rated at") {
  // Servers in training draw 0.75 of their rated power on average (epoch-research/
  // training-cost-trends), an H100 server under heavy training 0.76 (arXiv:2506.14551), and
  // Granite 3.0 took 0.91 kWh per hour of an H100, 0.71 of its share of a server.
  double sum = 0;
  const std::vector<const char*> names{"llama3-70b-64-h100", "gpt3-175b-1024-a100",
                                       "gpt-1t-512-a100", "mixtral-8x22b-128-h100"};
  for (const char* name : names) {
    INFO(name);
    const Json json = simulated(name);
    const hardware::NodeType node = Scenario::load(name).question().cluster.node;
    const double rated = node.gpu.board_power.count() + node.host_power.count() / node.gpus;
    const double drawn = json["energy_j_per_step"].get<double>() /
                         json["step_time_s"].get<double>() / json["ranks"].get<double>();
    CHECK(drawn / rated > 0.65);
    CHECK(drawn / rated < 0.85);
    sum += drawn / rated;
    CHECK(json["gpu_power_w"].get<double>() < node.gpu.board_power.count());
    CHECK(json["gpu_power_w"].get<double>() > node.gpu.board_power.count() / 2);
  }
  CHECK(sum / static_cast<double>(names.size()) == Approx(0.75).margin(0.05));
}

TEST_CASE("A step that waits on a slow NIC takes less power than a busy one") {
  const std::string asked =
      "simulate --model llama3-8b --cluster 'dgx-h100 x 4' --plan "
      "zero=3,data=32,micro_batch=1,global_batch=32,seq_len=4096 --json ";
  const Json busy = parsed(orrery(asked).out);
  const Json waiting = parsed(orrery(asked + "--set '/cluster/fabric/bandwidth=40 Gb/s'").out);
  CHECK(waiting["step_time_s"].get<double>() > 2 * busy["step_time_s"].get<double>());
  CHECK(waiting["gpu_power_w"].get<double>() < 0.7 * busy["gpu_power_w"].get<double>());
  CHECK(waiting["energy_j_per_step"].get<double>() > busy["energy_j_per_step"].get<double>());
}

TEST_CASE("The JSON of a simulation has every member promised") {
  const Json json = simulated("gpt3-175b-1024-a100");
  for (const char* key : {"step_time_s",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "model_tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "peak_memory_bytes",
                          "memory",
                          "fits",
                          "breakdown",
                          "busy",
                          "bubble_fraction",
                          "bottleneck",
                          "cost_usd_per_step",
                          "price",
                          "tokens",
                          "days",
                          "gpu_hours",
                          "cost_usd",
                          "energy_j_per_step",
                          "gpu_power_w",
                          "uncertainty",
                          "assumptions",
                          "ranks",
                          "ranks_simulated"}) {
    INFO(key);
    CHECK(json.contains(key));
  }
  for (const char* part : {"gemm", "attention", "memory_bound", "tp", "cp", "ep", "dp", "pp",
                           "other_comm", "bubble", "optimizer", "host", "other"}) {
    INFO(part);
    CHECK(json["breakdown"].contains(part));
  }
  CHECK(json["breakdown"].size() == 13);
  for (const char* unit : {"nic", "nvlink", "sm"}) {
    INFO(unit);
    CHECK(json["busy"][unit].get<double>() > 0);
    CHECK(json["busy"][unit].get<double>() <= 1);
  }
  CHECK(json["ranks"] == 1024);
  CHECK(json["ranks_simulated"] == 16);  // one class per stage
  // The usual headroom is the measured error; the shipped scenario leaves more.
  CHECK(json["fit"] == "yes");
  CHECK(json["fit_probability"] > 0.5);
  CHECK(json["headroom"] < 0.15);
  CHECK(json["sharded_error"].is_null());
  CHECK(json["evidence"]["kinds"] == Json({"dense pre-training"}));
  CHECK(json["evidence"]["stack"] == "megatron-lm");
  CHECK(json["evidence"]["runs"].get<int>() > 9);
  CHECK(json["memory_evidence"]["kinds"] == Json({"dense pre-training"}));
  CHECK(json["uncertainty"].at("p50") == json["step_time_s"]);
  CHECK(json["uncertainty"].at("p10") < json["step_time_s"]);
  CHECK(json["uncertainty"].at("p90") > json["step_time_s"]);
}

TEST_CASE(
    "A plan that leaves less memory free than --headroom asks for fits tightly, exit code 0") {
  const Ran wide = orrery("simulate gpt3-175b-1024-a100 --headroom 98%");
  CHECK(wide.exit_code == 0);
  CHECK(wide.out.find("fits tightly, with less than 98.0 % to spare: ") != std::string::npos);
  const Json json = parsed(orrery("simulate gpt3-175b-1024-a100 --headroom 98% --json").out);
  CHECK(json["fit"] == "tight");
  CHECK(json["fits"] == true);
  CHECK(orrery("simulate gpt3-175b-1024-a100").out.find("measured peaks would fit") !=
        std::string::npos);
  CHECK(refused_line("simulate gpt3-175b-1024-a100 --headroom lots") ==
        "--headroom: expected a percentage from 0% to 99% such as 6%, found 'lots'");
}

TEST_CASE("A plan that may not fit has exit code 0 and the bounds of what it needs") {
  const Json wide = parsed(orrery("simulate llama3-70b-64-h100 --json").out);
  const auto peak = wide.at("peak_memory_bytes").get<std::int64_t>();
  const Json range = wide.at("peak_memory_range_bytes");
  CHECK(range.at("least").get<std::int64_t>() < peak);
  CHECK(range.at("most").get<std::int64_t>() > peak);
  const std::string narrow = "simulate llama3-70b-64-h100 --set '/cluster/node/gpu/memory=\"" +
                             std::to_string(peak - 1) + " B\"' ";
  const Ran ran = orrery(narrow + "--json");
  CHECK(ran.exit_code == 0);
  const Json json = parsed(ran.out);
  CHECK(json["fit"] == "doubtful");
  CHECK(json["fits"] == true);
  CHECK(json["out_of_memory"].is_null());
  const std::string doubted = orrery(narrow).out;
  CHECK(doubted.find("may not fit: ") != std::string::npos);
  CHECK(doubted.find("at least ") != std::string::npos);
  CHECK(doubted.find(", whatever the allocator keeps") != std::string::npos);
  // One range of memory where the bounds decide nothing: that of measured peaks.
  const std::string fits = orrery("simulate llama3-70b-64-h100").out;
  CHECK(fits.find("whatever the allocator keeps") == std::string::npos);
  CHECK(fits.find("needs between") == std::string::npos);
}

TEST_CASE("A range says which published runs it comes from, and what widens it") {
  const auto says = [](const std::string& arguments, const std::string& phrase) {
    INFO(arguments << "\n" << phrase);
    CHECK(unwrapped(orrery(arguments).out).find(phrase) != std::string::npos);
  };
  const std::string asked = "simulate --model llama2-7b --cluster dgx-a100-80gb --plan ";
  const std::string sharded = asked + "zero=3,global_batch=16,seq_len=2048 --software ";
  says(sharded + "composer-fsdp", "runs of FSDP and ZeRO-2, 3 in ");
  says(sharded + "composer-fsdp", " groups with composer-fsdp on a100-sxm-80gb");
  says(sharded + "megatron-core", " groups on a100-sxm-80gb; none with this stack (x ");
  says(sharded + "megatron-lm",
       "/plan/zero: ZeRO stage 3 is not supported by megatron-lm; supported: 0, 1");
  says(asked + "tensor=8", "runs of dense pre-training in ");
}

TEST_CASE("The breakdown adds up to the step, and memory to its peak") {
  for (const std::string& name : scenario_names()) {
    INFO(name);
    const Ran ran = orrery("simulate " + name + " --json");
    const Json json = parsed(ran.out);
    double sum = 0;
    for (const auto& [part, time] : json["breakdown"].items()) {
      INFO(part);
      CHECK(time.get<double>() >= 0);
      sum += time.get<double>();
    }
    // Twelve roundings of a double below 1000 s.
    CHECK(sum == Approx(json["step_time_s"].get<double>()).epsilon(1e-13));
    std::int64_t bytes = 0;
    for (const auto& [kind, count] : json["memory"].items()) bytes += count.get<std::int64_t>();
    CHECK(bytes == json["peak_memory_bytes"].get<std::int64_t>());
  }
}

TEST_CASE("Rates follow from the step by their definitions") {
  const Json json = simulated("gpt3-175b-1024-a100");
  const double step = json["step_time_s"];
  CHECK(json["tokens_per_s"].get<double>() == Approx(1536 * 2048 / step));
  CHECK(json["tokens_per_s_per_gpu"].get<double>() == Approx(1536 * 2048 / step / 1024));
  // Dense fp16 peak of an A100: 312 TFLOP/s.
  CHECK(json["mfu"].get<double>() ==
        Approx(json["model_tflops_per_gpu"].get<double>() / 312).epsilon(1e-9));
  CHECK(json["hfu"].get<double>() > json["mfu"].get<double>());
}

TEST_CASE("Two runs print the same bytes, and how long they took only when asked") {
  const std::string question = "simulate gpt3-175b-1024-a100 --json";
  const std::string answer = orrery(question).out;
  CHECK(orrery(question).out == answer);
  Json timed = parsed(orrery(question + " --timing").out);
  for (const char* part : {"load", "lower", "check", "simulate"}) {
    CHECK(timed["wall_time_s"].at(part).get<double>() > 0);
  }
  CHECK(timed["wall_time_s"].at("network").is_null());
  timed.erase("wall_time_s");
  CHECK(timed.dump(2) + "\n" == answer);

  const std::string search =
      "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 8 --seq-len 128 --top 1 --json";
  CHECK(orrery(search).out == orrery(search).out);
  CHECK(parsed(orrery(search + " --timing").out).at("wall_time_s").get<double>() > 0);
}

TEST_CASE("A step may be run as events, too, where nothing shares links") {
  const std::string question = "simulate gpt3-175b-1024-a100 --json --network static";
  Json verified = parsed(orrery(question + " --verify").out);
  // 16 stages, 96 micro-batches, 6 layers of 10 operations or more, there and back, each of them
  // launched and ended.
  CHECK(verified["verified"]["events"].get<std::int64_t>() > 16 * 96 * 6 * 10 * 2 * 2);
  verified.erase("verified");
  verified["inputs"].erase("verify");
  CHECK(verified.dump(2) + "\n" == orrery(question).out);
  const Ran shared = orrery("simulate gpt3-175b-1024-a100 --verify --network events");
  CHECK(shared.exit_code == 2);
  CHECK(shared.error.find("--verify: ") == 0);
}

TEST_CASE("A plan that does not fit is an answer: exit code 1 and the bytes that lack") {
  // 175 billion parameters on 8 GPUs: 2 bytes each of weights alone are 40 GiB a GPU, and fp32
  // gradients, master weights and moments another 16 each.
  const Ran ran = orrery(
      "simulate --model gpt3-175b --cluster dgx-a100-80gb --plan "
      "tensor=8,micro_batch=1,global_batch=8 --json");
  CHECK(ran.exit_code == 1);
  const Json json = parsed(ran.out);
  CHECK(json["fits"] == false);
  CHECK(json["out_of_memory"]["rank"] == 0);
  CHECK(json["out_of_memory"]["needed_bytes"] == json["peak_memory_bytes"]);
  CHECK(json["out_of_memory"]["available_bytes"].get<std::int64_t>() <
        json["out_of_memory"]["needed_bytes"].get<std::int64_t>());
  // 18 bytes for each of 174.6e9 / 8 parameters is the least that it can be.
  CHECK(json["peak_memory_bytes"].get<double>() > 18 * 174.6e9 / 8);

  const Ran text = orrery(
      "simulate --model gpt3-175b --cluster dgx-a100-80gb --plan "
      "tensor=8,micro_batch=1,global_batch=8");
  CHECK(text.exit_code == 1);
  CHECK(text.out.find("Does not fit: rank 0 needs ") != std::string::npos);
}

TEST_CASE("A number changed on the command line changes the answer") {
  const double slow =
      simulated("gpt3-175b-1024-a100 --set '/cluster/fabric/bandwidth=\"50 Gb/s\"'")["step_time_s"];
  const double fast =
      simulated("gpt3-175b-1024-a100 --set '/cluster/fabric/bandwidth=800 Gb/s'")["step_time_s"];
  CHECK(slow > fast);
}

TEST_CASE("Defaults that were filled in are named") {
  const Json json = simulated("--model gpt2 --cluster dgx-a100-80gb");
  const Json& reported = json["assumptions"];
  std::set<std::string> all;
  for (const Json& each : reported) all.insert(each.get<std::string>());
  CHECK(all.count("/software: not stated; generic assumed") == 1);
  CHECK(
      all.count("/plan: not stated; the best that orrery plan finds for this batch (--plan states "
                "another)") == 1);
  const Json one = simulated("--model gpt2 --cluster dgx-a100-80gb --plan zero=0");
  CHECK(one["assumptions"].dump().find("/plan/micro_batch: not stated; 1 assumed") !=
        std::string::npos);
}

TEST_CASE("The report shows step, published figure, days and the way from the ideal") {
  const Ran ran = orrery("simulate gpt-1t-512-a100 --tokens 300B");
  CHECK(ran.exit_code == 0);
  for (const char* part : {"Step time", "Published     71.49 s", "300B tokens", "days",
                           "From the ideal machine to this step", "predicted step"}) {
    INFO(part);
    CHECK(ran.out.find(part) != std::string::npos);
  }
  CHECK(ran.out.find('\x1b') == std::string::npos);  // no colour where there is no terminal
}

TEST_CASE("With --explain the report has kernels, collectives and stages") {
  const Ran ran = orrery("simulate gpt3-175b-1024-a100 --explain");
  for (const char* part :
       {"Operations of the slowest rank", "Collectives and transfers", "limited by",
        "Memory by stage at its peak", "Busy in the slowest rank's step", "  NIC  ", "  NVLink  ",
        "  SMs  ", "alone: one call by its cost model or table", "calls: of this rank"}) {
    INFO(part);
    CHECK(ran.out.find(part) != std::string::npos);
  }
}

TEST_CASE("Keys that go round a ring are in the report, as messages between neighbours") {
  const Ran ran = orrery(
      "simulate --model llama3.1-8b --cluster 'dgx-h100 x 1' --software nemo --explain "
      "--plan context=8,seq_len=65536,global_batch=8,zero=1,recompute=full");
  CHECK(ran.exit_code == 0);
  for (const char* part : {"CP 8 by ring", "send_receive"}) {
    INFO(part);
    CHECK(ran.out.find(part) != std::string::npos);
  }
}

TEST_CASE("The version and the help are printed") {
  CHECK(orrery("--version").out == "orrery 0.1.0\n");
  CHECK(orrery("--help").exit_code == 0);
  CHECK(orrery("simulate --help").out.find("--trace-detail") != std::string::npos);
}

}  // namespace orrery::scenarios
