#pragma once
// cuDNN's fused attention, by its graph API, directly on the Program's buffers: the statistics of
// its softmax are our log-sum-exp (natural, of the scaled scores), its diagonal band is our window.
// The library is loaded when it is asked for; without it the program continues. Compiled where
// cudnn.h and cudnn_frontend.h are (ORRERY_CUDNN).

#include <string>

#include "executor/device/cuda/attention/attention_library.hpp"

namespace orrery::executor::cuda {

struct CudnnOptions {
  const char* library = "libcudnn.so.9";
  int capability = 0;  // of the current GPU: 90 is 9.0
  SumOrder sums = SumOrder::any;
};

/// For one thread and one GPU: what `library` makes belongs to the GPU that is current now. Only
/// backward has a choice of the order of sums. A fixed one is used as long as its workspace stays
/// under `ordered_workspace`: on Hopper it holds 16 bits for each score, gigabytes where sequences
/// are long. Beyond that, and where cuDNN has no such kernel, sums come in any order.
OpenedLibrary open_cudnn(const CudnnOptions& options);
inline constexpr Bytes ordered_workspace{std::int64_t{256} << 20};

/// Checks an operation's graph without a GPU: one is described to cuDNN in the words of its
/// CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. Returns why cuDNN refuses it; empty: the graph was
/// validated and lowered to cuDNN's operations. Whether there are kernels for it, only a driver's
/// compiler shows.
std::string cudnn_graph_refusal(const models::Operation& operation, const std::string& gpu,
                                const CudnnOptions& options);

}  // namespace orrery::executor::cuda
