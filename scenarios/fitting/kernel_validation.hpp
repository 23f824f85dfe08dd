#pragma once
// Validates measured kernels: each row is predicted by curves fitted without its own.

#include <vector>

#include "scenarios/fitting/curve_report.hpp"
#include "scenarios/fitting/kernel_fit.hpp"
#include "scenarios/fitting/measured_kernel.hpp"

namespace orrery::scenarios {

/// What is left out of a fit before it predicts a row.
enum class LeaveOut : std::uint8_t { curve, gpu };

struct KernelQuestion {
  std::vector<MeasuredKernel> reference;  // the rows that curves are fitted to
  LeaveOut leave_out = LeaveOut::curve;
  Scoring scoring = Scoring::unseen;
  Residual residual = Residual::nearest;
  bool describe_curves = false;  // fill `cards`
};

/// One result per row, in order. Rows that are set aside are predicted but not scored.
CurveReport validate_kernels(const std::vector<MeasuredKernel>& rows,
                             const KernelQuestion& question);

/// The class in which a row is scored: "gemm, training", "attention prefill, s >= 2048", ...
///   training: GEMMs with m >= 1024 that take 20 us or more
std::string score_class(const MeasuredKernel& row);

}  // namespace orrery::scenarios
