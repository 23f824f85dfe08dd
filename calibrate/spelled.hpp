#pragma once
// Quantities and curves as a profile writes them, with the digits that a measurement has.

#include <string>
#include <vector>

#include "hardware/calibration.hpp"
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

/// What an operation is, without its times.
Json described(const models::Operation& op);
/// In microseconds.
Json times_json(const std::vector<Time>& times);
/// Of a part that `times_json` wrote under "us".
Time median_time(const Json& part);

}  // namespace orrery::calibrate
