// The kernels' tests on a real GPU; without one there is nothing to test, and that is said.

#define CATCH_CONFIG_RUNNER
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <iostream>

int main(int count, char** arguments) {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status == cudaSuccess && gpus > 0) return Catch::Session().run(count, arguments);
  std::cout << "No GPU was found (" << cudaGetErrorString(status)
            << "): every case of cuda_test is skipped.\n";
  return 0;
}
