#include "hardware/borrow.hpp"

#include <initializer_list>

namespace orrery::hardware {

namespace {

constexpr DType every_dtype[] = {DType::fp64,  DType::fp32, DType::tf32, DType::fp16,
                                 DType::bf16,  DType::fp8,  DType::fp4,  DType::int64,
                                 DType::int32, DType::uint8};

template <class Map, class Key>
const typename Map::mapped_type* measured(const Map& curves, const Key& key) {
  const auto found = curves.find(key);
  return found != curves.end() && found->second.origin.borrowed.empty() ? &found->second : nullptr;
}

GemmCurve lent(const GemmCurve& curve, std::string from) {
  GemmCurve copy = curve;
  copy.origin.borrowed = std::move(from);
  return copy;
}

/// The curve that a format gets when its GPU has none; nothing if nobody can lend one.
std::optional<GemmCurve> gemm_for(DType type, const Gpu& gpu, const std::vector<Gpu>& lenders) {
  for (const Gpu& lender : lenders) {
    if (const auto* curve = measured(lender.gemm, type)) return lent(*curve, lender.name);
  }
  for (const DType other : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto* curve = measured(gpu.gemm, other);
    if (curve) return lent(*curve, "its " + std::string{name(other)});
  }
  for (const Gpu& lender : lenders) {
    const auto* curve = measured(lender.gemm, DType::bf16);
    if (curve) return lent(*curve, lender.name + " bf16");
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> lenders(Generation generation) {
  switch (generation) {
    case Generation::volta:
    case Generation::ampere:
    case Generation::cdna2:
      return {"a100-sxm-80gb", "h100-sxm-80gb"};
    case Generation::ada:
      return {"l40s", "a100-sxm-80gb", "h100-sxm-80gb"};
    case Generation::blackwell:
      return {"b200-sxm", "h100-sxm-80gb", "a100-sxm-80gb"};
    case Generation::cpu:
      return {"cpu-core"};
    case Generation::hopper:
    case Generation::cdna3:
    case Generation::other:
      return {"h100-sxm-80gb", "a100-sxm-80gb"};
  }
  return {};
}

void borrow_curves(Gpu& gpu, const std::vector<Gpu>& lenders) {
  std::map<DType, GemmCurve> loans;
  for (const DType type : every_dtype) {
    if (!gpu.peak(type) || gpu.gemm.count(type)) continue;
    if (const auto curve = gemm_for(type, gpu, lenders)) loans.emplace(type, *curve);
  }
  gpu.gemm.merge(loans);

  for (const Gpu& lender : lenders) {
    for (const auto& [kernel, curve] : lender.attention) {
      if (!curve.origin.borrowed.empty()) continue;
      const auto [place, added] = gpu.attention.emplace(kernel, curve);
      if (added) place->second.origin.borrowed = lender.name;
    }
  }
  for (const Gpu& lender : lenders) {
    if (gpu.memory_bound.origin.source.empty() && !lender.memory_bound.origin.source.empty()) {
      gpu.memory_bound = lender.memory_bound;
      gpu.memory_bound.origin.borrowed = lender.name;
    }
    if (gpu.sustained_origin.source.empty() && !lender.sustained_origin.source.empty()) {
      gpu.sustained_share = lender.sustained_share;
      gpu.sustained_origin = {.source = lender.sustained_origin.source, .borrowed = lender.name};
    }
  }
}

}  // namespace orrery::hardware
