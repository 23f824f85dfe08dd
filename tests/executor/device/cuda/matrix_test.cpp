// The warp's matrix instructions, as a GPU has them and as they are emulated: small integers, whose
// products and sums are exact.

#include "executor/device/cuda/kernels/matrix_code.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "executor/device/cuda/kernels/launch.hpp"
#include "tests/executor/device/cuda/device_array.hpp"

namespace orrery::executor::cuda {
namespace {

constexpr int side = 16, matrix_bytes = 2 * side * side;

/// A square of 16-bit elements into shared memory: half a row for each lane.
template <class T>
__device__ void copy_square(SharedAddress to, const T* from) {
  const int lane = static_cast<int>(threadIdx.x);
  copy_in_background(to + lane * 16, from + lane * 8, true);
}

/// c = a b; with `transposed` b lies as b[k][n], else as b[n][k].
template <class T>
__global__ void multiply_squares(const T* a, const T* b, bool turned, float* c) {
  const int lane = static_cast<int>(threadIdx.x);
  const SharedAddress of_a = shared_memory(), of_b = of_a + matrix_bytes;
  copy_square(of_a, a);
  copy_square(of_b, b);
  end_copies();
  wait_for_copies();
  __syncthreads();
  std::uint32_t left[4], right[4];
  const SharedAddress by_columns = lane % 16 * 32 + lane / 16 * 16;
  const SharedAddress by_rows = (lane / 16 * 8 + lane % 8) * 32 + lane / 8 % 2 * 16;
  load_matrices(left, of_a + by_columns);
  turned ? load_matrices_transposed(right, of_b + by_columns)
         : load_matrices(right, of_b + by_rows);
  for (int half = 0; half < 2; ++half) {
    float sums[4] = {};
    multiply_add<T>(sums, left, right[2 * half], right[2 * half + 1]);
    multiply_add<T>(sums, left, right[2 * half], right[2 * half + 1]);  // adds to what is there
    for (int i = 0; i < 4; ++i) {
      c[(lane / 4 + i / 2 * 8) * side + half * 8 + lane % 4 * 2 + i % 2] = sums[i];
    }
  }
}

template <class T>
T stored(int value) {
  T to;
  narrow(static_cast<float>(value), to);
  return to;
}

int left_at(int i, int k) {
  return (3 * i + 5 * k) % 7 - 3;
}
int right_at(int k, int n) {
  return (k * n + 2 * n + k) % 5 - 2;
}

template <class T>
void check_product(bool turned) {
  std::vector<T> a, b;
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      a.push_back(stored<T>(left_at(row, column)));
      b.push_back(stored<T>(turned ? right_at(row, column) : right_at(column, row)));
    }
  }
  DeviceArray<T> of_a{a}, of_b{b};
  DeviceArray<float> c{std::vector<float>(side * side)};
  launch(multiply_squares<T>, {1U, 32U, 2 * matrix_bytes}, nullptr, of_a.data(), of_b.data(),
         turned, c.data());
  finish_device();
  const std::vector<float> found = c.values();
  for (int i = 0; i < side; ++i) {
    for (int n = 0; n < side; ++n) {
      int expected = 0;
      for (int k = 0; k < side; ++k) expected += 2 * left_at(i, k) * right_at(k, n);
      REQUIRE(found[static_cast<std::size_t>(i * side + n)] == static_cast<float>(expected));
    }
  }
}

TEST_CASE("Squares loaded by ldmatrix and multiplied by mma are the product") {
  check_product<Bf16>(false);
  check_product<Bf16>(true);
  check_product<Fp16>(false);
  check_product<Fp16>(true);
}

/// What 16-byte copies, there or not, and words stored in shared memory leave there; and pairs.
__global__ void move_words(const std::uint32_t* from, std::uint32_t* to) {
  const SharedAddress memory = shared_memory();
  if (threadIdx.x < 2) copy_in_background(memory + threadIdx.x * 16, from, threadIdx.x == 0);
  end_copies();
  wait_for_copies();
  if (threadIdx.x == 2) {
    for (int i = 0; i < 4; ++i) store_shared(memory + 32 + 4 * i, 70U + i);
  }
  __syncthreads();
  if (threadIdx.x < 3) {
    std::uint32_t words[4];
    load_shared(words, memory + threadIdx.x * 16);
    for (int i = 0; i < 4; ++i) to[4 * threadIdx.x + i] = words[i];
  }
  if (threadIdx.x == 3) {
    to[12] = packed<Bf16>(1.0F, -2.0F);
    to[13] = packed<Fp16>(1.0F, -2.0F);
    to[14] = __float_as_uint(power_of_two(-3.0F));
    to[15] = __float_as_uint(power_of_two(-INFINITY));
  }
}

TEST_CASE("Words move through shared memory, and zeros where there is nothing to copy") {
  DeviceArray<std::uint32_t> from{{1, 2, 3, 4}}, to{std::vector<std::uint32_t>(16)};
  launch(move_words, {1U, 32U, 48}, nullptr, from.data(), to.data());
  finish_device();
  // The first of a pair is the lower half: 1 is 3f80 in bf16 and 3c00 in fp16, -2 is c000 in both.
  CHECK(to.values() == std::vector<std::uint32_t>{1, 2, 3, 4, 0, 0, 0, 0, 70, 71, 72, 73,
                                                  0xc0003f80U, 0xc0003c00U, 0x3e000000U, 0});
}

#ifdef ORRERY_EMULATED
/// Reads what it has asked for without waiting.
__global__ void read_too_early(const std::uint32_t* from, std::uint32_t* to) {
  copy_in_background(shared_memory(), from, true);
  end_copies();
  load_shared(*reinterpret_cast<std::uint32_t(*)[4]>(to), shared_memory());
  wait_for_copies();
  load_shared(*reinterpret_cast<std::uint32_t(*)[4]>(to + 4), shared_memory());
}

TEST_CASE("An emulated copy that nobody waited for leaves NaN") {
  DeviceArray<std::uint32_t> from{{1, 2, 3, 4}}, to{std::vector<std::uint32_t>(8)};
  launch(read_too_early, {1U, 1U, 16}, nullptr, from.data(), to.data());
  CHECK(to.values() ==
        std::vector<std::uint32_t>{0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU, 1, 2, 3, 4});
}

/// Copies to a place between chunks.
__global__ void copy_askew(const std::uint32_t* from) {
  copy_in_background(shared_memory() + 8, from, true);
}

TEST_CASE("An emulated copy to a place that is not on 16 bytes is an error") {
  DeviceArray<std::uint32_t> from{{1, 2, 3, 4}};
  CHECK_THROWS_WITH(launch(copy_askew, {1U, 1U, 32}, nullptr, from.data()),
                    "a place that is not on 16 bytes");
}
#endif

}  // namespace
}  // namespace orrery::executor::cuda
