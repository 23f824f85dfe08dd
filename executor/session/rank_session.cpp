#include "executor/session/rank_session.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <numeric>
#include <utility>

#include "executor/fabric/staged/staged_fabric.hpp"
#include "executor/fabric/tcp/tcp_fabric.hpp"
#include "executor/launch/interruption.hpp"
#include "executor/module/mpi_module.hpp"
#include "sim/input/text.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::seconds to_meet{120};        // ranks of a large job start minutes apart
constexpr std::chrono::minutes to_write{30};        // a checkpoint, on the slowest rank
constexpr std::chrono::minutes to_start{10};        // between two signs of life
constexpr std::chrono::milliseconds to_hear{2500};  // for other ranks to read why the run ends

FabricKind kind_of(const SessionOptions& options, const Placement& placed) {
  if (options.fabric && options.fabric != FabricKind::vendor) return *options.fabric;
  return placed.mpi && mpi_module_loads() ? FabricKind::mpi : FabricKind::tcp;
}

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)};
}

/// A function that reads the CPU time of this thread so far; any thread may call it.
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

}  // namespace

Exit exit_of_signal(int signal) {
  return signal == SIGTERM ? Exit::terminated : Exit::interrupted;
}

RankSession::RankSession(const Session& session, const Placement& placed,
                         const std::optional<ThreadRanks>& threads)
    : session_{session},
      placed_{placed},
      kind_{kind_of(session.options, placed)},
      identity_{.job = placed.job, .ranks = placed.ranks} {
  const Interruptible waits{session.requests.descriptor()};
  does("its start", to_start);
  placed_.mpi = kind_ == FabricKind::mpi;
  if (placed_.mpi) fabric_ = mpi_fabric();
  open_store(threads);
  start_watchdog();
  if (threads) {
    fabric_ = threads->world->fabric(placed_.rank);
  } else if (kind_ == FabricKind::tcp) {
    fabric_ = std::make_unique<TcpFabric>(*store_, TcpSettings{.patience = to_meet});
  }
  living_fabrics({fabric_.get()});
  std::vector<int> all(static_cast<std::size_t>(placed_.ranks));
  std::iota(all.begin(), all.end(), 0);
  world_ = fabric_->make_group(all);
}

RankSession::~RankSession() {
  watchdog_.reset();
  living_fabrics({});
  of_device_.reset();
  fabric_.reset();
  if (store_) store_->leave();
}

void RankSession::note(const std::string& line) const {
  if (session_.events.note) session_.events.note(line);
}

/// Sets the fabrics whose calls the watchdog aborts when the run must end.
void RankSession::living_fabrics(std::vector<Fabric*> fabrics) {
  const std::lock_guard guard{living_lock_};
  living_fabrics_ = std::move(fabrics);
}

/// Why GPUs do not communicate over their vendor's library, in words; empty: they do. The same on
/// all ranks.
std::string RankSession::without_collectives(const Equipment& equipment) {
  const auto& asked = session_.options.fabric;
  if (asked && asked != FabricKind::vendor) return "as requested by --fabric";
  const Backend& backend = session_.options.backend;
  if (!backend.module().has_collectives()) {
    return fmt::format("this orrery was built without {}", backend.vendor().fabric_title);
  }
  if (asked) return {};  // the library itself refuses what it cannot do
  const std::string mine = std::to_string(placed_.rank);
  const bool first = store_->first("gpu/" + equipment.gpu, mine) == mine;
  const std::string key = "GPUs that are shared";
  if (!first) store_->add(key, 1);
  store_->barrier("GPUs", to_meet);
  if (store_->add(key, 0) == 0) return {};
  return std::string{backend.vendor().shared_gpu};
}

void RankSession::connect(const Equipment& equipment) {
  if (equipment.gpu.empty()) return;
  const bool asked = session_.options.fabric == FabricKind::vendor;
  const bool needed = placed_.ranks > 1 || asked;
  const std::string why = needed ? without_collectives(equipment) : "one rank needs none";
  if (asked && !why.empty()) {
    throw InputError{"--fabric",
                     fmt::format("{}: {}", session_.options.backend.vendor().fabric, why)};
  }
  if (why.empty()) {
    of_device_ = session_.options.backend.module().make_fabric(
        *equipment.device, *store_, placed_.rank, placed_.ranks, to_meet);
  } else {
    of_device_ = std::make_unique<StagedFabric>(*fabric_, *equipment.device);
    if (placed_.rank == 0 && needed) {
      note(fmt::format("GPUs communicate over {} through the host's memory: {}", fabric_->name(),
                       why));
    }
  }
  living_fabrics({of_device_.get(), fabric_.get()});
}

