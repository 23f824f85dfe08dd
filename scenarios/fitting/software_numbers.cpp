#include "scenarios/fitting/software_numbers.hpp"

#include <fmt/format.h>

#include <cmath>

namespace orrery::scenarios {

namespace {

using models::Software;

void set_gemm_derate(Software& software, double value) {
  auto& derates = software.kernels.gemm_derate;
  const double factor = value / derates.at("default");
  for (auto& [generation, derate] : derates) derate *= factor;
}

/// Bounds: a launch costs a fraction of a microsecond at best (a captured graph) and 0.2 ms in slow
/// Python; a GEMM is no faster in a step than alone, except for its curve's error; eager memory
/// traffic is 2-3 times ideal.
/// One stride of the GEMM and of the memory-traffic number changes a step by about the same amount,
/// so that the search can trade one for the other.
std::vector<SoftwareNumber> all_numbers() {
  return {
      {"/host/forward_launch", 0.5e-6, 200e-6, 1.1, true,
       [](const Software& s) { return seconds(s.host.forward_launch); },
       [](Software& s, double value) { s.host.forward_launch = from_seconds(value); }},
      {"/host/backward_launch", 0.5e-6, 200e-6, 1.1, true,
       [](const Software& s) { return seconds(s.host.backward_launch); },
       [](Software& s, double value) { s.host.backward_launch = from_seconds(value); }},
      {"/host/step", 1e-3, 5.0, 1.2, true, [](const Software& s) { return seconds(s.host.step); },
       [](Software& s, double value) { s.host.step = from_seconds(value); }},
      {"/kernels/gemm_derate/default", 0.95, 2.0, 1.01, false,
       [](const Software& s) { return s.kernels.gemm_derate.at("default"); }, set_gemm_derate},
      {"/kernels/memory_derate", 0.8, 3.5, 1.05, false,
       [](const Software& s) { return s.kernels.memory_derate; },
       [](Software& s, double value) { s.kernels.memory_derate = value; }},
      {"/overlap/data_efficiency", 0.05, 1.2, 1.05, false,
       [](const Software& s) { return s.overlap.data_efficiency; },
       [](Software& s, double value) { s.overlap.data_efficiency = value; }},
  };
}

}  // namespace

double SoftwareNumber::rounded(double value) const {
  if (!is_time) return std::round(value * 100) / 100;
  return std::stod(fmt::format("{:.1e}", value));
}

Json SoftwareNumber::written(double value) const {
  if (!is_time) return value;
  if (value < 1e-3) return fmt::format("{:g} us", value * 1e6);
  if (value < 1) return fmt::format("{:g} ms", value * 1e3);
  return fmt::format("{:g} s", value);
}

const std::vector<SoftwareNumber>& software_numbers() {
  static const std::vector<SoftwareNumber> numbers = all_numbers();
  return numbers;
}

Json with_numbers(Json profile, const models::Software& fitted) {
  for (const SoftwareNumber& each : software_numbers()) {
    profile[Json::json_pointer{each.pointer}] = each.written(each.get(fitted));
  }
  for (const auto& [generation, derate] : fitted.kernels.gemm_derate) {
    profile["kernels"]["gemm_derate"][generation] = std::round(derate * 100) / 100;
  }
  return profile;
}

}  // namespace orrery::scenarios
