#pragma once
// Loads CUDA instead of linking to it: kernels, device and the NCCL fabric are in a module of their
// own (module.hpp), loaded for `--backend cuda`.

#include <string>

#include "executor/module/gpu_module.hpp"
#include "executor/module/module.hpp"

namespace orrery::executor {

/// The module, and why it cannot be used: one of
///   this orrery was built without CUDA; ./setup.sh --build --cuda builds it
///   the CUDA module does not load: libcublasLt.so.13 (cannot open shared object file: No such file
///       or directory); put the folder that holds it on LD_LIBRARY_PATH
///   the CUDA module does not load (REASON)
///   no NVIDIA driver is loaded here
///   the NVIDIA driver is for CUDA 12.4, this orrery needs 13.0
///   no GPU is visible (CUDA_VISIBLE_DEVICES is '')
struct FoundCuda {
  const GpuModule* module = nullptr;
  std::string absence{};  // empty: module is there, and a GPU
};
FoundCuda find_cuda();
FoundCuda find_cuda(const Module& loaded);

}  // namespace orrery::executor
