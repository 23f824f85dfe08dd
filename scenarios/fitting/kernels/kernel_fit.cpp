#include "scenarios/fitting/kernels/kernel_fit.hpp"

#include <cmath>

#include "sim/errors.hpp"

namespace orrery::scenarios {

std::string_view name(KernelForm form) {
  constexpr std::string_view names[] = {"gemm", "prefill attention", "fused attention",
                                        "unfused attention", "memory-bound"};
  return names[static_cast<int>(form)];
}

std::optional<KernelForm> form_of(const MeasuredKernel& row) {
  if (row.kernel.rfind("gemm", 0) == 0) {
    if (row.m < 1 || row.n < 1 || row.k < 1) return std::nullopt;
    return KernelForm::gemm;
  }
  if (is_attention(row)) {
    if (row.k < 1 || row.heads < 1 || row.head_dim < 1) return std::nullopt;
    if (includes(row, Included::kv_cache)) return KernelForm::prefill;
    const bool unfused = row.implementation.find("standard") != std::string::npos;
    return unfused ? KernelForm::unfused_attention : KernelForm::fused_attention;
  }
  if (row.m < 1 && row.n < 1 && row.k < 1) return std::nullopt;
  return KernelForm::stream;
}

std::optional<KernelFit> fit_kernel(KernelForm form, const std::vector<KernelSample>& samples,
                                    Residual residual) {
  switch (form) {
    case KernelForm::gemm:
      return fit_gemm(samples, residual);
    case KernelForm::prefill:
      return fit_prefill(samples, residual);
    case KernelForm::fused_attention:
      return fit_fused_attention(samples);
    case KernelForm::unfused_attention:
      return fit_unfused_attention(samples);
    case KernelForm::stream:
      return fit_stream(samples);
  }
  throw ContractError{"a kernel form outside its enumeration"};
}

std::vector<double> fit_log_times(const std::vector<KernelSample>& samples,
                                  const std::vector<hardware::Unknown>& unknown,
                                  const KernelFormula& formula) {
  const hardware::Residuals residuals = [&](const std::vector<double>& p) {
    std::vector<double> errors;
    for (const KernelSample& sample : samples) {
      errors.push_back(std::log(formula(p, sample) / *sample.row->seconds));
    }
    return errors;
  };
  return hardware::least_squares(unknown, residuals, log_scale);
}

}  // namespace orrery::scenarios
