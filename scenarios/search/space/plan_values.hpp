#pragma once
// Values of a plan's fields, as a search compares and prints them.

#include <string>

#include "models/plan/fields.hpp"
#include "scenarios/search/space/plan_space.hpp"

namespace orrery::scenarios {

/// The value of a field, also where it is the default, and its text: "8", "none", "true".
Json value_in(const models::PlanField& field, const models::Plan& plan);
std::string text_in(const models::PlanField& field, const models::Plan& plan);

/// A plan as the --plan flag that simulates it: with the values that a search found better than
/// those of the stack's recipes, even if they are defaults.
std::string flag_of(const PlanQuery& query, const models::Plan& plan);

/// Whether a plan has a value that the query excludes.
bool is_excluded(const PlanQuery& query, const models::Plan& plan);

}  // namespace orrery::scenarios
