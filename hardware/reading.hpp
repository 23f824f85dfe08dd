#pragma once
// Readers of single JSON values that refuse impossible ones.

#include <fmt/format.h>

#include "hardware/dtype.hpp"
#include "sim/input/document.hpp"
#include "sim/input/units.hpp"

namespace orrery::hardware {

inline constexpr int most_gpus = 1 << 20;  // of a cluster; no count of nodes or switches is larger

/// A quantity above zero. Errors: `expected a rate such as "450 GB/s" above zero, found ...`
template <class Q>
Q positive(const Node& node) {
  const Q value = node.as<Q>();
  if (!(value.count() > 0)) node.fail_expected(fmt::format("{} above zero", expected_form<Q>()));
  return value;
}

/// A bare number in [low, high].
inline double within(const Node& node, double low, double high) {
  const double value = node.as<double>();
  if (!(value >= low && value <= high)) {
    node.fail_expected(fmt::format("a number from {} to {}", low, high));
  }
  return value;
}

/// A share of a peak, in (0, 1].
inline double share(const Node& node) {
  const double value = node.as<double>();
  if (!(value > 0 && value <= 1)) node.fail_expected("a share above 0, at most 1");
  return value;
}

/// A format that a GPU computes in, at the place that names it.
inline DType read_format(const std::string& format, const Node& place) {
  const auto type = dtype_named(format);
  if (!type) place.fail("unknown number format; known: fp64 fp32 tf32 fp16 bf16 fp8 fp4");
  return *type;
}

template <class Q>
std::optional<Q> positive_if_any(const Node& node, std::string_view key) {
  const auto value = node.find(key);
  return value ? std::optional{positive<Q>(*value)} : std::nullopt;
}

}  // namespace orrery::hardware
