#include "scenarios/scenario/scenario.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/model/model.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "scenarios/report/result.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// What an action is refused with.
template <class Action>
std::string refused(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

Json small_scenario() {
  return Json::parse(R"({"model": "gpt2", "cluster": "dgx-a100-80gb", "software": "megatron-lm",
                         "plan": {"data": 8, "global_batch": 64}})");
}

}  // namespace

TEST_CASE("Names in a scenario become what they stand for") {
  const Scenario scenario = Scenario::parse(small_scenario(), "small.json");
  const Json& json = scenario.json();
  CHECK(json.at("model").at("layers") == 12);
  CHECK(json.at("cluster").at("node").at("gpu").at("name") == "a100-sxm-80gb");
  CHECK(json.at("cluster").at("fabric").at("bandwidth") == "200 Gb/s");
  CHECK(json.at("software").at("host").contains("forward_launch"));
}

TEST_CASE("Every shipped scenario reads, and its expansion asks the same question") {
  for (const std::string& name : scenario_names()) {
    INFO(name);
    const Scenario scenario = Scenario::load(name);
    const models::Question question = scenario.question();
    CHECK(scenario.name() == name);
    CHECK(question.plan.gpus() == question.cluster.gpus());
    const Scenario again = Scenario::parse(scenario.json(), name);
    CHECK(again.json() == scenario.json());
    CHECK(models::to_json(again.question().plan) == models::to_json(question.plan));
  }
}

TEST_CASE("The GPT-3 scenario is 96 micro-batches over 1024 GPUs") {
  // 1536 sequences over 8 replicas, two at a time: 1536 / 8 / 2.
  const models::Question question = Scenario::load("gpt3-175b-1024-a100").question();
  CHECK(question.plan.gpus() == 1024);
  CHECK(question.plan.micro_batches() == 96);
  CHECK(question.model.parameters == 174'615'846'912);
}

TEST_CASE("Llama 3 405B has 126 layers on 16 stages with a slot each for embedding and head") {
  const models::Question question = Scenario::load("llama3-405b-16384-h100").question();
  // 128 slots on 64 chunks are two each; the first and the last give one away.
  const std::vector<std::int64_t> layers = models::layers_per_chunk(question.plan, question.model);
  REQUIRE(layers.size() == 64);
  CHECK(layers.front() == 1);
  CHECK(layers[1] == 2);
  CHECK(layers.back() == 1);
}

// Llama 3.1 405B ran as published; what Meta frees early is held here.
TEST_CASE("Every shipped scenario of a publication fits, and says the published figure") {
  for (const std::string& name : scenario_names()) {
    const Scenario scenario = Scenario::load(name);
    if (!scenario.published()) continue;
    INFO(name);
    const models::Question question = scenario.question();
    const models::Prediction prediction = models::predict(question);
    if (name.starts_with("llama3-405b")) {
      CHECK(prediction.fit == models::Fit::doubtful);
    } else {
      CHECK_FALSE(prediction.out_of_memory);
    }
    ReportOptions options;
    options.published = scenario.published();
    const std::string text = report(question, prediction, options);
    const std::size_t at = text.find("\n  Published ");
    REQUIRE(at != std::string::npos);
    CHECK(text.substr(at, text.find('\n', at + 1) - at).find("predicted ") != std::string::npos);
  }
}

TEST_CASE("Llama 3 405B is as fast as published, with short and with long sequences") {
  const auto rate = [](const std::string& name) {
    const models::Question question = Scenario::load(name).question();
    CHECK(question.plan.recompute.kind == models::Recompute::none);
    const models::Prediction prediction = models::predict(question);
    return prediction.model_flops / seconds(prediction.step) / 16384;
  };
  CHECK(rate("llama3-405b-131k-16384-h100") == Approx(380e12).epsilon(0.03));
  CHECK(rate("llama3-405b-16384-h100") == Approx(400e12).epsilon(0.06));
}

TEST_CASE("Scenarios of experts and adapters are near their publications") {
  const auto error = [](const std::string& name) {
    const Scenario scenario = Scenario::load(name);
    const models::Prediction prediction = models::predict(scenario.question());
    if (const auto step = scenario.published().value().step) {
      return ratio(prediction.step, *step) - 1;
    }
    const double gpus = static_cast<double>(scenario.question().plan.gpus());
    const double rate = prediction.model_flops / seconds(prediction.step) / gpus;
    return rate / scenario.published().value().model_rate->count() - 1;
  };
  CHECK(std::abs(error("mixtral-8x22b-128-h100")) < 0.09);  // 8.0 % slower
  CHECK(std::abs(error("llama2-70b-lora-8-h200")) < 0.09);  // 7.5 % longer
  CHECK(std::abs(error("deepseek-v3-2048-h800")) < 0.09);   // 5.5 % longer
}

TEST_CASE("The scenario that the README begins with agrees with its publication") {
  const Scenario scenario = Scenario::load("llama3-70b-64-h100");
  const models::Prediction prediction = models::predict(scenario.question());
  const Time published = scenario.published().value().step.value();
  CHECK(ratio(prediction.step, published) == Approx(1).epsilon(0.07));  // 6.4 % longer
  CHECK(prediction.uncertainty.p10 < published);
  CHECK(published < prediction.uncertainty.p90);
}

TEST_CASE("Paths in a scenario begin at its folder, and those in a cluster's files at theirs") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("parts/gpus"));
  scratch.write("parts/model.json", models::model_config("gpt2").dump());
  scratch.write("parts/plan.json", R"({"data": 16, "global_batch": 64})");
  scratch.write("parts/cluster.json", R"({"node": "node.json", "nodes": 2})");
  scratch.write("parts/node.json", R"({"like": "dgx-a100-80gb", "gpu": "gpus/mine.json"})");
  scratch.write("parts/gpus/mine.json", R"({"like": "a100-sxm-80gb", "memory": "79 GiB"})");
  const std::string file = scratch.write(
      "scenario.json",
      R"({"model": "parts/model.json", "cluster": "parts/cluster.json", "plan": "parts/plan.json"})");
  const models::Question question = Scenario::load(file).question();
  CHECK(question.cluster.gpu().memory == 79_GiB);
  CHECK(question.cluster.gpus() == 16);
  const std::string inside =
      scratch.write("inside.json", R"({"model": "parts/model.json", "plan": "parts/plan.json",
                         "cluster": {"node": "parts/node.json", "nodes": 2}})");
  CHECK(Scenario::load(inside).question().cluster.gpu().memory == 79_GiB);

  const std::string missing = scratch.write(
      "missing.json", R"({"model": "gpt2", "cluster": {"node": "none.json"}, "plan": {}})");
  CHECK(refused([&] { Scenario::load(missing); }) ==
        missing + ":/cluster/node: " + scratch.path("none.json") +
            ": cannot be read: No such file or directory");
  const std::string other = scratch.write("other.json", R"({"model": "none/config.json"})");
  CHECK(refused([&] { Scenario::load(other); }) ==
        other + ":/model: " + scratch.path("none/config.json") +
            ": cannot be read: No such file or directory");
}

