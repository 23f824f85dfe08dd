#pragma once
// The type of a CUDA stream, for headers that do not include CUDA's own.

struct CUstream_st;  // CUDA's: a cudaStream_t points to one

namespace orrery::executor::cuda {

using Stream = ::CUstream_st*;

}  // namespace orrery::executor::cuda
