#include "hardware/gpu/power_limit.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "hardware/gpu/fallback.hpp"
#include "sim/input/units.hpp"

namespace orrery::hardware {

namespace {

/// What a power limit below the board power does to shares of peak.
struct LimitEffect {
  double factor = 1, spread = 0;
};

std::optional<LimitEffect> limit_of(const Gpu& gpu) {
  const PowerRule* rule = power_rule_of(gpu);
  const auto full = power_per_flop(gpu, gpu.board_power);
  const auto left = power_per_flop(gpu, gpu.power_limit);
  if (!rule || !full || !left || *left >= *full) return std::nullopt;
  const PowerPeer itself{.gpu = gpu.name, .share = 1, .power = *full};
  return LimitEffect{.factor = power_factor(*rule, *full, *left),
                     .spread = sustained_spread(*rule, itself, *left)};
}

}  // namespace

std::string power_limit_note(const Gpu& gpu) {
  const auto limit = limit_of(gpu);
  if (!limit) return {};
  return fmt::format("power limit of {} of {}: GEMMs and attention of {} at {:.3g} of their rate",
                     format(gpu.power_limit), format(gpu.board_power), gpu.name, limit->factor);
}

void apply_power_limit(Gpu& gpu) {
  const auto limit = limit_of(gpu);
  if (!limit) return;
  const auto lower = [&](double& share) { share *= limit->factor; };
  const auto widen = [&](CurveOrigin& origin) {
    origin.spread = std::hypot(origin.spread, limit->spread);
  };
  for (auto& [type, curve] : gpu.gemm) {
    lower(curve.compute_share);
    widen(curve.origin);
  }
  for (auto& [kernel, curve] : gpu.attention) {
    lower(curve.share_64);
    lower(curve.share_128);
    widen(curve.origin);
  }
}

}  // namespace orrery::hardware
