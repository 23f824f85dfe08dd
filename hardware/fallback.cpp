#include "hardware/fallback.hpp"

namespace orrery::hardware {

namespace {

template <class Map, class Key>
const typename Map::mapped_type* measured(const Map& curves, const Key& key) {
  const auto found = curves.find(key);
  return found != curves.end() && found->second.origin.fallback_from.empty() ? &found->second
                                                                             : nullptr;
}

GemmCurve copied_from(const GemmCurve& curve, std::string from) {
  GemmCurve copy = curve;
  copy.origin.fallback_from = std::move(from);
  return copy;
}

/// The curve that a format gets when its GPU has none; nothing if there is no fallback.
std::optional<GemmCurve> gemm_for(DType type, const Gpu& gpu, const std::vector<Gpu>& fallbacks) {
  for (const Gpu& fallback : fallbacks) {
    if (const auto* curve = measured(fallback.gemm, type))
      return copied_from(*curve, fallback.name);
  }
  for (const DType other : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto* curve = measured(gpu.gemm, other);
    if (!curve) continue;
    GemmCurve copy = copied_from(*curve, "its " + std::string{name(other)});
    copy.origin.of_this_gpu = true;
    return copy;
  }
  for (const Gpu& fallback : fallbacks) {
    const auto* curve = measured(fallback.gemm, DType::bf16);
    if (curve) return copied_from(*curve, fallback.name + " bf16");
  }
  return std::nullopt;
}

}  // namespace

void fill_from_fallbacks(Gpu& gpu, const std::vector<Gpu>& fallbacks) {
  std::map<DType, GemmCurve> filled;
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    if (!gpu.peak(type) || gpu.gemm.count(type)) continue;
    if (const auto curve = gemm_for(type, gpu, fallbacks)) filled.emplace(type, *curve);
  }
  gpu.gemm.merge(filled);

  for (const Gpu& fallback : fallbacks) {
    for (const auto& [kernel, curve] : fallback.attention) {
      if (!curve.origin.fallback_from.empty()) continue;
      const auto [place, added] = gpu.attention.emplace(kernel, curve);
      if (added) place->second.origin.fallback_from = fallback.name;
    }
  }
  for (const Gpu& fallback : fallbacks) {
    if (gpu.memory_bound.origin.source.empty() && !fallback.memory_bound.origin.source.empty()) {
      gpu.memory_bound = fallback.memory_bound;
      gpu.memory_bound.origin.fallback_from = fallback.name;
    }
    if (gpu.sustained_origin.source.empty() && !fallback.sustained_origin.source.empty()) {
      gpu.sustained_share = fallback.sustained_share;
      gpu.sustained_origin = {.source = fallback.sustained_origin.source,
                              .fallback_from = fallback.name};
    }
  }
}

}  // namespace orrery::hardware
