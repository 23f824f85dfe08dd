#include <fmt/format.h>

#include "models/model/model.hpp"

namespace orrery::models {

std::string text_of(const Model& model) {
  return fmt::format(
      "model {} layers={} hidden={} heads={} kv_heads={} head_dim={} ffn={} vocab={} positions={} "
      "parameters={} norm={} position={} activation={}{}{}\n",
      model.name, model.layers, model.hidden, model.attention.heads, model.attention.kv_heads,
      model.attention.head_dim, model.mlp.width, model.embedding.vocab,
      model.embedding.max_positions, model.parameters, word_of(norm_words, model.norms.kind),
      word_of(position_words, model.embedding.positions), name(model.mlp.activation),
      model.mlp.gated ? " gated" : "", model.embedding.tied ? " tied" : "");
}

}  // namespace orrery::models
