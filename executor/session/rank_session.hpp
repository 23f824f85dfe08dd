#pragma once
// One rank's connection to the others: store, watchdog and fabrics, created and destroyed in the
// order that they need. The host's fabric carries sums on which ranks agree; GPUs use NCCL in
// addition, or send through the host's fabric (staged).

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
#include "executor/run/blocks/instruction_limits.hpp"
#include "executor/run/runner.hpp"
#include "executor/session/devices.hpp"
#include "executor/session/session.hpp"
#include "executor/session/watchdog.hpp"

namespace orrery::executor {

/// Ranks that are threads of one process, with the store's address.
struct ThreadRanks {
  ThreadWorld* world = nullptr;
  Address store{};
};

/// The connection of one rank.
class RankSession {
 public:
  /// Connects with all other ranks and waits for them.
  /// threads  where ranks are threads of one process; nullopt otherwise
  /// Errors   RunFailure naming who is missing
  RankSession(const Session& session, const Placement& placed,
              const std::optional<ThreadRanks>& threads);
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  /// Connects this rank's device, which outlives the session, with the others'. Waits for all
  /// ranks. Errors  InputError `--fabric: nccl: this orrery was built without NCCL`; the fabric's
  /// own
  void connect(const Equipment& equipment);

  /// The fabric that the runner communicates over.
  Fabric& fabric() { return of_device_ ? *of_device_ : *fabric_; }
  Store& store() { return *store_; }
  Watchdog& watchdog() { return *watchdog_; }
  const Placement& placed() const { return placed_; }
  StopRequests& requests() const { return session_.requests; }
  const SessionEvents& events() const { return session_.events; }
  void note(const std::string& line) const;

  /// From now on the watchdog reports the steps of this runner, and applies these limits; both
  /// outlive that.
  void steps(const Runner& runner, const InstructionLimits& limits);
  /// From now on the watchdog reports `what`, which may go on for `limit` without progress.
  void does(const std::string& what, std::chrono::milliseconds limit);
  /// Sets the function that says what is lost if the run ends early. It is called from any thread,
  /// until an empty function replaces it.
  void report_loss(std::function<std::string()> loss);
  /// Sums over all ranks, on the host's fabric, in place.
  void sum(std::span<double> values);
  /// Returns once all ranks have called it.
  void barrier(const std::string& name);
  /// This rank cannot go on: the others are notified, and the first failure of all is reported.
  Exit fail(Exit code, const std::string& why);

 private:
  std::string without_collectives(const Equipment& equipment);
  void living_fabrics(std::vector<Fabric*> fabrics);
  void open_store(const std::optional<ThreadRanks>& threads);
  void serve(Rendezvous& place);
  Rendezvous rendezvous_by_mpi();
  void start_watchdog();
  void last_resort(const Verdict& verdict);
  std::optional<Verdict> asked_to_end(bool& noted) const;
  SessionEnd end_of(const Verdict& verdict) const;
  Progress progress();

  const Session session_;
  Placement placed_;
  FabricKind kind_;  // of the host's fabric
  StoreIdentity identity_;
  std::mutex living_lock_;  // guards what follows, up to loss_: the watchdog's thread uses it
  std::vector<Fabric*> living_fabrics_;
  const Runner* living_runner_ = nullptr;  // null: the rank does what `does_` says
  const InstructionLimits* limits_ = nullptr;
  Progress does_;
  std::function<std::string()> loss_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Fabric> fabric_;      // of the host
  std::unique_ptr<Fabric> of_device_;   // of the device, where that is another
  std::unique_ptr<Watchdog> watchdog_;  // destroyed first: it uses all above
  GroupId world_ = 0;
  std::atomic<bool> waits_{false};  // for all others, between steps
};

/// Runs one rank from its connection to its end. Errors  RunFailure where ranks cannot connect
Exit run_one(const Session& session, const Placement& placed,
             const std::optional<ThreadRanks>& threads);

}  // namespace orrery::executor
