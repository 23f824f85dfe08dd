#include "executor/pretrained/stored_names.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Model;

/// One of our tensors, by its name without the layer: "qkv", "weight".
struct Asked {
  std::string layer;  // "3"; empty outside of the layers
  std::string part;   // "qkv"
  std::string kind;   // "weight"
  const StateTensor& tensor;

  bool vector() const { return tensor.rows == 1; }
};

Asked asked(const StateTensor& tensor) {
  std::string_view name = tensor.name;
  std::string layer;
  constexpr std::string_view prefix = "layer";
  if (name.starts_with(prefix)) {
    const std::size_t dot = name.find('.');
    layer = name.substr(prefix.size(), dot - prefix.size());
    name.remove_prefix(dot + 1);
  }
  const std::size_t dot = name.rfind('.');
  std::string part{name.substr(0, dot)};
  // A bias that the residual add applies belongs to the linear layer before it.
  if (part == "attention.add") part = "projection";
  if (part == "mlp.add") part = "down";
  if (part == "cross.add") part = "cross.projection";
  return {layer, part, std::string{name.substr(dot + 1)}, tensor};
}

/// Our whole tensor, stored in the same layout as ours.
StoredPart whole(const Asked& of, std::string name) {
  return {.tensor = std::move(name),
          .rows = of.tensor.rows,
          .columns = of.tensor.columns,
          .vector = of.vector(),
          .row_count = of.tensor.rows,
          .column_count = of.tensor.columns};
}

/// Our columns [column, column + count), stored as the rows from `at` on of their [out, in] matrix
/// of `out` rows; of a bias, as those elements.
StoredPart rows_of_theirs(const Asked& of, std::string name, std::int64_t out, std::int64_t at,
                          std::int64_t column, std::int64_t count) {
  StoredPart part{.tensor = std::move(name),
                  .vector = of.vector(),
                  .transposed = !of.vector(),
                  .at = at,
                  .row_count = of.tensor.rows,
                  .column = column,
                  .column_count = count};
  part.rows = of.vector() ? 1 : out;
  part.columns = of.vector() ? out : of.tensor.rows;
  return part;
}

/// Our whole tensor, stored as a linear layer of theirs, [out, in].
StoredPart linear(const Asked& of, std::string name) {
  return rows_of_theirs(of, std::move(name), of.tensor.columns, 0, 0, of.tensor.columns);
}

/// Our columns, stored as several tensors of theirs, which ours has next to each other.
std::vector<StoredPart> side_by_side(
    const Asked& of, const std::vector<std::pair<std::string, std::int64_t>>& theirs) {
  std::vector<StoredPart> parts;
  std::int64_t column = 0;
  for (const auto& [name, count] : theirs) {
    parts.push_back(rows_of_theirs(of, name, count, 0, column, count));
    column += count;
  }
  return parts;
}

using Parts = std::vector<StoredPart>;

/// LLaMA, Mistral, Qwen 2 and 3: every projection is a tensor of its own.
Parts llama_parts(const Model& model, const Asked& of) {
  const std::string layer = "model.layers." + of.layer + ".";
  const std::string end = "." + of.kind;
  if (of.part == "embedding") return {whole(of, "model.embed_tokens" + end)};
  if (of.part == "head") return {whole(of, "lm_head" + end)};
  if (of.part == "final_norm") return {whole(of, "model.norm" + end)};
  if (of.part == "norm1") return {whole(of, layer + "input_layernorm" + end)};
  if (of.part == "norm2") return {whole(of, layer + "post_attention_layernorm" + end)};
  if (of.part == "projection") return {linear(of, layer + "self_attn.o_proj" + end)};
  if (of.part == "down") return {linear(of, layer + "mlp.down_proj" + end)};
  if (of.part == "qkv") {
    const std::int64_t keys = usual_attention(model).key_columns();
    const std::string attention = layer + "self_attn.";
    return side_by_side(of, {{attention + "q_proj" + end, usual_attention(model).query_columns()},
                             {attention + "k_proj" + end, keys},
                             {attention + "v_proj" + end, keys}});
  }
  if (of.part == "up") {
    const std::int64_t width = of.tensor.columns / 2;
    return side_by_side(
        of, {{layer + "mlp.gate_proj" + end, width}, {layer + "mlp.up_proj" + end, width}});
  }
  if (of.part == "qk_norm") {
    StoredPart query{.tensor = layer + "self_attn.q_norm" + end,
                     .columns = usual_attention(model).head_dim,
                     .vector = true,
                     .column_count = usual_attention(model).head_dim};
    StoredPart key = query;
    key.tensor = layer + "self_attn.k_norm" + end;
    key.row = 1;
    return {query, key};
  }
  return {};
}

