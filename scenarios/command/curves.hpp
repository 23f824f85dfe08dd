#pragma once
// Tables of measured kernels and collectives, for `validate` and `fit`.

#include <string>
#include <vector>

#include "scenarios/fitting/curve_report.hpp"
#include "scenarios/fitting/kernel_validation.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

struct CurveFlags {
  std::size_t worst = 10;
  bool json = false;
  bool in_sample = false;
};

/// Whether the header is that of kernels or of collectives.
bool holds_curves(const orrery::Table& table);

/// What `validate` prints: the file's rows by curves of the shipped rows, each row's own left out.
std::string validate_curves(const orrery::Table& table, const std::vector<Grouping>& groupings,
                            const CurveFlags& flags);

/// Curves fitted to the file's own rows, and their errors on what is left out.
/// Errors  a header of something else: `FILE: holds neither kernels nor collectives; accepted: ...`
CurveReport fit_curves(const orrery::Table& table, LeaveOut leave_out, Residual residual);

}  // namespace orrery::scenarios
