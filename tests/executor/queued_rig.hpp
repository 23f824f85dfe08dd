#pragma once
// Ranks on queues that are threads.

#include <memory>
#include <utility>

#include "tests/executor/queued_fabric.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {

/// Every rank's delays are its own.
inline MakeRig queued(const QueuedSettings& settings) {
  return [=](ThreadWorld& world, int rank) {
    QueuedSettings own = settings;
    own.seed = settings.seed * 100 + static_cast<std::uint64_t>(rank);
    auto device = std::make_unique<QueuedDevice>(own);
    auto fabric = std::make_unique<QueuedFabric>(world, rank, *device);
    return Rig{std::move(device), nullptr, std::move(fabric)};
  };
}

}  // namespace orrery::executor
