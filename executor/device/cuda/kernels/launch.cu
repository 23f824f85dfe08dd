#include "executor/device/cuda/kernels/launch.hpp"

#include "executor/device/cuda/errors.hpp"

namespace orrery::executor::cuda {

namespace {

/// Dynamic shared memory that every kernel may use; it must ask for more by an attribute.
/// Source  CUDA C++ Programming Guide, "Shared Memory" of each compute capability
constexpr std::size_t unasked_shared_bytes = 48 * 1024;

}  // namespace

void launch_pointer(const void* kernel, const Grid& grid, Stream stream, void** arguments) {
  if (grid.shared_bytes > unasked_shared_bytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(grid.shared_bytes)),
          "shared memory for a kernel");
  }
  check(cudaLaunchKernel(kernel, grid.blocks, grid.threads, arguments, grid.shared_bytes, stream),
        "launch of a kernel");
}

}  // namespace orrery::executor::cuda
