#pragma once
// Activation functions of MLPs.

#include <cstdint>
#include <string_view>

#include "sim/words.hpp"

namespace orrery::models {

/// The MLP's activation function; a gated MLP multiplies its value by that of its gate. `gelu` is
/// the tanh approximation, as GPT-2 and Megatron-LM compute it; `gelu_erf` the exact function, x
/// times the normal distribution's integral.
enum class Activation : std::uint8_t { gelu, silu, relu, gelu_erf };
inline constexpr Words<Activation, 4> activation_words{{{Activation::gelu, "gelu"},
                                                        {Activation::silu, "silu"},
                                                        {Activation::relu, "relu"},
                                                        {Activation::gelu_erf, "gelu_erf"}}};

constexpr std::string_view name(Activation activation) {
  return word_of(activation_words, activation);
}

}  // namespace orrery::models
