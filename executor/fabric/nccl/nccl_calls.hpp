#pragma once
// Calls of NCCL without a state: a collective put on a stream, and whether this rank may be there.

#include <nccl.h>

#include <chrono>

#include "executor/device/cuda/stream.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor::cuda {

/// One collective of a communicator of `members`; an all_to_all does not run in place.
ncclResult_t enqueue(const CollectiveCall& call, int members, ncclComm_t communicator,
                     Stream stream);

/// All ranks together. Errors: RunFailure{invalid_program} where two of them share a GPU and NCCL
/// would refuse that, in a sentence of its own (nccl_rules.hpp)
void require_own_gpu(int ordinal, Store& store, int rank, int ranks,
                     std::chrono::milliseconds patience);

}  // namespace orrery::executor::cuda
