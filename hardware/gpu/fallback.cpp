#include "hardware/gpu/fallback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery::hardware {

namespace {

constexpr std::array usual_formats{DType::bf16, DType::fp16, DType::fp32};

template <class Map, class Key>
const typename Map::mapped_type* measured(const Map& curves, const Key& key) {
  const auto found = curves.find(key);
  return found != curves.end() && found->second.origin.fallback_from.empty() ? &found->second
                                                                             : nullptr;
}

/// The GPU's own GEMM curve of the first usual format that has one.
const GemmCurve* usual_curve(const Gpu& gpu) {
  for (const DType type : usual_formats) {
    if (const auto* curve = measured(gpu.gemm, type)) return curve;
  }
  return nullptr;
}

GemmCurve copied_from(const GemmCurve& curve, std::string from) {
  GemmCurve copy = curve;
  copy.origin.fallback_from = std::move(from);
  return copy;
}

/// The curve of another GPU that a format starts from: of the format itself, else of bf16.
struct DonorCurve {
  const Gpu* gpu = nullptr;
  const GemmCurve* curve = nullptr;
  std::string name;
};

std::optional<DonorCurve> donor_in(DType type, const std::vector<Gpu>& fallbacks) {
  for (const Gpu& each : fallbacks) {
    if (const auto* curve = measured(each.gemm, type)) return DonorCurve{&each, curve, each.name};
  }
  return std::nullopt;
}

std::optional<DonorCurve> donor_of(DType type, const std::vector<Gpu>& fallbacks) {
  if (const auto same = donor_in(type, fallbacks)) return same;
  auto other = donor_in(DType::bf16, fallbacks);
  if (other) other->name += " bf16";
  return other;
}

/// The curve that a format gets when its GPU has others of its own; nothing if there is no
/// fallback.
std::optional<GemmCurve> copied_gemm(DType type, const Gpu& gpu,
                                     const std::vector<Gpu>& fallbacks) {
  if (const auto same = donor_in(type, fallbacks)) return copied_from(*same->curve, same->name);
  for (const DType other : usual_formats) {
    const auto* curve = measured(gpu.gemm, other);
    if (!curve) continue;
    GemmCurve copy = copied_from(*curve, "its " + std::string{name(other)});
    copy.origin.of_this_gpu = true;
    return copy;
  }
  const auto donor = donor_of(type, fallbacks);
  return donor ? std::optional{copied_from(*donor->curve, donor->name)} : std::nullopt;
}

/// What is taken for the GEMMs of a GPU without a curve of its own.
struct AssumedShare {
  std::optional<double> share;  // nothing: that of the donor
  double spread = unknown_spread;
  std::string reason;
};

AssumedShare by_rule(const Gpu& gpu, const std::optional<PowerPeer>& peer) {
  const PowerRule* rule = power_rule_of(gpu);
  const auto power = power_per_flop(gpu, gpu.board_power);
  if (!rule || !power) {
    return {.share = {},
            .reason = !rule ? "nothing is known of its silicon" : "its board_power is not stated"};
  }
  const auto share = sustained_share(*rule, peer, *power);
  if (!share) return {.share = {}, .reason = "no GPU of its silicon is known"};
  return {
      .share = share,
      .spread = sustained_spread(*rule, peer, *power),
      .reason = *power >= rule->plentiful || !peer
                    ? fmt::format("the most of its silicon: {:.2g} pJ for each FLOP are plenty",
                                  power->count())
                    : fmt::format("by its {:.2f} pJ for each FLOP from {} ({:.3g} at {:.2f} pJ)",
                                  power->count(), peer->gpu, peer->share, peer->power.count())};
}

AssumedShare assumed_share(const Gpu& gpu, const std::optional<PowerPeer>& peer) {
  if (const auto known = known_share(gpu)) {
    return {.share = known, .spread = published_spread, .reason = "published for it"};
  }
  return by_rule(gpu, peer);
}

/// Fills the curves of a GPU that has none of its own.
class Scaled {
 public:
  Scaled(Gpu& gpu, const CurveSources& sources)
      : gpu_{gpu},
        sources_{sources},
        rule_{power_rule_of(gpu)},
        assumed_{assumed_share(gpu, sources.peer)} {}

