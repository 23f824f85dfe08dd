#pragma once
// cuDNN's fused attention, through its graphs, straight on the Program's buffers: the statistics of
// its softmax are our log-sum-exp (natural, of the scaled scores), a band of its diagonal our
// window. The library is loaded when it is asked for; without it the program goes on. Compiled
// where cudnn.h and cudnn_frontend.h are (ORRERY_CUDNN).

#include <string>

#include "executor/device/cuda/attention/attention_library.hpp"

namespace orrery::executor::cuda {

struct CudnnOptions {
  const char* library = "libcudnn.so.9";
  int capability = 0;  // of the current GPU: 90 is 9.0
  SumOrder sums = SumOrder::any;
};

/// For one GPU and one thread: what `library` makes belongs to the GPU that is current now. Of
/// backward alone sums have an order to choose; a fixed one is asked for as long as its workspace
/// stays under `ordered_workspace`: on Hopper it holds 16 bits for each score, gigabytes where
/// sequences are long. Beyond, and where cuDNN has no such kernel, they come in any order.
OpenedLibrary open_cudnn(const CudnnOptions& options);
inline constexpr Bytes ordered_workspace{std::int64_t{256} << 20};

/// How far cuDNN goes with an operation's graph where there is no GPU: one is described to it, in
/// the words of its CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. Empty: checked and lowered to its
/// operations; whether it has kernels only a driver's compiler shows.
std::string cudnn_graph_refusal(const models::Operation& operation, const std::string& gpu,
                                const CudnnOptions& options);

}  // namespace orrery::executor::cuda
