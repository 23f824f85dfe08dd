#pragma once
// Residual of a smooth GEMM curve by shape: measured time over the formula's, averaged over the
// measured shapes nearest to the one asked for. Leaves out layout (transposed operands) and batch.

#include <cstdint>
#include <vector>

namespace orrery::hardware {

/// [m, k] x [k, n].
struct GemmSize {
  std::int64_t m = 0, n = 0, k = 0;
};

/// ratio(shape) = exp( sum_i w_i r_i / sum_i w_i ) over the 8 nearest samples i
/// r_i     log(measured / formula) of a sample
/// w_i     1 / (d_i + 0.05)^2, d_i the distance in (log2 m, log2 n, log2 k)
/// The number of neighbours and the weight move held-out errors by 0.2 points between 4 and 16
/// neighbours; below 4 a single noisy sample shows. Outside the measured range the nearest samples
/// apply: never extrapolated. Without samples the ratio is 1.
class ShapeResidual {
 public:
  struct ResidualSample {
    GemmSize shape;
    double log_ratio = 0;
  };

  ShapeResidual() = default;
  /// Errors  a dimension below 1: ContractError
  explicit ShapeResidual(std::vector<ResidualSample> samples);

  double log_ratio(const GemmSize& shape) const;
  const std::vector<ResidualSample>& samples() const { return samples_; }

 private:
  struct GridPlace {
    double m, n, k;
  };
  static GridPlace place_of(const GemmSize& shape);

  std::vector<ResidualSample> samples_;
  std::vector<GridPlace> places_;
};

/// The same weighted mean for samples in any space: `distances[i]` is sample i's d_i,
/// `log_ratios[i]` its r_i.
double nearest_mean(std::vector<double> distances, const std::vector<double>& log_ratios);

}  // namespace orrery::hardware
