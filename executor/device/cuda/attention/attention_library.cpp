#include "executor/device/cuda/attention/attention_library.hpp"

#ifdef ORRERY_CUDNN
#include "executor/device/cuda/attention/cudnn_attention.hpp"
#endif

namespace orrery::executor::cuda {

OpenedLibrary open_attention([[maybe_unused]] int capability, [[maybe_unused]] SumOrder sums) {
#ifdef ORRERY_CUDNN
  return open_cudnn({.capability = capability, .sums = sums});
#else
  return {nullptr, "this orrery was built without cuDNN"};
#endif
}

}  // namespace orrery::executor::cuda
