#pragma once
// CUDA's streams and events and NCCL's communicators as threads: the functions that the NCCL fabric
// calls (cuda.cpp, nccl.cpp) on the lanes of a QueuedDevice, whose touches of memory are checked.
// Calls return at once and are in progress for a while, as those of a non-blocking communicator
// are. Leaves out what only a GPU can show: whether streams progress side by side, speed, NCCL's
// own errors.

#include <array>
#include <atomic>
#include <cstddef>

#include "executor/fabric/nccl/nccl_fabric.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "tests/executor/queued_device.hpp"

/// What a cudaStream_t and a cudaEvent_t point to here.
struct CUstream_st {
  orrery::executor::QueuedDevice* device = nullptr;
  std::size_t lane = 0;
};
struct CUevent_st {
  orrery::executor::QueuedDevice* device = nullptr;  // nothing: it was never recorded
  orrery::executor::Mark mark{};
};

namespace orrery::executor {

/// The device that CUDA's functions mean on this thread.
QueuedDevice*& current_device();

/// Communicators that were destroyed before all members had finalized them.
std::atomic<int>& destroyed_early();

/// The streams of a device, which this thread's calls of CUDA mean from now on.
class StandIn {
 public:
  StandIn(QueuedDevice& device, int ordinal) : device_{device}, ordinal_{ordinal} {
    current_device() = &device;
    for (std::size_t lane = 0; lane < streams_.size(); ++lane) streams_[lane] = {&device, lane};
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  cuda::NcclDevice gpu() {
    const auto stream = [this](models::Lane queue) {
      return &streams_[QueuedDevice::lane_of(queue)];
    };
    return {device_, ordinal_, stream};
  }

 private:
  QueuedDevice& device_;
  int ordinal_;
  std::array<CUstream_st, models::lane_count> streams_;
};

}  // namespace orrery::executor
