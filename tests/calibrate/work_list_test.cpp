// What a calibration times.
#include "calibrate/shapes/work_list.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "calibrate/bench/operands.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "hardware/dtype.hpp"
#include "models/pricing/calibrated.hpp"

namespace orrery::calibrate {
namespace {

models::Software stack_named(const char* name) {
  const Json profile = models::software_profile(name);
  const Document document = Document::from(profile, name);
  return models::read_software(document.root());
}

TimedBlock named(const std::vector<TimedBlock>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
  INFO(name);
  REQUIRE(found != all.end());
  return *found;
}

PlanToMeasure llama() {
  const Json model_json{
      {"format", "orrery-model"}, {"name", "llama-1b"}, {"family", "llama"},  {"layers", 2},
      {"hidden", 2048},           {"heads", 16},        {"ffn_hidden", 5504}, {"vocab", 32000},
      {"max_positions", 2048}};
  const Json plan_json{
      {"micro_batch", 4}, {"global_batch", 4}, {"seq_len", 2048}, {"precision", "bf16"}};
  const Document model_file = Document::from(model_json, "model");
  const Document plan_file = Document::from(plan_json, "plan");
  const models::Model model = models::read_model(model_file.root());
  std::vector<std::string> defaults;
  return {"llama-1b-1gpu", model, models::read_plan(plan_file.root(), model, 1, defaults)};
}

TEST_CASE("The shapes of a plan that runs next are measured first, as they are executed") {
  const WorkList made =
      work_list(stack_named("orrery-cuda"),
                {.target = Target::gpu, .generation = "hopper", .plans = {llama()}});
  for (const char* block : {"layer.forward", "layer.backward", "head.backward", "adam"}) {
    CHECK(named(made.points, std::string{"llama-1b-1gpu "} + block).first);
  }
  CHECK(named(made.points, "gemm bf16 8192 x 11008 x 2048 nn").first);
  CHECK_FALSE(named(made.points, "gemm bf16 8192 x 8192 x 8192 nn").first);
  // The head's weight lies as [vocabulary, hidden]; a Program names the product the other way.
  const TimedBlock head = named(made.points, "gemm bf16 8192 x 32000 x 2048 nt");
  CHECK(head.first);
  CHECK_FALSE(head.priced_as(head.block->operations.front()).gemm().transpose_b);
  const TimedBlock gradient = named(made.points, "gemm bf16 32000 x 2048 x 8192 tn added");
  CHECK(gradient.priced_as(gradient.block->operations.front()).gemm().m == 2048);
  REQUIRE(made.loads.size() == 4);
  CHECK(made.loads.back().block->operations.front().kind == models::OpKind::attention_backward);
}

// A block of 256 numbers shares a scale, of each moment one; codes begin as those of -1 and of 0.
TEST_CASE("A processor's updates of moments in 8 bits are timed, with their scales") {
  const WorkList made = work_list(stack_named("orrery-cpu"), {});
  int sizes = 0;
  for (const TimedBlock& each : made.points) {
    for (const models::Operation& op : each.block->operations) {
      if (models::kernel_key(op) != "adam 6>6") continue;
      ++sizes;
      executor::CpuDevice device;
      const Operands operands{device, *each.block, 1, each.tokens};
      const BoundOperation bound = operands.bound(op, 0);
      REQUIRE(bound.reads[4].elements() == (bound.reads[2].elements() + 255) / 256);
      bound.run(device);
      float scale = 0;
      std::memcpy(&scale, bound.writes.back().data, sizeof scale);
      CHECK(scale > 0);
    }
  }
  CHECK(sizes == 2);
}

TEST_CASE("A processor has no launches and no loads, and compares every product of its blocks") {
  const WorkList made = work_list(stack_named("orrery-cpu"), {});
  CHECK(made.launches.empty());
  CHECK(made.loads.empty());
  bool at_once = false;
  for (const TimedBlock& each : made.points) {
    CHECK(each.compared);
    CHECK_FALSE(each.first);
    at_once = at_once || each.with_others;
  }
  CHECK(at_once);
}

}  // namespace
}  // namespace orrery::calibrate
