#include "scenarios/fitting/kernels/kernel_fit.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "hardware/catalogue.hpp"

using namespace orrery;
using namespace orrery::scenarios;

namespace {

/// 100 TFLOP/s in every format, 1 TB/s, so that times are easy to write down.
hardware::Gpu round_gpu() {
  hardware::Gpu gpu;
  gpu.name = "round";
  for (auto& peak : gpu.dense_peak) peak = FlopRate{1e14};
  gpu.memory_bandwidth = Bandwidth{1e12};
  gpu.generation = hardware::generation_named("hopper");
  return gpu;
}

std::map<std::string, double> named(const KernelFit& fit) {
  return {fit.parameters.begin(), fit.parameters.end()};
}

std::vector<KernelSample> samples_of(const std::vector<MeasuredKernel>& rows,
                                     const hardware::Gpu& gpu) {
  std::vector<KernelSample> samples;
  for (const MeasuredKernel& row : rows) samples.push_back({&row, &gpu});
  return samples;
}

/// 5 us + (x^3 + y^3)^(1/3) + 3mk / (0.4 W) with 0.7 of peak and 0.8 of bandwidth.
double planted_gemm(double m, double n, double k, double element, bool quantises) {
  const double x = 2 * m * n * k / (0.7 * 1e14);
  const double y = (element * (m * k + k * n) + 2 * m * n) / (0.8 * 1e12);
  return 5e-6 + std::cbrt(x * x * x + y * y * y) + (quantises ? 3 * m * k / 0.4e12 : 0);
}

std::vector<MeasuredKernel> planted_gemms(const std::string& dtype, double element,
                                          bool quantises) {
  std::vector<MeasuredKernel> rows;
  for (const std::int64_t m : {16, 128, 512, 2048, 8192}) {
    for (const std::int64_t n : {1024, 4096, 16384}) {
      for (const std::int64_t k : {512, 2048, 8192}) {
        MeasuredKernel row;
        row.kernel = "gemm";
        row.dtype = dtype;
        row.m = m;
        row.n = n;
        row.k = k;
        row.includes = quantises ? "activation quantisation" : "";
        row.seconds = planted_gemm(static_cast<double>(m), static_cast<double>(n),
                                   static_cast<double>(k), element, quantises);
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("A GEMM fit finds the shares, the overhead and the corner that were planted") {
  const hardware::Gpu gpu = round_gpu();
  const auto rows = planted_gemms("bf16", 2, false);
  const auto fit = fit_gemm(samples_of(rows, gpu), Residual::none);
  REQUIRE(fit);
  auto found = named(*fit);
  CHECK(found["compute_share"] == Approx(0.7).epsilon(0.005));
  CHECK(found["memory_share"] == Approx(0.8).epsilon(0.005));
  CHECK(found["overhead_s"] == Approx(5e-6).epsilon(0.01));
  CHECK(found["corner"] == Approx(3).epsilon(0.02));
  CHECK(found.count("quantise_share") == 0);
}

TEST_CASE("Where rows include the quantisation of activations a fit tells the pass apart") {
  const hardware::Gpu gpu = round_gpu();
  const auto rows = planted_gemms("fp8", 1, true);
  const auto fit = fit_gemm(samples_of(rows, gpu), Residual::none);
  REQUIRE(fit);
  auto found = named(*fit);
  CHECK(found["compute_share"] == Approx(0.7).epsilon(0.01));
  CHECK(found["quantise_share"] == Approx(0.4).epsilon(0.02));
  CHECK(found["prologue_depth"] < 20);
}

TEST_CASE("A GEMM's fitted time grows with each of its sides") {
  const hardware::Gpu gpu = round_gpu();
  const auto rows = planted_gemms("bf16", 2, false);
  const auto fit = fit_gemm(samples_of(rows, gpu), Residual::none);
  MeasuredKernel call = rows.front();
  call.m = call.n = call.k = 32;
  double before = 0;
  for (std::int64_t side = 64; side <= 65536; side *= 2) {
    for (auto dimension : {&MeasuredKernel::m, &MeasuredKernel::n, &MeasuredKernel::k}) {
      call.*dimension = side;
      const double now = fit->seconds({&call, &gpu});
      CHECK(now >= before);
      before = now;
    }
  }
}

TEST_CASE("The residual repeats what a formula misses at a shape") {
  // One curve (n, k) is 20 % slower than the formula for all its m: on its own samples the fit
  // with a residual is within 3 %, the formula alone is not.
  const hardware::Gpu gpu = round_gpu();
  auto rows = planted_gemms("bf16", 2, false);
  for (MeasuredKernel& row : rows) {
    if (row.n == 4096 && row.k == 2048) *row.seconds *= 1.2;
  }
  const auto samples = samples_of(rows, gpu);
  const auto smooth = fit_gemm(samples, Residual::none);
  const auto nearest = fit_gemm(samples, Residual::nearest);
  for (const KernelSample& sample : samples) {
    if (sample.row->n != 4096 || sample.row->k != 2048) continue;
    CHECK(smooth->seconds(sample) / *sample.row->seconds < 0.9);
    CHECK(nearest->seconds(sample) / *sample.row->seconds == Approx(1).epsilon(0.03));
  }
}

TEST_CASE("A GEMM table with fewer rows than parameters has no fit") {
  const hardware::Gpu gpu = round_gpu();
  auto rows = planted_gemms("bf16", 2, false);
  rows.resize(3);
  CHECK_FALSE(fit_gemm(samples_of(rows, gpu), Residual::nearest));
}

TEST_CASE("A fused attention fit finds its share of peak and how short sequences lose it") {
  // share = 0.6 / (1 + 200 (1 + 2 causal) / s): 512 tokens with a mask reach 0.6 / 2.171875.
  const hardware::Gpu gpu = round_gpu();
  std::vector<MeasuredKernel> rows;
  for (const std::int64_t s : {512, 1024, 2048, 4096, 8192}) {
    for (const bool causal : {false, true}) {
      MeasuredKernel row;
      row.kernel = "flash_fwd";
      row.implementation = "FlashAttention-2";
      row.k = s;
      row.heads = 16;
      row.head_dim = 128;
      row.batch = 16384 / s;
      row.causal = causal;
      const double share = 0.6 / (1 + 200 * (causal ? 3.0 : 1.0) / static_cast<double>(s));
      const double flops = (causal ? 2.0 : 4.0) * static_cast<double>(row.batch) * 16 * 128 *
                           static_cast<double>(s) * static_cast<double>(s);
      row.seconds = flops / (share * 1e14);
      rows.push_back(row);
    }
  }
  const auto fit = fit_fused_attention(samples_of(rows, gpu));
  REQUIRE(fit);
  auto found = named(*fit);
  CHECK(found["share_128"] == Approx(0.6).epsilon(1e-3));
  CHECK(found["half_length"] == Approx(200).epsilon(0.01));
  CHECK(found["causal_penalty"] == Approx(2).epsilon(0.01));
}

TEST_CASE("A memory-bound fit finds the start and the rate of a line") {
  // 8 us + 1e-12 s an element.
  const hardware::Gpu gpu = round_gpu();
  std::vector<MeasuredKernel> rows;
  for (const std::int64_t columns : {1024, 4096, 16384, 65536}) {
    MeasuredKernel row;
    row.kernel = "rms_norm_forward";
    row.m = 4096;
    row.n = columns;
    row.seconds = 8e-6 + 4096e-12 * static_cast<double>(columns);
    rows.push_back(row);
  }
  auto found = named(*fit_stream(samples_of(rows, gpu)));
  CHECK(found["start_s"] == Approx(8e-6).epsilon(1e-3));
  CHECK(found["seconds_per_size"] == Approx(1e-12).epsilon(1e-3));
}

TEST_CASE("A framework's backward call is flat until its kernels outlast the host") {
  const hardware::Gpu gpu = round_gpu();
  std::vector<MeasuredKernel> rows;
  for (const std::int64_t columns : {512, 1024, 65536, 131072}) {
    MeasuredKernel row;
    row.kernel = "rms_norm_backward";
    row.m = 4096;
    row.n = columns;
    row.seconds = std::max(120e-6, 4096e-12 * static_cast<double>(columns));
    rows.push_back(row);
  }
  auto found = named(*fit_stream(samples_of(rows, gpu)));
  CHECK(found["host_floor_s"] == Approx(120e-6).epsilon(1e-3));
  CHECK(found["seconds_per_size"] == Approx(1e-12).epsilon(1e-3));
}

TEST_CASE("A row's formula follows from its kernel and what its time includes") {
  MeasuredKernel row;
  row.kernel = "gemm";
  CHECK(!form_of(row));  // no m, n, k
  row.m = row.n = row.k = 8;
  CHECK(form_of(row) == KernelForm::gemm);
  row.kernel = "flash_fwd";
  row.heads = row.head_dim = 64;
  CHECK(form_of(row) == KernelForm::fused_attention);
  row.includes = "kv-cache write and copies";
  CHECK(form_of(row) == KernelForm::prefill);
  row.kernel = "flash_fwd_bwd";
  row.includes = "";
  row.implementation = "PyTorch standard attention";
  CHECK(form_of(row) == KernelForm::unfused_attention);
  row.kernel = "layer_norm_forward";
  CHECK(form_of(row) == KernelForm::stream);
}
