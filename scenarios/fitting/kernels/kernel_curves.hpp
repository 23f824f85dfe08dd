#pragma once
// Curves fitted to measured kernels, and their predictions of rows in or left out of the fit.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitting/kernels/kernel_fit.hpp"

namespace orrery::scenarios {

/// The prediction of one row.
struct KernelAnswer {
  std::optional<double> seconds;
  std::string note;  // the fallback curve used, or why there is no prediction
};

/// All curves of a set of measured rows, fitted on first use.
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

  /// Predicted by a fit to all rows.
  KernelAnswer seen(const MeasuredKernel& row);
  /// Predicted by a fit without the rows of its curve (`curve_of`), if the same call is among the
  /// rows; any other call is unseen anyway.
  KernelAnswer unseen(const MeasuredKernel& row);
  /// Predicted by a fit to the same kernel, implementation and dtype on all other GPUs, with this
  /// GPU's peaks and bandwidths and without a residual.
  KernelAnswer other_gpus(const MeasuredKernel& row);

  const std::map<std::string, Curve>& curves() const { return curves_; }
  /// The fit that `seen` uses; null if a table has too few rows.
  const KernelFit* fit(const std::string& table);

 private:
  const hardware::Gpu* gpu_named(const std::string& name);
  const KernelFit* fit_without(const Curve& curve, const std::string& left_out);
  KernelAnswer answer(const MeasuredKernel& row, const std::string& left_out);
  KernelAnswer of_other_gpus(const KernelSample& sample, KernelForm form,
                             const std::string& left_out);

  std::vector<MeasuredKernel> rows_;
  Residual residual_;
  std::map<std::string, std::optional<hardware::Gpu>> gpus_;
  std::map<std::string, Curve> curves_;                   // by table
  std::map<std::string, std::string> known_;              // by identity: curve_of
  std::map<std::string, std::optional<KernelFit>> fits_;  // by table and what is left out
};

}  // namespace orrery::scenarios
