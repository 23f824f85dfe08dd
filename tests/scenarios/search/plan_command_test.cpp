#include <algorithm>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* small_plan = "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 16 ";

}  // namespace

TEST_CASE("orrery plan prints one JSON document with the best plans") {
  const Ran ran = orrery(std::string{small_plan} + "--seq-len 1024 --top 3 --json");
  CHECK(ran.exit_code == 0);
  CHECK(ran.error.empty());
  const Json json = parsed(ran.out);
  CHECK(json["fits"] == true);
  CHECK(json["reason"].is_null());
  CHECK(json["out_of_memory"].is_null());
  CHECK(json["stopped"] == false);
  CHECK(json["objective"] == "time");
  CHECK(json["plans"].size() == 3);
  const Json& best = json["plans"][0];
  for (const char* key :
       {"plan", "flag", "nodes", "gpus", "step_time_s", "tokens_per_s", "mfu", "peak_memory_bytes",
        "cost_usd_per_step", "energy_j_per_step", "excess_pct", "as_good_as_best", "against_best_s",
        "why", "equals", "fit", "fit_probability"}) {
    INFO(key);
    CHECK(best.contains(key));
  }
  CHECK(best["as_good_as_best"] == true);
  CHECK(best["excess_pct"] == 0);
  const Json& counts = json["counts"];
  CHECK(counts["fit"].get<int>() + counts["too_large"].get<int>() +
            counts["passed_over"].get<int>() ==
        counts["considered"]);
  CHECK(json["assumptions"].back() == "/software: not stated; generic assumed");
}

TEST_CASE("orrery simulate predicts the best plan as orrery plan does") {
  const Json best =
      parsed(orrery(std::string{small_plan} + "--seq-len 1024 --top 1 --json").out)["plans"][0];
  const Json simulated = parsed(orrery("simulate --model gpt2 --cluster dgx-a100-80gb --plan " +
                                       best["flag"].get<std::string>() + " --json")
                                    .out);
  CHECK(simulated["step_time_s"] == best["step_time_s"]);
  CHECK(simulated["peak_memory_bytes"] == best["peak_memory_bytes"]);
  CHECK(simulated["cost_usd_per_step"] == best["cost_usd_per_step"]);
}

TEST_CASE("The plans shown are evaluated with their traffic on links, and in that order") {
  const std::string asked =
      "plan --model gpt3-175b --cluster 'dgx-a100-80gb x 16' --global-batch 128 --seq-len 2048 "
      "--json ";
  const Json with = parsed(orrery(asked + "--top 4").out),
             without = parsed(orrery(asked + "--network static --top 12").out);
  double before = 0;
  for (const Json& each : with["plans"]) {
    const double shared = each["network_step_time_s"];
    CHECK(shared >= before);
    CHECK(each["contention_s"].get<double>() < 0.2 * shared);
    before = shared;
    // The search is the same, with the same static times; a plan of another way to cut the model
    // may move up.
    CHECK(each["step_time_s"] == shared);  // the figure that ranks
    const auto same = [&](const Json& other) {
      return other["flag"] == each["flag"] && other["step_time_s"] == each["static_step_time_s"];
    };
    CHECK(std::any_of(without["plans"].begin(), without["plans"].end(), same));
  }
  CHECK(without["plans"][0]["network_step_time_s"].is_null());
  const Json& best = with["plans"][0];
  const Json simulated = parsed(orrery("simulate --model gpt3-175b --cluster 'dgx-a100-80gb x 16' "
                                       "--network events --plan " +
                                       best["flag"].get<std::string>() + " --json")
                                    .out);
  // Every figure of a row is of that evaluation.
  CHECK(simulated["step_time_s"] == best["network_step_time_s"]);
  CHECK(simulated["mfu"] == best["mfu"]);
  CHECK(simulated["tokens_per_s"] == best["tokens_per_s"]);
  CHECK(simulated["cost_usd_per_step"] == best["cost_usd_per_step"]);
  const Json& second = with["plans"][1];
  double apart = 0;
  for (const auto& part : second["against_best_s"].items()) apart += part.value().get<double>();
  const double steps = second["step_time_s"].get<double>() - best["step_time_s"].get<double>();
  CHECK(apart == Approx(steps).margin(1e-9));
}

