#pragma once
// The part of a report page for a store of `orrery sweep`: the best variants, those that no other
// beats in both time and memory, and what each varied value leads to.

#include <iosfwd>
#include <string>
#include <string_view>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Is this the beginning of a store?
bool begins_sweep_store(std::string_view text);

/// What the page shows of a store, which may have millions of lines: `{orrery_sweep, scenario,
/// vary, variants, rows, refused, first_refused, fits, best, front, others, values,
/// values_left_out}`. `best` are
/// the twenty fastest rows that fit as predicted (of those that may fit where none does), `front`
/// those that no other beats in both time and memory, `others` an even sample of what fits
/// or may.
/// Errors  a first line or a row that is damaged: InputError
Document sweep_document(std::istream& store, const std::string& name);

/// "Sweep of llama, shard 2 of 8".
std::string sweep_title(const Node& root);
/// Errors  a document that lacks a member: InputError
std::string sweep_section(const Node& root);

}  // namespace orrery::scenarios