  void fill() {
    for (int i = 0; i < dtype_count; ++i) {
      const auto type = static_cast<DType>(i);
      if (gpu_.peak(type) && !gpu_.gemm.count(type)) add_gemm(type);
    }
    for (const Gpu& each : sources_.fallbacks) add_attention(each);
    add_memory();
    report();
  }

 private:
  /// Of kernels whose share was not published, whatever the GEMMs' was.
  double unpublished_spread() const {
    return std::max(assumed_.spread, rule_ ? rule_->spread : unknown_spread);
  }

  /// The GPU's share over that of a donor.
  double over(const Gpu& donor) const {
    const auto known = known_share(donor);
    return assumed_.share && known ? *assumed_.share / *known : 1;
  }

  void add_gemm(DType type) {
    const auto donor = donor_of(type, sources_.fallbacks);
    if (!donor) return;
    GemmCurve curve = copied_from(*donor->curve, donor->name);
    curve.origin.spread = assumed_.spread;
    curve.origin.scaled = assumed_.share.has_value();
    curve.measured.reset();  // its sizes are of another GPU
    const bool plain = rule_ && rule_->formats.count(type);
    curve.compute_share =
        plain ? rule_->formats.at(type) : std::min(1.0, curve.compute_share * over(*donor->gpu));
    if (rule_ && rule_->gemm_overhead) curve.overhead = *rule_->gemm_overhead;
    gpu_.gemm.emplace(type, curve);
  }

  void add_attention(const Gpu& donor) {
    for (const auto& [kernel, curve] : donor.attention) {
      if (!curve.origin.fallback_from.empty() || gpu_.attention.count(kernel)) continue;
      AttentionCurve copy = curve;
      copy.origin.fallback_from = donor.name;
      copy.origin.spread = unpublished_spread();
      copy.origin.scaled = assumed_.share.has_value();
      double factor = over(donor);
      if (rule_ && rule_->attention && assumed_.share) {
        const double most = *rule_->attention * *assumed_.share / curve.share_128;
        factor = kernel == "flash-2" ? most : std::min(factor, most);
      }
      copy.share_64 = std::min(1.0, copy.share_64 * factor);
      copy.share_128 = std::min(1.0, copy.share_128 * factor);
      copy.measured.reset();
      gpu_.attention.emplace(kernel, copy);
    }
  }

  void add_memory() {
    if (!gpu_.memory_bound.origin.source.empty()) return;
    for (const Gpu& each : sources_.fallbacks) {
      if (each.memory_bound.origin.source.empty()) continue;
      gpu_.memory_bound = each.memory_bound;
      gpu_.memory_bound.origin.fallback_from = each.name;
      gpu_.memory_bound.origin.spread = unpublished_spread();
      break;
    }
    add_published_memory();
  }

  /// A share that was published for a GPU of the same generation, which runs the same kernels.
  void add_published_memory() {
    const auto sibling = std::ranges::find_if(sources_.fallbacks, [&](const Gpu& each) {
      return each.generation.name == gpu_.generation.name && each.published.memory;
    });
    if (sibling == sources_.fallbacks.end()) return;
    gpu_.memory_bound.memory_share = *sibling->published.memory;
    gpu_.memory_bound.origin.fallback_from = sibling->name;
  }

  void report() {
    const auto donor = donor_of(DType::bf16, sources_.fallbacks);
    if (!donor) return;
    const auto share = assumed_.share.value_or(donor->curve->compute_share);
    gpu_.unmeasured =
        fmt::format("no measurement on this GPU: GEMMs of {} at {:.3g} of peak, {}; {}", gpu_.name,
                    share, assumed_.reason,
                    assumed_.share ? "curves have the form of " + donor->name
                                   : "that of " + donor->name + " is used");
  }

  Gpu& gpu_;
  const CurveSources& sources_;
  const PowerRule* rule_;
  AssumedShare assumed_;
};

void copy_curves(Gpu& gpu, const std::vector<Gpu>& fallbacks) {
  std::map<DType, GemmCurve> filled;
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    if (!gpu.peak(type) || gpu.gemm.count(type)) continue;
    if (const auto curve = copied_gemm(type, gpu, fallbacks)) filled.emplace(type, *curve);
  }
  gpu.gemm.merge(filled);