TEST_CASE("A section that is null is reported in its file") {
  CHECK(refused([] {
          Scenario::parse(Json::parse(R"({"model": null, "cluster": "dgx-h100", "plan": {}})"),
                          "mine.json");
        }) == "mine.json:/model: expected a name, a path or an object, found null");
}

TEST_CASE("A missing software is the usual one, and said") {
  Json json = small_scenario();
  json.erase("software");
  const models::Question question = Scenario::parse(json, "small.json").question();
  CHECK(question.software.name == "generic");
  CHECK(question.assumptions.front() == "/software: not stated; generic assumed");
}

TEST_CASE("A cluster written as node times count has that many nodes") {
  Json json = small_scenario();
  json["cluster"] = "dgx-a100-80gb x 4";
  json["plan"]["data"] = 32;
  CHECK(Scenario::parse(json, "small.json").question().cluster.gpus() == 32);
}

TEST_CASE("A machine of cores lends a plan as many as it asks for, a node of GPUs does not") {
  Json json = small_scenario();
  json["software"] = "orrery-cpu";
  json["cluster"] = "cpu-host";
  json["plan"] = {{"data", 2}, {"tensor", 2}, {"global_batch", 4}, {"precision", "fp32"}};
  const models::Question question = Scenario::parse(json, "cores").question();
  CHECK(question.cluster.gpus() == 4);
  const auto& reported = question.assumptions;
  CHECK(std::count(reported.begin(), reported.end(), "/cluster: 4 of 8 cores are used") == 1);

  json["plan"]["data"] = 8;  // 16 ranks on 8 cores
  CHECK(refused([&] { Scenario::parse(json, "cores").question(); }) ==
        "cores:/plan/data: tensor 2 x pipeline 1 x data 8 is 16 GPUs, the cluster has 8");

  json = small_scenario();
  json["plan"]["data"] = 4;
  CHECK(refused([&] { Scenario::parse(json, "gpus").question(); }) ==
        "gpus:/plan/data: tensor 1 x pipeline 1 x data 4 is 4 GPUs, the cluster has 8");
}

