#pragma once
// A cluster's network, or the inside of a node: what `orrery show topology` prints and draws.

#include <optional>
#include <string>

#include "scenarios/command/catalogue_tables.hpp"

namespace orrery::scenarios {

/// Files to write the pictures to.
struct TopologyPictures {
  std::optional<std::string> svg, html;
};
Shown show_topology(const std::optional<std::string>& name, const TopologyPictures& pictures);

}  // namespace orrery::scenarios
