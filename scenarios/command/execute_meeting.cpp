#include "scenarios/command/execute_meeting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

#include "executor/launch/mpi_module.hpp"
#include "executor/launch/spawn.hpp"
#include "executor/staged_fabric.hpp"
#include "executor/tcp/tcp_fabric.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

using executor::Address;
using executor::Exit;
using executor::Launcher;
using executor::RunFailure;
using executor::Verdict;

namespace {

constexpr std::chrono::seconds to_meet{120};        // ranks of a large job start minutes apart
constexpr std::chrono::minutes to_write{30};        // a checkpoint, on the slowest rank
constexpr std::chrono::milliseconds to_hear{2500};  // why the run ends
constexpr std::size_t address_size = 512;           // bytes of the message that tells it

FabricKind kind_of(const ExecuteOptions& options, const executor::Placement& placed) {
  if (options.fabric && options.fabric != FabricKind::nccl) return *options.fabric;
  return placed.mpi && executor::mpi_module_loads() ? FabricKind::mpi : FabricKind::tcp;
}

void tell(const Verdict& verdict) {
  fmt::print(stderr, "{} ({})\n", printable(verdict.why), executor::meaning(verdict.code));
}

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)};
}

/// Ctrl-C and its like, as the watchdog takes them.
std::optional<Verdict> wish_to_end(int rank) {
  const int signal = executor::SignalWishes::end();
  if (signal == 0) return std::nullopt;
  return Verdict{Exit::interrupted, rank, fmt::format("rank {}: {}", rank, strsignal(signal))};
}

}  // namespace

Meeting::Meeting(const ExecuteOptions& options, const executor::Placement& placed,
                 const std::optional<Threads>& threads)
    : placed_{placed},
      kind_{kind_of(options, placed)},
      asked_{options.fabric},
      identity_{.job = placed.job, .ranks = placed.ranks} {
  if (kind_ == FabricKind::mpi) fabric_ = executor::mpi_fabric();
  open_store(threads);
  start_watchdog(options);
  if (threads) {
    fabric_ = threads->world->fabric(placed_.rank);
  } else if (kind_ == FabricKind::tcp) {
    fabric_ = std::make_unique<executor::TcpFabric>(
        *store_, executor::TcpSettings{.job = placed_.job, .patience = to_meet});
  }
  live_with({fabric_.get()});
  std::vector<int> all(static_cast<std::size_t>(placed_.ranks));
  std::iota(all.begin(), all.end(), 0);
  world_ = fabric_->make_group(all);
}

Meeting::~Meeting() {
  watch(nullptr);
  watchdog_.reset();
  live_with({});
  of_device_.reset();
  fabric_.reset();
  if (store_) store_->leave();
}

/// Whose calls end when the run must.
void Meeting::live_with(std::vector<executor::Fabric*> fabrics) {
  const std::lock_guard guard{living_lock_};
  living_fabrics_ = std::move(fabrics);
}

/// Why GPUs do not speak over NCCL, in words; empty: they do. All ranks come to the same end.
std::string Meeting::without_nccl(const Equipment& equipment) {
  if (asked_ && asked_ != FabricKind::nccl) return "as --fabric asks";
  if (!cuda_module().has_nccl()) return "this orrery was built without NCCL";
  if (asked_) return {};  // NCCL itself refuses what it cannot do
  const std::string mine = std::to_string(placed_.rank);
  const bool first = store_->first("gpu/" + equipment.gpu, mine) == mine;
  const std::string key = "GPUs that are shared";
  if (!first) store_->add(key, 1);
  store_->barrier("GPUs", to_meet);
  if (store_->add(key, 0) == 0) return {};
  return "NCCL refuses several ranks on one GPU before its version 2.30";
}

void Meeting::connect(const Equipment& equipment) {
  if (equipment.gpu.empty()) return;
  const bool needed = placed_.ranks > 1 || asked_ == FabricKind::nccl;
  const std::string why = needed ? without_nccl(equipment) : "one rank needs none";
  if (asked_ == FabricKind::nccl && !why.empty()) throw InputError{"--fabric", "nccl: " + why};
  if (why.empty()) {
    of_device_ = cuda_module().make_nccl_fabric(*equipment.device, *store_, placed_.rank,
                                                placed_.ranks, to_meet);
  } else {
    of_device_ = std::make_unique<executor::StagedFabric>(*fabric_, *equipment.device);
    if (placed_.rank == 0 && needed) {
      fmt::print(stderr, "GPUs speak over {} by way of the host's memory: {}\n", fabric_->name(),
                 why);
    }
  }
  live_with({of_device_.get(), fabric_.get()});
}

void Meeting::open_store(const std::optional<Threads>& threads) {
  Address address = threads ? threads->store : store_address();
  store_ = std::make_unique<executor::Store>(address, identity_, placed_.rank, to_meet);
}

