#pragma once
// Work that is not one kernel alone: a product for seconds on end, and beside what another queue
// does.

#include "calibrate/gpu/beside.hpp"
#include "calibrate/gpu/collectives.hpp"
#include "calibrate/gpu/queue_work.hpp"

namespace orrery::calibrate {

struct NamedBeside {
  std::string kernel, other;  // "gemm bf16 4096 x 4096 x 4096", "copy on the device"
  Beside times;
};

/// A large product for seconds on end.
struct Load {
  std::string what;
  Time at_first{}, at_last{};  // of one
  Conditions conditions;
};

/// The block's product without a pause, the host a round of products ahead. Runs four rounds at
/// the least. at_first: the quickest of the first third, at_last: the median of the last.
Load put_under_load(const TimedBlock& product, QueueBench& bench, Time span);

/// The product beside other work of its device.
NamedBeside beside_product(const TimedBlock& product, executor::Device& device, std::string what,
                           const Piece& other);

/// One GPU has nobody to talk to: a copy of memory on another queue stands for it, and is called
/// one.
NamedBeside beside_copy(const TimedBlock& product, QueueBench& bench);

/// The product beside an all-reduce, on all GPUs at once; rank 0's times.
NamedBeside beside_all_reduce(const TimedBlock& product, GpuCrew& crew, Bytes size);

}  // namespace orrery::calibrate
