#pragma once
// Fused attention, from measured calls to the curve of hardware/curve.hpp.

#include <optional>
#include <vector>

#include "hardware/curve.hpp"

namespace orrery::calibrate {

struct AttentionPoint {
  hardware::AttentionCall call;
  Time time{};
};

struct AttentionFit {
  hardware::AttentionCurve curve;
  double median_error_pct = 0;                // of the fit itself
  std::optional<double> leave_out_error_pct;  // each fifth point in turn by the others
};

/// min sum_i robust(log(t_i / (work_i / (share(s_i) peak))))
/// share  hardware::share_of_peak. What no call determines stays where it began: a head size that
///        was not measured has the other's share, without calls that are not causal there is no
///        penalty, without backward its ratio is 1.
/// Errors  no point: ContractError
AttentionFit fit_attention(const std::vector<AttentionPoint>& points, FlopRate peak);

}  // namespace orrery::calibrate
