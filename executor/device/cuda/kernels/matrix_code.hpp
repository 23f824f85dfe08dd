#pragma once
// PTX instructions of a warp that have no C++ equivalent: products of small matrices on the tensor
// cores, loads of their operands from shared memory, and asynchronous copies. 16-bit elements are
// packed in pairs, the first in the lower half of a word.
// Lane l has row g = l / 4 and the columns 2t, 2t + 1 with t = l mod 4 of an 8x8 matrix.
// Source  PTX ISA 8.5: mma.sync.m16n8k16, ldmatrix, cp.async; all from sm_80 on

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/half.hpp"

// Emulated kernels use emulated instructions: ORRERY_EMULATED then names a header that has both.
#ifndef ORRERY_EMULATED

namespace orrery::executor::cuda {

/// An address in shared memory, in bytes.
using SharedAddress = std::uint32_t;

/// The beginning of the dynamic shared memory that a launch asked for.
__device__ inline SharedAddress shared_memory() {
  extern __shared__ __align__(128) unsigned char asked_for[];
  return static_cast<SharedAddress>(__cvta_generic_to_shared(asked_for));
}

/// Loads four 8x8 matrices: lane l gives the address of row l mod 8 of matrix l / 8, 16 bytes, and
/// gets its two elements of each matrix.
__device__ inline void load_matrices(std::uint32_t (&to)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
}

/// The same, but each matrix is transposed.
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
}

/// c += a b, [16, 16] x [16, 8]; sums in fp32.
/// a  rows g and g + 8, columns 2t; then the same rows, columns 2t + 8
/// b  rows 2t and 2t + 1 of column g, in two words for the halves of the rows
/// c  row g, columns 2t and 2t + 1; then row g + 8
template <class T>
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  if constexpr (std::is_same_v<T, Bf16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Rounds two numbers to T and packs them in a word.
template <class T>
__device__ inline std::uint32_t packed(float low, float high) {
  std::uint32_t pair;
  if constexpr (std::is_same_v<T, Bf16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

/// 2^x within 2^-22 of it; subnormal results are 0.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Starts an asynchronous copy of 16 bytes into shared memory, or of 16 zero bytes unless `there`;
/// they have arrived once the calling thread has waited for their group.
__device__ inline void copy_in_background(SharedAddress to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}

/// Ends (commits) a group of copies.
__device__ inline void end_copies() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}

/// Waits for every group that has ended.
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group 0;" : : : "memory");
}

/// Loads four consecutive words.
__device__ inline void load_shared(std::uint32_t (&to)[4], SharedAddress from) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

__device__ inline void store_shared(SharedAddress to, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"(word) : "memory");
}

}  // namespace orrery::executor::cuda

#endif
