#pragma once
// Starts kernels on a stream: on the GPU, or thread by thread where they are emulated.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/stream.hpp"

namespace orrery::executor::cuda {

/// How many blocks of how many threads, with how much dynamic shared memory each.
struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
};

/// `arguments[i]` points to the i-th argument.
/// Errors  RunFailure{local_failure} when CUDA does not take the launch
void launch_pointer(const void* kernel, const Grid& grid, Stream stream, void** arguments);

/// kernel<<<grid>>>(arguments...) after all work on the stream; a grid without blocks does nothing.
template <class... Formal, class... Actual>
void launch(void (*kernel)(Formal...), const Grid& grid, Stream stream,
            const Actual&... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;
  std::tuple<Formal...> values{arguments...};
#ifdef ORRERY_EMULATED
  static_cast<void>(stream);
  struct Body {
    void (*kernel)(Formal...);
    std::tuple<Formal...>& values;
  } body{kernel, values};
  emulation::run(
      grid.blocks, grid.threads, grid.shared_bytes,
      [](void* of) { std::apply(static_cast<Body*>(of)->kernel, static_cast<Body*>(of)->values); },
      &body);
#else
  std::apply(
      [&](auto&... each) {
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&each))...};
        launch_pointer(reinterpret_cast<const void*>(kernel), grid, stream, pointers);
      },
      values);
#endif
}

inline constexpr unsigned block_threads = 256;

inline constexpr std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Bytes rounded up to a multiple of 256, the alignment of pieces of scratch, which suits cuBLASLt
/// best.
inline constexpr std::int64_t piece(std::int64_t bytes) {
  return quotient_up(bytes, 256) * 256;
}

/// Blocks that have `count` threads, or warps, at least.
inline Grid threads_for(std::int64_t count) {
  return {static_cast<unsigned>(quotient_up(count, block_threads)), block_threads};
}
inline Grid warps_for(std::int64_t count) {
  return threads_for(count * warp_lanes);
}

/// Launches `f(i)` for i in [0, count), one thread each.
template <class F>
void launch_for_each(std::int64_t count, Stream stream, const F& f) {
  launch(for_each<F>, threads_for(count), stream, count, f);
}

template <class... T>
bool on_16_bytes(const T*... places) {
  return ((reinterpret_cast<std::uintptr_t>(places) % 16 == 0) && ...);
}

/// Rows of `n` elements cut into packs, one for each thread.
struct Packs {
  std::int64_t rows = 0, n = 0, in_row = 0;
  bool aligned = false;  // all packs of all rows are aligned to 16 bytes

  template <class... T>
  Packs(std::int64_t rows_of, std::int64_t n_of, int width, const T*... places)
      : rows{rows_of},
        n{n_of},
        in_row{quotient_up(n_of, width)},
        aligned{on_16_bytes(places...) && n_of % width == 0} {}

  /// The row of the i-th pack, and the pack's first column.
  struct Place {
    std::int64_t row, column;
  };
  template <class T>
  __device__ Place place(std::int64_t i) const {
    const Division of = divided(i, in_row);
    return {of.quotient, of.remainder * per_access<T>};
  }
  /// Loads and stores the pack at a column of a row of `matrix`, which has n columns.
  template <class T>
  __device__ auto load(const T* matrix, std::int64_t row, std::int64_t column) const {
    return cuda::load<per_access<T>>(matrix + row * n, column, n, aligned);
  }
  template <class T, int width>
  __device__ void store(const Pack<T, width>& pack, T* matrix, std::int64_t row,
                        std::int64_t column) const {
    cuda::store(pack, matrix + row * n, column, n, aligned);
  }

  /// Launches `f(i)` for every pack.
  template <class F>
  void launch(Stream stream, const F& f) const {
    launch_for_each(rows * in_row, stream, f);
  }
};

/// How many consecutive numbers a thread takes, as a type.
template <int N>
struct Width {
  static constexpr int value = N;
};

/// Calls f(Width<N>{}) for arrays that begin at these addresses: packs of 16 bytes of the narrowest
/// format, or single numbers where an array is not aligned to 16 bytes; neighbouring threads then
/// still read contiguous addresses.
template <class F, class... T>
void with_width(F f, const T*... places) {
  constexpr int narrowest = static_cast<int>(std::min({sizeof(T)...}));
  on_16_bytes(places...) ? f(Width<16 / narrowest>{}) : f(Width<1>{});
}

}  // namespace orrery::executor::cuda
