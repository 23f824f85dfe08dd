#include "executor/session/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery::executor {

namespace {

constexpr std::string_view abort_key = "abort";
constexpr std::chrono::milliseconds look_every{100};
constexpr std::chrono::seconds to_join{30};

/// Written by the store for a rank that is killed, which cannot report it itself.
LastWill will_of(int rank) {
  return {std::string{abort_key},
          text_of(Verdict{Exit::peer_failed, 0,
                          fmt::format("rank {} vanished: killed, or its machine is lost", rank)})};
}

std::string beat_key(int rank) {
  return fmt::format("beat/{}", rank);
}

}  // namespace

Exit exit_of(const Verdict& verdict, int rank) {
  const bool of_one = verdict.code == Exit::local_failure;
  return of_one && verdict.teller != rank ? Exit::peer_failed : verdict.code;
}

Watchdog::Watchdog(const Address& store, const StoreIdentity& identity, int rank,
                   WatchdogSettings settings)
    : settings_{std::move(settings)},
      rank_{rank},
      ranks_{identity.ranks},
      store_{store, identity, {rank, PeerRole::watchdog, will_of(rank)}, to_join},
      roll_call_{rank_ == 0 ? ranks_ : 0, settings_.beat, settings_.silence, Clock::now()} {
  thread_ = std::thread{[this] { watch(); }};
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard guard{lock_};
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  store_.leave();
}

std::optional<Verdict> Watchdog::verdict() const {
  const std::lock_guard guard{lock_};
  return verdict_;
}

Verdict Watchdog::fail(Exit code, const std::string& why) {
  if (const auto known = verdict()) return *known;
  pronounce(agree({code, rank_, why}));
  return *verdict();
}

Verdict Watchdog::read(const std::string& written) const {
  return parse_verdict(written, ranks_).value_or(unreadable_verdict());
}

/// The first verdict that was written holds for all ranks.
Verdict Watchdog::agree(const Verdict& verdict) {
  const std::lock_guard guard{store_lock_};
  try {
    return read(store_.first(abort_key, text_of(verdict)));
  } catch (const RunFailure&) {  // rank 0 is lost: rank 1 reports for the ranks that are left
    return {verdict.code, rank_ == 0 ? 0 : 1, verdict.why};
  }
}

void Watchdog::pronounce(const Verdict& verdict) {
  {
    const std::lock_guard guard{lock_};
    if (verdict_) return;
    verdict_ = verdict;
    resort_at_ = Clock::now() + settings_.grace;
  }
  if (settings_.abort) settings_.abort(verdict.why);
}

void Watchdog::watch() {
  auto next_beat = Clock::now();
  std::unique_lock guard{lock_};
  while (!stop_) {
    guard.unlock();
    const auto now = Clock::now();
    const auto known = verdict();
    if (!known) {
      if (const auto asked = settings_.end_request ? settings_.end_request() : std::nullopt) {
        pronounce(agree(*asked));
      } else if (settings_.deadline && now >= *settings_.deadline) {
        const std::string where = settings_.progress ? settings_.progress().text : "";
        pronounce(
            agree({Exit::deadline, rank_, fmt::format("the deadline has passed: {}", where)}));
      } else if (now >= next_beat) {
        next_beat = now + settings_.beat;
        look();
      }
    }
    guard.lock();
    if (resort_at_ && Clock::now() >= *resort_at_ && !stop_) {
      const Verdict last = *verdict_;
      resort_at_.reset();
      guard.unlock();
      if (settings_.last_resort) settings_.last_resort(last);
      guard.lock();
    }
    changed_.wait_for(guard, std::min(look_every, settings_.beat), [this] { return stop_; });
  }
}

/// One heartbeat: writes this rank's, and reads a verdict if there is one.
void Watchdog::look() {
  if (ranks_ == 1) return look_alone();
  try {
    std::optional<std::string> found;
    {
      const std::lock_guard guard{store_lock_};
      store_.set(beat_key(rank_), text_of(own_beat()));
      found = store_.find(abort_key);
    }
    if (found) return pronounce(read(*found));
    if (rank_ == 0) look_at_others();
  } catch (const RunFailure& failure) {
    pronounce(
        {failure.code(), rank_ == 0 ? 0 : 1, fmt::format("rank 0 is lost: {}", failure.what())});
  }
}

/// This rank's heartbeat. CPU time counts only while the host itself computes.
Beat Watchdog::own_beat() {
  const Progress progress = settings_.progress ? settings_.progress() : Progress{};
  const auto cpu_time = settings_.cpu_time ? settings_.cpu_time() : cpu_time_;
  if (progress.works) worked_ += cpu_time - cpu_time_;
  cpu_time_ = cpu_time;
  return {
      .number = ++beats_,
      .place = fmt::format("{} {} {}", progress.step, progress.instruction, signs_of_life_.load()),
      .waits = progress.waits_for,
      .text = progress.text,
      .limit = progress.limit,
      .worked = worked_};
}

/// Watches a run of one rank, which needs no messages.
void Watchdog::look_alone() {
  roll_call_.look(Clock::now());
  roll_call_.hear(0, own_beat());
  judge(Exit::local_failure);
}

void Watchdog::look_at_others() {
  roll_call_.look(Clock::now());
  for (int rank = 0; rank < ranks_; ++rank) {
    std::optional<std::string> bytes;
    {
      const std::lock_guard guard{store_lock_};
      bytes = store_.find(beat_key(rank));
    }
    if (!bytes) continue;
    const auto beat = parse_beat(*bytes);
    if (!beat) {
      return pronounce(agree({Exit::peer_failed, 0,
                              fmt::format("rank {} wrote a heartbeat that cannot be read", rank)}));
    }
    roll_call_.hear(rank, *beat);
  }
  judge(Exit::peer_failed);
}

void Watchdog::judge(Exit blame) {
  auto found = roll_call_.lost();
  if (!found) found = roll_call_.stuck();
  if (found) return pronounce(agree({blame, 0, *found}));
  for (const std::string& each : roll_call_.warnings()) {
    if (settings_.warn) settings_.warn(each);
  }
}

}  // namespace orrery::executor
