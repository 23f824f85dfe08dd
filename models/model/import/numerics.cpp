// The numerical constants of a config: epsilon, initialisation, rotary positions. The executor
// computes with them; simulated times do not depend on them.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "hardware/reading.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::array epsilon_keys{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
                                  "norm_eps",     "norm_epsilon",   "layernorm_epsilon"};
constexpr std::array deviation_keys{"initializer_range", "init_std"};

/// The transformers library's default.
double usual_epsilon(const Model& model) {
  if (model.family == Family::bert) return 1e-12;
  return model.norms.kind == Norm::rms_norm ? 1e-6 : 1e-5;
}

template <class Keys>
double first_of(Config& config, const Keys& keys, double high, double otherwise) {
  for (const char* key : keys) {
    if (const auto found = config.find(key)) return hardware::within(*found, 0, high);
  }
  return otherwise;
}

/// Newer files have all keys inside `rope_parameters`, older ones at the top level.
class RotaryReader {
 public:
  RotaryReader(Config& config, Model& model) : config_{config}, model_{model} {}

  void run() {
    Rotary& rotary = model_.embedding.rotary;
    rotary.base = of("rope_theta", "rotary_emb_base", rotary.base, 1e12);
    rotary.share = of("partial_rotary_factor", "rotary_pct", rotary.share, 1);
    const auto dimensions = config_.find("rotary_dim");
    const std::int64_t head_dim = usual_attention(model_).head_dim;
    if (dimensions) {
      rotary.share =
          static_cast<double>(dimensions->integer(2, head_dim)) / static_cast<double>(head_dim);
    }
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      if (const auto found = settings(key)) scale(*found);
    }
  }

 private:
  /// Newest files have an object for each kind of layer: that of the layers that see all tokens.
  std::optional<Node> settings(const char* key) {
    const auto found = config_.find(key);
    if (!found || !found->is_object()) return std::nullopt;
    const auto full = found->find("full_attention");
    return full && full->is_object() ? full : found;
  }

  double of(const char* key, const char* synonym, double otherwise, double high) {
    const auto block = settings("rope_parameters");
    for (const char* each : {key, synonym}) {
      auto found = block ? block->find(each) : std::nullopt;
      if (!found) found = config_.find(each);
      if (found) return hardware::within(*found, 1e-6, high);
    }
    return otherwise;
  }

  void scale(const Node& block) {
    const auto named = block.has("rope_type") ? block.find("rope_type") : block.find("type");
    const std::string type = named ? named->as<std::string>() : "default";
    if (type == "default" || type == "mrope") return;
    if (type == "yarn") return scale_by_pair(block);
    if (type != "linear" && type != "llama3") {
      also_inexact(model_, "rotary positions scaled by '" + type + "'");
      return;
    }
    Rotary& rotary = model_.embedding.rotary;
    rotary.scaling = type == "linear" ? RotaryScaling::linear : RotaryScaling::llama3;
    rotary.factor = value(block, "factor", rotary.factor);
    rotary.low_turns = value(block, "low_freq_factor", rotary.low_turns);
    rotary.high_turns = value(block, "high_freq_factor", rotary.high_turns);
    rotary.original_positions =
        value(block, "original_max_position_embeddings", rotary.original_positions);
    if (rotary.high_turns < rotary.low_turns) {
      block.fail("high_freq_factor must not be below low_freq_factor");
    }
  }

  static double value(const Node& block, const char* key, double otherwise) {
    const auto found = block.find(key);
    return found ? hardware::within(*found, 1e-6, 1e9) : otherwise;
  }

  /// YaRN. The paper scales cosines and sines by a temperature m(1); DeepSeek's models scale them
  /// by m(mscale) / m(mscale_all_dim), and attention scores by m(mscale_all_dim)^2.
  ///   m(s) = 0.1 s log(factor) + 1
  /// Source  Peng et al. 2023, arXiv 2309.00071, section 3.4; DeepSeek-AI, DeepSeek-V3,
  ///         inference/model.py, which the transformers library follows
  void scale_by_pair(const Node& block) {
    Rotary& rotary = model_.embedding.rotary;
    rotary.scaling = RotaryScaling::yarn;
    const auto longest = static_cast<double>(model_.embedding.max_positions);
    rotary.original_positions = value(block, "original_max_position_embeddings", longest);
    rotary.factor = value(block, "factor", longest / rotary.original_positions);
    rotary.high_turns = value(block, "beta_fast", 32);
    rotary.low_turns = value(block, "beta_slow", 1);
    if (rotary.high_turns < rotary.low_turns) block.fail("beta_fast must not be below beta_slow");
    rotary.whole_pairs = block.value_or("truncate", true);
    const auto m = [&](double share) {
      return rotary.factor > 1 ? 0.1 * share * std::log(rotary.factor) + 1 : 1.0;
    };
    const double own = value(block, "mscale", 0), of_all = value(block, "mscale_all_dim", 0);
    const double usual = own > 0 && of_all > 0 ? m(own) / m(of_all) : m(1);
    rotary.magnitude = value(block, "attention_factor", usual);
    if (usual_attention(model_).latents && of_all > 0) rotary.score_factor = m(of_all) * m(of_all);
  }

  Config& config_;
  Model& model_;
};

}  // namespace

void read_numerics(Config& config, Model& model) {
  model.type = config.type();
  model.norms.epsilon = first_of(config, epsilon_keys, 1, usual_epsilon(model));
  model.initial_deviation = first_of(config, deviation_keys, 10, model.initial_deviation);
  if (model.embedding.positions == Positions::rotary) RotaryReader{config, model}.run();
}

}  // namespace orrery::models
