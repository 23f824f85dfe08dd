#pragma once
// Non-blocking communicators of NCCL, which never block the host for good: every call returns at
// once and is polled until it is done, too late, or aborted by another thread.

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "executor/fabric/fabric.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor::cuda {

/// All communicators of a rank. One thread calls; `abort` alone may come from another.
/// Errors of all: RunFailure{peer_failed} once aborted, and where NCCL lost a peer;
///         RunFailure{deadline}: `NCCL, all_reduce: no answer within 60 s`;
///         RunFailure{local_failure} in NCCL's own words
class NcclCommunicators {
 public:
  explicit NcclCommunicators(std::chrono::milliseconds deadline) : deadline_{deadline} {}
  /// Finalizes them together with the other members, then frees them; after a failure, and where
  /// the others do not come in time, without waiting for what they were doing.
  ~NcclCommunicators();
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  /// Makes a communicator. Collective over its members, which find each other in the store under
  /// `key`. `ctas` bounds the thread blocks of one call.
  ncclComm_t make(Store& store, const std::string& key, int index, int members, int ctas);

  /// Makes one call, or a group of them, on one communicator: it is on its stream on return.
  void call(ncclComm_t communicator, std::string_view doing,
            const std::function<ncclResult_t()>& nccl);
  /// Throws if the communicator has failed since.
  void require_health(ncclComm_t communicator);
  void refuse_if_aborted();
  std::chrono::milliseconds deadline() const { return deadline_; }
  /// The waits for the calls so far; for the thread that calls.
  const HostWaits& waits() const { return waits_; }

  void abort(std::string_view why) noexcept;

 private:
  ncclResult_t state_of(ncclComm_t communicator);
  void settle(ncclComm_t communicator, std::string_view doing, ncclResult_t status,
              std::chrono::milliseconds patience);
  void finalize();
  [[noreturn]] void fail(ncclComm_t communicator, std::string_view doing, ncclResult_t status);

  const std::chrono::milliseconds deadline_;
  std::mutex lock_;  // guards every call of NCCL, all_ and why_
  std::vector<ncclComm_t> all_;
  HostWaits waits_;
  std::atomic<bool> aborted_{false};
  std::string why_;
};

}  // namespace orrery::executor::cuda