/// What a family calls a layer's experts and the linear layers of one.
struct ExpertNames {
  std::string block, gate, up, down;
};

/// As LLaMA, with experts in place of MLPs: ours are stacked by rows in one tensor, theirs are
/// separate tensors.
Parts expert_parts(const Model& model, const Asked& of, const ExpertNames& names) {
  const std::string block = "model.layers." + of.layer + "." + names.block + ".";
  const std::string end = "." + of.kind;
  if (of.part == "router") return {linear(of, block + "gate" + end)};
  if (of.part != "experts.up" && of.part != "experts.down") return llama_parts(model, of);
  StateTensor tensor = of.tensor;
  tensor.rows /= usual_experts(model).count;
  const Asked expert{of.layer, of.part, of.kind, tensor};
  Parts parts;
  for (std::int64_t e = 0; e < usual_experts(model).count; ++e) {
    const std::string own = block + "experts." + std::to_string(e) + ".";
    const Parts theirs = of.part == "experts.down"
                             ? Parts{linear(expert, own + names.down + end)}
                             : side_by_side(expert, {{own + names.gate + end, tensor.columns / 2},
                                                     {own + names.up + end, tensor.columns / 2}});
    for (StoredPart part : theirs) {
      part.row = e * tensor.rows;
      parts.push_back(std::move(part));
    }
  }
  return parts;
}
Parts mixtral_parts(const Model& model, const Asked& of) {
  return expert_parts(model, of, {"block_sparse_moe", "w1", "w3", "w2"});
}
Parts qwen3_moe_parts(const Model& model, const Asked& of) {
  return expert_parts(model, of, {"mlp", "gate_proj", "up_proj", "down_proj"});
}

/// The tensors that DeepSeek's layers with experts have and its dense layers do not.
Parts deepseek_expert_parts(const Model& model, const Asked& of) {
  const std::string block = "model.layers." + of.layer + ".mlp.";
  const std::string shared = block + "shared_experts.";
  if (of.part == "router" && of.kind == "correction") {
    return {whole(of, block + "gate.e_score_correction_bias")};
  }
  if (of.part == "shared.down") return {linear(of, shared + "down_proj.weight")};
  if (of.part == "shared.up") {
    const std::int64_t width = of.tensor.columns / 2;
    return side_by_side(of,
                        {{shared + "gate_proj.weight", width}, {shared + "up_proj.weight", width}});
  }
  return expert_parts(model, of, {"mlp", "gate_proj", "up_proj", "down_proj"});
}

/// DeepSeek: as LLaMA, with latents in place of queries, keys and values.
Parts deepseek_parts(const Model& model, const Asked& of) {
  const std::string attention = "model.layers." + of.layer + ".self_attn.";
  const std::string end = "." + of.kind;
  if (of.part == "query_norm") return {whole(of, attention + "q_a_layernorm" + end)};
  if (of.part == "key_value_norm") return {whole(of, attention + "kv_a_layernorm" + end)};
  if (of.part == "query_down") return {linear(of, attention + "q_a_proj" + end)};
  if (of.part == "key_value_down") return {linear(of, attention + "kv_a_proj_with_mqa" + end)};
  if (of.part == "key_value_up") return {linear(of, attention + "kv_b_proj" + end)};
  if (of.part == "query_up") {
    return {linear(
        of, attention + (usual_attention(model).latents->query_rank > 0 ? "q_b_proj" : "q_proj") +
                end)};
  }
  return deepseek_expert_parts(model, of);
}

