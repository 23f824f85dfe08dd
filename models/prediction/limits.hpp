#pragma once
// Limits of every prediction: times must be within what the evaluation can represent, and figures
// within what a machine can reach.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Refuses a step that is too long for exact evaluation, before it is evaluated: all work of all
/// rank classes, one piece after another, must take less than 2^59 ps (6.7 days). Start times are a
/// longest path through that work, so none of them can pass it; minus infinity in the (max,+) maps
/// is -2^60.
/// Errors  InputError
void require_exact_times(const PricedProgram& priced);

/// Checks the figures of a prediction before they are reported.
/// Errors  a step that is not above 0, an MFU outside 0 to 1, a figure that is not finite:
///         InputError, because only rates and curves of the question can lead there
void require_possible(const Question& question, const Prediction& prediction);

}  // namespace orrery::models