TEST_CASE("Paths in a scenario start at its own folder") {
  const Scratch scratch;
  scratch.write("model.json", models::model_config("gpt2").dump());
  scratch.write("plan.json", R"({"data": 8})");
  Json json = small_scenario();
  json["model"] = "model.json";
  json["plan"] = "plan.json";
  const Scenario scenario = Scenario::load(scratch.write("scenario.json", json.dump()));
  CHECK(scenario.question().model.parameters ==
        Scenario::parse(small_scenario(), "small.json").question().model.parameters);
  CHECK(scenario.question().plan.data == 8);
}

TEST_CASE("A plan may be written as on the command line") {
  Json json = small_scenario();
  json["plan"] = "tensor=2,data=4,global_batch=64";
  CHECK(Scenario::parse(json, "small.json").question().plan.tensor == 2);
}

TEST_CASE("A recipe is taken where it goes with what a plan states") {
  const Json experts = Json::parse(
      R"({"model": "qwen3-30b-a3b", "cluster": "dgx-b200", "software": "megatron-bridge",
          "plan": {"expert": 8, "data": 8, "micro_batch": 4, "global_batch": 512,
                   "seq_len": 4096, "precision": "mxfp8", "imbalance": 1.3}})");
  const models::Plan uneven = Scenario::parse(experts, "experts.json").question().plan;
  CHECK(uneven.experts.dispatcher == models::Dispatcher::hybridep);
  CHECK(uneven.experts.permute_fusion);
  CHECK(uneven.experts.imbalance == 1.3);
  // Weights are gathered in 8 bits by ZeRO alone.
  const Scenario dense = Scenario::load("llama3-70b-64-h100");
  CHECK(dense.question().plan.formats.low_precision_gather);
  CHECK_FALSE(dense.replace({{"/plan/zero", 0}}).question().plan.formats.low_precision_gather);
}

TEST_CASE("A replaced value is read as if the file had said so, and the original stays") {
  const Scenario scenario = Scenario::parse(small_scenario(), "small.json");
  const Scenario changed = scenario.replace({{"/cluster/fabric/bandwidth", "800 Gb/s"}});
  CHECK(changed.question().cluster.fabric.bandwidth == 100_GBps);
  CHECK(scenario.question().cluster.fabric.bandwidth == 25_GBps);
}

TEST_CASE("Nodes may be replaced, and a plan that leaves data open follows") {
  Json json = small_scenario();
  json["plan"] = {{"tensor", 4}};
  const Scenario scenario = Scenario::parse(json, "small.json");
  CHECK(scenario.question().plan.data == 2);
  CHECK(scenario.replace({{"/cluster/nodes", 4}}).question().plan.data == 8);
}

TEST_CASE("With fewer GPUs in a node its host draws as much for each of them, and says so") {
  const Scenario base = Scenario::load(
      std::nullopt, {.model = "llama3-8b", .cluster = "dgx-h100 x 1", .plan = "zero=1"});
  const Scenario half = base.replace({{"/cluster/node/gpus", 4}});
  CHECK(half.json()["cluster"]["node"]["host_power"] == "2300 W");  // 4600 / 8 x 4
  const std::string note = "host_power of 8 GPUs stated; 2300 W assumed, as much for each of 4";
  const Json& assumed = half.json()["cluster"]["assumptions"];
  CHECK(std::ranges::count(assumed, Json(note)) == 1);
  const Scenario stated =
      base.replace({{"/cluster/node/host_power", "900 W"}, {"/cluster/node/gpus", 4}});
  CHECK(stated.json()["cluster"]["node"]["host_power"] == "900 W");
}

