#pragma once
// fp8 codes in kernels, and the scale of a tensor from the largest magnitudes of its parts.

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/fp8.hpp"
#include "executor/device/fp8_operand.hpp"

#ifndef ORRERY_EMULATED
#include <cuda_fp8.h>
#endif

namespace orrery::executor::cuda {

/// Encodes a number: rounds to nearest and saturates at the largest number; NaN stays NaN.
template <class F>
__device__ std::uint8_t code_of(float value) {
#ifdef ORRERY_EMULATED
  return encode_fp8<F>(value);
#else
  constexpr auto kind = F::bias == E4m3::bias ? __NV_E4M3 : __NV_E5M2;
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind);
#endif
}
template <class F>
__device__ float of_code(std::uint8_t code) {
#ifdef ORRERY_EMULATED
  return decode_fp8<F>(code);
#else
  constexpr auto kind = F::bias == E4m3::bias ? __NV_E4M3 : __NV_E5M2;
  return __half2float(__half{__nv_cvt_fp8_to_halfraw(code, kind)});
#endif
}

using Codes = Pack<std::uint8_t, 16>;

/// Bits of the largest magnitude of every part of a tensor. As integers they sort like the numbers,
/// so their maximum does not depend on the order in which they are compared.
struct Magnitudes {
  const std::uint32_t* parts = nullptr;
  int count = 0;
};

/// The largest magnitude of the whole tensor; every thread of the block must call it.
__device__ inline std::uint32_t largest_of(const Magnitudes& of) {
  std::uint32_t largest = 0;
  for (unsigned i = threadIdx.x; i < static_cast<unsigned>(of.count); i += block_threads) {
    largest = larger(largest, of.parts[i]);
  }
  return of_group(largest, block_threads, Largest{});
}
template <class F>
__device__ Fp8Scale scale_of(const Magnitudes& of) {
  return fp8_scale_for<F>(largest_of(of));
}

/// Reads 16 bf16 numbers at a time and encodes them.
template <class F>
class Quantiser {
 public:
  /// Every thread of the block must call it; one of the grid writes the inverse of the scale.
  __device__ Quantiser(const Bf16* from, std::int64_t count, const Magnitudes& magnitudes,
                       float* inverse, bool aligned)
      : from_{from}, count_{count}, aligned_{aligned} {
    const Fp8Scale scale = scale_of<F>(magnitudes);
    scale_ = __uint_as_float(scale.bits);
    const bool first = blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0;
    if (first) *inverse = __uint_as_float(scale.inverse);
  }

  __device__ Codes operator()(std::int64_t first) const {
    const auto pack = load<16>(from_, first, count_, aligned_);
    Codes codes;
#pragma unroll
    for (int j = 0; j < 16; ++j) codes.of[j] = code_of<F>(to_float(pack.of[j]) * scale_);
    return codes;
  }

 private:
  const Bf16* from_;
  std::int64_t count_;
  bool aligned_;
  float scale_;
};

/// Enqueues the search for the largest magnitudes of a bf16 tensor; `parts` has `magnitudes_bytes`.
Magnitudes find_magnitudes(const View& from, Stream stream, std::byte* parts);
std::int64_t magnitudes_bytes(std::int64_t count);

/// Enqueues the encoding of `from` to fp8 codes in `to`, with the inverse of the scale.
void quantise(const View& from, const Magnitudes& magnitudes, Fp8 format, std::byte* to,
              float* inverse, Stream stream);

}  // namespace orrery::executor::cuda