/// Gemma 2 and 3: as LLaMA, with a norm on either side of attention and MLP.
Parts gemma_parts(const Model& model, const Asked& of) {
  static const std::map<std::string, std::string, std::less<>> names{
      {"norm1_after", "post_attention_layernorm"},
      {"norm2", "pre_feedforward_layernorm"},
      {"norm2_after", "post_feedforward_layernorm"}};
  const auto found = names.find(of.part);
  if (found == names.end()) return llama_parts(model, of);
  return {whole(of, "model.layers." + of.layer + "." + found->second + "." + of.kind)};
}

/// EXAONE 4: as LLaMA, with norms of the outputs of attention and MLP.
Parts exaone4_parts(const Model& model, const Asked& of) {
  const std::string layer = "model.layers." + of.layer + ".";
  if (of.part == "norm1") return {whole(of, layer + "post_attention_layernorm." + of.kind)};
  if (of.part == "norm2") return {whole(of, layer + "post_feedforward_layernorm." + of.kind)};
  return llama_parts(model, of);
}

/// GPT-OSS: its experts are one tensor [experts, in, out], gates and values column by column.
Parts gpt_oss_parts(const Model& model, const Asked& of) {
  const std::string layer = "model.layers." + of.layer + ".";
  if (of.part == "sinks") return {whole(of, layer + "self_attn.sinks")};
  if (of.part == "router") return {linear(of, layer + "mlp.router." + of.kind)};
  const bool up = of.part == "experts.up";
  if (!up && of.part != "experts.down") return llama_parts(model, of);
  StoredPart all = whole(of, layer + "mlp.experts." + (up ? "gate_up_proj" : "down_proj") +
                                 (of.kind == "bias" ? "_bias" : ""));
  const std::int64_t count = usual_experts(model).count;
  all.vector = false;
  if (of.kind != "bias") all.shape = {count, all.rows / count, all.columns};
  if (!up) return {all};
  StoredPart gates = all, values = all;
  gates.column_count = values.column_count = values.column = all.columns / 2;
  gates.step = values.step = 2;
  values.at = 1;
  return {gates, values};
}

/// Rows [row, row + count) of a convolution's taps, columns [column, column + width), which are
/// stored as the channels from `at` on of theirs, [columns, 1, taps].
StoredPart taps_of(const Asked& of, std::string name, std::int64_t taps, std::int64_t at,
                   std::int64_t column, std::int64_t width) {
  StoredPart part = rows_of_theirs(of, std::move(name), of.tensor.columns, at, column, width);
  part.columns = part.row_count = taps;
  part.shape = {of.tensor.columns, 1, taps};
  return part;
}

/// One row of our numbers, stored as a vector.
StoredPart row_of_ours(const Asked& of, std::string name, std::int64_t row) {
  return {.tensor = std::move(name),
          .columns = of.tensor.columns,
          .vector = true,
          .row = row,
          .column_count = of.tensor.columns};
}

/// The gated delta rule of Qwen3-Next. Ours has query, key and values of each key head next to each
/// other, then all gates, then strength and step of each value head; theirs keeps the gates with
/// their key head, and in a matrix of its own the strengths of a key head before its steps. Its
/// convolution has all queries before all keys before all values.
Parts delta_parts(const models::DeltaPart& delta, const Asked& of, const std::string& mixer) {
  const std::int64_t k = delta.key_dim, heads = delta.key_heads;
  const std::int64_t each = delta.value_heads / heads, v = each * delta.value_dim;
  const std::int64_t group = 2 * k + v, gates = heads * group, steps = gates + heads * v;
  Parts parts;
  if (of.kind == "heads") {
    return {row_of_ours(of, mixer + "A_log", 0), row_of_ours(of, mixer + "dt_bias", 1)};
  }
  if (of.part == "mixer.norm") return {whole(of, mixer + "norm.weight")};
  if (of.part == "mixer.out") return {linear(of, mixer + "out_proj.weight")};
  for (std::int64_t g = 0; g < heads; ++g) {
    if (of.kind == "convolution") {
      const std::string taps = mixer + "conv1d.weight";
      const std::int64_t first = g * group, all = heads * k;
      parts.push_back(taps_of(of, taps, delta.taps, g * k, first, k));
      parts.push_back(taps_of(of, taps, delta.taps, all + g * k, first + k, k));
      parts.push_back(taps_of(of, taps, delta.taps, 2 * all + g * v, first + 2 * k, v));
      continue;
    }
    const std::string wide = mixer + "in_proj_qkvz.weight", narrow = mixer + "in_proj_ba.weight";
    const std::int64_t rows = steps, theirs = g * (group + v);
    parts.push_back(rows_of_theirs(of, wide, rows, theirs, g * group, group));
    parts.push_back(rows_of_theirs(of, wide, rows, theirs + group, gates + g * v, v));
    for (std::int64_t h = 0; h < each; ++h) {
      const std::int64_t ours = steps + 2 * (g * each + h), at = 2 * g * each + h;
      const std::int64_t all = 2 * delta.value_heads;
      parts.push_back(rows_of_theirs(of, narrow, all, at, ours, 1));
      parts.push_back(rows_of_theirs(of, narrow, all, at + each, ours + 1, 1));
    }
  }
  return parts;
}

