// Reader of BLT: a transformer over patches of bytes, between two over bytes that cross-attend to
// it, and one that cuts the patches. It is counted only.
// Source  Pagnoni et al. 2024, arXiv 2412.09871; BltForCausalLM of the transformers library
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_hashed_groups = 1 << 24, most_hash_functions = 1 << 10;

/// One of the four transformers, and what counts it.
struct BltPart {
  std::int64_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, cross_layers;

  /// h H d + 2 h K d + H d h: queries, keys and values, output
  std::int64_t attention() const { return 2 * hidden * head_dim * (heads + kv_heads); }
  /// L (attention + 3 h f + 2 h)
  std::int64_t body() const { return layers * (attention() + 3 * hidden * ffn + 2 * hidden); }
  /// Attention to another sequence, with norms of both.
  std::int64_t crossing() const { return cross_layers * (attention() + 2 * hidden); }
};

/// Reads a member, with the defaults of its class for what it does not state.
BltPart blt_part(Config& config, const char* key, BltPart part) {
  const auto stated = config.find(key);
  if (!stated || !stated->is_object()) return part;
  const bool all = stated->value_or<bool>("cross_attn_all_layers", part.cross_layers > 1);
  const std::int64_t ffn = part.ffn;
  part.hidden = stated->integer_or("hidden_size", 1, Limits::hidden, part.hidden);
  part.layers = stated->integer_or("num_hidden_layers", 1, Limits::layers, part.layers);
  part.heads = stated->integer_or("num_attention_heads", 1, Limits::heads, part.heads);
  part.kv_heads = stated->integer_or("num_key_value_heads", 1, Limits::heads, part.heads);
  part.head_dim = stated->integer_or("head_dim", 1, Limits::head_dim, part.hidden / part.heads);
  // The encoder's own default follows its width: 8/3 of it.
  const std::int64_t usual = ffn > 0 ? ffn : 8 * part.hidden / 3;
  part.ffn = stated->integer_or("intermediate_size", 1, Limits::ffn_hidden, usual);
  part.vocab = stated->integer_or("vocab_size", 1, Limits::vocab, part.vocab);
  part.cross_layers = all ? part.layers : 1;
  return part;
}

}  // namespace

/// Counted: the layers over patches as those of Llama; the others, hashed embeddings of groups of
/// bytes and the patcher, which is frozen, as further parameters.
Model read_blt(Config& config) {
  const BltPart encoder = blt_part(config, "encoder_config", {1024, 1, 16, 16, 64, 0, 260, 1});
  const BltPart decoder = blt_part(config, "decoder_config", {1024, 9, 16, 16, 64, 2816, 260, 9});
  const BltPart patches = blt_part(config, "global_config", {2048, 25, 16, 16, 128, 5632, 260, 1});
  const BltPart patcher = blt_part(config, "patcher_config", {768, 14, 12, 12, 64, 2048, 260, 1});
  const std::int64_t k = config.size_or("cross_attn_k", 1 << 10, 2);
  const auto sizes = config.find("encoder_hash_byte_group_size");
  const std::int64_t groups =
      sizes && !sizes->elements().empty() ? std::ssize(sizes->elements()) : 6;
  const std::int64_t hashed =
      config.size_or("encoder_hash_byte_group_vocab", most_hashed_groups, 500002) * groups *
      config.size_or("encoder_hash_byte_group_nb_functions", most_hash_functions, 1);
  for (const char* key : {"patching_mode", "patching_threshold", "patching_batch_size",
                          "max_patch_length", "patch_size", "local_attention_window_len"}) {
    config.find(key);
  }
  config.assume({{"vocab_size", decoder.vocab},
                 {"hidden_size", patches.hidden},
                 {"intermediate_size", patches.ffn},
                 {"num_hidden_layers", patches.layers},
                 {"num_attention_heads", patches.heads},
                 {"num_key_value_heads", patches.kv_heads},
                 {"head_dim", patches.head_dim},
                 {"max_position_embeddings", 4096},
                 {"tie_word_embeddings", false},
                 {"hidden_act", "silu"}});
  Model model = read_llama(config);
  const std::int64_t vocab = model.embedding.vocab;
  const std::int64_t inner = encoder.hidden * k;
  std::int64_t further = vocab * decoder.hidden + encoder.body() + encoder.crossing() +
                         encoder.vocab * encoder.hidden + encoder.hidden * inner +
                         hashed * encoder.hidden + decoder.body() + decoder.crossing() +
                         decoder.hidden + patches.hidden * decoder.hidden * k;
  if (inner != patches.hidden) further += inner * patches.hidden;
  if (config.flag("patch_in_forward", true)) {
    further += patcher.body() + patcher.hidden + 2 * patcher.vocab * patcher.hidden;
  }
  // Its bytes have no embedding or head of the width of patches, and patches no last norm.
  further -= 2 * vocab * model.hidden + model.hidden;
  model.further.vector(further);
  model.parameters += further;
  model.active_parameters += further;
  model.formula += " + layers over bytes, hashed embeddings and patcher";
  model.not_simulated = "layers over bytes and over patches of them are counted, not yet simulated";
  return model;
}

}  // namespace orrery::models
