#include "hardware/curves/curve.hpp"

#include <catch2/catch.hpp>

#include "sim/errors.hpp"

using namespace orrery;
using namespace orrery::hardware;

namespace {

constexpr FlopRate peak = 100_TFLOPS;
constexpr Bandwidth memory = 1000_GBps;

GemmCurve half_speed(double corner) {
  return {
      .compute_share = 0.5, .memory_share = 0.5, .overhead = 10_us, .corner = corner, .origin = {}};
}

}  // namespace

// 50 GFLOP at half of 100 TFLOP/s and 500 MB at half of 1 TB/s: 1 ms each.
TEST_CASE("A GEMM with equal arithmetic and traffic pays for the corner of the roofline") {
  const Flops work{50'000'000'000};
  CHECK(time_of(half_speed(1), peak, memory, work, 500_MB) == 2010_us);
  // (1 + 1)^(1/2) = 1.414213562373 ms
  CHECK(time_of(half_speed(2), peak, memory, work, 500_MB) == 10_us + Time{1'414'213'562});
}

TEST_CASE("A GEMM far from the corner takes the time of what limits it") {
  // Traffic of 1 us next to 1 ms of arithmetic adds (0.001)^4 / 4 of a millisecond: 0.25 fs.
  CHECK(time_of(half_speed(4), peak, memory, Flops{50'000'000'000}, Bytes{500'000}) == 1010_us);
  CHECK(time_of(half_speed(4), peak, memory, Flops{50'000'000}, 500_MB) == 1010_us);
  CHECK(time_of(half_speed(4), peak, memory, Flops{0}, Bytes{0}) == 10_us);
}

TEST_CASE("More work, more bytes, a lower peak or less bandwidth never makes a GEMM faster") {
  for (const double corner : {1.0, 1.75, 4.0, 100.0}) {
    const GemmCurve curve = half_speed(corner);
    Time last{};
    for (std::int64_t work = 1; work < (std::int64_t{1} << 50); work *= 8) {
      const Time now = time_of(curve, peak, memory, Flops{work}, 100_MB);
      CHECK(now >= last);
      CHECK(time_of(curve, peak, memory, Flops{work}, 200_MB) >= now);
      CHECK(time_of(curve, 50_TFLOPS, memory, Flops{work}, 100_MB) >= now);
      CHECK(time_of(curve, peak, 500_GBps, Flops{work}, 100_MB) >= now);
      last = now;
    }
  }
}

TEST_CASE("A GEMM lies between the sharp roofline and the sum of both limits") {
  const Flops work{20'000'000'000};  // 0.4 ms
  for (std::int64_t bytes = 1000; bytes < 1'000'000'000; bytes *= 10) {
    const Time traffic = from_seconds(static_cast<double>(bytes) / 500e9);
    for (const double corner : {1.0, 2.0, 10.0}) {
      const Time time = time_of(half_speed(corner), peak, memory, work, Bytes{bytes});
      CHECK(time >= 10_us + std::max(400_us, traffic));
      CHECK(time <= 10_us + 400_us + traffic + 1_ps);
    }
  }
}

TEST_CASE("A memory-bound kernel takes its overhead and its bytes") {
  const MemoryCurve curve{.memory_share = 0.5, .overhead = 5_us, .origin = {}};
  CHECK(time_of(curve, memory, 500_MB) == 1005_us);  // 500 MB at 500 GB/s
  CHECK(time_of(curve, memory, Bytes{0}) == 5_us);
}

// E = 0.6 at head size 128, half length 100 tokens, penalty 1.
TEST_CASE("Attention is slower on short sequences, with a causal mask and backward") {
  const AttentionCurve curve{.share_64 = 0.4,
                             .share_128 = 0.6,
                             .half_length = 100,
                             .causal_penalty = 1,
                             .backward_ratio = 0.5,
                             .origin = {}};
  AttentionCall call{.work = Flops{30'000'000'000}, .seq = 100, .head_dim = 128, .causal = false};
  CHECK(share_of_peak(curve, call) == 0.6 / 2);  // 1 + 100 / 100
  CHECK(time_of(curve, peak, call) == 1_ms);     // 30 GFLOP at 30 TFLOP/s
  call.causal = true;
  CHECK(share_of_peak(curve, call) == 0.6 / 3);  // 1 + 100 * 2 / 100
  call.pass = Pass::backward;
  CHECK(share_of_peak(curve, call) == 0.6 / 3 * 0.5);
}

TEST_CASE("Attention's share lies on a line between head sizes 64 and 128 and is flat beyond") {
  const AttentionCurve curve{.share_64 = 0.4, .share_128 = 0.6, .origin = {}};
  const auto share = [&](int head_dim) {
    return share_of_peak(curve, {.work = {}, .seq = 1024, .head_dim = head_dim});
  };
  CHECK(share(32) == 0.4);
  CHECK(share(64) == 0.4);
  CHECK(share(96) == Approx(0.5));
  CHECK(share(128) == Approx(0.6));
  CHECK(share(256) == Approx(0.6));
}

TEST_CASE("Curves refuse what no kernel is") {
  CHECK_THROWS_AS(time_of(GemmCurve{}, FlopRate{}, memory, Flops{1}, 1_B), ContractError);
  CHECK_THROWS_AS(time_of(GemmCurve{}, peak, memory, Flops{-1}, 1_B), ContractError);
  CHECK_THROWS_AS(time_of(MemoryCurve{}, Bandwidth{}, 1_B), ContractError);
  CHECK_THROWS_AS(share_of_peak(AttentionCurve{}, {.work = {}, .seq = 0}), ContractError);
}

TEST_CASE("Backward reaches a share of its own where heads share keys") {
  // 0.5 of 100 TFLOP/s forward; backward 0.8 of that, with grouped heads 0.25 of it.
  AttentionCurve curve{.share_64 = 0.5, .share_128 = 0.5, .backward_ratio = 0.8, .origin = {}};
  AttentionCall call{.work = Flops{10'000'000'000}, .seq = 4096};
  CHECK(time_of(curve, peak, call) == 200_us);
  call.grouped = true;
  CHECK(time_of(curve, peak, call) == 200_us);
  call.pass = Pass::backward;
  CHECK(time_of(curve, peak, call) == 250_us);
  curve.grouped_backward_ratio = 0.25;
  CHECK(time_of(curve, peak, call) == 800_us);
  call.grouped = false;
  CHECK(time_of(curve, peak, call) == 250_us);
}
