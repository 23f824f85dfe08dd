#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::models {

/// The MLP's function; gated MLPs multiply by it. `gelu` is its approximation by a tanh, as GPT-2
/// and Megatron-LM compute it; `gelu_erf` is x times the normal distribution's integral.
enum class Activation : std::uint8_t { gelu, silu, relu, gelu_erf };

constexpr std::string_view name(Activation activation) {
  constexpr std::string_view of[] = {"gelu", "silu", "relu", "gelu_erf"};
  return of[static_cast<int>(activation)];
}

}  // namespace orrery::models
