#pragma once
// Rows that a group of threads reads together, once: each thread keeps every `lanes`-th pack of the
// row in registers; what does not fit there is read again.

#include <algorithm>
#include <bit>

#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

/// Packs of a row that a thread keeps, where it keeps little else.
inline constexpr int held_packs = 4;

/// Where a row is: `n` columns, of which only packs that touch [begin, end) are read, the others
/// are zeros. The first pack begins `shift` columns before the row.
struct RowPlace {
  std::int64_t first = 0;  // index of its first element
  int n = 0, begin = 0, end = 0;
  int shift = 0;
  unsigned lane = 0, lanes = 1;
  bool aligned = false;

  __device__ bool has(int column) const { return column >= 0 && column < n; }
};

/// What one thread has of a row, `held` packs of it in registers.
template <class T, int held = held_packs>
class RowValues {
 public:
  static constexpr int width = per_access<T>;
  using Numbers = Pack<T, width>;

  __device__ RowValues(const T* matrix, const RowPlace& place)
      : row_{matrix + place.first}, place_{place} {
#pragma unroll
    for (int k = 0; k < held; ++k) held_[k] = packed(read(first(k)));
  }

  /// Calls f(first column, pack, k) for this thread's packs; k is the number of the pack, or `held`
  /// for all packs that are not held.
  template <class F>
  __device__ void visit(F f) const {
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (first(k) < place_.n) f(first(k), kept(k), k);
    }
    for (int at = first(held); at < place_.n; at += stride()) f(at, read(at), held);
  }

  /// What `visit` would pass here; lets a visit of one row read another row of the same place.
  __device__ Numbers pack(int at, int k) const {
    return k < held ? kept(k) : read(at);
  }

  __device__ int first(int k) const {
    return (static_cast<int>(place_.lane) + k * static_cast<int>(place_.lanes)) * width -
           place_.shift;
  }
  __device__ int stride() const {
    return static_cast<int>(place_.lanes) * width;
  }

 private:
  /// 16-bit numbers stay two to a register, also where they were read one by one.
  __device__ static Numbers packed(const Numbers& pack) {
    if constexpr (sizeof(T) == 2) return anew(pack);
    return pack;
  }
  __device__ Numbers kept(int k) const {
    return packed(held_[k]);
  }
  __device__ Numbers read(int at) const {
    if (at >= place_.end || at + width <= place_.begin) return {};
    return load<width>(row_, at, place_.n, place_.aligned);
  }

  const T* row_;
  RowPlace place_;
  Numbers held_[held];
};

/// Rows of matrices of one shape, or `runs` of n columns next to each other in each of them.
///
/// Where n is no multiple of a pack, packs are aligned to 16 bytes all the same if rows are
/// `shifted` by their offset in memory modulo the pack. Threads then see other columns in each row.
struct Rows {
  std::int64_t count = 0, columns = 0, runs = 1;
  int n = 0, shifted = 1;  // by at most the pack's width - 1
  unsigned lanes = 1;
  bool aligned = false;

  /// The first row of the `pass`-th share of rows, of which a block takes one at a time.
  __device__ std::int64_t of_block(std::int64_t pass) const { return pass * (blockDim.x / lanes); }
  /// The row of that share that this thread's group takes.
  __device__ std::int64_t of_group(std::int64_t pass) const {
    return of_block(pass) + threadIdx.x / lanes;
  }
  /// Of a row past the last one nothing is read or written.
  __device__ RowPlace place(std::int64_t row) const {
    RowPlace place;
    place.lane = threadIdx.x % lanes;
    place.lanes = lanes;
    place.aligned = aligned;
    if (row >= count) return place;
    const Division of = divided(row, runs);
    place.first = of.quotient * columns + of.remainder * n;
    place.n = place.end = n;
    place.shift = static_cast<int>(place.first % shifted);
    return place;
  }
};

/// Threads per row and per block; a block has at least four warps.
struct RowShare {
  unsigned lanes = 1, threads = 1;

  unsigned rows() const { return threads / lanes; }  // per block at once
};

/// Enough lanes to hold a row of n numbers in packs of `width`, if so many are allowed.
inline RowShare share_of_rows(std::int64_t n, int width, unsigned most_lanes,
                              int held = held_packs) {
  const std::int64_t wanted = std::max<std::int64_t>(quotient_up(n, width * held), 1);
  const auto lanes = static_cast<unsigned>(
      std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(wanted, most_lanes))));
  return {lanes, std::max(lanes, 4 * warp_lanes)};
}

/// Blocks for `rows` rows, each group of threads taking one.
inline unsigned blocks_of(std::int64_t rows, const RowShare& share) {
  return static_cast<unsigned>(quotient_up(rows, share.rows()));
}

/// Whole rows of [count, n] operands, shifted.
template <class T, class... Operands>
Rows shifted_rows(std::int64_t count, std::int64_t n, const Operands*... operands) {
  Rows rows;
  rows.count = count;
  rows.columns = n;
  rows.n = static_cast<int>(n);
  rows.shifted = per_access<T>;
  rows.aligned = on_16_bytes(operands...);
  return rows;
}

}  // namespace orrery::executor::cuda
