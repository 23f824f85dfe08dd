#pragma once
// Activation functions of MLPs.

#include <cstdint>
#include <string_view>

namespace orrery::models {

/// The MLP's activation function; a gated MLP multiplies its value by that of its gate. `gelu` is
/// the tanh approximation, as GPT-2 and Megatron-LM compute it; `gelu_erf` the exact function, x
/// times the normal distribution's integral.
enum class Activation : std::uint8_t { gelu, silu, relu, gelu_erf };

constexpr std::string_view name(Activation activation) {
  constexpr std::string_view of[] = {"gelu", "silu", "relu", "gelu_erf"};
  return of[static_cast<int>(activation)];
}

}  // namespace orrery::models
