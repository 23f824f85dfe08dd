#pragma once
// Number formats that kernels compute in and buffers hold.

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery::hardware {

enum class DType : std::uint8_t { fp64, fp32, tf32, fp16, bf16, fp8, fp4, int64, int32, uint8 };
inline constexpr int dtype_count = 10;

/// Bits that one element occupies in memory (tf32 is stored as fp32).
constexpr int bits(DType type) {
  constexpr int of[dtype_count] = {64, 32, 32, 16, 16, 8, 4, 64, 32, 8};
  return of[static_cast<int>(type)];
}
constexpr std::string_view name(DType type) {
  constexpr std::string_view of[dtype_count] = {"fp64", "fp32", "tf32",  "fp16",  "bf16",
                                                "fp8",  "fp4",  "int64", "int32", "uint8"};
  return of[static_cast<int>(type)];
}
std::optional<DType> dtype_named(std::string_view text);

}  // namespace orrery::hardware
