#pragma once
// Quantities whose type carries the unit: only meaningful sums and ratios compile. Time is integer
// picoseconds (64 bits: 106 days), so ties stay ties. GB is 10^9 bytes, GiB 2^30. Overflow of 64
// bits is an InputError, because only numbers of the user's can cause it.

#include <cmath>
#include <compare>
#include <cstdint>

#include "sim/checked.hpp"

namespace orrery {

/// A count of `Unit`, held as `Rep`.
template <class Unit, class Rep>
class Quantity {
 public:
  using unit = Unit;
  using rep = Rep;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_{count} {}
  constexpr Rep count() const { return count_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity{checked_sum<Unit>(a.count_, b.count_)};
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity{checked_difference<Unit>(a.count_, b.count_)};
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity{} - a; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) {
    return Quantity{checked_product<Unit>(a.count_, factor)};
  }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return a * factor; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  Rep count_{};
};

using Time = Quantity<struct Picosecond, std::int64_t>;
using Bytes = Quantity<struct Byte, std::int64_t>;
using Flops = Quantity<struct FlopCount, std::int64_t>;  // of one rank; integer, so sums are exact
using Bandwidth = Quantity<struct BytePerSecond, double>;
using FlopRate = Quantity<struct FlopPerSecond, double>;
using Power = Quantity<struct Watt, double>;
using Energy = Quantity<struct Joule, double>;
using Money = Quantity<struct Dollar, double>;
using Price = Quantity<struct DollarPerHour, double>;
using Frequency = Quantity<struct Hertz, double>;

constexpr double seconds(Time time) {
  return static_cast<double>(time.count()) * 1e-12;
}

/// The product of whole numbers as a count of `Q`. Errors: InputError
template <class Q, class... Counts>
constexpr Q multiplied(std::int64_t first, Counts... others) {
  Q all{first};
  ((all = all * static_cast<std::int64_t>(others)), ...);
  return all;
}

/// The nearest whole count. Errors: InputError
template <class Q>
Q nearest_count(double value) {
  return Q{checked_round<typename Q::unit>(value)};
}

/// The nearest picosecond.
inline Time from_seconds(double value) {
  return nearest_count<Time>(value * 1e12);
}

/// A ratio of two like quantities is a bare number.
template <class Unit, class Rep>
constexpr double ratio(Quantity<Unit, Rep> a, Quantity<Unit, Rep> b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

/// A duration stretched by a bare factor, to the nearest picosecond.
inline Time scaled(Time time, double factor) {
  return nearest_count<Time>(static_cast<double>(time.count()) * factor);
}

/// ceil(count / rate), in picoseconds: exact where the rate is a whole number per second.
inline Time rounded_up(std::int64_t count, double rate) {
  return Time{checked_quotient<Picosecond>(count, rate, 1'000'000'000'000)};
}

/// Rounded up: a transfer never ends before its last byte. Rates are checked positive when read.
inline Time operator/(Bytes size, Bandwidth rate) {
  return rounded_up(size.count(), rate.count());
}
inline Time operator/(Flops work, FlopRate rate) {
  return rounded_up(work.count(), rate.count());
}
inline Energy operator*(Power power, Time time) {
  return Energy{power.count() * seconds(time)};
}
inline Money operator*(Price price, Time time) {
  return Money{price.count() * seconds(time) / 3600.0};
}

inline namespace literals {
constexpr Time operator""_ps(unsigned long long n) {
  return Time{static_cast<std::int64_t>(n)};
}
constexpr Time operator""_ns(unsigned long long n) {
  return Time{static_cast<std::int64_t>(n) * 1000};
}
constexpr Time operator""_us(unsigned long long n) {
  return Time{static_cast<std::int64_t>(n) * 1000'000};
}
constexpr Time operator""_ms(unsigned long long n) {
  return Time{static_cast<std::int64_t>(n) * 1000'000'000};
}
constexpr Time operator""_s(unsigned long long n) {
  return Time{static_cast<std::int64_t>(n) * 1000'000'000'000};
}
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n)};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) << 30};
}
constexpr Bytes operator""_MB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) * 1000'000};
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n) * 1000'000'000};
}
constexpr Bandwidth operator""_GBps(unsigned long long n) {
  return Bandwidth{static_cast<double>(n) * 1e9};
}
constexpr FlopRate operator""_TFLOPS(unsigned long long n) {
  return FlopRate{static_cast<double>(n) * 1e12};
}
}  // namespace literals

}  // namespace orrery
