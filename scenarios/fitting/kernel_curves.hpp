#pragma once
// Curves of measured kernels, and what they say of a row that they have or have not seen.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitting/kernel_fit.hpp"

namespace orrery::scenarios {

/// An answer for one row.
struct KernelAnswer {
  std::optional<double> seconds;
  std::string note;  // the curve that answered in place of the row's own; why there is none
};

/// All curves of a set of measured rows, fitted when they are first asked.
class KernelCurves {
 public:
  /// One formula and its rows.
  struct Curve {
    std::string table;  // kernel|implementation|gpu|dtype
    KernelForm form = KernelForm::stream;
    std::vector<KernelSample> samples;
  };

  explicit KernelCurves(std::vector<MeasuredKernel> rows, Residual residual = Residual::nearest);
  KernelCurves(const KernelCurves&) = delete;
  KernelCurves& operator=(const KernelCurves&) = delete;

  /// From all rows.
  KernelAnswer seen(const MeasuredKernel& row);
  /// If the same call is among the rows: from all but those of its curve (`curve_of`). A call that
  /// is not among them has not been seen anyway.
  KernelAnswer unseen(const MeasuredKernel& row);
  /// From the same kernel, implementation and dtype on all other GPUs, at this one's peaks and
  /// bandwidths, without a residual.
  KernelAnswer other_gpus(const MeasuredKernel& row);

  const std::map<std::string, Curve>& curves() const { return curves_; }
  /// The fit of `seen`; null where a table has too few rows.
  const KernelFit* fit(const std::string& table);

 private:
  using Fit = std::unique_ptr<KernelFit>;

  const hardware::Gpu* gpu_named(const std::string& name);
  const KernelFit* fit_without(const Curve& curve, const std::string& left_out);
  KernelAnswer answer(const MeasuredKernel& row, const std::string& left_out);
  KernelAnswer of_other_gpus(const KernelSample& sample, KernelForm form,
                             const std::string& left_out);

  std::vector<MeasuredKernel> rows_;
  Residual residual_;
  std::map<std::string, std::optional<hardware::Gpu>> gpus_;
  std::map<std::string, Curve> curves_;       // by table
  std::map<std::string, std::string> known_;  // identity: curve
  std::map<std::string, Fit> fits_;           // by table and what is left out
};

}  // namespace orrery::scenarios
