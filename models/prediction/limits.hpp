#pragma once
// What a prediction must keep to, whatever was asked: times that the evaluation can hold, and
// figures that a machine can reach.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Refuses a step that is too long for exact evaluation, before it is evaluated: all work of all
/// rank classes, one piece after another, must take less than 2^59 ps (6.7 days). Start times are a
/// longest path through that work, so none of them can pass it; the (max,+) maps say "never" by
/// -2^60.
/// Errors  InputError
void require_exact_times(const PricedProgram& priced);

/// The last check before anybody sees the figures.
/// Errors  a step that is not above 0, an MFU outside 0 to 1, a figure that is not finite:
///         InputError, because only rates and curves of the question can lead there
void require_possible(const Question& question, const Prediction& prediction);

}  // namespace orrery::models
