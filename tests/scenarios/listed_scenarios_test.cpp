// What the shipped scenarios of lists claim: ResNet-50 against MLPerf, where a bird's-eye-view
// detector waits, a loop on 4 to 64 GPUs; and what ZeRO saves on 1,536 GPUs.

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "models/model/operation_list.hpp"
#include "scenarios/validation/runs/run_question.hpp"
#include "scenarios/whole_run/loop_run.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

models::Prediction predicted(const char* scenario, const Json& changes = Json::object()) {
  std::vector<std::pair<std::string, Json>> list;
  for (const auto& [pointer, value] : changes.items()) list.emplace_back(pointer, value);
  const Scenario loaded = Scenario::load(scenario);
  return models::predict((list.empty() ? loaded : loaded.replace(list)).question());
}

}  // namespace

TEST_CASE("ResNet-50 on 64 H100 comes out within a tenth of MLPerf's median") {
  const double step = seconds(predicted("resnet50-64-h100").step);
  INFO(step);
  CHECK(std::abs(step / 10.057e-3 - 1) < 0.10);
}

TEST_CASE("The bird's-eye-view detector waits for images to be decoded, and with more cores not") {
  // Six images of 0.45 core-seconds on 16 cores: 168.75 ms.
  const models::Prediction usual = predicted("bird-eye-view-32-a100");
  CHECK(usual.step == Time{168'750'000'000});
  CHECK(usual.priced.bound.queue == "loader");
  const models::Prediction more =
      predicted("bird-eye-view-32-a100", {{"/model/parameters/cores_per_gpu", 32}});
  CHECK(more.step < usual.step);
  CHECK(more.step >= usual.step - 84_ms);
  // 32 GPUs read 6 images of 12 MB each in a step: with 10 GB/s of storage, 230.4 ms.
  const models::Prediction storage = predicted(
      "bird-eye-view-32-a100", {{"/model/storage/dataset/read_bytes_per_s", 10'000'000'000}});
  CHECK(storage.priced.bound.queue == "io");
  CHECK(storage.step == Time{230'400'000'000});
}

TEST_CASE(
    "A loop on 4, 64 and 16 GPUs does all its steps, faster than on 4 and slower than on 64") {
  const auto report = loop_run(Scenario::load("molecular-dynamics-4-64-a100"), std::nullopt);
  REQUIRE(report);
  double steps = 0;
  for (const models::LoopPhase& each : report->run.phases) steps += each.steps;
  CHECK(steps == Approx(50e6));
  REQUIRE(report->alternatives.size() == 3);
  const double four = report->alternatives[0].second.hours;
  const double all = report->alternatives[2].second.hours;
  CHECK(report->run.hours < four);
  CHECK(report->run.hours > all);
  // Halos grow while the work of a GPU shrinks.
  CHECK(four / all < 16);
  CHECK(four / all > 4);
  CHECK(report->run.phases[1].change_hours * 3600 > 45);
}

TEST_CASE("ZeRO-1 saves a 100-billion-parameter model memory, and next to no time") {
  const models::Prediction sharded = predicted("gpt-100b-1536-a100");
  const models::Prediction whole = predicted("gpt-100b-1536-a100", {{"/plan/zero", 0}});
  const auto memory = [](const models::Prediction& each) {
    return static_cast<double>(each.memory[each.fullest].total.count());
  };
  CHECK(memory(sharded) < 0.8 * memory(whole));
  CHECK(std::abs(ratio(sharded.step, whole.step) - 1) < 0.05);
  CHECK(sharded.program->mesh.ranks() == 1536);
}

TEST_CASE("A run of a list is validated by the name that its publisher gave it") {
  MeasuredRun run;
  run.run = "x";
  run.software = "mlperf-mxnet";
  run.year = 2023;
  run.model = "ResNet-50 v1.5";
  run.family = "cnn";
  run.gpu = "h100-sxm-80gb";
  run.gpus = 8;
  run.gpus_per_node = 8;
  run.plan = {{"global_batch", "3200"}, {"micro_batch", "400"}, {"precision", "fp16"}};
  Questions questions;
  const auto found = questions.of(run);
  REQUIRE(std::holds_alternative<models::Question>(found));
  const auto& question = std::get<models::Question>(found);
  CHECK(question.model.parameters == 25'557'032);
  CHECK(question.software.name == "mlperf-vision");
  CHECK(std::abs(seconds(models::predict(question).step) / 56.708e-3 - 1) < 0.10);
  run.plan.erase("micro_batch");
  run.plan["global_batch"] = "3201";
  const auto refused = questions.of(run);
  REQUIRE(std::holds_alternative<Skip>(refused));
  CHECK(std::get<Skip>(refused).reason ==
        "8 GPUs do not divide a batch of 3201, and micro_batch is not stated");
}

TEST_CASE("A search for a list gives a kernel as many samples as there are") {
  // 3,200 images on eight GPUs: 400 in one micro-batch, where language models stop at 16.
  const Json found = parsed(
      orrery(
          "plan --model resnet-50 --cluster dgx-h100 --global-batch 3200 --network static --json")
          .out);
  CHECK(found["plans"][0]["plan"]["micro_batch"] == 400);
  CHECK(refused_line("plan --model gpt2 --cluster dgx-h100 --global-batch 64") ==
        "--seq-len: is missing: tokens of one sequence");
}

TEST_CASE("A loop of steps keeps or misses its deadline, and refuses what is of trainings") {
  const std::string loop = "train molecular-dynamics-4-64-a100 ";
  const Ran late = orrery(loop + "--set /model/run/phases=null --deadline 5h");
  CHECK(late.exit_code == 1);
  CHECK(late.out.find("The deadline of 5.00 hours is missed.") != std::string::npos);
  for (const std::string flag : {"--tokens 5", "--budget 1", "--failures 3/1d", "--all-in"}) {
    CHECK(refused_line(loop + flag) ==
          flag.substr(0, flag.find(' ')) + ": is of a training; this model is a loop of steps");
  }
}

TEST_CASE("A list is shown layer by layer, and simulated by its file") {
  const Json shown = parsed(orrery("show models resnet-50 --json").out);
  CHECK(shown["parameters"] == 25'557'032);
  CHECK(shown["unit"] == "samples");
  CHECK(shown["flops_per_token"]["forward"] == 2 * 4'089'184'256.0);
  CHECK(orrery("show models resnet-50").out.find("stage3.rest") != std::string::npos);
  const Ran ran = orrery("simulate resnet50-64-h100");
  CHECK(ran.out.find("samples/s per GPU") != std::string::npos);
  CHECK(orrery("simulate resnet50-64-h100 --plan tensor=2")
            .error.find(
                "tensor 2 is not simulated for a model that is given as a list of operations") !=
        std::string::npos);
  const Scratch scratch;
  const std::string file = scratch.write("list.json", R"({"format": "orrery-operations",
    "name": "x", "parameters": {"batch": 1}, "forward": [{"name": "a", "kind": "gem"}]})");
  const Ran wrong = orrery("show models " + file);
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.error.find("/forward/0/kind: expected one of \"gemm\"") != std::string::npos);
}

}  // namespace orrery::scenarios
