// Fits memory-bound kernels: a straight line over size for each kernel, implementation and GPU.

#include <algorithm>
#include <cmath>

#include "hardware/fitting/minimise.hpp"
#include "scenarios/fitting/kernel_fit.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The size that the source varied: the product of the sizes that a row states.
double varied_size(const MeasuredKernel& row) {
  const auto stated = [](std::int64_t count) {
    return static_cast<double>(std::max<std::int64_t>(count, 1));
  };
  return stated(row.m) * stated(row.n) * stated(row.k);
}

/// t = t0 + r z of a kernel; max(t0, r z) where a framework's call is timed, which waits for its
/// host while kernels are short.
/// z       what the source varied (elements, or one side with the others fixed); r seconds per z
class StreamFit : public KernelFit {
 public:
  StreamFit(double start, double rate, bool floor) : start_{start}, rate_{rate}, floor_{floor} {}

  double seconds(const KernelSample& sample) const override {
    const double moving = rate_ * varied_size(*sample.row);
    return floor_ ? std::max(start_, moving) : start_ + moving;
  }

  std::vector<std::pair<std::string, double>> parameters() const override {
    return {{floor_ ? "host_floor_s" : "start_s", start_}, {"seconds_per_size", rate_}};
  }

 private:
  double start_, rate_;
  bool floor_;
};

}  // namespace

std::unique_ptr<KernelFit> fit_stream(const std::vector<KernelSample>& samples) {
  if (samples.empty()) return nullptr;
  const std::string& kernel = samples.front().row->kernel;
  const bool floor = ends_with(kernel, "_backward") || ends_with(kernel, "_full");
  double fastest = 1e9;
  double rate = 1e9;  // the largest row with start 0: the steepest possible line
  double largest = 0;
  for (const KernelSample& sample : samples) {
    const double size = varied_size(*sample.row);
    fastest = std::min(fastest, *sample.row->seconds);
    if (size > largest) {
      largest = size;
      rate = *sample.row->seconds / size;
    }
  }
  const bool one_size = std::all_of(samples.begin(), samples.end(), [&](const auto& sample) {
    return varied_size(*sample.row) == largest;
  });
  if (one_size) return std::make_unique<StreamFit>(0, rate, floor);
  const std::vector<hardware::Unknown> unknown{
      {std::log(fastest * 0.5), std::log(fastest * 1e-3), std::log(fastest * 1.5)},
      {std::log(rate * 0.9), std::log(rate * 1e-3), std::log(rate * 2)}};
  const hardware::Residuals residuals = [&](const std::vector<double>& p) {
    const StreamFit tried{std::exp(p[0]), std::exp(p[1]), floor};
    std::vector<double> errors;
    for (const KernelSample& sample : samples) {
      errors.push_back(std::log(tried.seconds(sample) / *sample.row->seconds));
    }
    return errors;
  };
  const std::vector<double> found = hardware::least_squares(unknown, residuals, log_scale);
  return std::make_unique<StreamFit>(std::exp(found[0]), std::exp(found[1]), floor);
}

}  // namespace orrery::scenarios
