#pragma once
// Formulas fitted to one table of measured kernels, one file per formula. A fit answers for any
// row of its table's kind; what its parameters mean is written next to the formula.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/curves/shape_residual.hpp"
#include "hardware/fitting/minimise.hpp"
#include "hardware/gpu/gpu.hpp"
#include "scenarios/fitting/kernels/measured_kernel.hpp"

namespace orrery::scenarios {

/// A measured row and its GPU (peaks and bandwidths of the datasheet). Both outlive it.
struct KernelSample {
  const MeasuredKernel* row = nullptr;
  const hardware::Gpu* gpu = nullptr;
};

enum class KernelForm : std::uint8_t { gemm, prefill, fused_attention, unfused_attention, stream };

std::string_view name(KernelForm form);

/// The formula for a row: GEMMs by kernel, attention by what its rows include, else `stream`.
/// Nothing if a row does not state a size that the formula needs.
std::optional<KernelForm> form_of(const MeasuredKernel& row);

/// A formula with its parameters.
struct KernelFit {
  /// Seconds of a call, by the formula and, where there is one, its residual.
  std::function<double(const KernelSample&)> seconds;
  std::vector<std::pair<std::string, double>> parameters;  // in SI units or shares
  hardware::ShapeResidual residual{};                      // of a GEMM fit; empty: none
};

/// Whether the smooth formula is corrected by the residuals of the nearest samples, or used alone,
/// as in the catalogue.
enum class Residual : std::uint8_t { none, nearest };

/// Each fits one formula. Errors  too few samples for it: nothing is returned
std::optional<KernelFit> fit_gemm(const std::vector<KernelSample>&, Residual);     // gemm_fit
std::optional<KernelFit> fit_prefill(const std::vector<KernelSample>&, Residual);  // prefill_fit
std::optional<KernelFit> fit_fused_attention(const std::vector<KernelSample>&);    // attention
std::optional<KernelFit> fit_unfused_attention(const std::vector<KernelSample>&);  // attention
std::optional<KernelFit> fit_stream(const std::vector<KernelSample>&);             // stream_fit
std::optional<KernelFit> fit_kernel(KernelForm form, const std::vector<KernelSample>& samples,
                                    Residual residual);

/// Soft-L1 scale of log time: beyond 3 % a sample's error counts linearly.
inline constexpr double log_scale = 0.03;

/// Seconds of a sample with some parameters.
using KernelFormula = std::function<double(const std::vector<double>&, const KernelSample&)>;
/// The parameters with the least errors of log time.
std::vector<double> fit_log_times(const std::vector<KernelSample>& samples,
                                  const std::vector<hardware::Unknown>& unknown,
                                  const KernelFormula& formula);

}  // namespace orrery::scenarios
