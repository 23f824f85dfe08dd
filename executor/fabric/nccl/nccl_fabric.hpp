#pragma once
// The fabric of NCCL: collectives on the call's own stream, transfers on streams of their own.
// Nothing waits on the host: `wait` orders the queue after the call, errors come up at the next
// call.
//
// Why a send and a receive that cross cannot deadlock. A send stays on its stream until
// it is received, so what must not wait for it may not be enqueued after it:
//   - every way (group, from, to) has a communicator of two ranks and a stream of its own. NCCL
//     runs the calls of one communicator one after another whatever their streams, so two ways
//     share neither. On one way the k-th send meets the k-th receive, and nothing else is there.
//   - a transfer begins after what its `queue` has been given so far, and that queue goes on
//     after it only where the Program waits. So a stream waits for no more than a rank of a
//     synchronous fabric would, and no order of sends and receives ends here that does not end
//     there (send_depth.hpp rehearses it): the crossing of 1F1B, where a stage sends forward while
//     the next one sends back, and the interleaved schedule's, whose last stage sends to the first.
//   - a collective runs on its queue's stream, and every member has the same order of them there.
// CUDA promises no concurrent progress of two streams; three things make it: connections for all
// streams (CUDA_DEVICE_MAX_CONNECTIONS, checked), room for all calls at once (a group's call takes
// at most 32 thread blocks, a transfer 8; two queues and four ways are 96, an A100 has 108
// multiprocessors), and nothing that makes the device stand still in a step: connections are made
// when groups are.
// Source  NVIDIA/nccl#783, #592; NCCL user guide, "Using multiple NCCL communicators concurrently"

#include <chrono>
#include <functional>
#include <memory>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor::cuda {

/// What the fabric asks of a GPU: memory, and the streams of its queues.
struct NcclDevice {
  Device& memory;
  int ordinal = 0;  // as CUDA numbers it
  std::function<Stream(models::Lane)> stream;
};

/// Before the first use of CUDA in this process: enough connections, unless the user has chosen.
void prepare_for_nccl();

/// Together with all ranks, which meet in the store; device and store outlive the fabric.
/// `deadline` is for meeting and for starting a call: of a call that hangs the watchdog knows.
/// Errors  RunFailure{invalid_program}: `ranks 0 and 1 share GPU 0000:65:00.0 of node-1, and NCCL
///         2.28.9 takes one rank for each GPU: start fewer ranks, or use --fabric tcp`
std::unique_ptr<Fabric> make_nccl_fabric(const NcclDevice& device, Store& store, int rank,
                                         int ranks, std::chrono::milliseconds deadline);

}  // namespace orrery::executor::cuda
