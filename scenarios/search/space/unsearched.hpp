#pragma once
// The fields of a plan that a search leaves as they are, and why: what a report lists as not tried.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/search/space/plan_space.hpp"

namespace orrery::scenarios {

/// Why a search leaves a field alone: what its row says (PlanField::Search), or that the stack's
/// profile lists no values of it (lacking).
enum class Unsearched : std::uint8_t { question, result, stack, open, lacking };
std::string_view words_of(Unsearched why);

/// A field that this search did not vary, and the value that every plan has.
struct UnsearchedField {
  std::string_view key;
  Json value;  // null: the field does not apply
  Unsearched why;
};

/// The fields that a search does not vary and the user did not fix, in the order of a plan's
/// fields; without those of experts and adapters where there are none.
std::vector<UnsearchedField> unsearched(const PlanQuery& query, const models::Plan& plan);

}  // namespace orrery::scenarios
