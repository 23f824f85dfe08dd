#pragma once
// Fits the attention curve of hardware/curves/curve.hpp to measured calls of fused attention.

#include <optional>
#include <vector>

#include "hardware/curves/curve.hpp"

namespace orrery::calibrate {

struct AttentionPoint {
  hardware::AttentionCall call;
  Time time{};
};

struct AttentionFit {
  hardware::AttentionCurve curve;
  double median_error_pct = 0;                // of the fit itself
  std::optional<double> leave_out_error_pct;  // cross-validation, every fifth point
};

/// min sum_i robust(log(t_i / (work_i / (share(s_i) peak))))
/// share  hardware::share_of_peak. A parameter that no call determines keeps a default: a head size
///        that was not measured has the other's share, the penalty is 0 without both causal and
///        non-causal calls, the backward ratio is 1 without both passes.
/// Errors  no point: ContractError
AttentionFit fit_attention(const std::vector<AttentionPoint>& points, FlopRate peak);

}  // namespace orrery::calibrate