TEST_CASE("orrery plan says no with exit code 1, and what comes nearest") {
  const std::string asked =
      "plan --model gpt3-175b --cluster dgx-a100-80gb --global-batch 8 --seq-len 2048";
  const Ran ran = orrery(asked + " --json");
  CHECK(ran.exit_code == 1);
  const Json json = parsed(ran.out);
  CHECK(json["fits"] == false);
  CHECK(json["plans"].empty());
  CHECK(json["out_of_memory"] == json["nearest_miss"]["out_of_memory"]);
  CHECK(json["out_of_memory"]["needed_bytes"].get<double>() >
        json["out_of_memory"]["available_bytes"].get<double>());
  CHECK(json["reason"].get<std::string>().find("comes nearest: rank ") != std::string::npos);

  CHECK(json["advice"].is_array());
  const Ran text = orrery(asked);
  CHECK(text.exit_code == 1);
  CHECK(text.out.find("least memory:") != std::string::npos);
  CHECK(text.out.find("No plan:") != std::string::npos);
}

TEST_CASE("A batch that no plan on these GPUs divides is reported with exit code 1") {
  // 24 GPUs: data is 1 or 7, and no tensor degree of a node (1, 2, 4, 8) leaves 24 / t within the
  // one layer of a pipeline.
  const Scratch scratch;
  const std::string model = scratch.write("one.json", R"({"model_type": "gpt2", "n_layer": 1,
    "n_embd": 64, "n_head": 8, "vocab_size": 512, "n_positions": 128})");
  const Ran ran = orrery("plan --model " + model +
                         " --cluster 'dgx-a100-80gb x 3' --global-batch 7 --seq-len 128 --json");
  CHECK(ran.exit_code == 1);
  CHECK(parsed(ran.out)["reason"] ==
        "no tensor x pipeline x data of 24 GPUs divides 7 sequences a step, 1 layers and 8 "
        "attention heads");
}

TEST_CASE("The text of orrery plan shows ties, reasons and how to go on") {
  const Ran ran = orrery(std::string{small_plan} + "--seq-len 1024");
  CHECK(ran.exit_code == 0);
  for (const char* part :
       {"Plans for gpt2 on dgx-a100-80gb", "against 1", "≈", "cannot distinguish",
        "Why the others are slower than plan 1", "The best one in detail",
        "orrery simulate --model gpt2", "What was tried", "Assumed"}) {
    INFO(part);
    CHECK(ran.out.find(part) != std::string::npos);
  }
  CHECK(ran.out.find('\x1b') == std::string::npos);
}

TEST_CASE("With another objective orrery plan looks at parts of the cluster") {
  const Ran ran = orrery(
      "plan --model gpt2 --cluster 'dgx-a100-80gb x 2' --global-batch 16 --seq-len 1024 "
      "--objective energy");
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("energy") != std::string::npos);
  CHECK(ran.out.find("--set /cluster/nodes=1") != std::string::npos);
}

TEST_CASE("orrery plan finds FSDP where the stack has it, and says how far off such runs were") {
  const std::string asked =
      "plan --model llama2-7b --cluster dgx-a100-80gb --global-batch 16 "
      "--seq-len 4096 --software pytorch-fsdp ";
  const Json best = parsed(orrery(asked + "--top 1 --json").out)["plans"][0];
  CHECK(best["plan"]["tensor"] == 1);  // it cuts no layers
  const std::string flag = best["flag"];
  const bool sharded = best["plan"]["zero"] == 2 || best["plan"]["zero"] == 3;
  REQUIRE(sharded);
  CHECK(flag.find(",zero=") != std::string::npos);
  const Json simulated = parsed(orrery("simulate --model llama2-7b --cluster dgx-a100-80gb "
                                       "--software pytorch-fsdp --json --plan " +
                                       flag)
                                    .out);
  CHECK(simulated["step_time_s"] == best["step_time_s"]);
  CHECK(simulated["sharded_error"]["rows"].get<int>() > 9);
  const Ran text = orrery(asked);
  CHECK(text.out.find("no stack is fitted to ZeRO-2, ZeRO-3 and FSDP") != std::string::npos);
  CHECK(unwrapped(text.out).find("published runs were off by") != std::string::npos);
}

