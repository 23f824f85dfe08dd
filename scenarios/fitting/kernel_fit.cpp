#include "scenarios/fitting/kernel_fit.hpp"

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
  if (row.kernel.rfind("flash_", 0) == 0) {
    if (row.k < 1 || row.heads < 1 || row.head_dim < 1) return std::nullopt;
    if (!row.includes.empty()) return KernelForm::prefill;
    const bool unfused = row.implementation.find("standard") != std::string::npos;
    return unfused ? KernelForm::unfused_attention : KernelForm::fused_attention;
  }
  if (row.m < 1 && row.n < 1 && row.k < 1) return std::nullopt;
  return KernelForm::stream;
}

std::unique_ptr<KernelFit> fit_kernel(KernelForm form, const std::vector<KernelSample>& samples,
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

}  // namespace orrery::scenarios
