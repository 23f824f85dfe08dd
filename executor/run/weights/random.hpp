#pragma once
// Counter-based random numbers: the n-th number of a stream depends on seed, stream and n alone, so
// that any shard of a tensor draws exactly its slice.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace orrery::executor {

/// Philox 4x32 with 10 rounds: 128 bits for a 128-bit counter under a 64-bit key.
/// Source  Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"; constants from there
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return counter;
}

/// The stream of one tensor, or of one step's tokens.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_{seed}, stream_{stream} {}

  std::uint64_t bits(std::uint64_t index) const;
  /// Mean 0, deviation 1 (Box and Muller 1958).
  double normal(std::uint64_t index) const;
  /// to[i] = deviation * normal(first + i), rounded to fp32: the same bits as one by one, but five
  /// times as fast.
  void normals(std::uint64_t first, double deviation, std::span<float> to) const;

 private:
  std::array<std::uint32_t, 4> draw(std::uint64_t index) const {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                   static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                  seed_);
  }

  std::uint64_t seed_, stream_;
};

/// A hash of numbers in order, each a byte of a text or a whole word.
/// Source  Fowler, Noll & Vo, FNV-1a, 64 bits
class Fnv1a {
 public:
  void add(std::uint64_t number) { hash_ = (hash_ ^ number) * 0x100000001b3U; }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// A stream's number from a name (FNV-1a, 64 bits).
std::uint64_t stream_number(std::string_view name);

}  // namespace orrery::executor
