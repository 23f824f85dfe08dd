#include "calibrate/local_rendezvous.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/fabric/tcp/tcp_fabric.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/launch/private_folder.hpp"
#include "executor/launch/store.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

constexpr std::chrono::milliseconds patience{60'000};

}  // namespace

/// What ranks that are made together share; each joins once.
struct LocalRendezvous::RankGroup {
  explicit RankGroup(int count)
      : ranks{count},
        identity{.job = fmt::format("calibrate-{}", ::getpid()), .ranks = count},
        threads{count},
        server{executor::unused_socket(), identity},
        stores(static_cast<std::size_t>(count)) {}

  executor::Store& join(int rank) {
    auto& store = stores[static_cast<std::size_t>(rank)];
    store = std::make_unique<executor::Store>(server.address(), identity, rank, patience);
    return *store;
  }

  int ranks;
  int joined = 0;
  executor::StoreIdentity identity;
  executor::ThreadWorld threads;
  executor::StoreServer server;
  std::vector<std::unique_ptr<executor::Store>> stores;
};

LocalRendezvous::LocalRendezvous() = default;
LocalRendezvous::~LocalRendezvous() = default;

/// The group of `ranks` ranks that not all of them have joined, else a new one.
LocalRendezvous::RankGroup& LocalRendezvous::group(int ranks) {
  static std::mutex lock;
  const std::lock_guard held{lock};
  const auto begun = std::ranges::find_if(
      groups_, [&](const auto& each) { return each->ranks == ranks && each->joined < ranks; });
  RankGroup& own =
      begun == groups_.end() ? *groups_.emplace_back(std::make_unique<RankGroup>(ranks)) : **begun;
  ++own.joined;
  return own;
}

RankSet::Make LocalRendezvous::cores(const std::string& fabric) {
  const bool tcp = fabric == "tcp";
  if (!tcp && fabric != "threads") {
    throw InputError{"--fabric", fmt::format("expected tcp or threads, found '{}'", fabric)};
  }
  return [this, tcp](int rank, int ranks) {
    RankParts made{.device = std::make_unique<executor::CpuDevice>()};
    if (ranks == 1) return made;
    RankGroup& own = group(ranks);
    if (tcp) {
      made.fabric = std::make_unique<executor::TcpFabric>(
          own.join(rank), executor::TcpSettings{.patience = patience});
    } else {
      made.fabric = own.threads.fabric(rank);
    }
    return made;
  };
}

RankSet::Make LocalRendezvous::gpus(const executor::GpuModule& module) {
  return [this, &module](int rank, int ranks) {
    RankGroup& own = group(ranks);
    RankParts made{.device = module.make_device(rank)};
    made.fabric = module.make_fabric(*made.device, own.join(rank), rank, ranks, patience);
    return made;
  };
}

}  // namespace orrery::calibrate
