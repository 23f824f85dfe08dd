#include <fmt/format.h>

#include "models/model/model.hpp"

namespace orrery::models {

std::string text_of(const Model& model) {
  return fmt::format(
      "model {} layers={} hidden={} heads={} kv_heads={} head_dim={} ffn={} vocab={} positions={} "
      "parameters={} norm={} position={} activation={}{}{}\n",
      model.name, model.layers, model.hidden, model.heads, model.kv_heads, model.head_dim,
      model.ffn_hidden, model.vocab, model.max_positions, model.parameters,
      word_of(norm_words, model.norm), word_of(position_words, model.positions),
      name(model.activation), model.gated_mlp ? " gated" : "",
      model.tied_embeddings ? " tied" : "");
}

}  // namespace orrery::models
