#include "scenarios/scaling/scaling.hpp"

#include <catch2/catch.hpp>

#include "sim/errors.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

ScalingReport scaled(std::vector<std::int64_t> gpus, Scaling scaling) {
  const ScalingRequest request{.scenario = {.scenario = "llama3-8b-8-h100"},
                               .gpus = std::move(gpus),
                               .scaling = scaling,
                               .threads = 2};
  return scale(request, {});
}

}  // namespace

TEST_CASE("Numbers of GPUs are a list, or a range in steps or times a factor") {
  using Counts = std::vector<std::int64_t>;
  CHECK(parse_gpu_counts("64:1000:x2") == Counts{64, 128, 256, 512});
  CHECK(parse_gpu_counts("8:24:8") == Counts{8, 16, 24});
  CHECK(parse_gpu_counts("96,64,96") == Counts{64, 96});
  for (const char* wrong :
       {"", "0", "8:4:x2", "8:16", "8:16:x1", "8:16:", "a", "8,", "8:16:2:2", "9999999999"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_gpu_counts(wrong), InputError);
  }
  CHECK_THROWS_AS(parse_gpu_counts("1:1048576:1"), InputError);
}

// A point is the scenario with its data degree, batch and nodes changed: nothing else.
TEST_CASE("Weak scaling keeps the sequences of a GPU, strong scaling the global batch") {
  const Scenario base = Scenario::load("llama3-8b-8-h100");
  const models::Plan plan = base.question().plan;
  const std::int64_t gpus = plan.gpus();
  for (const Scaling scaling : {Scaling::weak, Scaling::strong}) {
    const ScalingReport report = scaled({gpus, 2 * gpus}, scaling);
    REQUIRE(report.points.size() == 2);
    const ScalingPoint& twice = report.points[1];
    const bool weak = scaling == Scaling::weak;
    CHECK(twice.global_batch == (weak ? 2 : 1) * plan.batch.global);
    CHECK(twice.data == 2 * plan.data);
    const Scenario changed = base.replace({{"/plan/data", twice.data},
                                           {"/plan/global_batch", twice.global_batch},
                                           {"/cluster/nodes", 2 * gpus / 8}});
    CHECK(twice.step == models::predict(changed.question()).step);
    CHECK(report.points[0].efficiency == 1);
    const double ratio = twice.tokens_per_second / report.points[0].tokens_per_second / 2;
    CHECK(twice.efficiency == Approx(ratio));
    CHECK(twice.efficiency < 1);
  }
}

TEST_CASE("What is wrong with one number of GPUs is said at its point") {
  const ScalingReport report =
      scale({.scenario = {.scenario = "gpt3-175b-1024-a100"}, .gpus = {100, 1024}}, {});
  REQUIRE(report.points.size() == 2);
  CHECK(report.points[0].refused == "100 GPUs are not a multiple of a replica's 128");
  CHECK(report.points[1].refused.empty());
  CHECK(report.points[1].efficiency == 1);
  CHECK(to_json(report)["points"][0]["step_time_s"].is_null());
}

TEST_CASE("orrery scale prints a table or JSON, and draws its picture") {
  const Scratch scratch;
  const std::string svg = scratch.path("scale.svg");
  const Ran ran = orrery("scale llama3-8b-8-h100 --gpus 8:32:x2 --json --svg " + svg);
  CHECK(ran.exit_code == 0);
  const Json json = parsed(ran.out);
  CHECK(json["scaling"] == "weak");
  CHECK(json["points"].size() == 3);
  double sum = 0;
  for (const auto& [part, value] : json["points"][2]["breakdown"].items()) {
    sum += value.get<double>();
  }
  CHECK(sum == Approx(json["points"][2]["step_time_s"].get<double>()));
  const std::string picture = scratch.read("scale.svg");
  CHECK(picture.find("100.0 %") != std::string::npos);
  CHECK(picture.find(">32</text>") != std::string::npos);
  CHECK(orrery("scale llama3-8b-8-h100 --gpus 8").out.find("efficiency") != std::string::npos);
  CHECK(orrery("scale llama3-8b-8-h100 --gpus 8:x").exit_code == 2);
  CHECK(orrery("scale llama3-8b-8-h100 --gpus 8 --scaling linear").exit_code == 2);
}

}  // namespace orrery::scenarios
