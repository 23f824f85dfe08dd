#include "scenarios/command/execute_meeting.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <utility>

#include "executor/fabric/staged/staged_fabric.hpp"
#include "executor/fabric/tcp/tcp_fabric.hpp"
#include "executor/launch/interruption.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/signals.hpp"
#include "executor/module/mpi_module.hpp"
#include "scenarios/command/ending.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

using executor::Address;
using executor::Exit;
using executor::Launcher;
using executor::RunFailure;
using executor::SignalWishes;
using executor::Verdict;

namespace {

constexpr std::chrono::seconds to_meet{120};        // ranks of a large job start minutes apart
constexpr std::chrono::minutes to_write{30};        // a checkpoint, on the slowest rank
constexpr std::chrono::minutes to_start{10};        // between two signs of life
constexpr std::chrono::milliseconds to_hear{2500};  // why the run ends
constexpr std::size_t place_size = 512;             // bytes of the message that says where

FabricKind kind_of(const ExecuteOptions& options, const executor::Placement& placed) {
  if (options.fabric && options.fabric != FabricKind::nccl) return *options.fabric;
  return placed.mpi && executor::mpi_module_loads() ? FabricKind::mpi : FabricKind::tcp;
}

/// Of a run that a signal ends without a checkpoint.
Exit code_of(int signal) {
  return signal == SIGTERM ? Exit::terminated : Exit::interrupted;
}

/// What a rank says of the end: the line where it is its own to say, the document where a program
/// reads it.
void tell(const Verdict& verdict, int rank, bool json) {
  if (verdict.teller == rank) {
    fmt::print(stderr, "{} ({})\n", printable(verdict.why), executor::meaning(verdict.code));
  }
  if (json) print_error(failure_of(static_cast<int>(exit_of(verdict, rank)), verdict.why));
}

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)};
}

/// What a thread has computed so far, whoever asks.
std::function<std::chrono::milliseconds()> cpu_time_of_this_thread() {
  clockid_t clock{};
  if (::pthread_getcpuclockid(::pthread_self(), &clock) != 0) return {};
  return [clock] {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec});
  };
}

/// Ctrl-C and its like, as the watchdog takes them: at once, or after the step, which rank 0 says.
std::function<std::optional<Verdict>()> wish_to_end(int rank) {
  return [rank, said = rank != 0]() mutable -> std::optional<Verdict> {
    const int signal = SignalWishes::end();
    if (signal == 0) return std::nullopt;
    if (SignalWishes::at_once()) {
      return Verdict{code_of(signal), rank, fmt::format("rank {}: {}", rank, strsignal(signal))};
    }
    if (!said) {
      fmt::print(stderr,
                 "{}: a checkpoint follows after this step; once more ends the run at once\n",
                 strsignal(signal));
    }
    said = true;
    return std::nullopt;
  };
}

}  // namespace

Meeting::Meeting(const ExecuteOptions& options, const executor::Placement& placed,
                 const std::optional<Threads>& threads)
    : placed_{placed},
      kind_{kind_of(options, placed)},
      asked_{options.fabric},
      answers_json_{options.json && placed.rank == 0},
      identity_{.job = placed.job, .ranks = placed.ranks} {
  const executor::Interruptible waits{SignalWishes::descriptor()};
  does("its start", to_start);
  placed_.mpi = kind_ == FabricKind::mpi;
  if (placed_.mpi) fabric_ = executor::mpi_fabric();
  open_store(threads);
  start_watchdog(options);
  if (threads) {
    fabric_ = threads->world->fabric(placed_.rank);
  } else if (kind_ == FabricKind::tcp) {
    fabric_ =
        std::make_unique<executor::TcpFabric>(*store_, executor::TcpSettings{.patience = to_meet});
  }
  live_with({fabric_.get()});
  std::vector<int> all(static_cast<std::size_t>(placed_.ranks));
  std::iota(all.begin(), all.end(), 0);
  world_ = fabric_->make_group(all);
}

Meeting::~Meeting() {
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
  executor::Rendezvous place;
  if (threads) {
    place.address = threads->store;
  } else {
    const auto known = executor::rendezvous_of(placed_, executor::environment());
    place = known ? *known : rendezvous_by_mpi();
  }
  identity_.secret = place.secret;
  if (placed_.rank == 0 && !threads) serve(place);
  store_ = std::make_unique<executor::Store>(place.address, identity_, placed_.rank, to_meet);
  const bool named = place.address.path.empty() && !executor::is_loopback(place.address.host);
  if (server_ && named && place.address.host != "0.0.0.0" && place.address.host != "::" &&
      executor::is_loopback(store_->local().host)) {
    fmt::print(stderr, "{} is {} on this machine: ranks of other machines cannot reach it\n",
               place.address.host, store_->local().host);
  }
}

