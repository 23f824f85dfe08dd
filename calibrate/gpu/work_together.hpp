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

/// One operation in bursts, as points are timed, and for seconds on end, as steps run it: under
/// load a GPU lowers its clocks to keep its power.
struct Load {
  enum class Of : std::uint8_t { product, attention };
  std::string what;
  Of of = Of::product;
  Time isolated{}, sustained{};   // of one: the medians of bursts and of the last third
  Conditions bursts, conditions;  // meanwhile, and under load

  /// Rate under load over that of bursts.
  double share() const { return ratio(isolated, sustained); }
};

/// The block's one operation without a pause, of which rounds of 32 are timed, four at the least:
/// the median of the last third.
Time time_under_load(const TimedBlock& work, QueueBench& bench, Time span);

/// The product beside other work of its device.
NamedBeside beside_product(const TimedBlock& product, executor::Device& device, std::string what,
                           const Piece& other);

/// One GPU has nobody to talk to: a copy of memory on another queue stands for it, and is called
/// one.
NamedBeside beside_copy(const TimedBlock& product, QueueBench& bench);

/// The product beside an all-reduce, on all GPUs at once; rank 0's times.
NamedBeside beside_all_reduce(const TimedBlock& product, GpuCrew& crew, Bytes size);

}  // namespace orrery::calibrate
