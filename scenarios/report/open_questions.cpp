#include "scenarios/report/open_questions.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery::scenarios {

namespace {

using models::Accumulation;
using models::Software;

struct OpenSwitch {
  const char* question;
  void (*other_way)(Software&, const std::string& generation);
};

constexpr OpenSwitch switches[] = {
    {"attention kernel",
     [](Software& s, const std::string& generation) {
       const bool unfused = s.attention(generation) == "unfused";
       s.kernels.attention[generation] = unfused ? "flash-2" : "unfused";
     }},
    {"gradients reduced during the backward pass",
     [](Software& s, const std::string&) {
       s.overlap.gradients = !s.overlap.gradients;
       s.overlap.sharded_gradients = s.overlap.gradients;
     }},
    {"all-reduce of input gradients overlapped with the weight gradient",
     [](Software& s, const std::string&) {
       s.overlap.tensor_backward = !s.overlap.tensor_backward;
     }},
    {"weight gradients accumulated in fp32 by the GEMM itself",
     [](Software& s, const std::string&) {
       const bool fused = s.accumulation == Accumulation::fused;
       s.accumulation = fused ? Accumulation::separate : Accumulation::fused;
     }},
    {"dropout", [](Software& s, const std::string&) { s.kernels.dropout = !s.kernels.dropout; }},
};

/// A profile whose errors are known from runs of other stacks only. One without known errors states
/// its own stack's switches.
bool stands_in(const Software& software) {
  return software.residuals && !models::is_fitted(software);
}

bool has_attention(const models::Question& question) {
  const hardware::Gpu& gpu = question.cluster.gpu();
  const std::string kernel{question.software.attention(gpu.generation.name)};
  return kernel == "unfused" || gpu.attention.contains(kernel);
}

constexpr std::size_t most_questions = 2;
constexpr double least_change = 0.005;

}  // namespace

std::vector<OpenQuestion> open_questions(const models::Question& question, Time step) {
  std::vector<OpenQuestion> found;
  if (!stands_in(question.software)) return found;
  for (const OpenSwitch& each : switches) {
    models::Question other = question;
    each.other_way(other.software, question.cluster.gpu().generation.name);
    if (!has_attention(other)) continue;
    const double change = ratio(models::predict(other).step, step) - 1;
    if (std::abs(change) >= least_change) found.push_back({each.question, change});
  }
  std::stable_sort(found.begin(), found.end(), [](const OpenQuestion& a, const OpenQuestion& b) {
    return std::abs(a.change) > std::abs(b.change);
  });
  found.resize(std::min(found.size(), most_questions));
  return found;
}

}  // namespace orrery::scenarios