TEST_CASE("Software of a year before its GPUs were announced is an assumption") {
  const auto assumed = [](int year) {
    return Scenario::load(std::nullopt, {.model = "llama3-8b",
                                         .cluster = "dgx-h100 x 1",
                                         .plan = "zero=1",
                                         .software = "megatron-core",
                                         .year = year})
        .json()
        .value("assumptions", Json::array());
  };
  const Json note =
      "/software: of 2012, before GPUs of generation hopper (2022): no stack of that year runs on "
      "them; predicted as if it did";
  CHECK(std::ranges::count(assumed(2012), note) == 1);
  for (const Json& each : assumed(2023)) {
    CHECK(each.get<std::string>().find("before GPUs") == std::string::npos);
  }
}

TEST_CASE("A replaced name is expanded too") {
  const Scenario scenario = Scenario::parse(small_scenario(), "small.json");
  const Scenario changed = scenario.replace({{"/model", "gpt2-medium"}, {"/cluster", "dgx-h100"}});
  CHECK(changed.question().model.layers.size() == 24);
  CHECK(changed.question().cluster.gpu().name == "h100-sxm-80gb");
}

TEST_CASE("An optional member of a plan may be set for the first time") {
  const Scenario scenario = Scenario::parse(small_scenario(), "small.json");
  const Scenario changed = scenario.replace({{"/plan/recompute", "full"}});
  CHECK(changed.question().plan.recompute.kind == models::Recompute::full);
}

TEST_CASE("A published figure goes when what was published changes") {
  const Scenario scenario = Scenario::load("gpt-1t-512-a100");
  REQUIRE(scenario.published().has_value());
  CHECK(seconds(*scenario.published()->step) == Approx(71.49));
  CHECK_FALSE(scenario.replace({{"/plan/recompute", "full"}}).published().has_value());
}

TEST_CASE("Tokens are read with their suffix") {
  CHECK(Scenario::load("gpt3-175b-1024-a100").tokens() == 300e9);
  Json json = small_scenario();
  json["tokens"] = "many";
  CHECK(refused([&] { Scenario::parse(json, "small.json").tokens(); }) ==
        "small.json:/tokens: expected a number of tokens above 0, at most 1e18, such as \"300B\", "
        "found \"many\"");
}

TEST_CASE("A pointer to nothing is refused with what is there") {
  const Scenario scenario = Scenario::parse(small_scenario(), "small.json");
  CHECK(refused([&] {
          scenario.replace({{"/plan/tensor/x", 2}});
        }) == "--set /plan/tensor/x: no such value; /plan has: data global_batch");
  CHECK(refused([&] {
          scenario.replace({{"plan", 2}});
        }) == "--set plan: expected a JSON pointer such as /plan/tensor");
  CHECK(refused([&] {
          scenario.replace({{"/plan/tensr", 2}}).question();
        }).rfind("small.json:/plan/tensr: unknown key; did you mean 'tensor'?", 0) == 0);
}

TEST_CASE("A typo in a new member of a model's config is refused") {
  Json json = small_scenario();
  json["model"] = Json::parse(R"({"model_type": "llama", "num_hidden_layers": 2,
      "hidden_size": 256, "num_attention_heads": 8, "intermediate_size": 512, "vocab_size": 1000,
      "max_position_embeddings": 512})");
  const Scenario scenario = Scenario::parse(json, "small.json");
  CHECK(usual_attention(scenario.replace({{"/model/num_key_value_heads", 4}}).question().model)
            .kv_heads == 4);
  CHECK(refused([&] {
          scenario.replace({{"/model/num_key_value_head", 4}});
        }) ==
        "--set /model/num_key_value_head: no such value; /model has: model_type num_hidden_layers "
        "hidden_size num_attention_heads intermediate_size vocab_size max_position_embeddings");
}

TEST_CASE("Text of a change is JSON where it parses as such") {
  CHECK(parse_change("/plan/tensor=8") == std::pair<std::string, Json>{"/plan/tensor", 8});
  CHECK(parse_change("/a=800 Gb/s").second == "800 Gb/s");
  CHECK(parse_change("/a=true").second == true);
  CHECK(parse_change("/a=[1, 2]").second == Json::array({1, 2}));
  CHECK(refused([] { parse_change("tensor=8"); }) ==
        "--set: expected POINTER=VALUE, found 'tensor=8'");
}

}  // namespace orrery::scenarios
