#pragma once
// Rotary position embeddings of queries and keys, and how they are scaled to longer sequences.

#include <cstdint>
#include <vector>

namespace orrery::models {

/// How frequencies are scaled for sequences longer than those of pre-training.
enum class RotaryScaling : std::uint8_t { none, linear, llama3, yarn };

/// A model's rotary embedding.
struct Rotary {
  double base = 10000;
  double share = 1;  // share of a head's columns that is rotated, from the first on
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;  // by which slow frequencies are divided
  /// llama3: pairs that make fewer than `low_turns` rotations in `original_positions` are slowed by
  /// `factor`, those that make more than `high_turns` are not; interpolated by rotations between.
  /// yarn: interpolated by pair index between the two pairs that make so many rotations.
  double low_turns = 1, high_turns = 4, original_positions = 8192;
  bool whole_pairs = true;  // yarn: those two indices are rounded outwards to integers
  double magnitude = 1;     // factor of cosines and sines
  double score_factor = 1;  // factor of attention's scores, on top of 1 / sqrt(head_dim)

  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// Radians per position of each pair (i, i + pairs) of a head: base^(-i / pairs), scaled.
/// Source  Su et al. 2021, "RoFormer", arXiv 2104.09864; linear: Chen et al. 2023, arXiv
///         2306.15595; llama3: rope_scaling of Llama 3.1's config, as the transformers library
///         reads it; yarn: Peng et al. 2023, "YaRN", arXiv 2309.00071, section 3.2
std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t head_dim);

}  // namespace orrery::models