void Meeting::serve(executor::Rendezvous& place) {
  if (!server_) server_ = std::make_unique<executor::StoreServer>(place.address, identity_);
  if (place.open()) fmt::print(stderr, "{}\n", warning_of(place));
}

/// Rank 0 broadcasts where it listens, and a secret of this run.
executor::Rendezvous Meeting::rendezvous_by_mpi() {
  std::vector<int> all(static_cast<std::size_t>(placed_.ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<char> message(place_size);
  if (placed_.rank == 0) {
    identity_.secret = executor::random_secret();
    const Address asked = placed_.rendezvous.value_or(Address{});  // or every interface
    server_ = std::make_unique<executor::StoreServer>(asked, identity_);
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    const Address reached = placed_.rendezvous.value_or(Address{host, server_->address().port});
    const executor::Rendezvous own{reached, identity_.secret};
    text_of(own).copy(message.data(), message.size() - 1);
  }
  auto* at = reinterpret_cast<std::byte*>(message.data());
  fabric_->wait(fabric_->start({.kind = models::Collective::broadcast,
                                .group = fabric_->make_group(all),
                                .send = at,
                                .receive = at,
                                .count = static_cast<std::int64_t>(message.size()),
                                .element = executor::Element::byte}));
  return executor::parse_rendezvous(message.data());
}

void Meeting::start_watchdog(const ExecuteOptions& options) {
  executor::WatchdogSettings settings;
  if (options.deadline) {
    settings.deadline = executor::Clock::now() + in_milliseconds(*options.deadline);
  }
  settings.progress = [this] { return progress(); };
  settings.cpu_time = cpu_time_of_this_thread();
  settings.warn = [](std::string_view what) { fmt::print(stderr, "{}\n", printable(what)); };
  settings.wish = wish_to_end(placed_.rank);
  settings.abort = [this](std::string_view why) {
    store_->interrupt();
    const std::lock_guard guard{living_lock_};
    for (executor::Fabric* each : living_fabrics_) each->abort(why);
  };
  settings.last_resort = [this, rank = placed_.rank](const Verdict& verdict) {
    const std::lock_guard guard{living_lock_};
    const std::string lost = loss_ ? loss_() : "";
    if (!lost.empty()) fmt::print(stderr, "{}\n", lost);
    tell(verdict, rank, answers_json_);
    std::_Exit(static_cast<int>(exit_of(verdict, rank)));
  };
  watchdog_ = std::make_unique<executor::Watchdog>(store_->server(), identity_, placed_.rank,
                                                   std::move(settings));
}

executor::Progress Meeting::progress() {
  const std::lock_guard guard{living_lock_};
  executor::Progress progress = living_runner_ != nullptr ? living_runner_->progress() : does_;
  if (waits_) {
    progress.waits_for = "all other ranks";
    progress.works = false;
  }
  if (living_runner_ != nullptr) progress.limit = limits_->at(progress);
  return progress;
}

void Meeting::steps(const executor::Runner& runner, const executor::InstructionLimits& limits) {
  watchdog_->alive();
  const std::lock_guard guard{living_lock_};
  living_runner_ = &runner;
  limits_ = &limits;
}

void Meeting::does(const std::string& what, std::chrono::milliseconds limit) {
  if (watchdog_) watchdog_->alive();
  const std::lock_guard guard{living_lock_};
  living_runner_ = nullptr;
  does_ = {.waits_for = "", .text = what, .works = true, .limit = limit};
}

void Meeting::says_at_last(std::function<std::string()> loss) {
  const std::lock_guard guard{living_lock_};
  loss_ = std::move(loss);
}

void Meeting::sum(std::span<double> values) {
  auto* at = reinterpret_cast<std::byte*>(values.data());
  waits_ = true;
  fabric_->wait(fabric_->start({.kind = models::Collective::all_reduce,
                                .group = world_,
                                .send = at,
                                .receive = at,
                                .count = static_cast<std::int64_t>(values.size()),
                                .element = executor::Element::fp64}));
  waits_ = false;
}

void Meeting::barrier(const std::string& name) {
  waits_ = true;
  store_->barrier(name, to_write);
  waits_ = false;
}

int Meeting::fail(Exit code, const std::string& why) {
  const Verdict verdict = watchdog_->fail(code, why);
  tell(verdict, placed_.rank, answers_json_);
  // The store is rank 0's: its own two connections stay, the others go when they have read it.
  if (server_) server_->linger(2, to_hear);
  return static_cast<int>(exit_of(verdict, placed_.rank));
}

}  // namespace orrery::scenarios
