#pragma once
// The fields of a plan that a search leaves as they are, and why: what a report lists as not tried.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/search/space/plan_space.hpp"

namespace orrery::scenarios {

/// Why a search leaves a field alone.
///   question  part of what is asked: what is trained, and on which data
///   result    changes what is computed, or in which format
///   stack     as the stack and its recipes have it
///   open      plain choices that are not tried; another value may be faster or need less memory
///   lacking   the stack's profile lists no values of it
enum class Unsearched : std::uint8_t { question, result, stack, open, lacking };
std::string_view words_of(Unsearched why);

/// A row per field that no search varies.
struct UnsearchedRow {
  std::string_view key;
  Unsearched why;
};
std::span<const UnsearchedRow> unsearched_rows();

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
