#pragma once
// Tables of measured kernels and collectives, for `validate` and `fit`.

#include "scenarios/fitting/curve_report.hpp"
#include "scenarios/fitting/kernel_validation.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

/// Whether the header is that of kernels or of collectives.
bool holds_curves(const orrery::Table& table);

/// The file's rows by curves of the shipped rows, each row's own left out where `unseen`.
CurveReport validate_curves(const orrery::Table& table, Scoring scoring);

/// Curves fitted to the file's own rows, and their errors on what is left out.
/// Errors  a header of something else: `FILE: holds neither kernels nor collectives; accepted: ...`
CurveReport fit_curves(const orrery::Table& table, LeaveOut leave_out, Residual residual);

}  // namespace orrery::scenarios
