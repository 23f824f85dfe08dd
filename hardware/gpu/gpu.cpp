#include "hardware/gpu/gpu.hpp"

#include <fmt/format.h>

#include "sim/errors.hpp"

namespace orrery::hardware {

Time Gpu::gemm_time(DType type, Flops work, Bytes traffic) const {
  const auto rate = peak(type);
  const auto curve = gemm.find(type);
  if (!rate || curve == gemm.end()) {
    throw InputError{fmt::format("{} does not support {}", name, hardware::name(type))};
  }
  return time_of(curve->second, *rate, memory_bandwidth, work, traffic);
}

Time Gpu::attention_time(std::string_view kernel, DType type, const AttentionCall& call) const {
  const auto rate = peak(type);
  if (!rate) throw InputError{fmt::format("{} does not support {}", name, hardware::name(type))};
  const auto curve = attention.find(std::string{kernel});
  if (curve == attention.end()) {
    std::string known;
    for (const auto& [other, unused] : attention) known += " " + other;
    throw InputError{
        fmt::format("unknown attention kernel '{}' on {}; known:{}", kernel, name, known)};
  }
  return time_of(curve->second, *rate, call);
}

std::string fallback_sentence(const Gpu& gpu, std::string_view curve, const CurveOrigin& origin) {
  return fmt::format("{} curve of {} is missing; that of {} is used{}", curve, gpu.name,
                     origin.fallback_from, origin.scaled ? " at this GPU's share of peak" : "");
}

std::vector<FallbackNote> fallback_notes(const Gpu& gpu) {
  std::vector<FallbackNote> reported;
  const auto report = [&](std::string_view curve, const CurveOrigin& origin, bool attention) {
    if (origin.fallback_from.empty()) return;
    reported.push_back({fallback_sentence(gpu, curve, origin), attention, origin.of_this_gpu});
  };
  for (const auto& [type, curve] : gpu.gemm) {
    report(fmt::format("gemm {}", name(type)), curve.origin, false);
  }
  for (const auto& [kernel, curve] : gpu.attention) {
    report(fmt::format("attention {}", kernel), curve.origin, true);
  }
  report("memory-bound", gpu.memory_bound.origin, false);
  if (!gpu.sustained_origin.fallback_from.empty()) {
    reported.push_back(
        {.sentence = fmt::format("sustained share of {} is missing; that of {} is used", gpu.name,
                                 gpu.sustained_origin.fallback_from),
         .sustained = true});
  }
  return reported;
}

}  // namespace orrery::hardware
