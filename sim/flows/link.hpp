#pragma once
// A link has one direction; a route is the links that a message crosses, in order.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

/// Links are numbered from 0 in the order added.
enum class LinkId : std::uint32_t {};

using Route = std::vector<LinkId>;

constexpr std::size_t index(LinkId link) {
  return static_cast<std::size_t>(link);
}

}  // namespace orrery
