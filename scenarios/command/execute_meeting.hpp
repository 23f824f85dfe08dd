#pragma once
// How the ranks of `orrery execute` come together: the store, the watchdog and the fabrics of one
// rank, in the order in which they must come and go. The host's fabric carries what ranks agree on;
// GPUs have NCCL beside it, or are staged over it.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/fabric/fabric.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/store.hpp"
#include "executor/run/instruction_limits.hpp"
#include "executor/run/runner.hpp"
#include "executor/session/watchdog.hpp"
#include "scenarios/command/execute_backend.hpp"
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

  /// Makes `device`, which outlives the meeting, reach the others'. Waits for all ranks.
  /// Errors  InputError `--fabric: nccl: this orrery was built without NCCL`; the fabric's own
  void connect(const Equipment& equipment);

  /// What the runner speaks over.
  executor::Fabric& fabric() { return of_device_ ? *of_device_ : *fabric_; }
  executor::Store& store() { return *store_; }
  executor::Watchdog& watchdog() { return *watchdog_; }
  const executor::Placement& placed() const { return placed_; }

  /// What the watchdog says of this rank from now on: steps of a runner, and how long they may
  /// take; both outlive what follows.
  void steps(const executor::Runner& runner, const executor::InstructionLimits& limits);
  /// ... or something else, which may go on for `limit` without a sign of life.
  void does(const std::string& what, std::chrono::milliseconds limit);
  /// What to say of a run that ends without coming to its end: called from any thread, until it is
  /// taken back by an empty one.
  void says_at_last(std::function<std::string()> loss);
  /// Sums over all ranks, on the fabric, in place.
  void sum(std::span<double> values);
  /// All ranks have come so far.
  void barrier(const std::string& name);
  /// This rank cannot go on, or was told so: tells the others, and the user if that is ours to do.
  int fail(executor::Exit code, const std::string& why);

 private:
  std::string without_nccl(const Equipment& equipment);
  void live_with(std::vector<executor::Fabric*> fabrics);
  void open_store(const std::optional<Threads>& threads);
  void serve(executor::Rendezvous& place);
  executor::Rendezvous rendezvous_by_mpi();
  void start_watchdog(const ExecuteOptions& options);
  executor::Progress progress();

  executor::Placement placed_;
  FabricKind kind_;                  // of the host's fabric
  std::optional<FabricKind> asked_;  // by --fabric
  bool answers_json_;                // is a program reading what this rank prints?
  executor::StoreIdentity identity_;
  std::mutex living_lock_;  // of what is below, which the watchdog's thread uses
  std::vector<executor::Fabric*> living_fabrics_;
  const executor::Runner* living_runner_ = nullptr;  // nothing: it does what `text` says
  const executor::InstructionLimits* limits_ = nullptr;
  executor::Progress does_;
  std::function<std::string()> loss_;
  std::unique_ptr<executor::StoreServer> server_;
  std::unique_ptr<executor::Store> store_;
  std::unique_ptr<executor::Fabric> fabric_;      // of the host
  std::unique_ptr<executor::Fabric> of_device_;   // where that is another
  std::unique_ptr<executor::Watchdog> watchdog_;  // goes first: it speaks to all above
  executor::GroupId world_ = 0;
  std::atomic<bool> waits_{false};  // for all others, between steps
};

}  // namespace orrery::scenarios
