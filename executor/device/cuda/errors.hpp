#pragma once
// Turns error statuses of CUDA and cuBLAS into failures of this machine. CUDA's errors are sticky:
// after a kernel's error every later call returns the same one, so the message begins with what was
// being done.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace orrery::executor::cuda {

/// Errors  RunFailure{local_failure}:
///         `GPU, finish after 'qkv': an illegal memory access was encountered
///         (cudaErrorIllegalAddress, cuda_device.cpp:120)`
void check(cudaError_t status, std::string_view doing, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());
void check(cublasStatus_t status, std::string_view doing, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());

}  // namespace orrery::executor::cuda
