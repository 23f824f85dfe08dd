#pragma once
// What the names in a PyTorch trace say about a collective. The protocol in a kernel's name is the
// one that the kernel was compiled for: it also runs messages of the others.
// Source  NCCL, src/device/common.h and generate.py (names of kernels since 2.19), src/collectives/
//         device/common.h of 2.7 to 2.18; PyTorch, ProcessGroupNCCL.cpp (names of collectives)

#include <optional>
#include <string>

namespace orrery::models {

/// The cost model's name of a collective that an event names: "_allgather_base" is an all_gather;
/// an unknown name in lower case.
std::string collective_named(const std::string& written);

/// What `ncclKernel_AllReduce_RING_LL_Sum_float`, `ncclDevKernel_AllGather_RING_LL(...)` and
/// `ncclAllReduceRingLLKernel_sum_f32` say. What is not known is empty.
struct KernelName {
  std::string collective, algorithm, protocol;
};
/// Nothing if the kernel does not name a collective, as ncclDevKernel_Generic does not.
std::optional<KernelName> named_by_kernel(const std::string& kernel);

}  // namespace orrery::models
