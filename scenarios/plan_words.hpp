#pragma once
// How far off published runs of a plan's kind were, and whether it fits, in sentences.

#include <optional>
#include <string>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// A plan of ZeRO-2 or ZeRO-3 is one that no stack is fitted to: how far off published runs of that
/// kind were, in a sentence. Nothing for other plans.
std::optional<std::string> sharded_note(const models::Plan& plan, const models::Software& software);

/// The same of a report that shows several plans: one of them is enough.
Json sharded_json(const models::Software& software);

/// "fits tightly: less than 6.0 % of the memory to spare; of 172 measured peaks 61 % would fit".
std::string fit_words(models::Fit fit, double probability, double headroom);

}  // namespace orrery::scenarios
