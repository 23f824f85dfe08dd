#pragma once
// Tiles of rows in shared memory, and the order in which blocks take their work.
//
// A tile has rows of Dim 16-bit elements: a head's columns, padded with zeros.

#include "executor/device/cuda/attention/flash_shape.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/matrix_code.hpp"

namespace orrery::executor::cuda {

template <int Dim>
inline constexpr int row_bytes = 2 * Dim;
inline constexpr int chunk_elements = 8, chunk_bytes = 16;

/// Address of a 16-byte chunk in its tile. Chunks are permuted (swizzled) within each row, so that
/// the same chunk of eight consecutive rows is in eight different groups of banks.
template <int Dim>
__device__ inline SharedAddress place(int row, int chunk) {
  return static_cast<SharedAddress>(row * row_bytes<Dim> + (chunk ^ (row % 8)) * chunk_bytes);
}

/// Starts asynchronous copies of rows [row, row + Count) of a head into a tile.
template <int Dim, int Count, int Threads, class T>
__device__ void fetch(SharedAddress tile, const HeadRows<const T>& from, int row) {
  constexpr int chunks = Dim / chunk_elements, step = Threads / chunks;
  static_assert(Threads % chunks == 0 && step % 8 == 0 && Count % step == 0);
  using Chunk = Pack<T, chunk_elements>;
  const int chunk = static_cast<int>(threadIdx.x) % chunks;
  const int mine = static_cast<int>(threadIdx.x) / chunks;
  const auto* source = reinterpret_cast<const Chunk*>(from.first);
  // Counted in chunks, 32 bits reach over 64 GiB; 64 bits would cost registers.
  const auto stride = static_cast<std::uint32_t>(from.stride / chunk_elements);
  std::uint32_t at = static_cast<std::uint32_t>(row + mine) * stride + chunk;
  const bool inside = chunk * chunk_elements < from.width;
#pragma unroll 2
  for (int i = 0; i < Count; i += step) {
    const bool there = inside && row + mine + i < from.count;
    copy_in_background(tile + place<Dim>(mine, chunk) + i * row_bytes<Dim>,
                       source + (there ? at : 0), there);
    at += step * stride;
  }
}

__device__ inline int lane_of_warp() {
  return static_cast<int>(threadIdx.x % warp_lanes);
}

/// A warp writes its 16 M rows, times `factor`, to rows from `row` on. They pass through as many
/// rows of a shared tile that no other warp uses.
template <class T, int Dim, int M>
__device__ void write_rows(const float (&c)[M][Dim / 8][4], float factor, SharedAddress by_way_of,
                           const HeadRows<T>& to, int row) {
  constexpr int chunks = Dim / chunk_elements;
  const int lane = lane_of_warp();
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 2 * M * chunks; ++i) {
    const int at = i / chunks * 8 + lane / 4, n = i % chunks, half = i / chunks % 2;
    const float(&of)[4] = c[i / chunks / 2][n];
    store_shared(by_way_of + place<Dim>(at, n) + lane % 4 * 4,
                 packed<T>(factor * of[2 * half], factor * of[2 * half + 1]));
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * M * chunks; i += static_cast<int>(warp_lanes)) {
    const int at = i / chunks, chunk = i % chunks;
    if (row + at >= to.count || chunk * chunk_elements >= to.width) continue;
    Pack<std::uint32_t, 4> words;
    load_shared(words.of, by_way_of + place<Dim>(at, chunk));
    *reinterpret_cast<Pack<std::uint32_t, 4>*>(to.row(row + at) + chunk * chunk_elements) = words;
  }
}

/// Which tile of which head a thread block takes. Heads are taken in sections, so that a section's
/// keys and values stay in the cache while its tiles are computed; within a section, tile 0 of
/// every head comes first. A kernel that numbers tiles from the longest on ends with short ones,
/// which fill the last gaps.
struct Order {
  int tiles = 0, heads = 0, section = 0;

  struct Piece {
    int tile, head;
  };

  __host__ __device__ Piece of(int block) const {
    const int before = block / (tiles * section), within = block % (tiles * section);
    const int first = before * section;
    const int here = heads - first < section ? heads - first : section;
    return {within / here, first + within % here};
  }

  template <class Tile>
  Grid grid() const {
    return {static_cast<unsigned>(tiles * heads), Tile::threads, Tile::shared_bytes};
  }

  /// `sharing` consecutive heads read the same `bytes`.
  static Order of_heads(int tiles, int heads, int sharing, std::int64_t bytes) {
    // Half of the smallest L2 cache of these GPUs.
    // Source  NVIDIA A100 whitepaper: 40 MB of L2; H100 whitepaper: 50 MB
    constexpr std::int64_t cache_bytes = 20'000'000;
    const std::int64_t fit = bytes < cache_bytes ? cache_bytes / bytes * sharing : sharing;
    return {tiles, heads, fit < heads ? static_cast<int>(fit) : heads};
  }
};

}  // namespace orrery::executor::cuda
