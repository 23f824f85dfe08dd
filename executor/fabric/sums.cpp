#include "executor/fabric/sums.hpp"

#include <algorithm>
#include <array>

#include "executor/device/copy_bytes.hpp"
#include "executor/device/half.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::int64_t stretch = 512;  // elements summed at a time, in the first-level cache

template <class T>
void sum_wide(std::span<const std::byte* const> from, std::byte* to, std::int64_t count) {
  std::array<T, stretch> sum;
  for (std::int64_t at = 0; at < count; at += stretch) {
    const std::int64_t n = std::min(stretch, count - at);
    const auto size = static_cast<std::size_t>(n) * sizeof(T);
    copy_bytes(sum.data(), from[0] + at * static_cast<std::int64_t>(sizeof(T)), size);
    for (std::size_t rank = 1; rank < from.size(); ++rank) {
      const T* next = reinterpret_cast<const T*>(from[rank]) + at;
      for (std::int64_t i = 0; i < n; ++i) sum[static_cast<std::size_t>(i)] += next[i];
    }
    copy_bytes(to + at * static_cast<std::int64_t>(sizeof(T)), sum.data(), size);
  }
}

template <class T>
void sum_half(std::span<const std::byte* const> from, std::byte* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (const std::byte* each : from) sum += widened(reinterpret_cast<const T*>(each)[i]);
    narrow(sum, reinterpret_cast<T*>(to)[i]);
  }
}

}  // namespace

void sum_in_order(Element element, std::span<const std::byte* const> from, std::byte* to,
                  std::int64_t count) {
  switch (element) {
    case Element::fp16:
      return sum_half<Fp16>(from, to, count);
    case Element::bf16:
      return sum_half<Bf16>(from, to, count);
    case Element::fp32:
      return sum_wide<float>(from, to, count);
    case Element::fp64:
      return sum_wide<double>(from, to, count);
    case Element::ring:
      return sum_wide<std::uint64_t>(from, to, count);
    case Element::byte:
      break;
  }
  throw ContractError{"bytes are not added"};
}

}  // namespace orrery::executor
