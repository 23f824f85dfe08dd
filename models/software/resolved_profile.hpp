#pragma once
// Inheritance of software profiles: a profile's file states a parent, its differences from the
// parent, and changes that hold in some years only.
//   {"name": "nemo", "parent": "megatron-core", "year": 2025, "overlap": {"data_exposed": 0.25},
//    "eras": [{"to_year": 2022, "changes": {"kernels": {"dropout": true}}, "source": "..."}]}
// Differences and changes are merge patches (RFC 7386). Name, year, source, limits, scope
// (`stands_for`), uncertainty and what its runs left unexplained are not inherited.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::models {

/// A profile with all inherited values filled in.
struct ResolvedProfile {
  Json profile;  // complete: without parent and eras
  /// Names of the profile and its ancestors, the profile first.
  std::vector<std::string> line;
  /// Which profile states each value, by JSON pointer: "megatron-core", or "nemo, to 2022: SOURCE".
  std::map<std::string, std::string> origins;
  bool dated = false;  // a profile of the line has eras, so values depend on the year
};

/// Resolves a profile's inheritance.
/// year  which eras hold; the profile's own year where not given
/// Errors  InputError: a parent that is not shipped, a cycle of parents
ResolvedProfile resolve_profile(const Node& written, std::optional<int> year);

/// A shipped profile's file, unresolved. Errors: `unknown software 'x'; known: ...`
Json written_profile(std::string_view name);
std::vector<std::string> software_names();

/// The complete JSON of a shipped profile, in its own year or another.
/// Errors: `unknown software 'x'; known: ...`
Json software_profile(std::string_view name, std::optional<int> year = std::nullopt);

}  // namespace orrery::models
