// 16-bit weights without masters, and gradients in 16 bits.

#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/formats.hpp"
#include "executor/run/weights/weights.hpp"
#include "models/program/memory.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::BufferKind;
using models::Zero;

Job bf16_job(std::int64_t steps) {
  Job job{.model = small_llama(), .plan = small_plan(), .steps = steps};
  job.plan.formats.precision = models::Precision::bf16;
  return job;
}

Job pure_job(std::int64_t steps) {
  Job job = bf16_job(steps);
  job.plan.formats.state = models::StatePrecision::pure;
  return job;
}

std::int64_t held(const Outcome& of, BufferKind kind) {
  return of.memory[0].by_kind[static_cast<std::size_t>(kind)].count();
}

// bf16 has 8 bits: an update below 1/256 of a weight is lost, as it is in such training.
TEST_CASE("Weights without masters are numbers of 16 bits that learn") {
  const Outcome pure = run(pure_job(10)), wide = run(bf16_job(10));
  CHECK(pure.steps[0].loss == wide.steps[0].loss);
  CHECK(pure.steps[9].loss != pure.steps[0].loss);
  CHECK(pure.steps[9].loss == Approx(wide.steps[9].loss).epsilon(0.02));
  for (const auto& [name, values] : pure.parameters) {
    INFO(name);
    for (const double each : values) {
      const auto stored = number_as<Bf16>(each);
      CHECK(number_as<double>(stored) == each);
    }
  }
  CHECK(distance(pure.parameters, wide.parameters) > 1e-6);
}

// Two moments of 2 bytes; with masters of 4 and moments of 4 each it is three times as much.
TEST_CASE("State without masters takes the memory that is promised") {
  const Job job = pure_job(1);
  const Outcome out = run(job);
  const models::MemoryPeak promised = models::memory_peaks(lowered(job.model, job.plan))[0];
  for (const BufferKind kind :
       {BufferKind::parameter, BufferKind::gradient, BufferKind::optimizer}) {
    CHECK(held(out, kind) == promised.by_kind[static_cast<std::size_t>(kind)].count());
  }
  CHECK(3 * held(out, BufferKind::optimizer) == held(run(bf16_job(1)), BufferKind::optimizer));
}

// Each number is rounded to 8 bits after sums in another order: a neighbour is 0.4 % away.
TEST_CASE("Weights without masters are those of one rank whatever the cut") {
  const Outcome one = run(pure_job(2));
  for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
    Job job = pure_job(2);
    job.plan.data = 2;
    job.plan.sharding.zero = zero;
    const Outcome cut = run(job);
    CHECK(distance(cut.parameters, one.parameters) < 0.01);
    CHECK(cut.steps[1].loss == Approx(one.steps[1].loss).epsilon(1e-3));
  }
}

// A checkpoint has fp32 numbers, between two of which is no other in 16 bits.
TEST_CASE(
    "Weights without masters are read as wide numbers, and are rounded when they are loaded") {
  const Job job = pure_job(1);
  const models::Software software = cpu_software();
  const models::Program program = lowered(job.model, job.plan, software);
  ThreadWorld world{1};
  const auto fabric = world.fabric(0);
  CpuDevice device;
  Runner runner{program, software, device, *fabric, {}};
  runner.step(0);
  for (const StateRun& run : runner.layout().runs()) {
    const auto count = static_cast<std::size_t>(run.count);
    std::vector<float> held(count), between(count), loaded(count);
    const auto read = [&](std::vector<float>& to) {
      runner.weights().read_state(StateKind::parameter, run.local, run.count, to.data());
    };
    read(held);
    // A thousandth of a number's last bit away from it.
    std::ranges::transform(held, between.begin(), [](float each) { return each * (1 + 1e-6F); });
    runner.weights().load_state(StateKind::parameter, run.local, run.count, between.data());
    read(loaded);
    CHECK(loaded == held);
  }
}

TEST_CASE("Gradients of 16 bits are near those of 32, and take half the memory") {
  const auto with = [](models::GradientFormat format, std::int64_t data) {
    Job job = bf16_job(2);
    job.plan.formats.gradient = format;
    job.plan.data = data;
    return run(job);
  };
  const Outcome wide = with(models::GradientFormat::fp32, 1);
  for (const std::int64_t data : {1, 2}) {
    const Outcome narrow = with(models::GradientFormat::bf16, data);
    const double off = distance(narrow.gradients, wide.gradients);
    CHECK(off > 1e-5);
    CHECK(off < 0.02);
    CHECK(narrow.steps[1].loss == Approx(wide.steps[1].loss).epsilon(1e-3));
    CHECK(2 * held(narrow, BufferKind::gradient) == held(wide, BufferKind::gradient));
  }
}

}  // namespace
}  // namespace orrery::executor