SessionEnd RankSession::end_of(const Verdict& verdict) const {
  return {.verdict = verdict,
          .rank = placed_.rank,
          .code = exit_of(verdict, placed_.rank),
          .reports = verdict.teller == placed_.rank};
}

/// Requests to end, such as Ctrl-C: a verdict if the run is to end at once, else nullopt and a note
/// by rank 0 that it ends after this step.
std::optional<Verdict> RankSession::asked_to_end(bool& noted) const {
  const int signal = session_.requests.end();
  if (signal == 0) return std::nullopt;
  if (session_.requests.at_once()) {
    return Verdict{exit_of_signal(signal), placed_.rank,
                   fmt::format("rank {}: {}", placed_.rank, strsignal(signal))};
  }
  if (!std::exchange(noted, true) && placed_.rank == 0) {
    note(fmt::format(
        "{}: a checkpoint follows after this step; a second signal ends the run immediately",
        strsignal(signal)));
  }
  return std::nullopt;
}

void RankSession::start_watchdog() {
  WatchdogSettings settings;
  if (const auto& deadline = session_.options.deadline) {
    settings.deadline = Clock::now() + in_milliseconds(*deadline);
  }
  settings.progress = [this] { return progress(); };
  settings.cpu_time = cpu_time_of_this_thread();
  settings.warn = [this](std::string_view what) { note(printable(what)); };
  settings.end_request = [this, noted = false]() mutable { return asked_to_end(noted); };
  settings.abort = [this](std::string_view why) {
    store_->interrupt();
    const std::lock_guard guard{living_lock_};
    for (Fabric* each : living_fabrics_) each->abort(why);
  };
  settings.last_resort = [this](const Verdict& verdict) { last_resort(verdict); };
  watchdog_ =
      std::make_unique<Watchdog>(store_->server(), identity_, placed_.rank, std::move(settings));
}

void RankSession::last_resort(const Verdict& verdict) {
  const SessionEvents& events = session_.events;
  if (!events.stuck) return;
  const std::lock_guard guard{living_lock_};
  const std::string lost = loss_ ? loss_() : "";
  if (!lost.empty()) note(lost);
  const SessionEnd end = end_of(verdict);
  if (events.failed) events.failed(end);
  events.stuck(end.code);
}

Progress RankSession::progress() {
  const std::lock_guard guard{living_lock_};
  Progress progress = living_runner_ != nullptr ? living_runner_->progress() : does_;
  if (waits_) {
    progress.waits_for = "all other ranks";
    progress.works = false;
  }
  if (living_runner_ != nullptr) progress.limit = limits_->at(progress);
  return progress;
}

void RankSession::steps(const Runner& runner, const InstructionLimits& limits) {
  watchdog_->alive();
  const std::lock_guard guard{living_lock_};
  living_runner_ = &runner;
  limits_ = &limits;
}

void RankSession::does(const std::string& what, std::chrono::milliseconds limit) {
  if (watchdog_) watchdog_->alive();
  const std::lock_guard guard{living_lock_};
  living_runner_ = nullptr;
  does_ = {.waits_for = "", .text = what, .works = true, .limit = limit};
}

void RankSession::report_loss(std::function<std::string()> loss) {
  const std::lock_guard guard{living_lock_};
  loss_ = std::move(loss);
}

void RankSession::sum(std::span<double> values) {
  auto* at = reinterpret_cast<std::byte*>(values.data());
  waits_ = true;
  fabric_->wait(fabric_->start({.kind = models::Collective::all_reduce,
                                .group = world_,
                                .send = at,
                                .receive = at,
                                .count = static_cast<std::int64_t>(values.size()),
                                .element = Element::fp64}));
  waits_ = false;
}

void RankSession::barrier(const std::string& name) {
  waits_ = true;
  store_->barrier(name, to_write);
  waits_ = false;
}

Exit RankSession::fail(Exit code, const std::string& why) {
  const SessionEnd end = end_of(watchdog_->fail(code, why));
  if (session_.events.failed) session_.events.failed(end);
  // Rank 0 serves the store: its own two connections stay, the others close when those ranks have
  // read the verdict.
  if (server_) server_->linger(2, to_hear);
  return end.code;
}

}  // namespace orrery::executor
