#include <fmt/format.h>

#include <array>

#include "models/plan/fields.hpp"

namespace orrery::models {
namespace {

/// Degrees above 1.
void refuse_degree(const Node& degree) {
  const std::int64_t value = degree.integer(1, most_gpus);
  const std::string_view key = std::string_view{degree.pointer()};
  if (value > 1) {
    degree.fail(
        fmt::format("{} {} is not simulated yet; known: 1", key.substr(key.rfind('/') + 1), value));
  }
}

constexpr std::array<UnsimulatedField, 1> unsimulated{{{"expert", "ep", refuse_degree}}};

}  // namespace

std::span<const UnsimulatedField> unsimulated_fields() {
  return unsimulated;
}

}  // namespace orrery::models
