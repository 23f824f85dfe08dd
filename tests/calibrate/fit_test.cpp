// Fits find the curves that samples were made from, and say how far off they are.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "calibrate/findings.hpp"
#include "hardware/catalogue.hpp"
#include "models/network/collectives/measured.hpp"

namespace orrery::calibrate {
namespace {

constexpr Roof roof{.peak = FlopRate{100e9}, .memory = Bandwidth{10e9}};

/// Products of many shapes on a planted curve, with log-normal noise.
std::vector<ProductPoint> planted_products(const hardware::GemmCurve& curve, double noise) {
  std::mt19937_64 random{7};
  std::normal_distribution<double> normal{0, noise};
  std::vector<ProductPoint> points;
  for (const std::int64_t m : {16, 64, 256, 1024}) {
    for (const std::int64_t n : {64, 256, 1024}) {
      for (const std::int64_t k : {64, 256, 1024}) {
        ProductPoint point{{m, n, k}, Flops{2 * m * n * k}, Bytes{4 * (m * k + k * n + m * n)}, {}};
        const Time exact = time_of(curve, roof.peak, roof.memory, point.work, point.traffic);
        point.time = noise > 0 ? scaled(exact, std::exp(normal(random))) : exact;
        points.push_back(point);
      }
    }
  }
  return points;
}

TEST_CASE("A planted GEMM curve is recovered from samples with 3 % of noise") {
  const hardware::GemmCurve planted{
      .compute_share = 0.7, .memory_share = 0.5, .overhead = 3_us, .corner = 4, .origin = {}};
  const GemmCalibration fit = fit_gemms(planted_products(planted, 0.03), roof);
  CHECK(fit.curve.compute_share == Approx(0.7).epsilon(0.03));
  CHECK(fit.curve.memory_share == Approx(0.5).epsilon(0.1));
  CHECK(seconds(fit.curve.overhead) == Approx(3e-6).epsilon(0.15));
  // Half of the absolute values of a normal error of 3 % lie below 2 %.
  CHECK(fit.plain_error_pct == Approx(2.0).margin(1.0));
  CHECK(fit.leave_out_error_pct.value() < 5);
}

TEST_CASE("Without noise nothing is left for the residuals") {
  const hardware::GemmCurve planted{
      .compute_share = 0.8, .memory_share = 0.4, .overhead = 5_us, .corner = 4, .origin = {}};
  const GemmCalibration fit = fit_gemms(planted_products(planted, 0), roof);
  CHECK(fit.plain_error_pct < 0.1);
  CHECK(fit.leave_out_error_pct.value() < 0.1);
}

TEST_CASE("What a shape misses is learnt from its neighbours") {
  // Thin products take twice their curve: the formula cannot say so, its residuals do.
  std::vector<ProductPoint> points = planted_products(
      {.compute_share = 0.8, .memory_share = 0.8, .overhead = 2_us, .corner = 4, .origin = {}}, 0);
  for (ProductPoint& point : points) {
    if (point.shape.m == 16) point.time = point.time * 2;
  }
  const GemmCalibration fit = fit_gemms(points, roof);
  const hardware::ShapeResidual residual{fit.residuals};
  const auto at = [&](const ProductPoint& point) {
    return scaled(time_of(fit.curve, roof.peak, roof.memory, point.work, point.traffic),
                  std::exp(residual.log_ratio(point.shape)));
  };
  for (const ProductPoint& point : points) {
    CHECK(ratio(at(point), point.time) == Approx(1).epsilon(0.12));
  }
}

TEST_CASE("A planted overhead and rate are recovered, and preferred to a table") {
  std::mt19937_64 random{3};
  std::normal_distribution<double> normal{0, 0.05};
  std::vector<KernelPoint> points;
  for (std::int64_t size = 1 << 10; size <= 1 << 24; size *= 2) {
    const Time exact = 2_us + Bytes{size} / Bandwidth{4e9};
    points.push_back({Bytes{size}, scaled(exact, std::exp(normal(random)))});
  }
  const TrafficFit fit = fit_kernel(points);
  REQUIRE(fit.curve.table.empty());
  CHECK(seconds(fit.curve.overhead) == Approx(2e-6).epsilon(0.1));
  CHECK(fit.curve.rate.count() == Approx(4e9).epsilon(0.1));
  CHECK(fit.sizes == 15);
}

TEST_CASE("Where a cache ends a line cannot follow, and the table is kept") {
  // 10 GB/s up to 1 MiB, 1 GB/s for what is beyond.
  std::vector<KernelPoint> points;
  for (std::int64_t size = 1 << 12; size <= 1 << 26; size *= 2) {
    const std::int64_t inside = std::min<std::int64_t>(size, 1 << 20);
    points.push_back(
        {Bytes{size}, Bytes{inside} / Bandwidth{10e9} + Bytes{size - inside} / Bandwidth{1e9}});
  }
  const TrafficFit fit = fit_kernel(points);
  CHECK_FALSE(fit.curve.table.empty());
  CHECK(fit.leave_out_error_pct.value() < 5);
}

TEST_CASE("Repetitions of a size are one point, their median") {
  const TrafficFit fit = fit_kernel({{1000_B, 10_us}, {1000_B, 12_us}, {1010_B, 50_us}});
  CHECK_FALSE(fit.leave_out_error_pct);  // there is no other size to tell it from
  REQUIRE(fit.sizes == 1);
  CHECK(fit.curve.at(1000_B) == 12_us);
}

Findings some_findings() {
  Findings findings;
  findings.machine = {"Test CPU @ 2.0GHz", 2,           8_GiB, "Linux 6", "gcc 12",
                      "OpenBLAS 0.3",      "2026-11-21"};
  const hardware::GemmCurve planted{
      .compute_share = 0.7, .memory_share = 0.5, .overhead = 3_us, .corner = 4, .origin = {}};
  findings.products[hardware::DType::fp32] = planted_products(planted, 0);
  findings.kernels["norm"] = {{1_KiB, 1_us}, {1_MiB, 500_us}};
  findings.concurrency = {{2, 1.25, 1.5}};
  findings.collectives = {
      {"all_reduce", 2, 1, hardware::SizeTable{{{256_B, 10_us}, {1_MiB, 1_ms}}}}};
  findings.copies = {{CopyPath::on_device, 1_GB, 200_ms}};  // read and written: 10 GB/s
  findings.storage = {Bandwidth{2e9}, Bandwidth{1e9}, {}};
  findings.launch.forward = 2_us;
  return findings;
}

TEST_CASE("A profile is a cluster that reads back with what was measured") {
  const CalibratedProfile profile = make_profile(some_findings(), Json{{"name", "orrery-cpu"}});
  const Document written = Document::from(profile.cluster, "profile.json");
  const Document expanded =
      Document::from(hardware::expand_cluster(written.root()), "profile.json");
  const hardware::Cluster cluster = hardware::read_cluster(expanded.root());

  CHECK(cluster.gpus() == 2);
  CHECK(cluster.unconfirmed == 0);  // every number has its source
  CHECK(cluster.gpu().generation.name == "cpu");
  CHECK(cluster.gpu().memory == 4_GiB);
  // Narrow formats are computed in fp32 and rounded when stored: no faster, no slower.
  CHECK(cluster.gpu().peak(hardware::DType::bf16) == cluster.gpu().peak(hardware::DType::fp32));
  CHECK(cluster.gpu().peak(hardware::DType::fp16) == cluster.gpu().peak(hardware::DType::fp32));
  CHECK(cluster.gpu().gemm.at(hardware::DType::bf16).origin.fallback_from == "its fp32");
  CHECK(cluster.storage.write->count() == 1e9);
  REQUIRE(cluster.gpu().calibration.kernel("norm") != nullptr);
  CHECK(cluster.gpu().calibration.kernel("norm")->at(1_MiB) == 500_us);
  CHECK(cluster.gpu().calibration.slowdown(hardware::KernelClass::gemm, 2) == 1.25);
  const models::GroupShape pair{2, 1, 2, 1, 1};
  CHECK(price(models::Collective::all_reduce, 1_MiB, pair, cluster).time == 1_ms);
  const std::string source = cluster.gpu().gemm.at(hardware::DType::fp32).origin.source;
  CHECK(source ==
        "calibrated 2026-11-21 on Test CPU @ 2.0GHz, 2 cores; OpenBLAS 0.3; gcc 12; Linux 6");
  CHECK(profile.cluster["software"]["host"]["forward_launch"] == "2000 ns");
}

TEST_CASE("Each curve of a profile says how far it is off on what it had not seen") {
  const CalibratedProfile profile = make_profile(some_findings(), Json{{"name", "orrery-cpu"}});
  std::vector<std::string> names;
  for (const FittedCurve& card : profile.curves) names.push_back(card.name);
  CHECK(names == std::vector<std::string>{"gemm fp32", "norm", "all_reduce 2 ranks"});
  CHECK(profile.curves[0].points == 36);
  CHECK(profile.curves[0].leave_out_error_pct.value() < 1);
}

}  // namespace
}  // namespace orrery::calibrate