  for (const Gpu& fallback : fallbacks) {
    for (const auto& [kernel, curve] : fallback.attention) {
      if (!curve.origin.fallback_from.empty()) continue;
      const auto [place, added] = gpu.attention.emplace(kernel, curve);
      if (added) place->second.origin.fallback_from = fallback.name;
    }
    if (gpu.memory_bound.origin.source.empty() && !fallback.memory_bound.origin.source.empty()) {
      gpu.memory_bound = fallback.memory_bound;
      gpu.memory_bound.origin.fallback_from = fallback.name;
    }
  }
}

/// Whether the peer is the same silicon at the same power for each FLOP, to within rounding of data
/// sheets.
bool same_power(const Gpu& gpu, const std::optional<PowerPeer>& peer) {
  constexpr double rounding = 0.02;
  const auto power = power_per_flop(gpu, gpu.board_power);
  return peer && power && !known_share(gpu) &&
         std::abs(std::log(power->count() / peer->power.count())) < rounding;
}

/// Published shares take the place of those of other GPUs.
void take_published(Gpu& gpu) {
  const auto stands = [](CurveOrigin& origin) {
    origin.scaled = true;
    origin.spread = published_spread;
  };
  for (const auto& [type, share] : gpu.published.gemm) {
    const auto curve = gpu.gemm.find(type);
    if (curve == gpu.gemm.end()) continue;
    curve->second.compute_share = share;
    stands(curve->second.origin);
  }
  for (const auto& [kernel, stated] : gpu.published.attention) {
    const auto found = gpu.attention.find(kernel);
    if (found == gpu.attention.end()) continue;
    AttentionCurve& curve = found->second;
    const double factor = stated.share_128 / curve.share_128;
    curve.share_64 = stated.share_64.value_or(std::min(1.0, curve.share_64 * factor));
    curve.share_128 = stated.share_128;
    stands(curve.origin);
  }
  if (!gpu.published.memory) return;
  gpu.memory_bound.memory_share = *gpu.published.memory;
  stands(gpu.memory_bound.origin);
}

void copy_sustained(Gpu& gpu, const std::vector<Gpu>& fallbacks) {
  for (const Gpu& fallback : fallbacks) {
    if (!gpu.sustained_origin.source.empty() || fallback.sustained_origin.source.empty()) continue;
    gpu.sustained_share = fallback.sustained_share;
    gpu.sustained_origin = {.source = fallback.sustained_origin.source,
                            .fallback_from = fallback.name};
  }
}

}  // namespace

const PowerRule* power_rule_of(const Gpu& gpu) {
  const std::vector<PowerRule>& rules = gpu.generation.power_rules;
  if (gpu.silicon.empty()) return rules.empty() ? nullptr : &rules.front();
  const auto found = std::ranges::find(rules, gpu.silicon, &PowerRule::silicon);
  return found == rules.end() ? nullptr : &*found;
}

std::optional<double> known_share(const Gpu& gpu) {
  if (const GemmCurve* curve = usual_curve(gpu)) return curve->compute_share;
  for (const DType type : usual_formats) {
    const auto found = gpu.published.gemm.find(type);
    if (found != gpu.published.gemm.end()) return found->second;
  }
  return std::nullopt;
}

std::optional<EnergyPerFlop> power_per_flop(const Gpu& gpu, Power power) {
  constexpr double pico = 1e12;
  for (const DType type : usual_formats) {
    const auto peak = gpu.peak(type);
    if (peak && power.count() > 0) return EnergyPerFlop{power.count() / peak->count() * pico};
  }
  return std::nullopt;
}

void fill_from_fallbacks(Gpu& gpu, const CurveSources& sources) {
  if (usual_curve(gpu) || same_power(gpu, sources.peer)) {
    copy_curves(gpu, sources.fallbacks);
  } else {
    Scaled{gpu, sources}.fill();
  }
  take_published(gpu);
  copy_sustained(gpu, sources.fallbacks);
}

}  // namespace orrery::hardware
