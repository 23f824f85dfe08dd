#include "models/prediction/error/extrapolation.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/pricing/beyond_range.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Question seven_billion() {
  return question("llama2-7b", "dgx-h100 x 1",
                  "tensor=8,data=1,micro_batch=1,global_batch=4,seq_len=4096", "nemo");
}

/// The GEMM curve that the plan uses, as if measured up to `rows` rows only.
Question measured_to(std::int64_t rows) {
  Question narrow = seven_billion();
  hardware::GemmRange& range = *narrow.cluster.node.gpu.gemm.at(DType::bf16).measured;
  range.lowest = {1, 1, 1};
  range.highest = {rows, std::int64_t{1} << 30, std::int64_t{1} << 30};
  return narrow;
}

TEST_CASE("A size is as far beyond a range as its furthest side, above or below") {
  hardware::GemmRange range;
  range.lowest = {16, 64, 64};
  range.highest = {1024, 4096, 4096};
  CHECK(beyond(range, {512, 512, 512}) == 1);
  CHECK(beyond(range, {4096, 512, 512}) == 4);
  CHECK(beyond(range, {512, 32, 512}) == 2);
  CHECK(beyond(range, {4096, 32, 512}) == 4);
  hardware::SequenceRange lengths;
  lengths.shortest = 512;
  lengths.longest = 8192;
  CHECK(beyond(lengths, 32768) == 4);
  const hardware::SizeTable table{{{1_MB, 10_us}, {8_MB, 40_us}}};
  CHECK(beyond(table, 16_MB) == 2);
  CHECK(beyond(table, 4_MB) == 1);
}

TEST_CASE("Curves asked beyond their range make the interval wider, and nothing else") {
  const Prediction inside = predict(measured_to(1 << 20));
  CHECK(spread_beyond_range(measured_to(1 << 20), inside) == 0);
  Time before_10 = inside.uncertainty.p10, before_90 = inside.uncertainty.p90;
  for (const std::int64_t rows : {2048, 512, 64}) {  // of 4,096: 2, 8 and 64 times beyond
    const Prediction beyond_it = predict(measured_to(rows));
    INFO(rows);
    CHECK(beyond_it.step == inside.step);
    CHECK(beyond_it.uncertainty.p50 == inside.step);
    CHECK(beyond_it.breakdown == inside.breakdown);
    CHECK(beyond_it.uncertainty.p10 < before_10);
    CHECK(beyond_it.uncertainty.p90 > before_90);
    before_10 = beyond_it.uncertainty.p10;
    before_90 = beyond_it.uncertainty.p90;
  }
}

TEST_CASE("The interval grows with the logarithm of the factor and the share of the step") {
  const Prediction found = predict(measured_to(2048));
  const double twice = spread_beyond_range(measured_to(2048), found);
  CHECK(twice > 0);
  // Weight gradients have other numbers of rows than 4,096, so 8 = 2^3 times beyond is not exactly
  // three times the spread.
  CHECK(spread_beyond_range(measured_to(512), found) == Approx(3 * twice).epsilon(0.1));
  // All GEMMs together take less than the step: about c ln 2 times their share.
  const double share =
      ratio(found.breakdown[static_cast<std::size_t>(TimeClass::gemm)], found.step);
  CHECK(twice == Approx(ErrorBeyond::gemm * std::log(2) * share).epsilon(0.2));
}

TEST_CASE("The furthest size beyond a curve's range is named, once per curve") {
  const Prediction found = predict(measured_to(2048));
  int named = 0;
  for (const std::string& each : found.assumptions) {
    named += each.rfind("gemm bf16 curve of h100-sxm-80gb: ", 0) == 0 ? 1 : 0;
    if (each.rfind("gemm bf16 curve of ", 0) != 0) continue;
    CHECK(each.find(" at m 4096, n ") != std::string::npos);
    CHECK(each.ends_with(" 2 times beyond"));
  }
  CHECK(named == 1);
}

}  // namespace
}  // namespace orrery::models
