// Reader of Qwen4-Exp: Qwen3-Next's delta rules, gated attention and experts between several
// residual streams, with tables of hashed n-grams on some layers.
#include <fmt/format.h>

#include <set>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t largest_streams = 64, largest_rank = 1 << 16, largest_base = 1 << 30;
constexpr std::int64_t most_tables = 1 << 12;  // of hashed n-grams, in all layers

bool is_prime(std::int64_t number) {
  if (number % 2 == 0) return number == 2;
  for (std::int64_t divisor = 3; divisor * divisor <= number; divisor += 2) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

/// Tables of hashed n-grams, and what brings their rows into m streams: on each such layer the
/// heads' rows of width e / heads together, keys m h e, values h e, three norms and a convolution
/// of the streams. A head's rows are the next prime from `ngram_vocab_size_base` on; a layer's are
/// padded.
///   rows e / heads  +  e h (m + 1)  +  m h (3 + taps)
Tally ngram_tables(Config& config, std::int64_t depth, std::int64_t hidden, std::int64_t streams) {
  Tally count;
  const auto layers = config.find("ple_layer_ids");
  const std::int64_t width = config.positive_or("ple_embed_dim", Limits::hidden, hidden);
  const std::int64_t taps = config.positive_or("ple_conv_kernel_size", 1 << 10, 4);
  const std::int64_t longest = config.positive_or("ngram_size", most_tables, 3);
  if (longest < 2) config.fail("ngram_size", "expected at least 2");
  const std::int64_t hashes = config.positive_or("heads_per_ngram", most_tables, 8);
  const std::int64_t from = config.positive_or("ngram_vocab_size_base", largest_base, 20'000'000);
  const std::int64_t multiple =
      config.positive_or("make_ngram_vocab_size_divisible_by", 1 << 20, 128);
  heed(config, {"seed", "split_ngram_parts"});
  if (!layers || layers->elements().empty()) return count;
  const std::int64_t heads = (longest - 1) * hashes;
  if (width % heads != 0) {
    config.fail(
        "ple_embed_dim",
        fmt::format("{} is no multiple of (ngram_size - 1) x heads_per_ngram, {}", width, heads));
  }
  std::set<std::int64_t> with_tables;  // numbers from 1
  for (const Node& each : layers->elements()) with_tables.insert(each.integer(1, depth));
  if (std::ssize(with_tables) * heads > most_tables) {
    layers->fail(fmt::format("makes more than {} tables of n-grams", most_tables));
  }
  std::int64_t prime = from - 1;
  for (std::size_t i = 0; i < with_tables.size(); ++i) {
    std::int64_t rows = 0;
    for (std::int64_t head = 0; head < heads; ++head) {
      do ++prime;
      while (!is_prime(prime));
      rows += prime;
    }
    rows = (rows + multiple - 1) / multiple * multiple;
    count.add({rows * (width / heads), width, 0});  // a token looks one row up for each head
    count.matrix(width * hidden * (streams + 1));
    count.vector(streams * hidden * (3 + taps));
  }
  return count;
}

}  // namespace

/// m residual streams. Around attention and experts each: a norm of all, what mixes the part's
/// input by a rank r, and what injects its output; once more before the head, without the
/// injection. They stand in the place of a layer's norms. Attention may choose tokens by an indexer
/// of n heads of width d.
///   m h + 2 r m h + m m h        h (n + 1) d + 2 d
/// Source  Qwen4ExpForCausalLM of the transformers library
Model read_qwen4_exp(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  model.experts.mlp = model.mlp;
  model.experts.shared_width =
      config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  model.experts.shared_gate = true;
  model.attention.qk_norm = true;
  model.attention.gated = config.flag("attn_output_gate", true);
  model.norms.offset = 1;
  const DeltaPart delta = read_delta(config);
  const std::int64_t every = config.positive_or("full_attention_interval", Limits::layers, 4);
  const auto kinds = config.kinds("layer_types", model.depth,
                                  {"linear_attention", "indexed_attention", "full_attention"});
  std::int64_t attends = 0;
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const bool full = kinds ? (*kinds)[static_cast<std::size_t>(i)] > 0 : (i + 1) % every == 0;
    Layer layer{delta, model.experts};
    if (full) layer.mixer = model.attention;
    attends += full ? 1 : 0;
    model.layers.push_back(layer);
  }
  const std::int64_t h = model.hidden;
  const std::int64_t m = config.size("hc_count", largest_streams);
  const std::int64_t r = config.size("hc_lowrank", largest_rank);
  model.further.matrix(2 * model.depth * m * h * (2 * r + m) + 2 * r * m * h);
  model.further.vector((2 * model.depth + 1) * (m - 1) * h);
  if (const std::int64_t n = config.size_or("indexer_n_heads", Limits::heads, 0); n > 0) {
    const std::int64_t d = config.size("indexer_head_dim", Limits::head_dim);
    model.further.matrix(attends * h * (n + 1) * d);
    model.further.vector(attends * 2 * d);
  }
  model.further.add(ngram_tables(config, model.depth, h, m));
  heed(config, {
                   "indexer_kv_heads",
                   "indexer_budget",
                   "indexer_compress_ratio",
                   "indexer_head_dim",
                   "output_gate_type",
                   "mtp_num_hidden_layers",
                   "mtp_use_dedicated_embeddings",
               });
  model.not_simulated = "residual streams that are mixed are counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
