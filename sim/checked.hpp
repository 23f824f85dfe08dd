#pragma once
// Overflow-checked 64-bit integer arithmetic. Overflow is an InputError, not a ContractError: only
// the user's numbers lead to it. Floating-point counts pass unchecked.

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>

#include "sim/errors.hpp"

namespace orrery {

/// The start of the error message for a count of this unit that overflows 64 bits.
template <class Unit>
inline constexpr const char* too_large = "a size in the scenario is above 2^63";
template <>
inline constexpr const char* too_large<struct Picosecond> =
    "a time in the scenario is above 106 days, the longest that can be simulated";
template <>
inline constexpr const char* too_large<struct Byte> =
    "a number of bytes in the scenario is above 2^63, the largest that can be counted";
template <>
inline constexpr const char* too_large<struct FlopCount> =
    "one rank's FLOPs in a step are above 2^63, the largest number that can be counted";

template <class Unit>
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_too_large() {
  throw InputError{std::string{too_large<Unit>} +
                   "; use a smaller model, batch or sequence, or higher rates"};
}

/// Sum, difference and product of two counts; integers are checked for overflow. Errors: InputError
template <class Unit, class Rep>
constexpr Rep checked_sum(Rep a, Rep b) {
  if constexpr (std::integral<Rep>) {
    Rep sum{};
    if (__builtin_add_overflow(a, b, &sum)) refuse_too_large<Unit>();
    return sum;
  } else {
    return a + b;
  }
}
template <class Unit, class Rep>
constexpr Rep checked_difference(Rep a, Rep b) {
  if constexpr (std::integral<Rep>) {
    Rep difference{};
    if (__builtin_sub_overflow(a, b, &difference)) refuse_too_large<Unit>();
    return difference;
  } else {
    return a - b;
  }
}
template <class Unit, class Rep>
constexpr Rep checked_product(Rep a, Rep b) {
  if constexpr (std::integral<Rep>) {
    Rep product{};
    if (__builtin_mul_overflow(a, b, &product)) refuse_too_large<Unit>();
    return product;
  } else {
    return a * b;
  }
}

/// Rounds to the nearest integer. Errors: not within 64 bits, or NaN: InputError
template <class Unit>
std::int64_t checked_round(double value) {
  if (!(std::abs(value) < 0x1p63)) refuse_too_large<Unit>();  // true for NaN too
  return std::llround(value);
}

// GCC and Clang both have it; ISO C++ does not.
__extension__ using Int128 = __int128;

/// ceil(scale * count / rate): exact where the rate is a whole number.
template <class Unit>
std::int64_t checked_quotient(std::int64_t count, double rate, std::int64_t scale) {
  if (rate < 1.0 || rate >= 0x1p63 || rate != std::floor(rate)) {
    return checked_round<Unit>(
        std::ceil(static_cast<double>(count) / rate * static_cast<double>(scale)));
  }
  const auto whole = static_cast<std::int64_t>(rate);
  const Int128 quotient = (Int128{count} * scale + whole - 1) / whole;
  if (quotient > Int128{INT64_MAX}) refuse_too_large<Unit>();
  return static_cast<std::int64_t>(quotient);
}

}  // namespace orrery