/// Qwen3-Next: attention with a gate next to each query head, delta rules, experts of which one is
/// shared behind a gate.
Parts qwen3_next_parts(const Model& model, const Asked& of) {
  const std::string layer = "model.layers." + of.layer + ".";
  const std::string shared = layer + "mlp.shared_expert";
  if (of.part.starts_with("mixer")) {
    const models::Layer& own = model.layers[std::stoll(of.layer)];
    return delta_parts(std::get<models::DeltaPart>(own.mixer), of, layer + "linear_attn.");
  }
  if (of.part == "qkv") {
    const std::int64_t queries = 2 * usual_attention(model).query_columns();
    const std::int64_t keys = usual_attention(model).key_columns();
    const std::string attention = layer + "self_attn.", end = "." + of.kind;
    return side_by_side(of, {{attention + "q_proj" + end, queries},
                             {attention + "k_proj" + end, keys},
                             {attention + "v_proj" + end, keys}});
  }
  if (of.part == "shared.gate") return {linear(of, shared + "_gate.weight")};
  if (of.part == "shared.down") return {linear(of, shared + ".down_proj.weight")};
  if (of.part == "shared.up") {
    const std::int64_t width = of.tensor.columns / 2;
    return side_by_side(
        of, {{shared + ".gate_proj.weight", width}, {shared + ".up_proj.weight", width}});
  }
  return qwen3_moe_parts(model, of);
}

/// Mamba-2 of Nemotron-H. Ours has gate and value of each head next to each other, then both sides
/// of the state of each group; theirs all gates, all values, all of one side, all of the other. The
/// convolution begins with the values.
Parts mamba_parts(const models::Mamba2Part& mamba, const Asked& of, const std::string& mixer) {
  const std::int64_t d = mamba.inner(), p = mamba.head_dim, n = mamba.state, g = mamba.groups;
  const bool convolution = of.kind == "convolution";
  if (of.kind == "heads") {
    return {row_of_ours(of, mixer + "A_log", 0), row_of_ours(of, mixer + "D", 1),
            row_of_ours(of, mixer + "dt_bias", 2)};
  }
  if (of.part == "mixer.norm") return {whole(of, mixer + "norm.weight")};
  if (of.part == "mixer.out") return {linear(of, mixer + "out_proj.weight")};
  Parts parts;
  // Theirs from `at` on, ours from `column` on.
  const auto add = [&](std::int64_t at, std::int64_t column, std::int64_t width) {
    if (!convolution) {
      parts.push_back(
          rows_of_theirs(of, mixer + "in_proj.weight", of.tensor.columns, at, column, width));
      return;
    }
    parts.push_back(taps_of(of, mixer + "conv1d.weight", mamba.taps, at, column, width));
    StoredPart bias = row_of_ours(of, mixer + "conv1d.bias", mamba.taps);
    bias.at = at;
    bias.column = column;
    bias.column_count = width;
    parts.push_back(bias);
  };
  const std::int64_t values = convolution ? 0 : d;  // theirs
  if (convolution) add(0, 0, d);
  for (std::int64_t h = 0; !convolution && h < mamba.heads; ++h) {
    add(h * p, 2 * h * p, p);
    add(d + h * p, (2 * h + 1) * p, p);
  }
  for (std::int64_t i = 0; i < g; ++i) {
    add(values + d + i * n, values + d + 2 * i * n, n);
    add(values + d + (g + i) * n, values + d + (2 * i + 1) * n, n);
  }
  if (!convolution) add(2 * d + 2 * g * n, 2 * d + 2 * g * n, mamba.heads);
  return parts;
}

