#include "executor/cuda/nccl_communicator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <thread>

#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

/// What it means to a launcher: a lost connection is a peer's end, a misuse ours.
Exit exit_of(ncclResult_t status) {
  switch (status) {
    case ncclRemoteError:
    case ncclSystemError:
      return Exit::peer_failed;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return Exit::invalid_program;
    default:
      return Exit::local_failure;
  }
}

}  // namespace

NcclCommunicators::~NcclCommunicators() {
  if (std::uncaught_exceptions() > 0) abort("this rank cannot go on");
  const std::lock_guard guard{lock_};
  for (ncclComm_t each : all_) ncclCommDestroy(each);
}

void NcclCommunicators::refuse_if_aborted() {
  if (!aborted_) return;
  const std::lock_guard guard{lock_};
  throw RunFailure{Exit::peer_failed, why_};
}

void NcclCommunicators::fail(ncclComm_t communicator, std::string_view doing, ncclResult_t status) {
  const char* last = ncclGetLastError(communicator);
  const std::string detail = last == nullptr || *last == '\0' ? "" : fmt::format(": {}", last);
  throw RunFailure{exit_of(status),
                   fmt::format("NCCL, {}: {}{}", doing, ncclGetErrorString(status), detail)};
}

/// Under the lock for as long as one question takes, so that an abort may come between two.
ncclResult_t NcclCommunicators::state_of(ncclComm_t communicator) {
  const std::lock_guard guard{lock_};
  if (aborted_) throw RunFailure{Exit::peer_failed, why_};
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
  return asked == ncclSuccess ? state : asked;
}

void NcclCommunicators::settle(ncclComm_t communicator, std::string_view doing,
                               ncclResult_t status) {
  const Deadline end = Clock::now() + deadline_;
  while (status == ncclInProgress) {
    if (Clock::now() > end) {
      throw RunFailure{Exit::deadline,
                       fmt::format("NCCL, {}: no answer within {} s", doing,
                                   std::chrono::duration<double>(deadline_).count())};
    }
    status = state_of(communicator);
    if (status == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  if (status != ncclSuccess) fail(communicator, doing, status);
}

void NcclCommunicators::call(ncclComm_t communicator, std::string_view doing,
                             const std::function<ncclResult_t()>& nccl) {
  ncclResult_t status = ncclSuccess;
  {
    const std::lock_guard guard{lock_};
    if (aborted_) throw RunFailure{Exit::peer_failed, why_};
    status = nccl();
  }
  settle(communicator, doing, status);
}

void NcclCommunicators::require_health(ncclComm_t communicator) {
  settle(communicator, "a call that was started", state_of(communicator));
}

ncclComm_t NcclCommunicators::make(Store& store, const std::string& key, int index, int members,
                                   int ctas) {
  refuse_if_aborted();
  ncclUniqueId id{};
  if (index == 0) {
    const ncclResult_t status = ncclGetUniqueId(&id);
    if (status != ncclSuccess) fail(nullptr, "making an id", status);
    store.set(key, {id.internal, sizeof id.internal});
  } else {
    const std::string told = store.get(key, deadline_);
    ensure(told.size() == sizeof id.internal, "an id of NCCL has another length");
    std::memcpy(id.internal, told.data(), told.size());
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = ctas;
  ncclComm_t made = nullptr;
  ncclResult_t status = ncclSuccess;
  {
    const std::lock_guard guard{lock_};
    if (aborted_) throw RunFailure{Exit::peer_failed, why_};
    status = ncclCommInitRankConfig(&made, members, id, index, &config);
    if (made != nullptr) all_.push_back(made);
  }
  settle(made, fmt::format("meeting as {}", key), status);
  return made;
}

void NcclCommunicators::abort(std::string_view why) noexcept {
  const std::lock_guard guard{lock_};
  if (aborted_) return;
  why_ = why;
  aborted_ = true;
  for (ncclComm_t each : all_) ncclCommAbort(each);
  all_.clear();
}

}  // namespace orrery::executor::cuda
