#pragma once
// Energy of a step from what each GPU does in it.
//   E = sum over ranks (waiting step + (math - waiting) t_math + (memory_bound - waiting) t_memory)
//       + idle step of GPUs without a rank + load host_power nodes step
// idle, waiting, memory_bound, math   what a GPU draws then (hardware/gpu/gpu_power.hpp)
// t_math, t_memory   kernels of the rank, at their priced times: GEMMs and attention; all others
// Whatever is not a kernel is waiting: bubbles, late hosts, and communication, whose power is near
// that of waiting (arXiv:2508.14318: compute phases of large training runs draw near the rated
// power, communication phases near idle). Leaves out cooling (PUE), switches and storage, and that
// kernels of a perturbed GPU take longer than priced.

#include <cstdint>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/evaluation/priced.hpp"
#include "models/program/counts.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Kernel time of one rank, by how much power it takes.
struct KernelTimes {
  Time math{}, memory_bound{};
};
/// By rank class.
std::vector<KernelTimes> kernel_times(const PricedProgram& priced);
std::vector<KernelTimes> kernel_times(const PricedProgram& priced,
                                      const std::vector<TargetCounts>& counts);

Energy energy_of(const PricedProgram& priced, const hardware::Cluster& cluster, std::int64_t gpus,
                 Time step);
/// counts  of the Program, by rank class
Energy energy_of(const PricedProgram& priced, const hardware::Cluster& cluster, std::int64_t gpus,
                 Time step, const std::vector<TargetCounts>& counts);

/// The average power of one GPU with a rank, without its host, of a step that takes this energy.
Power gpu_power(const hardware::Cluster& cluster, std::int64_t gpus, Energy energy, Time step);

}  // namespace orrery::models
