#include "models/network/scattered.hpp"

#include <random>
#include <utility>

namespace orrery::models {

/// Fisher-Yates shuffle.
std::vector<std::int64_t> scattered_nodes(std::int64_t nodes, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(nodes));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::mt19937_64 random{seed};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace orrery::models