/// Nemotron-H's names after `prefix`: every layer has one norm and one mixer.
Parts nemotron_parts_after(const std::string& prefix, const Model& model, const Asked& of) {
  const std::string layer = prefix + "layers." + of.layer + ".", mixer = layer + "mixer.";
  const std::string end = "." + of.kind;
  if (of.part == "embedding") return {whole(of, prefix + "embeddings" + end)};
  if (of.part == "head") return {whole(of, "lm_head" + end)};
  if (of.part == "final_norm") return {whole(of, prefix + "norm_f" + end)};
  if (of.part == "norm1") return {whole(of, layer + "norm" + end)};
  if (of.part.starts_with("mixer")) {
    const models::Layer& own = model.layers[std::stoll(of.layer)];
    return mamba_parts(std::get<models::Mamba2Part>(own.mixer), of, mixer);
  }
  if (of.part == "qkv") {
    const std::int64_t keys = usual_attention(model).key_columns();
    return side_by_side(of, {{mixer + "q_proj" + end, usual_attention(model).query_columns()},
                             {mixer + "k_proj" + end, keys},
                             {mixer + "v_proj" + end, keys}});
  }
  if (of.part == "router" && of.kind == "correction") {
    return {whole(of, mixer + "gate.e_score_correction_bias")};
  }
  static const std::map<std::string, std::string, std::less<>> names{
      {"projection", "o_proj"},
      {"up", "up_proj"},
      {"down", "down_proj"},
      {"router", "gate"},
      {"shared.up", "shared_experts.up_proj"},
      {"shared.down", "shared_experts.down_proj"},
      {"experts.narrow", "fc1_latent_proj"},
      {"experts.widen", "fc2_latent_proj"}};
  const auto found = names.find(of.part);
  if (found != names.end()) return {linear(of, mixer + found->second + end)};
  if (of.part != "experts.up" && of.part != "experts.down") return {};
  StateTensor tensor = of.tensor;
  tensor.rows /= usual_experts(model).count;
  const Asked expert{of.layer, of.part, of.kind, tensor};
  Parts parts;
  for (std::int64_t e = 0; e < usual_experts(model).count; ++e) {
    const char* const which = of.part == "experts.up" ? ".up_proj" : ".down_proj";
    parts.push_back(linear(expert, mixer + "experts." + std::to_string(e) + which + end));
    parts.back().row = e * tensor.rows;
  }
  return parts;
}

/// Release 5 of the transformers library calls `model` what the published files call `backbone`.
Parts nemotron_parts(const Model& model, const Asked& of) {
  Parts parts = nemotron_parts_after("backbone.", model, of);
  const Parts newer = nemotron_parts_after("model.", model, of);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].once = newer[i].tensor;
  return parts;
}

/// GPT-2: queries, keys and values fused, its linear layers [in, out] as ours.
Parts gpt2_parts(const Model&, const Asked& of) {
  static const std::map<std::string, std::string, std::less<>> names{
      {"norm1", "ln_1"},    {"qkv", "attn.c_attn"}, {"projection", "attn.c_proj"},
      {"norm2", "ln_2"},    {"up", "mlp.c_fc"},     {"down", "mlp.c_proj"},
      {"embedding", "wte"}, {"positions", "wpe"},   {"final_norm", "ln_f"}};
  const auto found = names.find(of.part);
  if (found == names.end()) return {};
  const std::string layer = of.layer.empty() ? "" : "h." + of.layer + ".";
  return {whole(of, "transformer." + layer + found->second + "." + of.kind)};
}

