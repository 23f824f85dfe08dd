#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::models {

/// The MLP's function; gated MLPs multiply by it.
enum class Activation : std::uint8_t { gelu, silu, relu };

constexpr std::string_view name(Activation activation) {
  constexpr std::string_view of[] = {"gelu", "silu", "relu"};
  return of[static_cast<int>(activation)];
}

}  // namespace orrery::models
