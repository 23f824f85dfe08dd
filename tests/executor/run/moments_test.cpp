// Moments of Adam in fewer bits than what they update.

#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/eight_bits.hpp"
#include "executor/run/weights/weights.hpp"
#include "models/program/memory.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Zero;

constexpr models::Moments narrow_formats[] = {models::Moments::bf16, models::Moments::int8};

// Of either sign: between 0.1 and 1 there are 64 numbers, whose steps are 0.9 / 64; between 0.01
// and 0.1 there are 32, and so on down to one, 0.55e-6. 2 * 127 with both signs, 0 and 1, and -1.
TEST_CASE("The table of 8 bits has seven powers of ten, each twice as fine as the one below") {
  const EightBitTable& either = eight_bit_table(EightBit::either_sign);
  const EightBitTable& positive = eight_bit_table(EightBit::positive);
  CHECK(either[0] == -1.0F);
  CHECK(either[127] == 0.0F);
  CHECK(either[128] == Approx(0.55e-6));
  CHECK(either[129] == Approx(0.325e-5));
  CHECK(either[255] == 1.0F);
  CHECK(either[254] == Approx(1 - 0.9 / 128));
  CHECK(either[254 - 63] == Approx(0.1 + 0.9 / 128));
  CHECK(either[254 - 64] == Approx(0.1 - 0.09 / 64));
  CHECK(positive[0] == 0.0F);
  CHECK(positive[1] == Approx(0.325e-6));
  CHECK(positive[254] == Approx(1 - 0.9 / 256));
  CHECK(positive[255] == 1.0F);
}

TEST_CASE("Numbers become the nearest of their block's, and storing them again changes nothing") {
  std::vector<float> numbers;
  for (int i = 0; i < 256; ++i) {
    numbers.push_back(static_cast<float>(std::sin(i * i) * std::pow(10, -i % 5)));
  }
  for (const EightBit kind : {EightBit::either_sign, EightBit::positive}) {
    std::vector<float> whole = numbers;
    if (kind == EightBit::positive) {
      for (float& each : whole) each = std::abs(each);
    }
    std::vector<std::uint8_t> codes(256), again(256);
    std::vector<float> stored(256);
    const float scale = to_eight_bits(kind, whole.data(), 256, codes.data());
    from_eight_bits(kind, codes.data(), scale, 256, stored.data());
    for (std::size_t i = 0; i < 256; ++i) {
      for (const float other : eight_bit_table(kind)) {
        REQUIRE(std::abs(stored[i] - whole[i]) <= std::abs(other * scale - whole[i]) * 1.0001F);
      }
    }
    CHECK(to_eight_bits(kind, stored.data(), 256, again.data()) == scale);
    CHECK(again == codes);
  }
}

Job narrow_job(models::Moments moments, std::int64_t steps) {
  Job job{.model = small_llama(), .plan = small_plan(), .steps = steps};
  job.plan.optimizer.moments = moments;
  return job;
}

// In 8 bits shards have blocks of their own, whose numbers are rounded otherwise: the loss shows
// that they are the same moments. Gradients of the first step know none. Rounding to a neighbour,
// where sums in another order are 1e-16 apart, moves one element's update; updates are 3e-4 of
// parameters of about 0.02 each.
TEST_CASE("Moments in few bits are those of one rank whatever the cut") {
  for (const models::Moments moments : narrow_formats) {
    const Job one = narrow_job(moments, 3);
    const Outcome whole = run(one);
    for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
      Job job = one;
      job.plan.data = 2;
      job.plan.sharding.zero = zero;
      const Outcome cut = run(job);
      CHECK(distance(cut.gradients, whole.gradients) < 1e-12);
      CHECK(cut.steps[2].loss == Approx(whole.steps[2].loss).epsilon(1e-3));
      const bool same_blocks = moments == models::Moments::bf16 || zero == Zero::none;
      if (same_blocks) CHECK(distance(cut.parameters, whole.parameters) < 1e-5);
    }
  }
}

TEST_CASE("Moments in few bits learn as wide ones do, and take the memory that is predicted") {
  const Outcome wide = run(narrow_job(models::Moments::full, 10));
  for (const models::Moments moments : narrow_formats) {
    const Job job = narrow_job(moments, 10);
    const Outcome narrow = run(job);
    CHECK(narrow.steps[9].loss == Approx(wide.steps[9].loss).epsilon(1e-3));
    CHECK(distance(narrow.parameters, wide.parameters) > 1e-9);  // it is another arithmetic
    const models::Program program = lowered(job.model, job.plan);
    const auto kind = static_cast<std::size_t>(models::BufferKind::optimizer);
    const auto promised = models::memory_peaks(program)[0].by_kind[kind];
    // A block of each bucket is not full.
    CHECK(narrow.memory[0].by_kind[kind] >= promised);
    CHECK(narrow.memory[0].by_kind[kind].count() < 1.02 * promised.count() + 1024);
  }
}

TEST_CASE("A run goes on from moments in few bits as if it had not ended") {
  for (const models::Moments moments : narrow_formats) {
    const Outcome straight = run(narrow_job(moments, 3));
    const Outcome begun = run(narrow_job(moments, 2));
    const Job job = narrow_job(moments, 1);
    const models::Software software = cpu_software();
    const models::Program program = lowered(job.model, job.plan, software);
    ThreadWorld world{1};
    const auto fabric = world.fabric(0);
    CpuDevice device;
    Runner runner{program, software, device, *fabric, {}};
    go_on_from(begun, 2, runner);
    CHECK(runner.step(2).loss == straight.steps[2].loss);
    Tensors masters;
    for (const StateRun& each : runner.layout().runs()) {
      std::vector<double> values(static_cast<std::size_t>(each.count));
      runner.weights().read_state(StateKind::parameter, each.local, each.count, values.data());
      const auto& whole = straight.parameters.at(runner.layout().tensors()[each.tensor].name);
      CHECK(std::equal(values.begin(), values.end(), whole.begin() + each.offset));
    }
  }
}

TEST_CASE("The scale of another block shows") {
  const Job job = narrow_job(models::Moments::int8, 2);
  Job wrong = job;
  wrong.disturb = [](Kernel& kernel) {
    if (kernel.operation->kind != models::OpKind::adam) return;
    auto* const scales = reinterpret_cast<float*>(kernel.reads[4].data);
    if (kernel.reads[4].elements() > 1 && kernel.adam.step == 2) std::swap(scales[0], scales[1]);
  };
  CHECK(distance(run(wrong).parameters, run(job).parameters) > 1e-9);
}

}  // namespace
}  // namespace orrery::executor
