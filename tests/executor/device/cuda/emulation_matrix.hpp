#pragma once
// CUDA's language with the tensor cores' instructions on the host; what each of these does is said
// where it is declared for a GPU, in executor/device/cuda/kernels/matrix_code.hpp. Stricter than a
// GPU: a copy in the background leaves NaN until the thread that began it has waited, so
// that reading too early, or overwriting what others still read, shows in the result. Places that
// are not on 16 bytes are errors, as there.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "executor/device/half.hpp"
#include "tests/executor/device/cuda/emulation.hpp"

namespace orrery::executor::cuda {

/// In bytes from where dynamic shared memory begins.
using SharedAddress = std::uint32_t;

namespace emulation {

inline constexpr std::size_t chunk_bytes = 16;

inline void ensure_aligned(std::uintptr_t address) {
  if (address % chunk_bytes != 0) throw std::logic_error{"a place that is not on 16 bytes"};
}
inline std::byte* shared_chunk(SharedAddress address) {
  ensure_aligned(address);
  return shared_memory() + address;
}

struct BackgroundCopy {
  SharedAddress to = 0;
  std::array<std::byte, chunk_bytes> bytes{};
};

/// Of one thread of a block: copies begun, and how many of them belong to groups that have ended.
struct BackgroundCopies {
  std::vector<BackgroundCopy> begun;
  std::size_t ended = 0;
};

inline BackgroundCopies& background_copies() {
  static thread_local std::vector<BackgroundCopies> of_threads(1024);
  return of_threads.at(threadIdx.x);
}

inline const std::byte* matrix_row(const std::byte* addresses, unsigned matrix, unsigned row) {
  return shared_chunk(given_by<SharedAddress>(addresses, 8 * matrix + row));
}

/// What a lane gives to a product: its pairs of each operand, widened.
struct Operands {
  float a[4][2], b[2][2];
};

inline const Operands& operands(const std::byte* exchanged, unsigned lane) {
  return *reinterpret_cast<const Operands*>(exchanged + lane * lane_bytes);
}

template <class T>
void widen(std::uint32_t pair, float (&to)[2]) {
  to[0] = widened(T{static_cast<std::uint16_t>(pair)});
  to[1] = widened(T{static_cast<std::uint16_t>(pair >> 16)});
}

}  // namespace emulation

inline SharedAddress shared_memory() {
  return 0;
}

inline void load_matrices(std::uint32_t (&to)[4], SharedAddress row) {
  const std::byte* addresses = emulation::exchange(&row, sizeof(row));
  const unsigned g = emulation::lane() / 4, t = emulation::lane() % 4;
  for (unsigned m = 0; m < 4; ++m) {
    std::memcpy(&to[m], emulation::matrix_row(addresses, m, g) + 4 * t, 4);
  }
}

inline void load_matrices_transposed(std::uint32_t (&to)[4], SharedAddress row) {
  const std::byte* addresses = emulation::exchange(&row, sizeof(row));
  const unsigned g = emulation::lane() / 4, t = emulation::lane() % 4;
  for (unsigned m = 0; m < 4; ++m) {
    std::uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      std::memcpy(&pair[i], emulation::matrix_row(addresses, m, 2 * t + i) + 2 * g, 2);
    }
    std::memcpy(&to[m], pair, 4);
  }
}

template <class T>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  emulation::Operands mine;
  for (unsigned i = 0; i < 4; ++i) emulation::widen<T>(a[i], mine.a[i]);
  emulation::widen<T>(b0, mine.b[0]);
  emulation::widen<T>(b1, mine.b[1]);
  const std::byte* all = emulation::exchange(&mine, sizeof(mine));
  const unsigned g = emulation::lane() / 4, t = emulation::lane() % 4;
  // Four lanes hold a row of a, and four a column of b: pairs of the first half, then of the other.
  for (unsigned holder = 0; holder < 4; ++holder) {
    const emulation::Operands& of_rows = emulation::operands(all, 4 * g + holder);
    for (unsigned i = 0; i < 2; ++i) {
      const emulation::Operands& of_column = emulation::operands(all, 4 * (2 * t + i) + holder);
      for (unsigned k = 0; k < 4; ++k) {
        const float b = of_column.b[k / 2][k % 2];
        c[i] += of_rows.a[k / 2 * 2][k % 2] * b;
        c[2 + i] += of_rows.a[k / 2 * 2 + 1][k % 2] * b;
      }
    }
  }
}

template <class T>
std::uint32_t packed(float low, float high) {
  T first, second;
  narrow(low, first);
  narrow(high, second);
  return first.bits | static_cast<std::uint32_t>(second.bits) << 16;
}

inline float power_of_two(float x) {
  return std::exp2(x);
}

inline void copy_in_background(SharedAddress to, const void* from, bool there) {
  emulation::ensure_aligned(reinterpret_cast<std::uintptr_t>(from));
  emulation::BackgroundCopy copy{to};
  if (there) std::memcpy(copy.bytes.data(), from, copy.bytes.size());
  emulation::background_copies().begun.push_back(copy);
  std::memset(emulation::shared_chunk(to), 0xff, copy.bytes.size());
}

inline void end_copies() {
  emulation::background_copies().ended = emulation::background_copies().begun.size();
}

inline void wait_for_copies() {
  emulation::BackgroundCopies& mine = emulation::background_copies();
  for (std::size_t i = 0; i < mine.ended; ++i) {
    const emulation::BackgroundCopy& copy = mine.begun[i];
    std::memcpy(emulation::shared_chunk(copy.to), copy.bytes.data(), copy.bytes.size());
  }
  mine.begun.erase(mine.begun.begin(),
                   mine.begun.begin() + static_cast<std::ptrdiff_t>(mine.ended));
  mine.ended = 0;
}

inline void load_shared(std::uint32_t (&to)[4], SharedAddress from) {
  std::memcpy(to, emulation::shared_chunk(from), sizeof(to));
}

inline void store_shared(SharedAddress to, std::uint32_t word) {
  std::memcpy(emulation::shared_memory() + to, &word, sizeof(word));
}

}  // namespace orrery::executor::cuda
