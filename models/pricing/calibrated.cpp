#include "models/pricing/calibrated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/pricing/grouped.hpp"

namespace orrery::models {

namespace {

using hardware::Calibration;
using hardware::KernelClass;

double ratio_at(const std::map<DType, hardware::ShapeResidual>& ratios, const Operation& op) {
  const auto found = ratios.find(op.dtype);
  if (found == ratios.end()) return 1;
  hardware::GemmSize size{op.gemm().m, op.gemm().n, op.gemm().k};
  std::int64_t& tokens = op.gemm().transpose_a ? size.k : size.m;
  tokens = std::max<std::int64_t>(1, tokens / op.module.kernels);
  return std::exp(found->second.log_ratio(size));
}

/// Of an MLP's tiles one after another: each an equal part of the GEMM.
std::optional<Time> product_time(const Operation& op, const hardware::Gpu& gpu) {
  const Calibration& measured = gpu.calibration;
  if (measured.gemm.count(op.dtype) == 0) return std::nullopt;
  const std::int64_t tiles = op.module.kernels;
  const Flops flops{op.flops.count() / tiles};
  const Bytes bytes{op.bytes.count() / tiles};
  return scaled(gpu.gemm_time(op.dtype, flops, bytes) * tiles, ratio_at(measured.gemm, op));
}

std::optional<Time> batched_time(const Operation& op, const hardware::Gpu& gpu) {
  const auto curve = gpu.calibration.batched.find(op.dtype);
  const auto peak = gpu.peak(op.dtype);
  if (curve == gpu.calibration.batched.end() || !peak) return std::nullopt;
  const std::int64_t batch = op.gemm().batch;
  const Time one = time_of(curve->second, *peak, gpu.memory_bandwidth,
                           Flops{op.flops.count() / batch}, Bytes{op.bytes.count() / batch});
  return scaled(one * batch, ratio_at(gpu.calibration.batched_gemm, op));
}

std::optional<Time> experts_time(const Operation& op, const hardware::Gpu& gpu) {
  const auto& ratios = gpu.calibration.grouped_gemm;
  const auto found = ratios.find(op.dtype);
  if (found == ratios.end() || gpu.gemm.count(op.dtype) == 0) return std::nullopt;
  return scaled(grouped_time(op, gpu), std::exp(found->second.log_ratio(mean_product(op))));
}

}  // namespace

std::optional<Time> calibrated_time(const Operation& op, const hardware::Gpu& gpu) {
  if (op.kind == OpKind::gemm) return product_time(op, gpu);
  if (op.kind == OpKind::batched_gemm) return batched_time(op, gpu);
  if (op.kind == OpKind::grouped_gemm) return experts_time(op, gpu);
  if (gpu.calibration.kernels.empty()) return std::nullopt;
  for (const std::string& key : kernel_keys(op, gpu.generation.host_cores)) {
    const hardware::KernelCurve* curve = gpu.calibration.kernel(key);
    if (curve != nullptr) return curve->at(op.bytes);
  }
  return std::nullopt;
}

namespace {

/// The function that is timed in place of one that moves the same bytes.
Activation measured_kin(Activation activation) {
  if (activation == Activation::gelu_erf) return Activation::gelu;
  return activation == Activation::relu2 ? Activation::relu : activation;
}

}  // namespace

std::string kernel_key(const Operation& op) {
  const bool activates = op.kind == OpKind::activation || op.kind == OpKind::activation_backward;
  const std::string_view function =
      activates ? name(measured_kin(op.activation())) : std::string_view{};
  return fmt::format("{}{}{} {}>{}", name(op.kind), activates ? " " : "", function, op.reads.size(),
                     op.writes.size());
}

std::vector<std::string> kernel_keys(const Operation& op, bool processor) {
  const std::string key = kernel_key(op), kind{name(op.kind)};
  if (!processor || hardware::bits(op.dtype) >= 32) return {key, kind};
  const std::string format = fmt::format(" {}", hardware::name(op.dtype));
  return {key + format, kind + format, key, kind};
}

double slowdown_of(const Operation& op, const hardware::Gpu& gpu, int at_once) {
  return gpu.calibration.slowdown(is_gemm(op.kind) ? KernelClass::gemm : KernelClass::memory_bound,
                                  at_once);
}

}  // namespace orrery::models
