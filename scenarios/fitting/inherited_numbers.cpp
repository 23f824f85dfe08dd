#include "scenarios/fitting/inherited_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/fitting/software_numbers.hpp"

namespace orrery::scenarios {

namespace {

using models::Accumulation;
using models::Software;

bool always(const Software& /*software*/) {
  return true;
}

double loss_bytes(const Software& s) {
  return s.kernels.loss_forward_bytes + s.kernels.loss_backward_bytes;
}

void set_loss_bytes(Software& s, double value) {
  const double factor = value / loss_bytes(s);
  s.kernels.loss_forward_bytes *= factor;
  s.kernels.loss_backward_bytes *= factor;
}

/// An inherited number that is also fitted from many steps (software_numbers()).
InheritedNumber also(const char* pointer, Differs differs, double usual, double spread) {
  for (const SoftwareNumber& each : software_numbers()) {
    if (each.pointer != pointer) continue;
    const double low = differs == Differs::by_amount ? 0 : each.low;
    return {each.pointer, differs,      low,      each.high, usual,
            spread,       each.is_time, each.get, each.set,  always};
  }
  throw ContractError{std::string{"no number "} + pointer};
}

std::vector<InheritedNumber> host_numbers() {
  return {
      also("/host/forward_launch", Differs::by_factor, 24e-6, 0.6),
      also("/host/backward_launch", Differs::by_factor, 8e-6, 0.5),
      {"/host/communication_launch", Differs::by_factor, 0.5e-6, 200e-6, 15e-6, 0.5, true,
       [](const Software& s) { return seconds(s.host.communication_launch); },
       [](Software& s, double value) { s.host.communication_launch = from_seconds(value); },
       always},
      {"/host/jitter", Differs::by_amount, 0, 400e-6, 0, 14e-6, true,
       [](const Software& s) { return seconds(s.host.jitter); },
       [](Software& s, double value) { s.host.jitter = from_seconds(value); }, always},
      also("/host/step", Differs::by_amount, 5e-3, 30e-3),
  };
}

std::vector<InheritedNumber> kernel_numbers() {
  return {
      also("/kernels/gemm_derate/default", Differs::by_factor, 1.0, 0.04),
      also("/kernels/memory_derate", Differs::by_factor, 1.3, 0.18),
      {"/kernels/attention_derate", Differs::by_factor, 0.5, 4, 1, 0.08, false,
       [](const Software& s) { return s.kernels.attention_derate; },
       [](Software& s, double value) { s.kernels.attention_derate = value; }, always},
      {"/kernels/loss_forward_bytes", Differs::by_factor, 8, 300, 36, 0.25, false, loss_bytes,
       set_loss_bytes, always, true},
      {"/kernels/accumulate_derate", Differs::by_factor, 0.5, 8, 1, 0.4, false,
       [](const Software& s) { return s.kernels.accumulate_derate; },
       [](Software& s, double value) { s.kernels.accumulate_derate = value; },
       [](const Software& s) { return s.accumulation == Accumulation::separate; }},
      {"/kernels/accumulate_exposed", Differs::by_factor, 0.05, 1, 0.5, 0.4, false,
       [](const Software& s) { return s.kernels.accumulate_exposed; },
       [](Software& s, double value) { s.kernels.accumulate_exposed = value; },
       [](const Software& s) { return s.accumulation == Accumulation::fused; }},
  };
}

std::vector<InheritedNumber> overlap_numbers() {
  return {
      {"/overlap/tensor_exposed", Differs::by_factor, 0.05, 4, 1, 0.35, false,
       [](const Software& s) { return s.overlap.tensor_exposed; },
       [](Software& s, double value) { s.overlap.tensor_exposed = value; },
       [](const Software& s) { return s.runs.tensor; }},
      also("/overlap/data_efficiency", Differs::by_factor, 0.6, 0.25),
      {"/overlap/data_exposed", Differs::by_factor, 0.05, 1, 1, 0.4, false,
       [](const Software& s) { return s.overlap.data_exposed; },
       [](Software& s, double value) { s.overlap.data_exposed = value; },
       [](const Software& s) { return s.overlap.gradients; }},
  };
}

}  // namespace

double InheritedNumber::coordinate(double value) const {
  const double inside = std::clamp(value, low, high);
  return differs == Differs::by_factor ? std::log(inside) : inside;
}

double InheritedNumber::value(double coordinate) const {
  const double plain = differs == Differs::by_factor ? std::exp(coordinate) : coordinate;
  return std::clamp(plain, low, high);
}

Json InheritedNumber::written(double value) const {
  if (!is_time) return std::round(value * 100) / 100;
  if (value < 1e-4) return fmt::format("{:.2g} us", value * 1e6);
  return value < 1 ? fmt::format("{:.3g} ms", value * 1e3) : fmt::format("{:.3g} s", value);
}

const std::vector<InheritedNumber>& inherited_numbers() {
  static const std::vector<InheritedNumber> numbers = [] {
    std::vector<InheritedNumber> all = host_numbers();
    for (const auto& some : {kernel_numbers(), overlap_numbers()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return numbers;
}

std::vector<double> coordinates_of(const models::Software& software) {
  std::vector<double> coordinates;
  for (const InheritedNumber& each : inherited_numbers()) {
    coordinates.push_back(each.coordinate(each.get(software)));
  }
  return coordinates;
}

models::Software with_moved(models::Software software, const std::vector<double>& from,
                            const std::vector<double>& to) {
  for (std::size_t i = 0; i < inherited_numbers().size(); ++i) {
    const InheritedNumber& number = inherited_numbers()[i];
    if (from[i] == to[i] || !number.matters(software)) continue;
    const double own = number.coordinate(number.get(software));
    number.set(software, number.value(own + to[i] - from[i]));
  }
  return software;
}

Json with_inherited(Json profile, const models::Software& fitted) {
  const auto put = [&](const std::string& pointer, const Json& value) {
    profile[Json::json_pointer{pointer}] = value;
  };
  for (const InheritedNumber& each : inherited_numbers()) {
    if (each.matters(fitted)) put(each.pointer, each.written(each.get(fitted)));
  }
  const models::KernelChoices& kernels = fitted.kernels;
  put("/kernels/loss_forward_bytes", std::round(kernels.loss_forward_bytes * 100) / 100);
  put("/kernels/loss_backward_bytes", std::round(kernels.loss_backward_bytes * 100) / 100);
  for (const auto& [generation, derate] : kernels.gemm_derate) {
    put("/kernels/gemm_derate/" + generation, std::round(derate * 100) / 100);
  }
  return profile;
}

}  // namespace orrery::scenarios
