#pragma once
// Does a plan fit in memory, given how far predicted peaks were off on runs whose peak was
// measured? Leaves out what a stack's allocator does when memory is short: it may be slow long
// before it fails.

#include <cstdint>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery::models {

/// `tight`: it fits as predicted, with less to spare than was asked for.
enum class Fit : std::uint8_t { yes, tight, no };
std::string_view name(Fit fit);

/// Share of a GPU's memory that a plan leaves free to count as `Fit::yes` where no question says:
/// the median error of predicted peaks (models/prediction/published_errors.hpp).
double usual_headroom();

///   no     needed > available
///   tight  available (1 - headroom) < needed <= available
///   yes    needed <= available (1 - headroom)
Fit fit_of(Bytes needed, Bytes available, double headroom);

/// Share of published runs whose measured peak was at most available / needed times the predicted
/// one; 1 and 0 beyond the largest errors.
double fit_probability(Bytes needed, Bytes available);

}  // namespace orrery::models
