#pragma once
// A queue of a GPU, for headers that do without CUDA's own.

struct CUstream_st;  // CUDA's: a cudaStream_t points to one

namespace orrery::executor::cuda {

using Stream = ::CUstream_st*;

}  // namespace orrery::executor::cuda
