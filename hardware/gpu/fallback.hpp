#pragma once
// Fallback curves for a GPU that was not measured: the form of another GPU's, at the share of peak
// that this one sustains. That share is published for it, or follows from its power for each FLOP
// (power_rule.hpp). `fallback_notes` reports every fallback; residuals and absolute rates have
// none.

#include <optional>
#include <vector>

#include "hardware/gpu/gpu.hpp"

namespace orrery::hardware {

/// Standard deviations of ln(time of a kernel) where no PowerRule says one.
/// Source  published: cards of one model differ by 2.5 to 4 %, the best of many shapes is 2 to 10 %
///         above the usual one, and another GPU's form is off by 1 to 15 % (median 5) by shape.
///         unknown: GPUs whose family has no other that power limits, or whose board power is not
///         stated: x 0.6 to x 1.4 in 8 of 10 cases
inline constexpr double published_spread = 0.1, unknown_spread = 0.33;

/// The rule of a GPU's family of silicon; null if its generation states none.
const PowerRule* power_rule_of(const Gpu& gpu);

/// Share of peak of its bf16 GEMMs (else fp16, fp32): of its own curve, else published.
std::optional<double> known_share(const Gpu& gpu);

/// Board power over the peak of that format; nothing if the board power is not stated.
std::optional<EnergyPerFlop> power_per_flop(const Gpu& gpu, Power power);

/// What the curves of a GPU are filled from; all have only the curves of their own files.
struct CurveSources {
  std::vector<Gpu> fallbacks;     // nearest first
  std::optional<PowerPeer> peer;  // of the same silicon
};

/// Fills missing curves; a curve without a source counts as missing.
/// A GPU with a bf16, fp16 or fp32 GEMM curve of its own, or whose peer is the same silicon at the
/// same power per FLOP, takes shares as they are. A format that has a peak but no curve takes, in
/// this order: a fallback's curve of the same format; the GPU's own bf16, fp16 or fp32 curve (the
/// GEMM alone reaches the same share in all of them, fp8 on H100 and B200 included); a fallback's
/// bf16 curve. Any other GPU scales shares:
///   format     own * donor(format) / donor(bf16), or that of the rule's `formats`
///   attention  donor's * own / donor(bf16), at most own * rule.attention, which is flash-2's
/// own  its bf16 share: published, or by the rule, or without both the donor's
/// Published shares take the place of all of these.
void fill_from_fallbacks(Gpu& gpu, const CurveSources& sources);

}  // namespace orrery::hardware
