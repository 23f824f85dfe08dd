#include "executor/fabric/nccl/nccl_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

/// The exit code for a launcher: a lost connection is a failed peer, a misuse an invalid program.
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

/// How long a call in progress is polled without a pause: NCCL's own thread puts most calls on
/// their stream within some 20 us, which a sleep would more than double.
constexpr std::chrono::microseconds asked_at_once{500};
constexpr std::chrono::microseconds pause{50};
constexpr std::chrono::milliseconds to_finalize{5'000};

}  // namespace

NcclCommunicators::~NcclCommunicators() {
  if (std::uncaught_exceptions() > 0) abort("this rank cannot continue");
  try {
    finalize();
  } catch (const RunFailure&) {
    abort("its communicators were not finalized");
  }
  const std::lock_guard guard{lock_};
  for (ncclComm_t each : all_) ncclCommDestroy(each);
}

/// Finalizes all communicators, because destroying one that others still use makes them hang. All
/// finalizations are begun before one is waited for, so the order in which ranks made the
/// communicators does not matter.
/// Source  NCCL user guide, ncclCommFinalize: to be called by all members, and polled until it is
///         done where communicators are non-blocking
void NcclCommunicators::finalize() {
  const std::vector<ncclComm_t> closing = all_;
  std::vector<ncclResult_t> begun;
  for (ncclComm_t each : closing) {
    const std::lock_guard guard{lock_};
    if (aborted_) return;
    begun.push_back(ncclCommFinalize(each));
  }
  for (std::size_t i = 0; i < closing.size(); ++i) {
    settle(closing[i], "finalizing a communicator", begun[i], std::min(deadline_, to_finalize));
  }
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

/// Queries a communicator once. It holds the lock for that query alone, so that an abort may come
/// between two.
ncclResult_t NcclCommunicators::state_of(ncclComm_t communicator) {
  const std::lock_guard guard{lock_};
  if (aborted_) throw RunFailure{Exit::peer_failed, why_};
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
  return asked == ncclSuccess ? state : asked;
}

void NcclCommunicators::settle(ncclComm_t communicator, std::string_view doing, ncclResult_t status,
                               std::chrono::milliseconds patience) {
  const Deadline begin = Clock::now();
  Deadline now = begin;
  ++waits_.calls;
  waits_.late += status == ncclInProgress ? 1 : 0;
  while (status == ncclInProgress) {
    if (now - begin > patience) {
      throw RunFailure{Exit::deadline,
                       fmt::format("NCCL, {}: no answer within {} s", doing,
                                   std::chrono::duration<double>(patience).count())};
    }
    now - begin < asked_at_once ? std::this_thread::yield() : std::this_thread::sleep_for(pause);
    status = state_of(communicator);
    now = Clock::now();
  }
  waits_.waited =
      waits_.waited + Time{std::chrono::duration<std::int64_t, std::pico>(now - begin).count()};
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
  settle(communicator, doing, status, deadline_);
}

void NcclCommunicators::require_health(ncclComm_t communicator) {
  settle(communicator, "a call in progress", state_of(communicator), deadline_);
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
    const std::string bytes = store.get(key, deadline_);
    ensure(bytes.size() == sizeof id.internal, "an id of NCCL has another length");
    std::memcpy(id.internal, bytes.data(), bytes.size());
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
  settle(made, fmt::format("joining communicator {}", key), status, deadline_);
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
