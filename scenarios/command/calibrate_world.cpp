#include "scenarios/command/calibrate_world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <thread>

#include "executor/fabric/tcp/tcp_fabric.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/launch/private_folder.hpp"
#include "executor/launch/store.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::chrono::milliseconds patience{30'000};

}  // namespace

/// What the fabrics of a world share.
struct CalibrationWorlds::World {
  std::unique_ptr<executor::ThreadWorld> threads;
  std::unique_ptr<executor::StoreServer> server;
  std::vector<std::unique_ptr<executor::Store>> stores;

  std::unique_ptr<executor::Fabric> connect(int rank, const executor::StoreIdentity& identity) {
    auto& store = stores[static_cast<std::size_t>(rank)];
    store = std::make_unique<executor::Store>(server->address(), identity, rank, patience);
    return std::make_unique<executor::TcpFabric>(*store,
                                                 executor::TcpSettings{.patience = patience});
  }
};

CalibrationWorlds::CalibrationWorlds(const std::string& fabric) : tcp_{fabric == "tcp"} {
  if (!tcp_ && fabric != "threads") {
    throw InputError{"--fabric", fmt::format("expected tcp or threads, found '{}'", fabric)};
  }
}

CalibrationWorlds::~CalibrationWorlds() = default;

std::vector<std::unique_ptr<executor::Fabric>> CalibrationWorlds::make(int ranks) {
  worlds_.push_back(std::make_unique<World>());
  World& world = *worlds_.back();
  std::vector<std::unique_ptr<executor::Fabric>> fabrics(static_cast<std::size_t>(ranks));
  if (!tcp_) {
    world.threads = std::make_unique<executor::ThreadWorld>(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      fabrics[static_cast<std::size_t>(rank)] = world.threads->fabric(rank);
    }
    return fabrics;
  }
  const executor::StoreIdentity identity{.job = fmt::format("calibrate-{}", ::getpid()),
                                         .ranks = ranks};
  world.server = std::make_unique<executor::StoreServer>(executor::unused_socket(), identity);
  world.stores.resize(fabrics.size());
  std::vector<std::exception_ptr> failures(fabrics.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      try {
        fabrics[at] = world.connect(rank, identity);
      } catch (...) {
        failures[at] = std::current_exception();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  for (const std::exception_ptr& each : failures) {
    if (each) std::rethrow_exception(each);
  }
  return fabrics;
}

}  // namespace orrery::scenarios
