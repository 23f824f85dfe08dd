#pragma once
// How a router chooses a token's experts and their weights. Leaves out load-balancing losses.

#include <cstdint>

namespace orrery::models {

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
