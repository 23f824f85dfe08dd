#pragma once
// Matrix products of tiles on the tensor cores.
//
// A warp owns 16 M rows of a product and all of its columns: c[m][n][i] is the element at row 16 m
// + 8 (i / 2) + g and column 8 n + 2 t + i mod 2 of lane 4 g + t. The left operand of a product has
// the same layout, so a product's result in registers can be the next one's left operand.

#include "executor/device/cuda/attention/flash_tiles.hpp"

namespace orrery::executor::cuda {

/// The address from which one lane loads a 16 x 16 part of a tile, as four matrices of 8 x 8.
template <int Dim>
class Corner {
 public:
  __device__ Corner(int row, int chunk) : begin_{place<Dim>(row, chunk)} {}

  /// The address for the part at this row and column of a tile, multiples of 16.
  __device__ SharedAddress at(SharedAddress tile, int row, int column) const {
    return tile + static_cast<SharedAddress>(row * row_bytes<Dim>) +
           (begin_ ^ static_cast<SharedAddress>(2 * column));
  }

 private:
  SharedAddress begin_;
};

/// Order of the four matrices: upper left, lower left, upper right, lower right.
template <int Dim>
__device__ Corner<Dim> corner_by_columns() {
  return {lane_of_warp() % 16, lane_of_warp() / 16};
}
/// Order of the four matrices: upper left, upper right, lower left, lower right.
template <int Dim>
__device__ Corner<Dim> corner_by_rows() {
  return {lane_of_warp() / 16 * 8 + lane_of_warp() % 8, lane_of_warp() / 8 % 2};
}

/// c += a b'; a is 16 M rows of a tile, b 8 N rows of another.
template <class T, int Dim, int M, int N>
__device__ void multiply_tiles(float (&c)[M][N][4], SharedAddress a, SharedAddress b) {
  const auto left = corner_by_columns<Dim>();
  const auto right = corner_by_rows<Dim>();
#pragma unroll
  for (int k = 0; k < Dim; k += 16) {
    std::uint32_t of_a[M][4], of_b[4];
#pragma unroll
    for (int m = 0; m < M; ++m) load_matrices(of_a[m], left.at(a, 16 * m, k));
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      load_matrices(of_b, right.at(b, 8 * n, k));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(c[m][n], of_a[m], of_b[0], of_b[1]);
        multiply_add<T>(c[m][n + 1], of_a[m], of_b[2], of_b[3]);
      }
    }
  }
}

/// c += a b; a is a product's result in registers, rounded to T, and b 8 N rows of a tile.
template <class T, int Dim, int M, int N>
__device__ void multiply_kept(float (&c)[M][Dim / 8][4], const float (&a)[M][N][4],
                              SharedAddress b) {
  const auto right = corner_by_columns<Dim>();
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    std::uint32_t of_a[M][4], of_b[4];
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&pair)[4] = a[m][k + i / 2];
        of_a[m][i] = packed<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int n = 0; n < Dim / 8; n += 2) {
      load_matrices_transposed(of_b, right.at(b, 8 * k, 8 * n));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(c[m][n], of_a[m], of_b[0], of_b[1]);
        multiply_add<T>(c[m][n + 1], of_a[m], of_b[2], of_b[3]);
      }
    }
  }
}

/// Masks scores: those outside of what their row sees become -infinity. `row` and `column` are
/// positions of the first score; `attended_by(row)` is a FlashSpan of columns.
template <int M, int N, class AttendedBy>
__device__ void hide(float (&scores)[M][N][4], int row, int column, const AttendedBy& attended_by) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const FlashSpan seen = attended_by(row + 16 * m + 8 * half + lane_of_warp() / 4);
#pragma unroll
      for (int i = 0; i < 2 * N; ++i) {
        const int at = column + i / 2 * 8 + lane_of_warp() % 4 * 2 + i % 2;
        if (at < seen.first || at >= seen.last) scores[m][i / 2][2 * half + i % 2] = -INFINITY;
      }
    }
  }
}

}  // namespace orrery::executor::cuda
