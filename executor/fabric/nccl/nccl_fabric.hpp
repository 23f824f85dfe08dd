#pragma once
// The fabric over NCCL: collectives run on the stream of the call's queue, transfers on streams of
// their own. The host waits for nothing: `wait` makes the queue wait for the call, and errors are
// reported at the next call.
//
// Why a send and a receive that cross cannot deadlock. A send stays on its stream until it is
// received, so nothing that must not wait for it may be enqueued after it:
//   - every direction between two members (group, from, to) has a communicator of two ranks and
//     a stream of its own. NCCL runs the calls of one communicator one after another whatever their
//     streams, so two directions share neither. In one direction the k-th send matches the k-th
//     receive, and there are no other calls.
//   - a transfer begins after what its `queue` has been given so far, and that queue waits for it
//     only where the Program waits. So a stream waits for no more than a rank of a synchronous
//     fabric would, and every order of sends and receives that completes there (send_depth.hpp
//     checks it) completes here: the crossing of 1F1B, where a stage sends forward while the next
//     one sends back, and the interleaved schedule's, whose last stage sends to the first.
//   - a collective runs on its queue's stream, and every member has the same order of them there.
// CUDA does not guarantee that two streams progress concurrently; three things ensure it:
// connections for all streams (CUDA_DEVICE_MAX_CONNECTIONS, checked), room for all calls at once (a
// group's call takes at most 32 thread blocks, a transfer 8; two queues and four directions are 96,
// an A100 has 108 multiprocessors), and nothing that synchronises the device in a step: connections
// are made when groups are.
// Source  NVIDIA/nccl#783, #592; NCCL user guide, "Using multiple NCCL communicators concurrently"

#include <chrono>
#include <functional>
#include <memory>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor::cuda {

/// What the fabric needs of a GPU: memory, and the streams of its queues.
struct NcclDevice {
  Device& memory;
  int ordinal = 0;  // as CUDA numbers it
  std::function<Stream(models::Lane)> stream;
};

/// Call before the first use of CUDA in this process: sets CUDA_DEVICE_MAX_CONNECTIONS to 32 unless
/// the user has set it.
void prepare_for_nccl();

/// Collective over all ranks, which find each other in the store; device and store outlive the
/// fabric. `deadline` limits connecting and starting a call; the watchdog finds a call that hangs.
/// Errors  RunFailure{invalid_program}: `ranks 0 and 1 share GPU 0000:65:00.0 of node-1, and NCCL
///         2.28.9 supports only one rank per GPU: start fewer ranks, or use --fabric tcp`
std::unique_ptr<Fabric> make_nccl_fabric(const NcclDevice& device, Store& store, int rank,
                                         int ranks, std::chrono::milliseconds deadline);

}  // namespace orrery::executor::cuda
