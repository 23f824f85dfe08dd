#pragma once
// One rank's store, watchdog and fabrics, in the order in which they must come and go. The host's
// fabric carries what ranks agree on; GPUs have NCCL next to it, or are staged over it.

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
#include "executor/session/devices.hpp"
#include "executor/session/session.hpp"
#include "executor/session/watchdog.hpp"

namespace orrery::executor {

/// Ranks that are threads of one process, with the store's address.
struct ThreadRanks {
  ThreadWorld* world = nullptr;
  Address store{};
};

class RankSession {
 public:
  /// Waits for all ranks.
  /// threads  of ranks that are threads of one process; else nothing
  /// Errors   RunFailure naming who is missing
  RankSession(const Session& session, const Placement& placed,
              const std::optional<ThreadRanks>& threads);
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  /// Makes `device`, which outlives the session, reach the others'. Waits for all ranks.
  /// Errors  InputError `--fabric: nccl: this orrery was built without NCCL`; the fabric's own
  void connect(const Equipment& equipment);

  /// What the runner communicates over.
  Fabric& fabric() { return of_device_ ? *of_device_ : *fabric_; }
  Store& store() { return *store_; }
  Watchdog& watchdog() { return *watchdog_; }
  const Placement& placed() const { return placed_; }
  StopRequests& requests() const { return session_.requests; }
  const SessionEvents& events() const { return session_.events; }
  void note(const std::string& line) const;

  /// What the watchdog reports of this rank from now on: steps of a runner, and how long they may
  /// take; both outlive what follows.
  void steps(const Runner& runner, const InstructionLimits& limits);
  /// ... or something else, which may go on for `limit` without a sign of life.
  void does(const std::string& what, std::chrono::milliseconds limit);
  /// The line about what is lost if the run ends early: asked from any thread, until an empty
  /// function takes its place.
  void report_loss(std::function<std::string()> loss);
  /// Sums over all ranks, on the fabric, in place.
  void sum(std::span<double> values);
  /// Returns once all ranks have called it.
  void barrier(const std::string& name);
  /// This rank cannot go on: the others are notified, and the first failure of all is reported.
  Exit fail(Exit code, const std::string& why);

 private:
  std::string without_nccl(const Equipment& equipment);
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
  std::mutex living_lock_;  // of what is below, which the watchdog's thread uses
  std::vector<Fabric*> living_fabrics_;
  const Runner* living_runner_ = nullptr;  // nothing: it does what `text` says
  const InstructionLimits* limits_ = nullptr;
  Progress does_;
  std::function<std::string()> loss_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Fabric> fabric_;      // of the host
  std::unique_ptr<Fabric> of_device_;   // where that is another
  std::unique_ptr<Watchdog> watchdog_;  // destroyed first: it uses all above
  GroupId world_ = 0;
  std::atomic<bool> waits_{false};  // for all others, between steps
};

/// One rank from the connection to its end. Errors  RunFailure where the ranks do not meet
Exit run_one(const Session& session, const Placement& placed,
             const std::optional<ThreadRanks>& threads);

}  // namespace orrery::executor
