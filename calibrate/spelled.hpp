#pragma once
// Formats quantities and curves for a profile, with as many digits as a measurement justifies.

#include <string>
#include <vector>

#include "hardware/curves/calibration.hpp"
#include "models/program/block.hpp"
#include "sim/input/document.hpp"

namespace orrery::calibrate {

std::string spelled(Time time);
std::string spelled(Bytes bytes);
std::string spelled(Bandwidth rate);
std::string spelled(FlopRate rate);
double digits(double value);

/// `[["256 B", "12 ns"], ...]`.
Json points_of(const hardware::SizeTable& table);
Json curve_json(const hardware::GemmCurve& curve);
Json ratios_json(const std::vector<hardware::ShapeResidual::ResidualSample>& samples);
Json kernel_json(const hardware::KernelCurve& curve);

/// Describes an operation, without its times.
Json described(const models::Operation& op);
/// An array of times in microseconds.
Json times_json(const std::vector<Time>& times);
/// The median of the times that `times_json` wrote under "us" of `part`.
Time median_time(const Json& part);

}  // namespace orrery::calibrate
