#pragma once
// Stateless calls of NCCL: enqueues a collective on a stream, and checks that ranks do not share a
// GPU.

#include <nccl.h>

#include <chrono>

#include "executor/device/cuda/stream.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor::cuda {

/// Enqueues one collective of a communicator of `members`; an all_to_all must not be in place.
ncclResult_t enqueue(const CollectiveCall& call, int members, ncclComm_t communicator,
                     Stream stream);

/// Collective over all ranks. Errors: RunFailure{invalid_program} where two of them share a GPU and
/// NCCL would refuse that, in a sentence of its own (nccl_rules.hpp)
void require_own_gpu(int ordinal, Store& store, int rank, int ranks,
                     std::chrono::milliseconds patience);

}  // namespace orrery::executor::cuda