/// Where the store is; rank 0 opens it.
Address Meeting::store_address() {
  const bool first = placed_.rank == 0;
  if (placed_.rendezvous) {
    const Address& where = *placed_.rendezvous;
    if (first) {
      server_ = std::make_unique<executor::StoreServer>(Address{"", where.port}, identity_);
    }
    return where;
  }
  if (const char* path = std::getenv("ORRERY_STORE");
      path && placed_.launcher == Launcher::orrery) {
    return address_by_file(path);
  }
  if (placed_.ranks == 1) {
    server_ = std::make_unique<executor::StoreServer>(Address{"127.0.0.1", 0}, identity_);
    return server_->address();
  }
  if (kind_ == FabricKind::mpi) return address_by_mpi();
  if (placed_.local_ranks.value_or(0) != placed_.ranks) {
    throw InputError{"--address", "missing: ranks on several machines need HOST:PORT of rank 0"};
  }
  // Ranks of one machine have one parent, so another run of the same job id has another file.
  const auto folder = std::filesystem::temp_directory_path();
  return address_by_file(
      (folder / fmt::format("orrery-{}-{}-{}", getuid(), placed_.job, getppid())).string());
}

Address Meeting::address_by_file(const std::string& path) {
  if (placed_.rank != 0) return executor::published_address(path, to_meet);
  server_ = std::make_unique<executor::StoreServer>(Address{"127.0.0.1", 0}, identity_);
  executor::publish_address(path, server_->address());
  return server_->address();
}

Address Meeting::address_by_mpi() {
  std::vector<int> all(static_cast<std::size_t>(placed_.ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::byte> message(address_size);
  if (placed_.rank == 0) {
    server_ = std::make_unique<executor::StoreServer>(Address{"", 0}, identity_);
    char host[256] = "localhost";
    const bool alone = placed_.local_ranks == placed_.ranks;
    if (!alone) ::gethostname(host, sizeof host - 1);
    const std::string text = text_of(Address{host, server_->address().port});
    std::memcpy(message.data(), text.data(), std::min(text.size(), address_size - 1));
  }
  fabric_->wait(fabric_->start({.kind = models::Collective::broadcast,
                                .group = fabric_->make_group(all),
                                .send = message.data(),
                                .receive = message.data(),
                                .count = static_cast<std::int64_t>(message.size()),
                                .element = executor::Element::byte}));
  return executor::parse_address(reinterpret_cast<const char*>(message.data()), "rank 0");
}

void Meeting::start_watchdog(const ExecuteOptions& options) {
  executor::WatchdogSettings settings;
  settings.stall = in_milliseconds(options.stall);
  if (options.deadline) {
    settings.deadline = executor::Clock::now() + in_milliseconds(*options.deadline);
  }
  settings.progress = [this]() -> executor::Progress {
    const std::lock_guard guard{living_lock_};
    if (living_runner_ != nullptr) {
      executor::Progress progress = living_runner_->progress();
      if (waits_) progress.waits_for = "all other ranks";
      return progress;
    }
    return {.step = 0, .instruction = 0, .waits_for = "", .text = "its start"};
  };
  settings.wish = [rank = placed_.rank] { return wish_to_end(rank); };
  settings.abort = [this](std::string_view why) {
    store_->interrupt();
    const std::lock_guard guard{living_lock_};
    for (executor::Fabric* each : living_fabrics_) each->abort(why);
  };
  settings.last_resort = [rank = placed_.rank](const Verdict& verdict) {
    if (verdict.teller == rank) tell(verdict);
    std::_Exit(static_cast<int>(exit_of(verdict, rank)));
  };
  watchdog_ = std::make_unique<executor::Watchdog>(store_->server(), identity_, placed_.rank,
                                                   std::move(settings));
}

void Meeting::watch(const executor::Runner* runner) {
  const std::lock_guard guard{living_lock_};
  living_runner_ = runner;
}

double Meeting::sum(double addend) {
  double total = addend;
  auto* at = reinterpret_cast<std::byte*>(&total);
  waits_ = true;
  fabric_->wait(fabric_->start({.kind = models::Collective::all_reduce,
                                .group = world_,
                                .send = at,
                                .receive = at,
                                .count = 1,
                                .element = executor::Element::fp64}));
  waits_ = false;
  return total;
}

void Meeting::barrier(const std::string& name) {
  waits_ = true;
  store_->barrier(name, to_write);
  waits_ = false;
}

int Meeting::fail(Exit code, const std::string& why) {
  const Verdict verdict = watchdog_->fail(code, why);
  if (verdict.teller == placed_.rank) tell(verdict);
  // The store is rank 0's: its own two connections stay, the others go when they have read it.
  if (server_) server_->linger(2, to_hear);
  return static_cast<int>(exit_of(verdict, placed_.rank));
}

}  // namespace orrery::scenarios
