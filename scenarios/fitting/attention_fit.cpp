// Fits attention kernels of training from published figures: fused kernels by their share of peak
// FLOP/s, unfused ones by the memory traffic of their score matrices.

#include <algorithm>
#include <cmath>
#include <set>

#include "hardware/fitting/minimise.hpp"
#include "scenarios/fitting/kernel_fit.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr double both_passes = 3.5;  // FLOPs of forward and backward over forward's: 2 and 5 GEMMs

double passes(const MeasuredKernel& row) {
  return row.kernel == "flash_fwd" ? 1 : both_passes;
}

/// Score elements of a call: b h s^2.
double scores(const MeasuredKernel& row) {
  const double s = static_cast<double>(row.k);
  return static_cast<double>(std::max<std::int64_t>(row.batch, 1)) *
         static_cast<double>(row.heads) * s * s;
}

/// Seconds at peak for the useful FLOPs, of which a causal mask leaves half.
double seconds_at_peak(const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const double masked = row.causal ? 0.5 : 1.0;
  return passes(row) * masked * 4 * scores(row) * static_cast<double>(row.head_dim) /
         sample.gpu->peak(hardware::DType::bf16)->count();
}

/// t = F / (share P),  share = E_d / (1 + s0 (1 + causal a) / s)
/// E_d     share of peak in the limit of long sequences, per head size; s0 in tokens
/// Source  form: hardware/curve.hpp; figures of Dao-AILab/flash-attention
class FusedAttentionFit : public KernelFit {
 public:
  FusedAttentionFit(std::vector<std::int64_t> sizes, std::vector<double> found)
      : sizes_{std::move(sizes)}, found_{std::move(found)} {}

  double seconds(const KernelSample& sample) const override {
    const MeasuredKernel& row = *sample.row;
    const double half = std::exp(found_[sizes_.size()]);
    const double penalty = row.causal ? 1 + found_.back() : 1.0;
    const double share = endless(row.head_dim) / (1 + half * penalty / static_cast<double>(row.k));
    return seconds_at_peak(sample) / share;
  }

  std::vector<std::pair<std::string, double>> parameters() const override {
    std::vector<std::pair<std::string, double>> named;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      named.emplace_back("share_" + std::to_string(sizes_[i]), std::exp(found_[i]));
    }
    named.emplace_back("half_length", std::exp(found_[sizes_.size()]));
    named.emplace_back("causal_penalty", found_.back());
    return named;
  }

 private:
  /// The limiting share of a head size; an unmeasured one takes that of the nearest measured size.
  double endless(std::int64_t size) const {
    std::size_t nearest = 0;
    for (std::size_t i = 1; i < sizes_.size(); ++i) {
      if (std::abs(sizes_[i] - size) < std::abs(sizes_[nearest] - size)) nearest = i;
    }
    return std::exp(found_[nearest]);
  }

  std::vector<std::int64_t> sizes_;
  std::vector<double> found_;
};

/// t = t0 + u (1 + causal x) b h s^2 / W: whole score matrices cross memory, masked or not.
/// u       bytes per score element, x what masking adds to them, W memory bandwidth
/// Source  fits: kernels of PyTorch without fusion in the figures of Dao-AILab/flash-attention
class UnfusedAttentionFit : public KernelFit {
 public:
  explicit UnfusedAttentionFit(std::vector<double> found) : found_{std::move(found)} {}

  double seconds(const KernelSample& sample) const override {
    const double masking = sample.row->causal ? 1 + found_[2] : 1.0;
    return found_[0] * 1e-3 +
           found_[1] * masking * scores(*sample.row) / sample.gpu->memory_bandwidth.count();
  }

  std::vector<std::pair<std::string, double>> parameters() const override {
    return {
        {"start_s", found_[0] * 1e-3}, {"bytes_per_score", found_[1]}, {"causal_extra", found_[2]}};
  }

 private:
  std::vector<double> found_;
};

template <class Fit, class Make>
std::vector<double> search_attention(const std::vector<KernelSample>& samples,
                                     const std::vector<hardware::Unknown>& unknown, Make make) {
  const hardware::Residuals residuals = [&](const std::vector<double>& p) {
    const Fit tried = make(p);
    std::vector<double> errors;
    for (const KernelSample& sample : samples) {
      errors.push_back(std::log(tried.seconds(sample) / *sample.row->seconds));
    }
    return errors;
  };
  return hardware::least_squares(unknown, residuals, log_scale);
}

}  // namespace

std::unique_ptr<KernelFit> fit_fused_attention(const std::vector<KernelSample>& samples) {
  std::set<std::int64_t> distinct;
  for (const KernelSample& sample : samples) distinct.insert(sample.row->head_dim);
  const std::vector<std::int64_t> sizes{distinct.begin(), distinct.end()};
  std::vector<hardware::Unknown> unknown(sizes.size(), {std::log(0.5), std::log(0.01), 0});
  unknown.push_back({std::log(100.0), 0, std::log(5000.0)});
  unknown.push_back({2, 0, 20});
  if (samples.size() < unknown.size()) return nullptr;
  const auto make = [&](const std::vector<double>& p) { return FusedAttentionFit{sizes, p}; };
  return std::make_unique<FusedAttentionFit>(
      sizes, search_attention<FusedAttentionFit>(samples, unknown, make));
}

std::unique_ptr<KernelFit> fit_unfused_attention(const std::vector<KernelSample>& samples) {
  const std::vector<hardware::Unknown> unknown{{1, 0, 20}, {30, 1, 300}, {0.3, 0, 3}};
  if (samples.size() < unknown.size()) return nullptr;
  const auto make = [](const std::vector<double>& p) { return UnfusedAttentionFit{p}; };
  return std::make_unique<UnfusedAttentionFit>(
      search_attention<UnfusedAttentionFit>(samples, unknown, make));
}

}  // namespace orrery::scenarios