/// GPT-NeoX: query, key and value of one head next to each other.
Parts gpt_neox_parts(const Model& model, const Asked& of) {
  const std::string layer = "gpt_neox.layers." + of.layer + ".";
  const std::string end = "." + of.kind;
  if (of.part == "embedding") return {whole(of, "gpt_neox.embed_in" + end)};
  if (of.part == "head") {
    Parts parts{whole(of, "lm_head" + end)};
    parts.front().once = "embed_out" + end;
    return parts;
  }
  if (of.part == "final_norm") return {whole(of, "gpt_neox.final_layer_norm" + end)};
  if (of.part == "norm1") return {whole(of, layer + "input_layernorm" + end)};
  if (of.part == "norm2") return {whole(of, layer + "post_attention_layernorm" + end)};
  if (of.part == "projection") return {linear(of, layer + "attention.dense" + end)};
  if (of.part == "up") return {linear(of, layer + "mlp.dense_h_to_4h" + end)};
  if (of.part == "down") return {linear(of, layer + "mlp.dense_4h_to_h" + end)};
  if (of.part != "qkv") return {};
  const std::int64_t d = usual_attention(model).head_dim;
  Parts parts;
  for (std::int64_t which = 0; which < 3; ++which) {
    for (std::int64_t head = 0; head < usual_attention(model).heads; ++head) {
      parts.push_back(rows_of_theirs(of, layer + "attention.query_key_value" + end,
                                     of.tensor.columns, (3 * head + which) * d,
                                     (which * usual_attention(model).heads + head) * d, d));
    }
  }
  return parts;
}

/// BERT: queries, keys and values are separate; the head's matrix is the embedding table.
Parts bert_parts(const Model& model, const Asked& of) {
  const std::string layer = "bert.encoder.layer." + of.layer + ".";
  const std::string head = "cls.predictions.";
  const std::string end = "." + of.kind;
  if (of.part == "head") return {whole(of, head + (of.kind == "bias" ? "" : "decoder.") + of.kind)};
  if (of.part == "transform") return {linear(of, head + "transform.dense" + end)};
  if (of.part == "projection") return {linear(of, layer + "attention.output.dense" + end)};
  if (of.part == "up") return {linear(of, layer + "intermediate.dense" + end)};
  if (of.part == "down") return {linear(of, layer + "output.dense" + end)};
  static const std::map<std::string, std::string, std::less<>> names{
      {"embedding", "bert.embeddings.word_embeddings"},
      {"positions", "bert.embeddings.position_embeddings"},
      {"token_types", "bert.embeddings.token_type_embeddings"},
      {"embedding_norm", "bert.embeddings.LayerNorm"},
      {"norm1", "attention.output.LayerNorm"},
      {"norm2", "output.LayerNorm"},
      {"transform_norm", "cls.predictions.transform.LayerNorm"}};
  const auto found = names.find(of.part);
  if (found != names.end())
    return {whole(of, (of.layer.empty() ? "" : layer) + found->second + end)};
  if (of.part != "qkv") return {};
  const std::string own = layer + "attention.self.";
  const std::int64_t width = usual_attention(model).query_columns();
  return side_by_side(
      of, {{own + "query" + end, width}, {own + "key" + end, width}, {own + "value" + end, width}});
}

/// A table of positions that has the rows beyond the longest sequence first, not last.
Parts shifted_positions(const Asked& of, const std::string& name, std::int64_t beyond) {
  StoredPart used = whole(of, name), others = used;
  used.row_count = others.row = of.tensor.rows - beyond;
  used.at = beyond * of.tensor.columns;
  others.row_count = beyond;
  return {used, others};
}

