#pragma once
// Numbers of an expanded cluster on which neither plans nor Programs depend, so that variants which
// differ only in them share both. A table says which, and which members of the cluster as read
// follow from them; all other values of a scenario are taken to change everything.

#include <cstdint>
#include <optional>
#include <string_view>

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Rates that are read together.
enum class RateGroup : std::uint8_t { fabric, node, site, price };

/// The group of a pointer into a scenario; nothing for a value that may change the shape of a step.
/// cluster  the expanded one: a peak is a rate where there is one already
std::optional<RateGroup> rate_group(std::string_view pointer, const Json& cluster);

/// Copies what is read of a group from a cluster that differs in this group alone.
void take_rates(RateGroup group, const hardware::Cluster& from, hardware::Cluster& to);

/// Whether the groups of this cluster are read independently of each other.
bool rates_are_apart(const Json& cluster);

}  // namespace orrery::scenarios
