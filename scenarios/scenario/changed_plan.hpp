#pragma once
// A question with some fields of its plan changed.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// Fields of a plan by key, with their new values.
using PlanChanges = std::vector<std::pair<std::string, Json>>;

/// The question with these fields. Where a degree changes, data parallelism takes the remaining
/// ranks, and the cut into stages is derived again.
/// nullopt  where a value is refused, conflicts with the rest of the question, or is of a kind that
///          the stack does not run
std::optional<models::Question> with_fields(const models::Question& question,
                                            const PlanChanges& changes);

/// "zero=3,recompute=full".
std::string text_of(const PlanChanges& changes);

}  // namespace orrery::scenarios
