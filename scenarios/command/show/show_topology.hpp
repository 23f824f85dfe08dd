#pragma once
// A cluster's network, or the inside of a node: what `orrery show topology` prints and draws.

#include <optional>
#include <string>

#include "scenarios/command/show/catalogue_tables.hpp"

namespace orrery::scenarios {

/// Files to write the pictures to.
struct TopologyPictures {
  std::optional<std::string> svg, html;
};
/// gpu     the catalogue's name of the GPU, for a node's file that does not say which
/// Errors  text that is neither a cluster nor a topology: InputError
Shown show_topology(const std::optional<std::string>& name, const TopologyPictures& pictures,
                    const std::optional<std::string>& gpu);

}  // namespace orrery::scenarios
