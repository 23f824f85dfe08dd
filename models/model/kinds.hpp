#pragma once
// The kinds of norm, activation, positions and routing that models have.

#include <cstdint>
#include <string_view>

#include "sim/words.hpp"

namespace orrery::models {

enum class Norm : std::uint8_t { layer_norm, rms_norm };
inline constexpr Words<Norm, 2> norm_words{
    {{Norm::layer_norm, "layer_norm"}, {Norm::rms_norm, "rms_norm"}}};

/// How a model tells the tokens of a sequence apart.
enum class Positions : std::uint8_t { none, learned, rotary, alibi };
inline constexpr Words<Positions, 4> position_words{{{Positions::none, "none"},
                                                     {Positions::learned, "learned"},
                                                     {Positions::rotary, "rotary"},
                                                     {Positions::alibi, "alibi"}}};

/// The MLP's activation function; a gated MLP multiplies its value by that of its gate. `gelu` is
/// the tanh approximation, as GPT-2 and Megatron-LM compute it; `gelu_erf` the exact function, x
/// times the normal distribution's integral; `relu2` the square of relu.
/// Source  relu2: So et al. 2021, "Primer", arXiv 2109.08668
enum class Activation : std::uint8_t { gelu, silu, relu, gelu_erf, relu2 };
inline constexpr Words<Activation, 5> activation_words{{{Activation::gelu, "gelu"},
                                                        {Activation::silu, "silu"},
                                                        {Activation::relu, "relu"},
                                                        {Activation::gelu_erf, "gelu_erf"},
                                                        {Activation::relu2, "relu2"}}};

constexpr std::string_view name(Activation activation) {
  return word_of(activation_words, activation);
}

/// How a router chooses a token's experts and their weights. Leaves out load-balancing losses.
///
/// Router logits x, one for each of E experts, which form contiguous groups of equal size:
///   s_e    softmax of x over all E, or sigmoid 1 / (1 + exp(-x_e))
///   chosen the k experts with the largest s_e + b_e, within the `groups_kept` groups whose
///          `best_of_group` largest s_e + b_e have the largest sum; ties go to the lower index; b
///          is a bias of the checkpoint
///   weight scale s_e, or where weights are normalised scale s_e / sum of the chosen s
/// Source  softmax, normalised: Jiang et al. 2024, "Mixtral of Experts", arXiv 2401.04088, section
///         2.1; groups: DeepSeek-AI 2024, "DeepSeek-V2", arXiv 2405.04434, section 2.1.2; sigmoids
///         and b: "DeepSeek-V3", arXiv 2412.19437, section 2.1.2
struct Routing {
  enum class Score : std::uint8_t { softmax, sigmoid };
  Score score = Score::softmax;
  bool normalised = true;
  bool corrected = false;  // is there a bias b? It is not trained
  std::int64_t groups = 1, groups_kept = 1, best_of_group = 1;
  double scale = 1;

  friend bool operator==(const Routing&, const Routing&) = default;
};

}  // namespace orrery::models
