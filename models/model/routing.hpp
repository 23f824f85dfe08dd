#pragma once
// Which experts a token meets, and with what weights.

#include <cstdint>

namespace orrery::models {

/// From a router's logits x, one for each of E experts, which lie in groups next to each other.
///   s_e    softmax over all E, or 1 / (1 + exp(-x_e)) of each by itself
///   chosen the k with the largest s_e + b_e, in the `groups_kept` groups whose `best_of_group`
///          largest of those add up to most; of equals the lower; b is a bias of the checkpoint
///   weight scale s_e, or where weights are normalised scale s_e / sum of the chosen s
/// Source  softmax, normalised: Jiang et al. 2024, "Mixtral of Experts", arXiv 2401.04088, section
///         2.1; groups: DeepSeek-AI 2024, "DeepSeek-V2", arXiv 2405.04434, section 2.1.2; sigmoids
///         and b: "DeepSeek-V3", arXiv 2412.19437, section 2.1.2
struct Routing {
  enum class Score : std::uint8_t { softmax, sigmoid };
  Score score = Score::softmax;
  bool normalised = true;
  bool corrected = false;  // is there such a bias? Training leaves it as it is
  std::int64_t groups = 1, groups_kept = 1, best_of_group = 1;
  double scale = 1;

  friend bool operator==(const Routing&, const Routing&) = default;
};

}  // namespace orrery::models
