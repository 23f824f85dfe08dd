#pragma once
// Ends a run on all ranks when it ends on any, and reports why. A thread of every rank writes a
// heartbeat to the store once a second: which instruction the rank is at. The first failure that
// any rank sees is written there; the others read it, abort their fabrics and end. Rank 0's thread
// also reads the heartbeats (roll_call.hpp): a rank without them is lost, and one that stays at an
// instruction too long is stuck and is named with it; the only rank of a run can be stuck, too.
//
// A rank that is killed leaves a will (store.hpp), so its peers know within a beat. A rank that
// does not end when asked to is ended by `last_resort`.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/launch/roll_call.hpp"
#include "executor/launch/store.hpp"
#include "executor/launch/vital_signs.hpp"
#include "executor/run/settings.hpp"

namespace orrery::executor {

/// A rank's exit code under a verdict: a failure of another machine counts as a lost peer.
Exit exit_of(const Verdict& verdict, int rank);

struct WatchdogSettings {
  std::chrono::milliseconds beat{1000};
  std::chrono::milliseconds silence{7000};  // without a beat, a rank is lost
  std::optional<Deadline> deadline{};
  std::function<Progress()> progress{};  // of this rank; called from the thread
  /// CPU time of this rank's own thread so far; empty: CPU time does not count as progress.
  std::function<std::chrono::milliseconds()> cpu_time{};
  std::function<void(std::string_view)> warn{};           // on rank 0: a rank does not move
  std::function<std::optional<Verdict>()> end_request{};  // a request to end: Ctrl-C
  std::function<void(std::string_view)> abort{};          // ends waits for a peer
  std::function<void(const Verdict&)> last_resort{};
  std::chrono::milliseconds grace{3000};  // from the abort to the last resort
};

class Watchdog {
 public:
  /// Opens a connection of its own to the store.
  Watchdog(const Address& store, const StoreIdentity& identity, int rank,
           WatchdogSettings settings);
  /// The run has ended, in whatever way: stops heartbeats and withdraws the last will.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Called by the rank itself when it cannot go on. Returns the verdict that holds: this one, or
  /// an earlier one.
  Verdict fail(Exit code, const std::string& why);
  std::optional<Verdict> verdict() const;
  /// Reports progress of work between steps.
  void alive() { ++signs_of_life_; }

 private:
  void watch();
  void look();
  Beat own_beat();
  void look_alone();
  void look_at_others();
  void judge(Exit blame);
  void pronounce(const Verdict& verdict);
  Verdict agree(const Verdict& verdict);
  Verdict read(const std::string& written) const;

  WatchdogSettings settings_;
  int rank_, ranks_;
  std::mutex store_lock_;
  Store store_;
  RollCall roll_call_;
  std::uint64_t beats_ = 0;
  std::chrono::milliseconds worked_{}, cpu_time_{};
  std::atomic<std::uint64_t> signs_of_life_{0};
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::optional<Verdict> verdict_;
  std::optional<Deadline> resort_at_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace orrery::executor
