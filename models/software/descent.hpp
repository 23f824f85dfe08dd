#pragma once
// A software profile as it is written: a parent, what differs from it, and what was different in
// some years.
//   {"name": "nemo", "parent": "megatron-core", "year": 2025, "overlap": {"data_exposed": 0.25},
//    "eras": [{"to_year": 2022, "changes": {"kernels": {"dropout": true}}, "source": "..."}]}
// Differences and changes are merge patches (RFC 7386). Name, year, source, limits, scope and
// uncertainty are a profile's own and are not inherited.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::models {

struct Descent {
  Json profile;  // whole: without parent and eras
  /// From the profile to the root of its line.
  std::vector<std::string> line;
  /// Who states each value, by JSON pointer: "megatron-core", or "nemo, to 2022: SOURCE".
  std::map<std::string, std::string> origins;
  bool dated = false;  // some profile of the line has eras
};

/// year  whose eras hold; the profile's own where not given
/// Errors  InputError: a parent that is not shipped, a line that comes back to itself
Descent descend(const Node& written, std::optional<int> year);

/// The file of a shipped profile as it is written. Errors: `unknown software 'x'; known: ...`
Json written_profile(std::string_view name);
std::vector<std::string> software_names();

/// The whole JSON of a shipped profile, in its own year or another.
/// Errors: `unknown software 'x'; known: ...`
Json software_profile(std::string_view name, std::optional<int> year = std::nullopt);

}  // namespace orrery::models