TEST_CASE("orrery plan puts what fits tightly last, unless --headroom says otherwise") {
  const std::string asked =
      "plan --model llama3-8b --cluster dgx-h100 --global-batch 64 "
      "--seq-len 8192 --software megatron-core --top 1 --json --headroom ";
  const Json none = parsed(orrery(asked + "0%").out);
  CHECK(none["fit"] == "yes");
  CHECK(none["counts"]["tight"] == 0);
  const double needed = none["plans"][0]["peak_memory_bytes"];
  const double available = none["available_memory_bytes"];
  // So much that the fastest one fits tightly.
  const double percent = 100 * (1 - needed / available) + 0.1;
  const Json some = parsed(orrery(asked + std::to_string(percent) + "%").out);
  CHECK(some["fit"] == "yes");
  CHECK(some["plans"][0]["peak_memory_bytes"] < needed);
  CHECK(some["counts"]["tight"].get<int>() > 0);
  REQUIRE(!some["tight_plans"].empty());
  CHECK(some["tight_plans"][0]["fit"] == "tight");
  CHECK(some["tight_plans"][0]["peak_memory_bytes"] == needed);
}

TEST_CASE("orrery plan keeps to fixed and excluded values, and lists what it did not vary") {
  const std::string asked = std::string{small_plan} + "--seq-len 1024 --network static --json ";
  const Json fixed = parsed(orrery(asked + "--fixed zero=1,tensor=2,micro_batch=1").out);
  REQUIRE(!fixed["plans"].empty());
  for (const Json& each : fixed["plans"]) {
    CHECK(each["plan"]["zero"] == 1);
    CHECK(each["plan"]["tensor"] == 2);
    CHECK(each["plan"]["micro_batch"] == 1);
  }
  CHECK(fixed["fixed"] == Json::parse(R"({"tensor": 2, "zero": 1, "micro_batch": 1})"));
  CHECK(fixed["searched"]["tensor"] == Json::parse("[2]"));
  CHECK(fixed["searched"]["recompute"] == Json::parse(R"(["none", "selective", "full"])"));

  const Json without = parsed(orrery(asked + "--exclude tensor=1,tensor=2,zero=1").out);
  REQUIRE(!without["plans"].empty());
  for (const Json& each : without["plans"]) {
    CHECK(each["plan"]["tensor"].get<int>() > 2);
    CHECK(each["plan"]["zero"] != 1);
  }
  CHECK(without["excluded"].size() == 3);
  const Json listed = parsed(orrery(asked + "--exclude tensor=1,2,zero=1").out);
  CHECK(listed["excluded"] == without["excluded"]);
  CHECK(parsed(orrery(asked + "--exclude tensor=1,").out)["excluded"].size() == 1);
  const std::string plain = std::string{small_plan} + "--seq-len 1024 ";
  CHECK(orrery(plain + "--exclude 2").error == "--exclude: expected KEY=VALUE, found '2'\n");
  CHECK(orrery(plain + "--fixed tensor").error == "--fixed: expected KEY=VALUE, found 'tensor'\n");
  const Json& open = without["not_searched"];
  CHECK(std::any_of(open.begin(), open.end(), [](const Json& each) {
    return each["field"] == "cuda_graphs" && each["value"] == false &&
           each["why"] == "another value may be faster or need less memory";
  }));
}

