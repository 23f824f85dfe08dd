#pragma once
// How the ranks of `orrery execute` come together: the store, the watchdog and the fabric of one
// rank, in the order in which they must come and go.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "executor/fabric.hpp"
#include "executor/launch/store.hpp"
#include "executor/launch/watchdog.hpp"
#include "executor/runner.hpp"
#include "executor/thread_fabric.hpp"
#include "scenarios/command/execute_run.hpp"

namespace orrery::scenarios {

class Meeting {
 public:
  /// world  of ranks that are threads of one process, with the store's address; else nothing
  struct Threads {
    executor::ThreadWorld* world = nullptr;
    executor::Address store{};
  };

  /// Waits for all ranks. Errors: RunFailure naming who is missing.
  Meeting(const ExecuteOptions& options, const executor::Placement& placed,
          const std::optional<Threads>& threads);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  executor::Fabric& fabric() { return *fabric_; }
  executor::Store& store() { return *store_; }
  executor::Watchdog& watchdog() { return *watchdog_; }
  const executor::Placement& placed() const { return placed_; }

  /// Whose progress the watchdog tells from now on; nothing: nobody's.
  void watch(const executor::Runner* runner);
  /// A sum over all ranks, on the fabric.
  double sum(double addend);
  /// All ranks have come so far.
  void barrier(const std::string& name);
  /// This rank cannot go on, or was told so: tells the others, and the user if that is ours to do.
  int fail(executor::Exit code, const std::string& why);

 private:
  void open_store(const std::optional<Threads>& threads);
  executor::Address store_address();
  executor::Address address_by_mpi();
  executor::Address address_by_file(const std::string& path);
  void start_watchdog(const ExecuteOptions& options);

  executor::Placement placed_;
  FabricKind kind_;
  executor::StoreIdentity identity_;
  std::mutex living_lock_;  // of the two below, which the watchdog's thread uses
  executor::Fabric* living_fabric_ = nullptr;
  const executor::Runner* living_runner_ = nullptr;
  std::unique_ptr<executor::StoreServer> server_;
  std::unique_ptr<executor::Store> store_;
  std::unique_ptr<executor::Fabric> fabric_;
  std::unique_ptr<executor::Watchdog> watchdog_;  // goes first: it speaks to all above
  executor::GroupId world_ = 0;
  std::atomic<bool> waits_{false};  // for all others, between steps
};

}  // namespace orrery::scenarios
