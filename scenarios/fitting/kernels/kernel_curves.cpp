#include "scenarios/fitting/kernels/kernel_curves.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/catalogue.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// A table with fewer rows than this falls back to another table's curve.
std::size_t fewest_samples(KernelForm form) {
  return form == KernelForm::stream ? 1 : 8;
}

/// Seconds of a GEMM by the catalogue's curve; nothing if the GPU does not support its format.
std::optional<double> catalogue_gemm(const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const auto type = hardware::dtype_named(catalogue_dtype(row.dtype));
  if (!type || !sample.gpu->peak(*type)) return std::nullopt;
  const Flops work = multiplied<Flops>(2, row.m, row.n, row.k);
  const Bytes traffic = (multiplied<Bytes>(row.m, row.k) + multiplied<Bytes>(row.k, row.n) +
                         multiplied<Bytes>(row.m, row.n)) *
                        2;
  return seconds(sample.gpu->gemm_time(*type, work, traffic));
}

std::optional<double> catalogue_attention(const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const std::string kernel{catalogue_kernel(row.implementation).value_or("flash-2")};
  if (sample.gpu->attention.count(kernel) == 0) return std::nullopt;
  const Flops scores =
      multiplied<Flops>(std::max<std::int64_t>(row.batch, 1), row.heads, row.k, row.k);
  hardware::AttentionCall call{.work = scores * (row.causal ? 2 : 4) * row.head_dim,
                               .seq = row.k,
                               .head_dim = static_cast<int>(row.head_dim),
                               .causal = row.causal,
                               .grouped = has_grouped_heads(row),
                               .pass = hardware::Pass::forward};
  const auto once = [&] {
    return seconds(sample.gpu->attention_time(kernel, hardware::DType::bf16, call));
  };
  const AttentionPass& pass = attention_pass(row);
  const double forward = pass.forward * once();
  if (pass.backward == 0) return forward;
  call.pass = hardware::Pass::backward;
  call.work = Flops{(call.work * 5).count() / 2};  // five GEMMs instead of two
  return forward + pass.backward * once();
}

bool is_attention(KernelForm form) {
  return form == KernelForm::prefill || form == KernelForm::fused_attention ||
         form == KernelForm::unfused_attention;
}

}  // namespace

KernelCurves::KernelCurves(std::vector<MeasuredKernel> rows, Residual residual)
    : rows_{std::move(rows)}, residual_{residual} {
  for (const MeasuredKernel& row : rows_) {
    known_.emplace(identity_of(row), curve_of(row));
    const auto form = form_of(row);
    if (!row.usable() || !form) continue;
    const hardware::Gpu* gpu = gpu_named(row.gpu);
    const auto type = hardware::dtype_named(catalogue_dtype(row.dtype));
    if (!gpu || (*form == KernelForm::gemm && !(type && gpu->peak(*type)))) continue;
    Curve& curve = curves_[table_of(row)];
    curve.table = table_of(row);
    curve.form = *form;
    curve.samples.push_back({&row, gpu});
  }
}

const hardware::Gpu* KernelCurves::gpu_named(const std::string& name) {
  const auto [known, fresh] = gpus_.try_emplace(name);
  std::optional<hardware::Gpu>& gpu = known->second;
  if (fresh) {
    try {
      gpu = hardware::named_gpu(name);
    } catch (const InputError&) {
      gpu.reset();  // not in the catalogue: no curve
    }
  }
  return gpu ? &*gpu : nullptr;
}

const KernelFit* KernelCurves::fit_without(const Curve& curve, const std::string& left_out) {
  const auto [known, fresh] = fits_.try_emplace(curve.table + "||" + left_out);
  std::optional<KernelFit>& fit = known->second;
  if (!fresh) return fit ? &*fit : nullptr;
  std::vector<KernelSample> samples;
  for (const KernelSample& sample : curve.samples) {
    if (left_out.empty() || curve_of(*sample.row) != left_out) samples.push_back(sample);
  }
  if (samples.size() >= fewest_samples(curve.form)) {
    fit = fit_kernel(curve.form, samples, residual_);
  }
  return fit ? &*fit : nullptr;
}

