#include "executor/device/cuda/errors.hpp"

#include <fmt/format.h>

#include "executor/errors.hpp"

namespace orrery::executor::cuda {

namespace {

[[noreturn]] void fail(std::string_view doing, std::string_view what, std::string_view name,
                       std::string_view file, int line) {
  throw RunFailure{Exit::local_failure, fmt::format("GPU, {}: {} ({}, {}:{})", doing, what, name,
                                                    file.substr(file.find_last_of('/') + 1), line)};
}

}  // namespace

void check(cudaError_t status, std::string_view doing, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears an error that is not sticky
  fail(doing, cudaGetErrorString(status), cudaGetErrorName(status), file, line);
}

void check(cublasStatus_t status, std::string_view doing, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(doing, cublasLtGetStatusString(status), cublasLtGetStatusName(status), file, line);
}

}  // namespace orrery::executor::cuda
