#pragma once
// Sentences of reports: the error on published runs of a plan's kind, and whether the plan fits.

#include <optional>
#include <string>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// For a plan with ZeRO-2 or ZeRO-3, to which no stack is fitted: the error on published runs of
/// that kind, in a sentence. Nothing for other plans.
std::optional<std::string> sharded_note(const models::Plan& plan, const models::Software& software);

/// The same as JSON, for a report of several plans.
Json sharded_json(const models::Software& software);

/// "fits tightly: less than 6.0 % of the memory to spare; of 172 measured peaks 61 % would fit".
std::string fit_words(models::Fit fit, double probability, double headroom);

}  // namespace orrery::scenarios
