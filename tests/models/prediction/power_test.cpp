#include "models/prediction/power.hpp"

#include <catch2/catch.hpp>

#include "hardware/entries.hpp"
#include "hardware/gpu/gpu_power.hpp"
#include "models/prediction/prediction.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

constexpr const char* plans[] = {
    "tensor=1,zero=1,global_batch=64,seq_len=512",
    "tensor=2,pipeline=4,virtual_stages=3,recompute=selective,global_batch=64,seq_len=512",
    "tensor=1,zero=3,micro_batch=1,global_batch=32,seq_len=512",
    "tensor=4,pipeline=4,global_batch=16,seq_len=512"};

Time time_in(const Prediction& prediction, TimeClass which) {
  return prediction.breakdown[static_cast<std::size_t>(which)];
}

Power average(const Prediction& prediction) {
  return Power{prediction.energy.count() / seconds(prediction.step)};
}

}  // namespace

TEST_CASE("Each generation draws more the more its GPUs do, and no more than the board's power") {
  for (const std::string& name : hardware::entry_names(hardware::EntryKind::generation)) {
    INFO(name);
    const hardware::PowerStates& states = hardware::power_states(hardware::generation_named(name));
    CHECK(states.idle > 0);
    CHECK(states.idle <= states.waiting);
    CHECK(states.waiting <= states.memory_bound);
    CHECK(states.memory_bound <= states.math);
    CHECK(states.math <= 1);
  }
}

TEST_CASE("Kernels that take power are those of the breakdown") {
  // One stage on every rank: its compute queue runs exactly the kernels of the breakdown.
  const Prediction found = predict(question("gpt2", "dgx-h100 x 2", plans[0]));
  const std::vector<KernelTimes> times = kernel_times(found.priced);
  REQUIRE(times.size() == 1);
  CHECK(times[0].math == time_in(found, TimeClass::gemm) + time_in(found, TimeClass::attention));
  CHECK(times[0].memory_bound >= time_in(found, TimeClass::memory_bound));
  CHECK(times[0].math + times[0].memory_bound <= found.step);
}

TEST_CASE("A step's energy is between that of waiting and that of the rated power") {
  for (const char* cluster :
       {"dgx-h100 x 2", "dgx-a100-80gb x 2", "dgx-b200 x 2", "mi300x-8x x 2"}) {
    for (const char* plan : plans) {
      INFO(cluster << " " << plan);
      const Question asked = question("gpt2", cluster, plan);
      const Prediction found = predict(asked);
      const hardware::Cluster& used = asked.cluster;
      const double waiting = hardware::power_states(used.gpu().generation).waiting;
      const Power board = used.gpu().board_power * 16.0, hosts = used.node.host_power * 2.0;
      CHECK(average(found) > board * waiting);
      CHECK(average(found) < board + hosts);
      const Power one = gpu_power(used, 16, found.energy, found.step);
      CHECK(one > used.gpu().board_power * waiting);
      CHECK(one <= used.gpu().board_power);
      CHECK(estimate(asked).energy == found.energy);
    }
  }
}

TEST_CASE("The same work with more waiting takes more energy and less power") {
  Question asked = question("gpt2", "dgx-h100 x 2", plans[2]);
  const Prediction fast = predict(asked);
  asked.cluster.fabric.bandwidth = asked.cluster.fabric.bandwidth * 0.02;
  const Prediction slow = predict(asked);
  REQUIRE(slow.step > fast.step * 2);
  CHECK(slow.energy > fast.energy);
  CHECK(average(slow) < average(fast));
  // What is added is waiting alone: 16 H100 at 0.19 of 700 W, and two hosts of 2.8 kW.
  const double watts = 16 * 0.19 * 700 + 2 * 2800;
  CHECK((slow.energy.count() - fast.energy.count()) ==
        Approx(watts * seconds(slow.step - fast.step)).epsilon(1e-9));
}

TEST_CASE("GPUs of a node without a rank idle") {
  Question asked = question("gpt2", "dgx-h100", "tensor=1,zero=1,global_batch=64,seq_len=512");
  const Prediction found = predict(asked);
  const double eight = energy_of(found.priced, asked.cluster, 8, found.step).count();
  const double four = energy_of(found.priced, asked.cluster, 4, found.step).count();
  const double busy = gpu_power(asked.cluster, 8, found.energy, found.step).count();
  // Four GPUs draw 70 W instead of what they draw when busy.
  CHECK(eight - four == Approx(4 * (busy - 70) * seconds(found.step)));
}

}  // namespace orrery::models
