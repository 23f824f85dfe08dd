#pragma once
// How the heads of queries and keys are turned by their position.

#include <cstdint>
#include <vector>

namespace orrery::models {

/// How a model reaches beyond the positions that it was first trained with.
enum class RotaryScaling : std::uint8_t { none, linear, llama3, yarn };

struct Rotary {
  double base = 10000;
  double share = 1;  // of a head's columns, the first ones; the others are left as they are
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;  // by which slow frequencies are divided
  /// Of llama3: pairs that turn fewer than `low_turns` times in `original_positions` are slowed by
  /// `factor`, those that turn more than `high_turns` times are left, in between by degrees.
  /// yarn goes by the number of the pair between the two that turn so many times.
  double low_turns = 1, high_turns = 4, original_positions = 8192;
  bool whole_pairs = true;  // of yarn: those two are rounded outwards to pairs that there are
  double magnitude = 1;     // of cosines and sines
  double score_factor = 1;  // of attention's scores, on top of 1 / sqrt(head_dim)

  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// Radians per position of each pair (i, i + pairs) of a head: base^(-i / pairs), scaled.
/// Source  Su et al. 2021, "RoFormer", arXiv 2104.09864; linear: Chen et al. 2023, arXiv
///         2306.15595; llama3: rope_scaling of Llama 3.1's config, as the transformers library
///         reads it; yarn: Peng et al. 2023, "YaRN", arXiv 2309.00071, section 3.2
std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t head_dim);

}  // namespace orrery::models
