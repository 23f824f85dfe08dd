#include "scenarios/report/open_questions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using models::Accumulation;
using models::Software;

using Generation = const std::string&;

constexpr ProfileSwitch switches[] = {
    {"attention kernel",
     [](Software& s, Generation generation) {
       const bool unfused = s.attention(generation) == "unfused";
       s.kernels.attention[generation] = unfused ? "flash-2" : "unfused";
     },
     [](const Software& s, Generation generation) { return s.attention(generation) == "unfused"; }},
    {"gradients reduced during the backward pass",
     [](Software& s, Generation) {
       s.overlap.gradients = !s.overlap.gradients;
       s.overlap.sharded_gradients = s.overlap.gradients;
     },
     [](const Software& s, Generation) { return s.overlap.gradients; }},
    {"all-reduce of input gradients overlapped with the weight gradient",
     [](Software& s, Generation) { s.overlap.tensor_backward = !s.overlap.tensor_backward; },
     [](const Software& s, Generation) { return s.overlap.tensor_backward; }},
    {"weight gradients accumulated in fp32 by the GEMM itself",
     [](Software& s, Generation) {
       const bool fused = s.accumulation == Accumulation::fused;
       s.accumulation = fused ? Accumulation::separate : Accumulation::fused;
     },
     [](const Software& s, Generation) { return s.accumulation == Accumulation::fused; }},
    {"dropout", [](Software& s, Generation) { s.kernels.dropout = !s.kernels.dropout; },
     [](const Software& s, Generation) { return s.kernels.dropout; }},
};

constexpr std::size_t most_questions = 2;
constexpr double least_change = 0.005;

}  // namespace

std::span<const ProfileSwitch> profile_switches() {
  return switches;
}

/// A profile whose errors are known from runs of other stacks only. One without known errors states
/// its own stack's switches.
bool stands_in(const Software& software) {
  return software.residuals && !models::is_fitted(software);
}

std::optional<double> change_of(const ProfileSwitch& one, models::Question question, Time step) {
  one.other_way(question.software, question.cluster.gpu().generation.name);
  try {
    return ratio(models::predict(question).step, step) - 1;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<OpenQuestion> open_questions(const models::Question& question, Time step) {
  std::vector<OpenQuestion> found;
  if (!stands_in(question.software)) return found;
  for (const ProfileSwitch& each : switches) {
    const auto change = change_of(each, question, step);
    if (change && std::abs(*change) >= least_change) found.push_back({each.question, *change});
  }
  const auto size = [](const OpenQuestion& each) { return std::abs(each.change); };
  std::ranges::stable_sort(found, std::greater{}, size);
  found.resize(std::min(found.size(), most_questions));
  return found;
}

}  // namespace orrery::scenarios