TEST_CASE("orrery plan says how far the best plan may be from the fastest one") {
  const std::string asked = std::string{small_plan} + "--seq-len 1024 --network static --json ";
  const Json whole = parsed(orrery(asked).out);
  CHECK(whole["bound_s"] == whole["plans"][0]["step_time_s"]);
  CHECK(whole["gap"] == 0);
  CHECK(whole["proven"] == true);
  for (const std::string form : {"5%", "0.05"}) {
    const Json near = parsed(orrery(asked + "--gap " + form).out);
    CHECK(near["gap"].get<double>() <= 0.05);
    CHECK(near["bound_s"].get<double>() <= whole["bound_s"].get<double>());
    CHECK(near["plans"][0]["step_time_s"].get<double>() <= whole["bound_s"].get<double>() / 0.95);
  }
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --gap 2x") ==
        "--gap: expected a share below 1 such as 2% or 0.02, found '2x'");
}

TEST_CASE("All that orrery plan lists is compared by the figure that ranks") {
  const Json json = parsed(orrery("plan --model gpt3-175b --cluster 'dgx-a100-80gb x 16' "
                                  "--global-batch 128 --seq-len 2048 --top 4 --json")
                               .out);
  const double best = json["plans"][0]["step_time_s"];
  CHECK(json["plans"][0]["network_step_time_s"] == best);
  CHECK(json["gap"].get<double>() ==
        Approx(1 - json["bound_s"].get<double>() / best).margin(1e-12));
  CHECK(json["bound_s"].get<double>() <= best);
  CHECK(json["proven"] == (json["bound_s"] == best));
  CHECK(json["proven_static"] == true);
  // The best of a class that is also a row of the table has the same excess there.
  int both = 0;
  for (const Json& own : json["as_good"]["classes"]) {
    CHECK(own["excess_pct"].get<double>() >= 0);
    for (const Json& row : json["plans"]) {
      if (row["flag"] != own["flag"]) continue;
      CHECK(row["excess_pct"] == own["excess_pct"]);
      ++both;
    }
  }
  CHECK(both > 0);
  for (const char* kind : {"best_without_zero3", "best_on_all_nodes"}) {
    const Json& other = json[kind];
    if (other.is_null()) continue;
    CHECK(other["excess_pct"].get<double>() ==
          Approx(100 * (other["step_time_s"].get<double>() / best - 1)).margin(1e-9));
  }
}

TEST_CASE("orrery plan lists plans that predictions cannot distinguish by how they cut the model") {
  const std::string asked = std::string{small_plan} + "--seq-len 1024 --network static ";
  const Json json = parsed(orrery(asked + "--json").out);
  const Json& classes = json["as_good"]["classes"];
  REQUIRE(!classes.empty());
  const Json& best = json["plans"][0]["plan"];
  CHECK(classes[0]["tensor"] == best["tensor"]);
  CHECK(classes[0]["pipeline"] == best["pipeline"]);
  CHECK(classes[0]["micro_batch"] == best["micro_batch"]);
  CHECK(classes[0]["excess_pct"] == 0);
  for (const Json& each : classes) {
    for (const auto& field : each["free"].items()) CHECK(field.value().size() > 1);
  }
  const std::string text = unwrapped(orrery(asked).out);
  CHECK(text.find("Proven: no plan of the searched space is faster") != std::string::npos);
  CHECK(text.find("no matter: ") != std::string::npos);
}

TEST_CASE("orrery plan leaves out plans that miss a deadline") {
  const std::string asked =
      std::string{small_plan} + "--seq-len 1024 --network static --tokens 100B --json ";
  const Json all = parsed(orrery(asked).out);
  const double fastest = all["plans"][0]["days"];
  // 100e9 tokens at the best plan's rate.
  CHECK(fastest ==
        Approx(100e9 / all["plans"][0]["tokens_per_s"].get<double>() / 86400).epsilon(1e-9));
  const Json some =
      parsed(orrery(asked + "--deadline " + std::to_string(fastest * 1.05) + "d").out);
  CHECK(some["plans"][0] == all["plans"][0]);
  CHECK(some["counts"]["too_slow"].get<int>() > 0);
  for (const Json& each : some["plans"]) CHECK(each["days"].get<double>() <= fastest * 1.05);
  const Ran none = orrery(asked + "--deadline " + std::to_string(fastest * 0.9) + "d");
  CHECK(none.exit_code == 1);
  CHECK(parsed(none.out)["reason"].get<std::string>().find("meets the deadline") !=
        std::string::npos);
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --deadline 3d") ==
        "--deadline: needs --tokens, which take that long");
}

