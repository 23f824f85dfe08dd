#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"

namespace orrery::hardware {
namespace {

TEST_CASE("Every GEMM curve fitted to a table says which shapes and how well") {
  for (const char* name : {"a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm",
                           "b300-sxm", "gb200", "gb300", "l40s"}) {
    const Gpu gpu = named_gpu(name);
    INFO(name);
    const GemmCurve& curve = gpu.gemm.at(DType::bf16);
    REQUIRE(curve.measured);
    CHECK(curve.measured->rows >= 500);
    CHECK(curve.measured->covers({4096, 4096, 4096}));
    CHECK_FALSE(curve.measured->covers({4096, 4096, 100}));
    CHECK(curve.measured->median_error_pct < 10);
  }
}

TEST_CASE("Tables of fp8 products include the pass that quantises, their curves do not") {
  CHECK(named_gpu("h100-sxm-80gb").gemm.at(DType::fp8).measured.value().includes ==
        "activation quantisation");
}

TEST_CASE("A shape lies inside the range when each of its sides does, ends included") {
  GemmRange range;
  range.lowest = {16, 1024, 1024};
  range.highest = {64, 2048, 4096};
  CHECK(range.covers({16, 1024, 1024}));
  CHECK(range.covers({64, 2048, 4096}));
  CHECK_FALSE(range.covers({15, 1024, 1024}));
  CHECK_FALSE(range.covers({16, 2049, 1024}));
  CHECK_FALSE(range.covers({16, 1024, 4097}));
}

}  // namespace
}  // namespace orrery::hardware
