#pragma once
// The shipped profile that a stack's runs of a year take: one rule for runs named in a CSV file and
// for --software NAME --year YEAR.

#include <string>
#include <string_view>

namespace orrery::models {

/// The profile that stands for all runs of this stack in this year, on any number of nodes, or else
/// the name itself: "megatron-core" for megatron-lm from 2024.
std::string profile_in_year(std::string_view stack, int year);

}  // namespace orrery::models
