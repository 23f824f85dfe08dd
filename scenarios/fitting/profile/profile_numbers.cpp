#include "scenarios/fitting/profile/profile_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/entries.hpp"

namespace orrery::scenarios {

namespace {

using models::Accumulation;
using models::Software;

double loss_bytes(const Software& s) {
  return s.kernels.loss_forward_bytes + s.kernels.loss_backward_bytes;
}

void set_loss_bytes(Software& s, double value) {
  const double factor = value / loss_bytes(s);
  s.kernels.loss_forward_bytes *= factor;
  s.kernels.loss_backward_bytes *= factor;
}

void set_gemm_derate(Software& s, double value) {
  auto& derates = s.kernels.gemm_derate;
  const double factor = value / derates.at("default");
  for (auto& [generation, derate] : derates) derate *= factor;
}

/// A number that is a member of type Time or double.
template <class Part, class Value>
ProfileNumber member(Part Software::*part, Value Part::*value, ProfileNumber number) {
  if constexpr (std::is_same_v<Value, Time>) {
    number.is_time = true;
    number.get = [=](const Software& s) { return seconds(s.*part.*value); };
    number.set = [=](Software& s, double to) { s.*part.*value = from_seconds(to); };
  } else {
    number.get = [=](const Software& s) { return s.*part.*value; };
    number.set = [=](Software& s, double to) { s.*part.*value = to; };
  }
  return number;
}

/// Bounds: a launch costs a fraction of a microsecond at best (a captured graph) and 0.2 ms in slow
/// Python.
std::vector<ProfileNumber> host_numbers() {
  using models::HostCosts;
  const auto host = [](Time HostCosts::*value, ProfileNumber number) {
    return member(&Software::host, value, std::move(number));
  };
  return {
      host(&HostCosts::forward_launch,
           {.pointer = "/host/forward_launch",
            .low = 0.5e-6,
            .high = 200e-6,
            .usual = 24e-6,
            .spread = 0.6,
            .steps = "a step of micro-batch 1 on one GPU, where the host is the limit"}),
      host(&HostCosts::backward_launch,
           {.pointer = "/host/backward_launch",
            .low = 0.5e-6,
            .high = 200e-6,
            .usual = 8e-6,
            .spread = 0.5,
            .steps = "a step of micro-batch 1 on one GPU without recomputation"}),
      host(&HostCosts::communication_launch,
           {.pointer = "/host/communication_launch",
            .low = 0.5e-6,
            .high = 200e-6,
            .usual = 15e-6,
            .spread = 0.5,
            .steps = "a step of micro-batch 1 with tensor parallelism in a node"}),
      host(&HostCosts::jitter, {.pointer = "/host/jitter",
                                .differs = Differs::by_amount,
                                .high = 400e-6,
                                .usual = 0,
                                .spread = 14e-6,
                                .steps = "the same plan with twice the tensor-parallel ranks",
                                .site_key = "jitter"}),
      host(&HostCosts::step, {.pointer = "/host/step",
                              .differs = Differs::by_amount,
                              .high = 5.0,
                              .usual = 5e-3,
                              .spread = 30e-3,
                              .steps = "the same plan with half the global batch",
                              .site_key = "step"}),
  };
}

/// Bounds: a GEMM is no faster in a step than alone, except for its curve's error; eager memory
/// traffic is 2-3 times ideal.
ProfileNumber gemm_number() {
  return {.pointer = "/kernels/gemm_derate/default",
          .low = 0.95,
          .high = 2.0,
          .spread = 0.04,
          .steps = "a step of one GPU with long sequences or large hidden",
          .get = [](const Software& s) { return s.kernels.gemm_derate.at("default"); },
          .set = set_gemm_derate,
          .site_key = "clock"};
}

/// GEMMs of one generation over those of the default: what its curves are off.
ProfileNumber gemm_number_of(const std::string& generation) {
  return {.pointer = "/kernels/gemm_derate/" + generation,
          .low = 0.7,
          .high = 1.5,
          .spread = 0.04,
          .steps = "a step of the largest model on this GPU",
          .get =
              [generation](const Software& s) {
                return s.gemm_derate(generation) / s.kernels.gemm_derate.at("default");
              },
          .set =
              [generation](Software& s, double value) {
                s.kernels.gemm_derate[generation] = value * s.kernels.gemm_derate.at("default");
              },
          .generation = generation};
}

std::vector<ProfileNumber> kernel_numbers() {
  using models::KernelChoices;
  const auto kernel = [](double KernelChoices::*value, ProfileNumber number) {
    return member(&Software::kernels, value, std::move(number));
  };
  return {
      kernel(&KernelChoices::memory_derate, {.pointer = "/kernels/memory_derate",
                                             .low = 0.8,
                                             .high = 3.5,
                                             .usual = 1.3,
                                             .spread = 0.18,
                                             .steps = "the same plan with another hidden size"}),
      kernel(&KernelChoices::attention_derate, {.pointer = "/kernels/attention_derate",
                                                .low = 0.5,
                                                .high = 4,
                                                .spread = 0.08,
                                                .steps = "the same tokens in longer sequences"}),
      kernel(&KernelChoices::scan_derate, {.pointer = "/kernels/scan_derate",
                                           .low = 0.5,
                                           .high = 4,
                                           .spread = 0.25,
                                           .steps = "a step of a model with recurrent layers"}),
      {.pointer = "/kernels/loss_forward_bytes",
       .low = 8,
       .high = 300,
       .usual = 36,
       .spread = 0.25,
       .steps = "the same model with fewer layers",
       .get = loss_bytes,
       .set = set_loss_bytes,
       .lowered = true},
      kernel(&KernelChoices::accumulate_derate,
             {.pointer = "/kernels/accumulate_derate",
              .low = 0.5,
              .high = 8,
              .spread = 0.4,
              .steps = "the same global batch in larger micro-batches",
              .matters = [](const auto& s) { return s.accumulation == Accumulation::separate; }}),
      kernel(&KernelChoices::accumulate_exposed,
             {.pointer = "/kernels/accumulate_exposed",
              .low = 0.05,
              .high = 1,
              .usual = 0.5,
              .spread = 0.4,
              .steps = "the same global batch in larger micro-batches",
              .matters = [](const auto& s) { return s.accumulation == Accumulation::fused; }}),
  };
}

std::vector<ProfileNumber> overlap_numbers() {
  using models::Overlap;
  const auto overlap = [](double Overlap::*value, ProfileNumber number) {
    return member(&Software::overlap, value, std::move(number));
  };
  return {
      overlap(&Overlap::tensor_exposed,
              {.pointer = "/overlap/tensor_exposed",
               .low = 0.05,
               .high = 4,
               .spread = 0.35,
               .steps = "the same model with half the tensor-parallel ranks",
               .matters = [](const auto& s) { return s.runs.tensor; },
               .alike =
                   [](const auto& a, const auto& b) {
                     return a.overlap.tensor_backward == b.overlap.tensor_backward;
                   },
               .site_key = "tensor"}),
      overlap(&Overlap::data_efficiency, {.pointer = "/overlap/data_efficiency",
                                          .low = 0.05,
                                          .high = 1.2,
                                          .usual = 0.6,
                                          .spread = 0.25,
                                          .steps = "the same plan with twice the replicas",
                                          .site_key = "network"}),
      overlap(&Overlap::data_exposed,
              {.pointer = "/overlap/data_exposed",
               .low = 0.05,
               .high = 1,
               .spread = 0.4,
               .steps = "the same replicas with half the global batch",
               .matters = [](const auto& s) { return s.overlap.gradients; }}),
  };
}

double hundredths(double value) {
  return std::round(value * 100) / 100;
}

}  // namespace

double ProfileNumber::coordinate(double value) const {
  const double inside = std::clamp(value, low, high);
  return differs == Differs::by_factor ? std::log(inside) : inside;
}

double ProfileNumber::value(double coordinate) const {
  const double plain = differs == Differs::by_factor ? std::exp(coordinate) : coordinate;
  return std::clamp(plain, low, high);
}

Json ProfileNumber::written(double value) const {
  if (!is_time) return hundredths(value);
  if (value < 1e-4) return fmt::format("{:.2g} us", value * 1e6);
  return value < 1 ? fmt::format("{:.3g} ms", value * 1e3) : fmt::format("{:.3g} s", value);
}

Json ProfileNumber::written_spread(double spread) const {
  return differs == Differs::by_amount ? written(spread) : Json(std::round(spread * 1000) / 1000);
}

const std::vector<ProfileNumber>& profile_numbers() {
  static const std::vector<ProfileNumber> numbers = [] {
    std::vector<ProfileNumber> all = host_numbers();
    all.push_back(gemm_number());
    for (const std::string& each : hardware::entry_names(hardware::EntryKind::generation)) {
      all.push_back(gemm_number_of(each));
    }
    for (auto& some : {kernel_numbers(), overlap_numbers()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return numbers;
}

Eigen::VectorXd coordinates_of(const models::Software& software) {
  const std::vector<ProfileNumber>& numbers = profile_numbers();
  Eigen::VectorXd coordinates(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    coordinates[i] = numbers[i].coordinate(numbers[i].get(software));
  }
  return coordinates;
}

models::Software with_moved(models::Software software, const Eigen::VectorXd& from,
                            const Eigen::VectorXd& to) {
  for (std::size_t i = 0; i < profile_numbers().size(); ++i) {
    const ProfileNumber& number = profile_numbers()[i];
    if (from[i] == to[i] || !number.matters(software)) continue;
    const double own = number.coordinate(number.get(software));
    number.set(software, number.value(own + to[i] - from[i]));
  }
  return software;
}

Json with_numbers(Json profile, const models::Software& fitted) {
  const auto put = [&](const std::string& pointer, const Json& value) {
    profile[Json::json_pointer{pointer}] = value;
  };
  for (const ProfileNumber& each : profile_numbers()) {
    const bool written = each.generation.empty() && each.matters(fitted);
    if (written) put(each.pointer, each.written(each.get(fitted)));
  }
  const models::KernelChoices& kernels = fitted.kernels;
  put("/kernels/loss_forward_bytes", hundredths(kernels.loss_forward_bytes));
  put("/kernels/loss_backward_bytes", hundredths(kernels.loss_backward_bytes));
  for (const auto& [generation, derate] : kernels.gemm_derate) {
    put("/kernels/gemm_derate/" + generation, hundredths(derate));
  }
  return profile;
}

}  // namespace orrery::scenarios
