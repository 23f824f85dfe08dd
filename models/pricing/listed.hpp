#pragma once
// Prices of what only lists of operations have: convolutions, kernels by name, work of the host,
// and queues that run next to the step.
//   convolution  the GEMM that it is, at the GPU's GEMM curve times `convolution` of
//                hardware/measured/rates.csv; a depthwise one is its traffic
//   kernel       the longer of its FLOPs at the peak of the GPU's ordinary cores (fp64 for fp64,
//                else fp32) and its traffic by the memory-bound curve; at the share of that which
//                rates.csv states for its key. Scattered reads are priced like a stream.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/evaluation/priced.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// Traffic factor of the stack's memory-bound kernels on this operation (kernel_time.cpp).
double memory_derate(const Operation& op, const Software& software);

Time convolution_time(const Operation& op, const hardware::Gpu& gpu, const Software& software);
Time named_kernel_time(const Operation& op, const hardware::Gpu& gpu, const Software& software);

/// Attention of each query to the tokens that an indexer selected for it: as many for every query.
Time selected_attention_time(const Operation& op, const hardware::Gpu& gpu);
/// Attention within a window: the keys of whole tiles, at the rate of a sequence as long as these.
/// In 8 bits backward skips no tile. nullopt: neither the GPU nor one of its generation has rates
/// of windows for this kernel. curve  its attention curve, with the kernel's name
std::optional<Time> window_time(const Operation& op, const hardware::Gpu& gpu,
                                const std::string& curve);

/// The bound, or that of the longest queue of Program::ahead if it is later. Work whose storage
/// states no rate takes no time.
StepBound with_ahead(StepBound bound, const Program& program, const hardware::Cluster& cluster);

/// Which kernels are priced without a measured rate, and files without a storage.
void note_listed(const Program& program, const hardware::Cluster& cluster,
                 std::vector<std::string>& assumptions);

}  // namespace orrery::models
