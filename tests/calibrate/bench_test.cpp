// Timing on queues: marks, graphs, page-locked copies, clocks and power.
#include "calibrate/bench/bench.hpp"

#include <catch2/catch.hpp>

#include "calibrate/bench/copies.hpp"
#include "executor/errors.hpp"
#include "tests/calibrate/gpu_campaign.hpp"

namespace orrery::calibrate {

TEST_CASE("A captured block is launched as a whole, and reported by its kernels") {
  Small small;
  executor::QueuedDevice device{{}};
  const auto clock = machine_clock();
  ClockMonitor nobody{nullptr};
  Bench bench{device, *clock, nobody, tiny_bench()};
  LaunchSubject graph{{"small", &small.block}, bench, LaunchSubject::As::graph};
  graph.prepare();
  CHECK(graph.name() == "graph of small");
  CHECK(graph.kernels() == 2);
  std::vector<Time> times;
  CHECK(graph.run(times));
  CHECK(times.size() == graph.parts());
  graph.finish();
}

TEST_CASE("A page-locked copy whose bytes are lost is not timed") {
  /// Copies nothing.
  class Forgetful final : public executor::CpuDevice {
   public:
    void copy(const std::byte*, std::byte*, Bytes, models::Lane) override {}
  };
  Forgetful device;
  const PinnedPair pair{device, 64_B};
  CHECK_THROWS_WITH(pair.check(), "a copy through page-locked memory changed the data: not timed");
}

TEST_CASE("A mark's own time is found among kernels, as marks stand in a step") {
  class Counting final : public executor::CpuDevice {
   public:
    void run(const executor::Kernel& kernel) override {
      adds += kernel.operation->kind == OpKind::add ? 1 : 0;
      CpuDevice::run(kernel);
    }
    int adds = 0;
  } device;
  const auto clock = machine_clock();
  ClockMonitor nobody{nullptr};
  Bench bench{device, *clock, nobody, tiny_bench()};
  bench.mark_cost();
  CHECK(device.adds == 11 * tiny_bench().marks);  // a warm-up, then five looks with and without
}

TEST_CASE("Telemetry is summed up by medians and the worst") {
  const auto at = [](double megahertz, double watts, std::uint64_t reasons) {
    return Reading{Frequency{megahertz * 1e6}, Frequency{2e9}, Power{watts}, reasons};
  };
  const Conditions seen = summary({at(1900, 600, 0), at(1200, 700, power_cap), at(1500, 650, 0)});
  CHECK(seen.processor == Frequency{1.5e9});
  CHECK(seen.slowest_processor == Frequency{1.2e9});
  CHECK(seen.most_power == Power{700});
  CHECK(seen.power_capped == Approx(1.0 / 3));
  CHECK(throttled(hardware_slowdown));
  CHECK_FALSE(throttled(power_cap));
  CHECK(to_json(summary({})).is_null());
  CHECK_FALSE(ClockMonitor{nullptr}.knows());
  CHECK(nvml_telemetry(std::string(32, '0')) == nullptr);  // a GPU that is nowhere
}

}  // namespace orrery::calibrate
