// What a config says of the numbers themselves: epsilon, initialisation, rotary positions. A
// simulation does not ask for them; a run does.
#include <fmt/format.h>

#include <array>

#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::array epsilon_keys{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
                                  "norm_eps"};
constexpr std::array deviation_keys{"initializer_range", "init_std"};

/// What the transformers library takes where the file is silent.
double usual_epsilon(const Model& model) {
  if (model.family == Family::bert) return 1e-12;
  return model.norm == Norm::rms_norm ? 1e-6 : 1e-5;
}

template <class Keys>
double first_of(Config& config, const Keys& keys, double high, double otherwise) {
  for (const char* key : keys) {
    if (const auto found = config.find(key)) return number(*found, 0, high);
  }
  return otherwise;
}

/// Newer files say all in `rope_parameters`, older ones next to each other.
class RotaryReader {
 public:
  RotaryReader(Config& config, Model& model) : config_{config}, model_{model} {}

  void run() {
    Rotary& rotary = model_.rotary;
    rotary.base = of("rope_theta", "rotary_emb_base", rotary.base, 1e12);
    rotary.share = of("partial_rotary_factor", "rotary_pct", rotary.share, 1);
    const auto dimensions = config_.find("rotary_dim");
    if (dimensions) {
      rotary.share = static_cast<double>(dimensions->integer(2, model_.head_dim)) /
                     static_cast<double>(model_.head_dim);
    }
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const auto found = config_.find(key);
      if (found && found->is_object()) scale(*found);
    }
  }

 private:
  double of(const char* key, const char* synonym, double otherwise, double high) {
    const auto block = config_.find("rope_parameters");
    for (const char* each : {key, synonym}) {
      auto found = block && block->is_object() ? block->find(each) : std::nullopt;
      if (!found) found = config_.find(each);
      if (found) return number(*found, 1e-6, high);
    }
    return otherwise;
  }

  void scale(const Node& block) {
    const auto named = block.has("rope_type") ? block.find("rope_type") : block.find("type");
    const std::string type = named ? named->as<std::string>() : "default";
    if (type == "default" || type == "mrope") return;
    if (type != "linear" && type != "llama3") {
      model_.inexact = "rotary positions scaled by '" + type + "'";
      return;
    }
    Rotary& rotary = model_.rotary;
    const auto value = [&](const char* key, double otherwise) {
      const auto found = block.find(key);
      return found ? number(*found, 1e-6, 1e9) : otherwise;
    };
    rotary.scaling = type == "linear" ? RotaryScaling::linear : RotaryScaling::llama3;
    rotary.factor = value("factor", rotary.factor);
    rotary.low_turns = value("low_freq_factor", rotary.low_turns);
    rotary.high_turns = value("high_freq_factor", rotary.high_turns);
    rotary.original_positions =
        value("original_max_position_embeddings", rotary.original_positions);
    if (rotary.high_turns < rotary.low_turns) {
      block.fail("high_freq_factor must not be below low_freq_factor");
    }
  }

  Config& config_;
  Model& model_;
};

}  // namespace

double number(const Node& node, double low, double high) {
  const double value = node.as<double>();
  if (!(value >= low && value <= high)) {
    node.fail_expected(fmt::format("a number from {} to {}", low, high));
  }
  return value;
}

void read_numerics(Config& config, Model& model) {
  model.type = config.type();
  model.norm_epsilon = first_of(config, epsilon_keys, 1, usual_epsilon(model));
  model.initial_deviation = first_of(config, deviation_keys, 10, model.initial_deviation);
  if (model.positions == Positions::rotary) RotaryReader{config, model}.run();
}

}  // namespace orrery::models
