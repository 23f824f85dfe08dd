#pragma once
// Numbers in host memory by their format: the type that each format is stored as, and conversions.

#include <algorithm>
#include <type_traits>

#include "executor/device/device.hpp"
#include "executor/device/half.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

/// A type as a value, to pass to generic lambdas.
template <class T>
struct Type {
  using type = T;
};

/// Calls f(Type<T>{}), with the type T that a number format is stored as.
/// Errors  a format of 8 bits or fewer, or of indices: ContractError with the words of `refused`
template <class F>
void with_format(models::DType format, F f,
                 const char* refused = "numbers in a format that is not computed in") {
  switch (format) {
    case models::DType::fp64:
      return f(Type<double>{});
    case models::DType::fp32:
    case models::DType::tf32:
      return f(Type<float>{});
    case models::DType::bf16:
      return f(Type<Bf16>{});
    case models::DType::fp16:
      return f(Type<Fp16>{});
    default:
      throw ContractError{refused};
  }
}

/// A stored number as another type: widened exactly, or rounded to nearest.
template <class To, class From>
To number_as(From value) {
  if constexpr (!std::is_arithmetic_v<To>) {
    To stored;
    narrow(number_as<float>(value), stored);
    return stored;
  } else if constexpr (std::is_arithmetic_v<From>) {
    return static_cast<To>(value);
  } else {
    return static_cast<To>(widened(value));
  }
}

template <class From, class To>
void convert(const From* from, std::int64_t count, To* to) {
  std::transform(from, from + count, to, [](From each) { return number_as<To>(each); });
}

/// Reads an operand's numbers as `T`.
template <class T>
void load(const View& view, T* to) {
  with_format(view.dtype, [&]<class Stored>(Type<Stored>) {
    convert(reinterpret_cast<const Stored*>(view.data), view.elements(), to);
  });
}

/// Writes numbers to an operand, rounded to nearest.
template <class T>
void store(const T* from, const View& view) {
  with_format(view.dtype, [&]<class Stored>(Type<Stored>) {
    convert(from, view.elements(), reinterpret_cast<Stored*>(view.data));
  });
}

}  // namespace orrery::executor
