#pragma once
// Rates of kernels that have no curve of their own in a GPU's file: scans, sparse attention,
// windows, convolutions; and other constants that one machine showed. Rows of
// hardware/measured/rates.csv, of which fit_rates.py next to it fits the kernels';
// hardware/measured/README.md says what each row means.

#include <string>
#include <string_view>

#include "hardware/gpu/gpu.hpp"

namespace orrery::hardware {

/// One row.
struct KernelRate {
  std::string part, pass, where;                   // "delta", "forward", GPU; empty: any
  Time start{};                                    // of one call
  Time chunk{};                                    // of each sequential step
  FlopRate rate{};                                 // 0: not stated
  double share = 0;                                // of the dense peak; 0: not stated
  double factor = 1;                               // on the time of the curve that stands for it
  int rows = 0;                                    // it was fitted to
  double median_error_pct = 0, p90_error_pct = 0;  // of rows left out
  std::string source;

  /// FLOPs per second on a GPU of that peak.
  double speed(double peak) const;
};

/// The row for a part and a pass on a GPU: its own, that of the GPUs whose curves its generation
/// borrows, the nearest first, one for any GPU, or else the first of the part.
/// Null  the table has no such part
const KernelRate* find_kernel_rate(std::string_view part, std::string_view pass, const Gpu& gpu);
/// The same. Errors  none: ContractError, because the table is built in
const KernelRate& kernel_rate(std::string_view part, std::string_view pass, const Gpu& gpu);

}  // namespace orrery::hardware
