#pragma once
// Entry points of `validate` and `fit` for tables of measured kernels and collectives.

#include "scenarios/fitting/kernels/curve_report.hpp"
#include "scenarios/fitting/kernels/kernel_validation.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

/// Whether the header is that of kernels or of collectives.
bool holds_curves(const orrery::Table& table);

/// Predicts the file's rows by curves fitted to the shipped rows, without each row's own curve if
/// `unseen`.
CurveReport validate_curves(const orrery::Table& table, Scoring scoring);

/// Fits curves to the file's own rows, and scores them on rows left out.
/// Errors  a header of something else: `FILE: holds neither kernels nor collectives; accepted: ...`
CurveReport fit_curves(const orrery::Table& table, LeaveOut leave_out, Residual residual);

}  // namespace orrery::scenarios
