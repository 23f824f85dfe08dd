// Fits attention kernels of training from published figures: fused kernels by their share of peak
// FLOP/s, unfused ones by the memory traffic of their score matrices.

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "scenarios/fitting/kernels/kernel_fit.hpp"

namespace orrery::scenarios {

namespace {

/// FLOPs of a row's passes over those of forward, backward's of grouped heads over `grouped`.
double passes(const MeasuredKernel& row, double grouped) {
  constexpr double backward = 2.5;  // five GEMMs instead of two
  const AttentionPass& pass = attention_pass(row);
  return pass.forward + backward * pass.backward / (has_grouped_heads(row) ? grouped : 1.0);
}

/// Score elements of a call: b h s^2.
double scores(const MeasuredKernel& row) {
  const double s = static_cast<double>(row.k);
  return static_cast<double>(std::max<std::int64_t>(row.batch, 1)) *
         static_cast<double>(row.heads) * s * s;
}

/// Seconds at peak for the useful FLOPs, of which a causal mask leaves half.
double seconds_at_peak(const KernelSample& sample, double grouped) {
  const MeasuredKernel& row = *sample.row;
  const double masked = row.causal ? 0.5 : 1.0;
  return passes(row, grouped) * masked * 4 * scores(row) * static_cast<double>(row.head_dim) /
         sample.gpu->peak(hardware::DType::bf16)->count();
}

/// The limiting share of a head size; an unmeasured one takes that of the nearest measured size.
double endless_share(const std::vector<std::int64_t>& sizes, const std::vector<double>& p,
                     std::int64_t size) {
  const auto nearest =
      std::ranges::min_element(sizes, {}, [&](std::int64_t each) { return std::abs(each - size); });
  return std::exp(p[static_cast<std::size_t>(nearest - sizes.begin())]);
}

/// t = F / (share P),  share = E_d / (1 + s0 (1 + causal a) / s)
/// E_d     share of peak in the limit of long sequences, per head size; s0 in tokens
/// g       backward's share with grouped heads over that without; where samples have both
/// p       ln E_d of every size, ln s0, a, ln g
/// Source  form: hardware/curves/curve.hpp; figures of Dao-AILab/flash-attention
double fused_seconds(const std::vector<std::int64_t>& sizes, const std::vector<double>& p,
                     const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const double half = std::exp(p[sizes.size()]);
  const double penalty = row.causal ? 1 + p[sizes.size() + 1] : 1.0;
  const double share =
      endless_share(sizes, p, row.head_dim) / (1 + half * penalty / static_cast<double>(row.k));
  const double grouped = p.size() > sizes.size() + 2 ? std::exp(p.back()) : 1.0;
  return seconds_at_peak(sample, grouped) / share;
}

/// Whether some backward passes have grouped heads and others have not.
bool tells_grouped(const std::vector<KernelSample>& samples) {
  const auto grouped = [](const KernelSample& sample) { return has_grouped_heads(*sample.row); };
  return attention_pass(*samples.front().row).backward > 0 &&
         std::ranges::any_of(samples, grouped) && !std::ranges::all_of(samples, grouped);
}

/// t = t0 + u (1 + causal x) b h s^2 / W: whole score matrices cross memory, masked or not.
/// u       bytes per score element, x what masking adds to them, W memory bandwidth
/// p       t0 in ms, u, x
/// Source  fits: kernels of PyTorch without fusion in the figures of Dao-AILab/flash-attention
double unfused_seconds(const std::vector<double>& p, const KernelSample& sample) {
  const double masking = sample.row->causal ? 1 + p[2] : 1.0;
  return p[0] * 1e-3 + p[1] * masking * scores(*sample.row) / sample.gpu->memory_bandwidth.count();
}

}  // namespace

std::optional<KernelFit> fit_fused_attention(const std::vector<KernelSample>& samples) {
  std::set<std::int64_t> distinct;
  for (const KernelSample& sample : samples) distinct.insert(sample.row->head_dim);
  const std::vector<std::int64_t> sizes{distinct.begin(), distinct.end()};
  std::vector<hardware::Unknown> unknown(sizes.size(), {std::log(0.5), std::log(0.01), 0});
  unknown.push_back({std::log(100.0), 0, std::log(5000.0)});
  unknown.push_back({2, 0, 20});
  const bool grouped = !samples.empty() && tells_grouped(samples);
  if (grouped) unknown.push_back({std::log(0.5), std::log(0.01), std::log(2.0)});
  if (samples.size() < unknown.size()) return std::nullopt;
  const std::vector<double> p =
      fit_log_times(samples, unknown, std::bind_front(fused_seconds, sizes));
  KernelFit fit{.seconds = std::bind_front(fused_seconds, sizes, p), .parameters = {}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    fit.parameters.emplace_back("share_" + std::to_string(sizes[i]), std::exp(p[i]));
  }
  fit.parameters.emplace_back("half_length", std::exp(p[sizes.size()]));
  fit.parameters.emplace_back("causal_penalty", p[sizes.size() + 1]);
  if (grouped) fit.parameters.emplace_back("grouped_backward", std::exp(p.back()));
  return fit;
}

std::optional<KernelFit> fit_unfused_attention(const std::vector<KernelSample>& samples) {
  const std::vector<hardware::Unknown> unknown{{1, 0, 20}, {30, 1, 300}, {0.3, 0, 3}};
  if (samples.size() < unknown.size()) return std::nullopt;
  const std::vector<double> p = fit_log_times(samples, unknown, unfused_seconds);
  return KernelFit{
      .seconds = std::bind_front(unfused_seconds, p),
      .parameters = {{"start_s", p[0] * 1e-3}, {"bytes_per_score", p[1]}, {"causal_extra", p[2]}}};
}

}  // namespace orrery::scenarios
