#pragma once
// A plan as people read it, and how far off published runs of its kind were.

#include <optional>
#include <string>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// "TP 8 + SP · PP 16 x 6 · DP 8 ZeRO-1 · micro-batch 2 · recompute none".
std::string words_of(const models::Plan& plan);

/// " ZeRO-1"; empty where data-parallel ranks share nothing.
std::string sharding_of(const models::Plan& plan);

/// A plan of ZeRO-2 or ZeRO-3 is one that no stack is fitted to: how far off published runs of that
/// kind were, in a sentence. Nothing for other plans.
std::optional<std::string> sharded_note(const models::Plan& plan, const models::Software& software);

/// The same of a report that shows several plans: one of them is enough.
Json sharded_json(const models::Software& software);

/// "fits tightly: less than 6.0 % of the memory to spare; of 172 measured peaks 61 % would fit".
std::string fit_words(models::Fit fit, double probability, double headroom);

}  // namespace orrery::scenarios
