// Fits memory-bound kernels: a straight line over size for each kernel, implementation and GPU.

#include <algorithm>
#include <cmath>
#include <functional>

#include "scenarios/fitting/kernels/kernel_fit.hpp"

namespace orrery::scenarios {

namespace {

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
double line_seconds(bool floor, double start, double rate, const KernelSample& sample) {
  const double moving = rate * varied_size(*sample.row);
  return floor ? std::max(start, moving) : start + moving;
}

KernelFit line(bool floor, double start, double rate) {
  return {.seconds = std::bind_front(line_seconds, floor, start, rate),
          .parameters = {{floor ? "host_floor_s" : "start_s", start}, {"seconds_per_size", rate}}};
}

}  // namespace

std::optional<KernelFit> fit_stream(const std::vector<KernelSample>& samples) {
  if (samples.empty()) return std::nullopt;
  const std::string& kernel = samples.front().row->kernel;
  const bool floor = kernel.ends_with("_backward") || kernel.ends_with("_full");
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
  const bool one_size = std::ranges::all_of(
      samples, [&](const auto& sample) { return varied_size(*sample.row) == largest; });
  if (one_size) return line(floor, 0, rate);
  const std::vector<hardware::Unknown> unknown{
      {std::log(fastest * 0.5), std::log(fastest * 1e-3), std::log(fastest * 1.5)},
      {std::log(rate * 0.9), std::log(rate * 1e-3), std::log(rate * 2)}};
  const auto found = fit_log_times(samples, unknown, [&](const auto& p, const auto& sample) {
    return line_seconds(floor, std::exp(p[0]), std::exp(p[1]), sample);
  });
  return line(floor, std::exp(found[0]), std::exp(found[1]));
}

}  // namespace orrery::scenarios