TEST_CASE("orrery plan draws the Pareto front of time and memory") {
  const Scratch scratch;
  const std::string picture = scratch.path("front.svg");
  const Json json =
      parsed(orrery(std::string{small_plan} + "--seq-len 1024 --network static --json " +
                    "--picture " + picture)
                 .out);
  const Json& front = json["front"];
  CHECK(front["objective"] == "time");
  CHECK(front["against"] == "memory");
  const Json& plans = front["plans"];
  REQUIRE(plans.size() > 1);
  CHECK(plans[0]["flag"] == json["plans"][0]["flag"]);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    CHECK(plans[i]["static_step_time_s"] > plans[i - 1]["static_step_time_s"]);
    CHECK(plans[i]["peak_memory_bytes"] < plans[i - 1]["peak_memory_bytes"]);
  }
  const std::string svg = scratch.read("front.svg");
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.find("memory of the fullest GPU (GiB)") != std::string::npos);
  // No plan uses less memory than the last one: the same search by that objective.
  const Json least = parsed(
      orrery(std::string{small_plan} + "--seq-len 1024 --network static --json --objective memory")
          .out);
  CHECK(least["plans"][0]["peak_memory_bytes"] == plans.back()["peak_memory_bytes"]);
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --pareto time") ==
        "--pareto: is the objective itself, time; name another one");
}

TEST_CASE("orrery plan leaves a node idle where 33 nodes divide nothing") {
  const std::string asked =
      "plan --model llama2-70b --cluster 'dgx-h100 x 33' --global-batch 256 --seq-len 4096 "
      "--software megatron-core --network static ";
  const Json json = parsed(orrery(asked + "--json").out);
  const Json& best = json["plans"][0];
  CHECK(best["nodes"] == 32);
  CHECK(best["idle_nodes"] == 1);
  const Json& all = json["best_on_all_nodes"];
  CHECK(all["nodes"] == 33);
  CHECK(all["static_step_time_s"].get<double>() > best["step_time_s"].get<double>());
  const std::string text = orrery(asked).out;
  CHECK(text.find("leaves 1 of 33 nodes idle") != std::string::npos);
  CHECK(text.find("--set /cluster/nodes=32") != std::string::npos);
}

TEST_CASE("Where fixed fields rule out every plan, orrery plan says which") {
  const Ran ran =
      orrery(std::string{small_plan} + "--seq-len 1024 --fixed prefetch=2,zero=1 --json");
  CHECK(ran.exit_code == 1);
  const std::string reason = parsed(ran.out)["reason"];
  CHECK(
      reason.find("prefetch needs zero 3, which gathers weights, with zero=1, prefetch=2 fixed") !=
      std::string::npos);
}

TEST_CASE("What orrery plan cannot use is reported in one line") {
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --fixed seq_len=512") ==
        "--fixed:/seq_len: is that of --seq-len");
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --headroom 6") ==
        "--headroom: expected a percentage from 0% to 99% such as 6%, found '6'");
  CHECK(refused_line(std::string{small_plan} + "--seq-len 4096") ==
        "--seq-len: seq_len 4096 is longer than the model's 1024 learned positions");
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --precision int8") ==
        "--precision: expected one of fp32 tf32 fp16 bf16 fp8 fp64 fp8-current fp8-block mxfp8 "
        "nvfp4, "
        "found 'int8'");
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --precision fp8") ==
        "--precision: a100-sxm-80gb does not support fp8");
  CHECK(refused_line(std::string{small_plan} + "--seq-len 1024 --objective speed") ==
        "--objective: expected time, cost, energy, memory or days, found 'speed'");
  CHECK(refused_line("plan --model gpt2 --cluster hgx-h800 --global-batch 8 --seq-len 1024 "
                     "--objective cost") ==
        "--objective: cost needs a price, and hgx-h800 has no price_per_gpu_hour");
  CHECK(refused_line("plan --model gpt2 --cluster dgx-h100 --seq-len 1024") ==
        "--global-batch is required (orrery --help lists the commands)");
}

