#pragma once
// Statuses of CUDA and cuBLAS as failures of this machine. CUDA's errors are sticky: after one of a
// kernel every later call returns the same, so the first sentence names what was being done.

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
