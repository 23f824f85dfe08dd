#include "executor/random.hpp"

#include <cmath>
#include <numbers>

namespace orrery::executor {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
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

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  const auto drawn =
      philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
              static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
             seed_);
  return (std::uint64_t{drawn[1]} << 32) | drawn[0];
}

double RandomStream::normal(std::uint64_t index) const {
  const auto drawn =
      philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
              static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
             seed_);
  const double u = (static_cast<double>(drawn[0]) + 0.5) * 0x1p-32;  // never 0
  const double v = (static_cast<double>(drawn[1]) + 0.5) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t stream_number(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace orrery::executor
