#pragma once
// Random numbers by index: what the n-th number of a stream is depends on nothing else, so that any
// shard of a tensor draws exactly its slice.

#include <array>
#include <cstdint>
#include <string_view>

namespace orrery::executor {

/// Philox 4x32 with 10 rounds: 128 bits for a 128-bit counter under a 64-bit key.
/// Source  Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"; constants from there
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key);

/// The stream of one tensor, or of one step's tokens.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_{seed}, stream_{stream} {}

  std::uint64_t bits(std::uint64_t index) const;
  /// Mean 0, deviation 1 (Box and Muller 1958).
  double normal(std::uint64_t index) const;

 private:
  std::uint64_t seed_, stream_;
};

/// A stream's number from a name (FNV-1a, 64 bits).
std::uint64_t stream_number(std::string_view name);

}  // namespace orrery::executor