/// BART: encoder's and decoder's layers are numbered apart; linear layers as in BERT.
Parts bart_parts(const Model& model, const Asked& of) {
  const std::string end = "." + of.kind;
  const std::int64_t beyond = model.embedding.extra_position_rows;
  if (of.part == "embedding") return {whole(of, "model.shared" + end)};
  if (of.part == "positions") {
    return shifted_positions(of, "model.decoder.embed_positions" + end, beyond);
  }
  if (of.part == "source.positions") {
    return shifted_positions(of, "model.encoder.embed_positions" + end, beyond);
  }
  static const std::map<std::string, std::string, std::less<>> ends{
      {"embedding_norm", "model.decoder.layernorm_embedding"},
      {"source.embedding_norm", "model.encoder.layernorm_embedding"},
      {"encoder_norm", "model.encoder.layer_norm"},
      {"final_norm", "model.decoder.layer_norm"}};
  if (const auto found = ends.find(of.part); found != ends.end()) {
    return {whole(of, found->second + end)};
  }
  if (of.layer.empty()) return {};
  const std::int64_t number = std::stoll(of.layer), before = model.encoder->layers;
  const std::string layer = number < before
                                ? fmt::format("model.encoder.layers.{}.", number)
                                : fmt::format("model.decoder.layers.{}.", number - before);
  static const std::map<std::string, std::string, std::less<>> norms{
      {"norm1", "self_attn_layer_norm"},
      {"norm_cross", "encoder_attn_layer_norm"},
      {"norm2", "final_layer_norm"}};
  if (const auto found = norms.find(of.part); found != norms.end()) {
    return {whole(of, layer + found->second + end)};
  }
  static const std::map<std::string, std::string, std::less<>> matrices{
      {"projection", "self_attn.out_proj"},
      {"cross.query", "encoder_attn.q_proj"},
      {"cross.projection", "encoder_attn.out_proj"},
      {"up", "fc1"},
      {"down", "fc2"}};
  if (const auto found = matrices.find(of.part); found != matrices.end()) {
    return {linear(of, layer + found->second + end)};
  }
  const std::int64_t width = usual_attention(model).query_columns();
  const auto keys_and_values = [&](const std::string& attention) {
    return std::vector<std::pair<std::string, std::int64_t>>{
        {layer + attention + "k_proj" + end, width}, {layer + attention + "v_proj" + end, width}};
  };
  if (of.part == "cross.key_value") return side_by_side(of, keys_and_values("encoder_attn."));
  if (of.part != "qkv") return {};
  auto theirs = keys_and_values("self_attn.");
  theirs.insert(theirs.begin(), {layer + "self_attn.q_proj" + end, width});
  return side_by_side(of, theirs);
}

using PartsOfModel = Parts (*)(const Model&, const Asked&);

const std::map<std::string, PartsOfModel, std::less<>>& families() {
  static const std::map<std::string, PartsOfModel, std::less<>> known{
      {"bart", bart_parts},
      {"bert", bert_parts},
      {"deepseek_v2", deepseek_parts},
      {"deepseek_v3", deepseek_parts},
      {"exaone4", exaone4_parts},
      {"gemma", llama_parts},
      {"gemma2", gemma_parts},
      {"gemma3", gemma_parts},
      {"gpt2", gpt2_parts},
      {"gpt_neox", gpt_neox_parts},
      {"gpt_oss", gpt_oss_parts},
      {"kimi_k2", deepseek_parts},
      {"llama", llama_parts},
      {"mbart", bart_parts},
      {"mistral", llama_parts},
      {"mixtral", mixtral_parts},
      {"nemotron_h", nemotron_parts},
      {"qwen2", llama_parts},
      {"qwen3", llama_parts},
      {"qwen3_moe", qwen3_moe_parts},
      {"qwen3_next", qwen3_next_parts}};
  return known;
}

}  // namespace

std::int64_t StoredPart::element(std::int64_t of_row, std::int64_t of_column) const {
  const std::int64_t r = of_row - row, c = (of_column - column) * (transposed ? 1 : step) + at;
  return transposed ? c * columns + r : r * columns + c;
}

std::vector<StoredPart> stored_parts(const Model& model, const StateTensor& tensor,
                                     std::string_view flag) {
  const auto family = families().find(model.type);
  if (family == families().end()) {
    std::string known;
    for (const auto& [name, parts] : families()) known += " " + name;
    throw InputError{std::string{flag},
                     fmt::format("tensor names are not known for a model of type '{}'; known:{}",
                                 model.type, known)};
  }
  Parts parts = family->second(model, asked(tensor));
  if (!parts.empty()) return parts;
  throw InputError{std::string{flag}, fmt::format("a model of type '{}' has no tensor for {}",
                                                  model.type, tensor.name)};
}

}  // namespace orrery::executor
