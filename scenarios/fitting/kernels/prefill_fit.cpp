// Fits attention of serving prefills: the attention kernel, and the pass that writes the KV cache.

#include <algorithm>
#include <array>
#include <cmath>

#include "scenarios/fitting/kernels/kernel_fit.hpp"

namespace orrery::scenarios {

namespace {

constexpr double bf16_bytes = 2;      // bf16
constexpr double tile_rows = 128;     // queries that one thread block takes, FlashAttention-2
constexpr double flops_per_pair = 2;  // a multiplication and an addition

/// Number of streaming multiprocessors; a wave is one thread block on each.
double multiprocessors(const hardware::Gpu& gpu) {
  const int stated = gpu.generation.multiprocessors;
  return stated > 0 ? stated : hardware::generation_named("blackwell").multiprocessors;
}

/// The inputs of the formula for a row, in seconds at peak.
struct PrefillPoint {
  double compute = 0;  // useful FLOPs
  double tile = 0;     // the longest thread block, times all multiprocessors
  double queries = 0;  // q and o, once
  double keys = 0;     // k and v, once
  double seq = 1;
  double head_64 = 0;  // 1 at head size 64, 0 at 128
  double log_seconds = 0;
  std::array<double, 5> place{};  // log2 of seq, batch, heads, kv heads, head size
};

PrefillPoint prefill_point(const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const double s = static_cast<double>(row.k);
  const double b = static_cast<double>(std::max<std::int64_t>(row.batch, 1));
  const double h = static_cast<double>(row.heads);
  const double kv = static_cast<double>(row.kv_heads > 0 ? row.kv_heads : row.heads);
  const double d = static_cast<double>(row.head_dim);
  const double peak = sample.gpu->peak(hardware::DType::bf16)->count();
  const double bandwidth = sample.gpu->memory_bandwidth.count();
  const double masked = row.causal ? 0.5 : 1.0;
  PrefillPoint point;
  point.compute = masked * 2 * flops_per_pair * b * h * s * s * d / peak;
  point.tile = 2 * flops_per_pair * tile_rows * s * d * multiprocessors(*sample.gpu) / peak;
  point.queries = 2 * bf16_bytes * b * s * h * d / bandwidth;
  point.keys = 2 * bf16_bytes * b * s * kv * d / bandwidth;
  point.seq = s;
  point.head_64 = std::clamp((128 - d) / 64, 0.0, 1.0);
  point.log_seconds = row.seconds ? std::log(*row.seconds) : 0;
  point.place = {std::log2(s), std::log2(b), std::log2(h), std::log2(kv), std::log2(d)};
  return point;
}

/// t = t0 + (max(F (1 + c/s), longest block) + w * half a block) / (e P)
///        + (q + o) / (b W) + (k + v) / (g W)
/// F       useful FLOPs, half of all with a causal mask; block: 4 * 128 * s * d on each SM
/// c, w    more traffic of short sequences (tokens); waves that end unevenly
/// e, b, g shares of peak P and memory bandwidth W; e between its values at head size 64 and 128
/// Memory is added, not overlapped: rows include a pass of its own that writes the KV cache. A
/// training plan has no such pass: use the curves of the published figures there.
/// Source  form: the tiling of FlashAttention-2 (Dao 2023)
struct PrefillParameters {
  double start = 0, share_128 = 0.6, share_64 = 0.6, extra = 0, waves = 1, memory = 0.5, keys = 0.5;

  double seconds(const PrefillPoint& point) const {
    const double share = share_128 + point.head_64 * (share_64 - share_128);
    const double work = std::max(point.compute * (1 + extra / point.seq), point.tile);
    return start + (work + waves * point.tile / 2) / share + point.queries / memory +
           point.keys / keys;
  }
};

PrefillParameters prefill_parameters(const std::vector<double>& p) {
  return {.start = p[0] * 1e-6,
          .share_128 = p[1],
          .share_64 = p[2],
          .extra = p[3],
          .waves = p[4],
          .memory = p[5],
          .keys = p[6]};
}

/// The formula, corrected by the nearest of the samples.
class CorrectedPrefill {
 public:
  CorrectedPrefill(PrefillParameters parameters, const std::vector<PrefillPoint>& samples)
      : parameters_{parameters} {
    for (const PrefillPoint& sample : samples) {
      places_.push_back(sample.place);
      log_ratios_.push_back(sample.log_seconds - std::log(parameters.seconds(sample)));
    }
  }

  double operator()(const KernelSample& sample) const {
    const PrefillPoint point = prefill_point(sample);
    const double smooth = parameters_.seconds(point);
    if (places_.empty()) return smooth;
    std::vector<double> distances;
    distances.reserve(places_.size());
    for (const auto& place : places_) {
      double square = 0;
      for (std::size_t i = 0; i < place.size(); ++i) {
        square += (place[i] - point.place[i]) * (place[i] - point.place[i]);
      }
      distances.push_back(std::sqrt(square));
    }
    return smooth * std::exp(hardware::nearest_mean(std::move(distances), log_ratios_));
  }

 private:
  PrefillParameters parameters_;
  std::vector<std::array<double, 5>> places_;
  std::vector<double> log_ratios_;
};

}  // namespace

std::optional<KernelFit> fit_prefill(const std::vector<KernelSample>& samples, Residual residual) {
  std::vector<PrefillPoint> points;
  for (const KernelSample& sample : samples) points.push_back(prefill_point(sample));
  const std::vector<hardware::Unknown> unknown{{8, 0, 40},      {0.6, 0.05, 1}, {0.6, 0.05, 1},
                                               {300, 0, 10000}, {1, 0, 10},     {0.5, 0.02, 2},
                                               {0.5, 0.02, 2}};
  if (points.size() <= unknown.size()) return std::nullopt;
  const hardware::Residuals residuals = [&](const std::vector<double>& p) {
    const PrefillParameters tried = prefill_parameters(p);
    std::vector<double> errors;
    errors.reserve(points.size());
    for (const PrefillPoint& point : points) {
      errors.push_back(std::log(tried.seconds(point)) - point.log_seconds);
    }
    return errors;
  };
  const PrefillParameters found =
      prefill_parameters(hardware::least_squares(unknown, residuals, log_scale));
  if (residual == Residual::none) points.clear();
  return KernelFit{.seconds = CorrectedPrefill{found, points},
                   .parameters = {{"start_s", found.start},
                                  {"share_128", found.share_128},
                                  {"share_64", found.share_64},
                                  {"extra_tokens", found.extra},
                                  {"waves", found.waves},
                                  {"query_memory_share", found.memory},
                                  {"key_memory_share", found.keys}}};
}

}  // namespace orrery::scenarios
