#pragma once
// The scenario that a command or a Python call is about: a base, sections that replace its own, and
// changes.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario/scenario.hpp"

namespace orrery::scenarios {

struct ScenarioRequest {
  std::optional<std::string> scenario{};  // a path or a name
  ScenarioParts parts{};
  std::vector<std::pair<std::string, Json>> changes{};  // by JSON pointer, as Scenario::replace

  /// Errors: InputError
  Scenario load() const;
};

}  // namespace orrery::scenarios