TEST_CASE(
    "The least energy is not the least cost: a GPU that waits costs as much, and draws less") {
  const std::string asked =
      "plan --model llama3-8b --cluster 'dgx-h100 x 4' --global-batch 64 --seq-len 4096 --json "
      "--network static --top 60 --objective ";
  const Json plans = parsed(orrery(asked + "energy").out)["plans"];
  REQUIRE(plans.size() > 20);
  double least = 1e300, most = 0, last = 0;
  bool same_order = true;
  double cost = 0;
  for (const Json& each : plans) {
    const double energy = each["energy_j_per_step"].get<double>();
    const double dollars = each["cost_usd_per_step"].get<double>();
    if (each["fit"] != "yes") continue;
    CHECK(energy >= last);
    last = energy;
    same_order = same_order && dollars >= cost;
    cost = dollars;
    least = std::min(least, energy / dollars);
    most = std::max(most, energy / dollars);
  }
  CHECK(most > 1.02 * least);
  CHECK(!same_order);
}

// 16 pictures a step on one node: decoded and augmented by half a core, 16 x 2 / 857 / 0.5 s. No
// plan is faster, so the search ends at once, and ties go to the plan with least memory.
TEST_CASE("orrery plan: steps that wait for data are ranked with their wait, and it says so") {
  const std::string asked = std::string{small_plan} + "--seq-len 1024 --top 3 ";
  const std::string data = "--data '{\"format\": \"jpeg-q90\", \"decode\": {\"cores\": 0.5}}' ";
  const Json json = parsed(orrery(asked + data + "--json").out);
  for (const Json& each : json["plans"]) {
    CHECK(each["step_time_s"].get<double>() == Approx(16 * 2 / 857.0 / 0.5).epsilon(1e-6));
    CHECK(each["data"]["slowest"] == "decode");
  }
  CHECK(json["proven"] == true);
  CHECK(json["bound_s"].get<double>() == Approx(16 * 2 / 857.0 / 0.5).epsilon(1e-6));
  const std::string text = unwrapped(orrery(asked + data).out);
  CHECK(text.find("Plan 1 waits ") != std::string::npos);
  CHECK(text.find("for its input: decode takes longest; 3 of the 3 plans shown wait") !=
        std::string::npos);
  // The command that it names predicts the same.
  const std::size_t at = text.find("orrery simulate ");
  REQUIRE(at != std::string::npos);
  std::string line = text.substr(at + 7);
  line = line.substr(0, line.find("'", line.find("/data=")) + 1);
  CHECK(parsed(orrery(line + " --json").out)["step_time_s"] == json["plans"][0]["step_time_s"]);
  // Data that is ready in time changes nothing.
  const Json free = parsed(orrery(asked + "--json").out);
  const Json ready = parsed(
      orrery(asked + "--data '{\"format\": \"jpeg-q90\", \"decode\": {\"cores\": 512}}' --json")
          .out);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(ready["plans"][i]["flag"] == free["plans"][i]["flag"]);
    CHECK(ready["plans"][i]["step_time_s"] == free["plans"][i]["step_time_s"]);
    CHECK(ready["plans"][i]["data"]["wait_s"] == 0);
  }
  CHECK(!free["plans"][0].contains("data"));
  CHECK(refused_line(asked + "--data '{\"format\": \"jpg\"}'")
            .starts_with("--data:/format: unknown data format 'jpg'"));
}

}  // namespace orrery::scenarios