const KernelFit* KernelCurves::fit(const std::string& table) {
  const auto curve = curves_.find(table);
  return curve == curves_.end() ? nullptr : fit_without(curve->second, "");
}

KernelAnswer KernelCurves::answer(const MeasuredKernel& row, const std::string& left_out) {
  const auto form = form_of(row);
  if (!form) return {std::nullopt, "states no size"};
  const hardware::Gpu* gpu = gpu_named(row.gpu);
  if (!gpu) return {std::nullopt, fmt::format("unknown GPU '{}'", row.gpu)};
  const KernelSample sample{&row, gpu};
  const auto curve = curves_.find(table_of(row));
  if (curve != curves_.end()) {
    if (const KernelFit* own = fit_without(curve->second, left_out)) {
      return {own->seconds(sample), {}};
    }
  }
  return of_other_gpus(sample, *form, left_out);
}

KernelAnswer KernelCurves::of_other_gpus(const KernelSample& sample, KernelForm form,
                                         const std::string& left_out) {
  const MeasuredKernel& row = *sample.row;
  if (form == KernelForm::gemm) {
    const auto time = catalogue_gemm(sample);
    return {time, time ? "by the catalogue's GEMM curve" : "no peak for its format"};
  }
  if (is_attention(form)) {
    const auto time = catalogue_attention(sample);
    return {time, time ? "by the catalogue's attention curve" : "no curve of this kernel"};
  }
  const Curve* largest = nullptr;
  for (const auto& [table, curve] : curves_) {  // most rows first
    const MeasuredKernel& other = *curve.samples.front().row;
    if (other.kernel != row.kernel || other.gpu != row.gpu || table == table_of(row)) continue;
    if (!largest || curve.samples.size() > largest->samples.size()) largest = &curve;
  }
  const KernelFit* fit = largest ? fit_without(*largest, left_out) : nullptr;
  if (!fit) return {std::nullopt, "no curve of this kernel on this GPU"};
  return {fit->seconds(sample), fmt::format("by the curve of {}", largest->table)};
}

KernelAnswer KernelCurves::seen(const MeasuredKernel& row) {
  return answer(row, "");
}

KernelAnswer KernelCurves::unseen(const MeasuredKernel& row) {
  const auto known = known_.find(identity_of(row));
  return answer(row, known == known_.end() ? "" : known->second);
}

KernelAnswer KernelCurves::other_gpus(const MeasuredKernel& row) {
  const auto form = form_of(row);
  const hardware::Gpu* gpu = gpu_named(row.gpu);
  if (!form || !gpu) return {std::nullopt, "no size, or an unknown GPU"};
  const auto [known, fresh] = fits_.try_emplace("without GPU||" + table_of(row));
  std::optional<KernelFit>& fit = known->second;
  if (fresh) {
    std::vector<KernelSample> samples;
    for (const auto& [table, curve] : curves_) {
      const MeasuredKernel& other = *curve.samples.front().row;
      if (other.gpu == row.gpu || other.kernel != row.kernel || other.dtype != row.dtype ||
          curve.form != *form || other.includes != row.includes) {
        continue;
      }
      if (*form != KernelForm::prefill && other.implementation != row.implementation) continue;
      samples.insert(samples.end(), curve.samples.begin(), curve.samples.end());
    }
    const bool enough = samples.size() >= fewest_samples(*form) && *form != KernelForm::stream;
    if (enough) fit = fit_kernel(*form, samples, Residual::none);
  }
  if (!fit) return {std::nullopt, "no other GPU has this table"};
  return {fit->seconds({&row, gpu}), "from other GPUs"};
}

}  // namespace orrery::scenarios
