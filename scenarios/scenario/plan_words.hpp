#pragma once
// Sentences of reports: the error on published runs of a plan's kind, and whether the plan fits.

#include <optional>
#include <string>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// For a plan with ZeRO-2 or ZeRO-3, to which no stack is fitted: the error on published runs of
/// that kind, in a sentence. Nothing for other plans.
std::optional<std::string> sharded_note(const models::Plan& plan);

/// The same as JSON.
Json sharded_json();

/// The published runs nearest to a question, and what widens its range.
Json to_json(const models::Evidence& evidence);

/// "fits tightly: less than 6.0 % of the memory to spare; 61 % of measured peaks would fit".
std::string fit_words(models::Fit fit, double probability, double headroom);

}  // namespace orrery::scenarios
