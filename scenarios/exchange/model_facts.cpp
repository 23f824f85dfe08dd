// Models in the words that launch files use, and the names that hubs and tools give to those of the
// catalogue.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "scenarios/exchange/facts.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

/// Lower case, without what separates words.
std::string bare_name(std::string_view name) {
  std::string bare;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      bare += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return bare;
}

/// What names of hubs add to that of a model: tuning, formats, versions of a file.
constexpr std::array<std::string_view, 22> name_ends{
    {"instruct", "chat",     "base", "hf",  "it",    "v01",  "v1",   "v02",
     "v03",      "pretrain", "bf16", "fp8", "fp16",  "sft",  "lora", "config",
     "yaml",     "json",     "a3u",  "cfg", "nvfp4", "mxfp8"}};

std::string without_ends(std::string bare) {
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view end : name_ends) {
      if (bare.size() > end.size() && bare.ends_with(end)) {
        bare.resize(bare.size() - end.size());
        cut = true;
      }
    }
  }
  return bare.starts_with("meta") ? bare.substr(4) : bare;
}

bool same_sizes(const models::Model& a, const models::Model& b) {
  const models::AttentionPart &mine = usual_attention(a), &theirs = usual_attention(b);
  const models::ExpertsPart &own = usual_experts(a), &other = usual_experts(b);
  return a.layers.size() == b.layers.size() && a.hidden == b.hidden && mine.heads == theirs.heads &&
         mine.kv_heads == theirs.kv_heads &&
         mine.latents.has_value() == theirs.latents.has_value() &&
         usual_mlp(a).width == usual_mlp(b).width && usual_mlp(a).gated == usual_mlp(b).gated &&
         own.count == other.count && own.per_token == other.per_token &&
         a.embedding.vocab == b.embedding.vocab && a.embedding.tied == b.embedding.tied &&
         a.parameters == b.parameters;
}

std::string model_of_sizes(const models::Model& model) {
  for (const std::string& name : models::model_names()) {
    const Document config = Document::from(models::model_config(name), name);
    if (same_sizes(models::read_model(config.root()), model)) return name;
  }
  return {};
}

/// Copies a fact that is a whole number to a member.
void copy_integer(const Facts& facts, const char* fact, const char* key, Json& model) {
  if (const auto value = facts.integer(fact)) model[key] = *value;
}

void copy_flag(const Facts& facts, const char* fact, const char* key, Json& model) {
  if (facts.has(fact)) model[key] = facts.is(fact, "true");
}

/// Of a gated MLP intermediate_size counts gate and value together, and 2/3 of it are taken; the
/// width of each is rounded up to mlp_multiple_of.
/// Source  GPT-NeoX, megatron/model/transformer.py, ParallelMLP
std::int64_t neox_width(const Facts& facts, std::int64_t hidden, bool gated) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t width = facts.integer_or("model.ffn", 0);
  if (width == 0) {
    const double factor = std::clamp(facts.number("model.ffn_expansion").value_or(4), 0.0, 1e6);
    width = static_cast<std::int64_t>(factor * static_cast<double>(hidden));
  }
  width = std::clamp<std::int64_t>(width, 0, most);
  if (gated) width = width * 2 / 3 / 2;
  const std::int64_t multiple =
      std::clamp<std::int64_t>(facts.integer_or("model.ffn_multiple", 1), 1, most);
  return (width + multiple - 1) / multiple * multiple;
}

void add_stated_sizes(const Facts& facts, Json& model) {
  const std::int64_t hidden = facts.integer_or("model.hidden", 0);
  const bool gated = facts.is("model.gated", "true");
  std::int64_t width = facts.integer_or("model.ffn", 0);
  // Megatron-LM, arguments.py: 4 x hidden; with swiglu 8/3 x hidden rounded to 64.
  if (width == 0)
    width = gated ? static_cast<std::int64_t>(4 * hidden * 2 / 3) / 64 * 64 : 4 * hidden;
  if (facts.is("model.ffn_rule", "neox")) width = neox_width(facts, hidden, gated);
  copy_integer(facts, "model.layers", "layers", model);
  model["hidden"] = hidden;
  copy_integer(facts, "model.heads", "heads", model);
  copy_integer(facts, "model.kv_heads", "kv_heads", model);
  copy_integer(facts, "model.head_dim", "head_dim", model);
  model["ffn_hidden"] = width;
  copy_integer(facts, "model.vocab", "vocab", model);
  copy_integer(facts, "model.max_positions", "max_positions", model);
}

void add_stated_experts(const Facts& facts, Json& model) {
  const std::int64_t experts = facts.integer_or("model.experts", 0);
  if (experts < 2) return;
  model["experts"] = experts;
  model["experts_per_token"] = facts.integer_or("model.experts_per_token", 2);
  copy_integer(facts, "model.expert_ffn", "ffn_hidden", model);
  copy_integer(facts, "model.shared_ffn", "shared_ffn", model);
}

void add_stated_latents(const Facts& facts, Json& model) {
  if (!facts.is("model.latent", "true")) return;
  const std::int64_t rotary = facts.integer_or("model.rotary_dim", 64);
  copy_integer(facts, "model.query_rank", "query_rank", model);
  model["kv_rank"] = facts.integer_or("model.kv_rank", 32);
  model["rotary_dim"] = rotary;
  model["head_dim"] = facts.integer_or("model.nope_dim", 128) + rotary;
  model["value_dim"] = facts.integer_or("model.value_dim", 128);
}

/// Orrery's own JSON of a model in Megatron-LM's words.
Json model_of_sizes_in(const Facts& facts, std::vector<std::string>& notes) {
  const bool llama = facts.is("model.norm", "rms_norm") && facts.is("model.gated", "true");
  Json model{{"format", "orrery-model"}, {"name", "imported"}, {"family", llama ? "llama" : "gpt"}};
  add_stated_sizes(facts, model);
  const std::string norm = facts.has("model.norm") ? facts.text("model.norm") : "layer_norm";
  model["norm"] = norm;
  if (norm == "rms_norm") model["norm_bias"] = false;
  model["positions"] = facts.has("model.positions") ? facts.text("model.positions") : "learned";
  model["gated_mlp"] = facts.is("model.gated", "true");
  model["activation"] = facts.has("model.activation")     ? facts.text("model.activation")
                        : facts.is("model.gated", "true") ? "silu"
                                                          : "gelu";
  if (model["positions"] == "learned" && !model.contains("max_positions")) {
    model["max_positions"] = facts.integer_or("seq_len", 4096);  // Megatron-LM: at least that
  }
  const bool biases = !facts.is("model.biases", "false");
  model["qkv_bias"] = biases || facts.is("model.qkv_bias", "true");
  model["output_bias"] = model["mlp_bias"] = biases;
  model["tied_embeddings"] = !facts.is("model.tied", "false");
  copy_flag(facts, "model.qk_norm", "qk_norm", model);
  copy_flag(facts, "model.parallel_block", "parallel_block", model);
  add_stated_experts(facts, model);
  add_stated_latents(facts, model);
  if (const auto base = facts.number("model.rotary_base")) model["rotary_base"] = *base;
  if (const auto epsilon = facts.number("model.norm_epsilon")) model["norm_epsilon"] = *epsilon;
  if (!model.contains("vocab")) {
    constexpr std::int64_t padded_gpt2 = 51200;  // 50,257 to a multiple of 128 x 8
    model["vocab"] = padded_gpt2;
    notes.push_back(
        fmt::format("vocabulary not stated; {}, GPT-2's as Megatron-LM pads it", padded_gpt2));
  }
  if (facts.integer_or("model.prediction_layers", 0) > 0) {
    notes.emplace_back("prediction layers (MTP): left out of the imported model");
  }
  return model;
}

}  // namespace

namespace {

// Models of one shape have one flavor: the first of the catalogue's is what an import gives.
constexpr std::array<ModelFlavor, 15> flavors{{{"llama3", "8B", "llama3-8b"},
                                               {"llama3", "8B", "llama3.1-8b"},
                                               {"llama3", "70B", "llama3-70b"},
                                               {"llama3", "70B", "llama3.1-70b"},
                                               {"llama3", "405B", "llama3.1-405b"},
                                               {"llama4", "17bx16e", "llama4-scout-109b"},
                                               {"llama4", "17bx128e", "llama4-maverick-400b"},
                                               {"qwen3", "8B", "qwen3-8b"},
                                               {"qwen3", "32B", "qwen3-32b"},
                                               {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
                                               {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
                                               {"deepseek_v3", "236B", "deepseek-v2"},
                                               {"deepseek_v3", "671B", "deepseek-v3"},
                                               {"gpt_oss", "20b", "gpt-oss-20b"},
                                               {"gpt_oss", "120b", "gpt-oss-120b"}}};

std::string model_of_flavor(std::string_view family, std::string_view size) {
  for (const ModelFlavor& each : flavors) {
    const bool variant = size.starts_with(each.flavor) && size.substr(each.flavor.size(), 1) == "_";
    if (each.family == family && (each.flavor == size || variant)) return std::string{each.model};
  }
  return {};
}

}  // namespace

const ModelFlavor* flavor_of(std::string_view model) {
  const auto* found = std::ranges::find(flavors, model, &ModelFlavor::model);
  return found == flavors.end() ? nullptr : found;
}

std::string catalogue_model(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::string whole =
      without_ends(bare_name(slash == std::string_view::npos ? name : name.substr(slash + 1)));
  if (whole.empty()) return {};
  for (const std::string& known : models::model_names()) {
    if (bare_name(known) == whole) return known;
  }
  return {};
}

Json model_of(const Facts& facts, std::vector<std::string>& notes) {
  std::string name = facts.text("model.name");
  if (facts.has("model.family")) {
    const std::string known = model_of_flavor(facts.text("model.family"), facts.text("model.size"));
    if (!known.empty()) return known;
    name = facts.text("model.family") + " " + facts.text("model.size");
  }
  if (!name.empty()) {
    const std::string known = catalogue_model(name);
    if (!known.empty()) return known;
    if (!facts.has("model.layers")) {
      notes.push_back(
          fmt::format("model '{}' is not in the catalogue; state --model", printable(name, 80)));
    }
  }
  if (!facts.has("model.layers") || !facts.has("model.hidden") || !facts.has("model.heads"))
    return nullptr;
  Json model = model_of_sizes_in(facts, notes);
  const Document config = Document::from(model, "imported model");
  const std::string known = model_of_sizes(models::read_model(config.root()));
  return known.empty() ? model : Json(known);
}

namespace {

void set_size(Facts& facts, const char* fact, std::int64_t value) {
  facts.set(std::string{"model."} + fact, std::to_string(value));
}

/// Width of the MLP of layers without experts, where others have some; 0: of none.
std::int64_t dense_width(const models::Model& model) {
  for (const models::Layer& kind : model.layers.kinds()) {
    const bool dense = kind.mlp() != nullptr && kind.experts() == nullptr;
    if (dense && usual_experts(model).count > 0) return kind.mlp()->width;
  }
  return 0;
}

void add_model_sizes(const models::Model& model, Facts& facts) {
  const models::AttentionPart& attention = usual_attention(model);
  const models::ExpertsPart& experts = usual_experts(model);
  set_size(facts, "layers", model.layers.size());
  set_size(facts, "hidden", model.hidden);
  set_size(facts, "heads", attention.heads);
  if (attention.kv_heads != attention.heads && !attention.latents) {
    set_size(facts, "kv_heads", attention.kv_heads);
    facts.set("model.grouped", "true");
  }
  const bool usual_dim = attention.head_dim * attention.heads == model.hidden;
  if (!usual_dim && !attention.latents) set_size(facts, "head_dim", attention.head_dim);
  const std::int64_t dense = dense_width(model);
  set_size(facts, "ffn", dense > 0 ? dense : usual_mlp(model).width);
  set_size(facts, "vocab", model.embedding.vocab);
  if (model.embedding.max_positions > 0)
    set_size(facts, "max_positions", model.embedding.max_positions);
  if (experts.count > 0) {
    set_size(facts, "experts", experts.count);
    set_size(facts, "experts_per_token", experts.per_token);
    set_size(facts, "expert_ffn", experts.mlp.width);
    if (experts.shared_width > 0) set_size(facts, "shared_ffn", experts.shared_width);
  }
  if (!attention.latents) return;
  facts.set("model.latent", "true");
  if (attention.latents->query_rank > 0)
    set_size(facts, "query_rank", attention.latents->query_rank);
  set_size(facts, "kv_rank", attention.latents->kv_rank);
  set_size(facts, "nope_dim", attention.head_dim - attention.latents->rotary_dim);
  set_size(facts, "rotary_dim", attention.latents->rotary_dim);
  set_size(facts, "value_dim", attention.value_width());
}

void add_model_kinds(const models::Model& model, Facts& facts) {
  const models::AttentionPart& attention = usual_attention(model);
  const models::MlpPart& mlp = usual_mlp(model);
  const auto flag = [&](const char* fact, bool value) {
    facts.set(std::string{"model."} + fact, value ? "true" : "false");
  };
  facts.set("model.norm", std::string{word_of(models::norm_words, model.norms.kind)});
  facts.set("model.positions",
            std::string{word_of(models::position_words, model.embedding.positions)});
  flag("gated", mlp.gated);
  facts.set("model.activation", std::string{word_of(models::activation_words, mlp.activation)});
  const bool biases = mlp.bias || attention.output_bias;
  flag("biases", biases);
  if (!biases && attention.qkv_bias) flag("qkv_bias", true);
  flag("qk_norm", attention.qk_norm);
  flag("tied", model.embedding.tied);
  if (model.embedding.positions == models::Positions::rotary) {
    facts.set("model.rotary_base", fmt::format("{:.0f}", model.embedding.rotary.base));
  }
  if (model.prediction_layers > 0) set_size(facts, "prediction_layers", model.prediction_layers);
}

}  // namespace

Facts facts_of(const models::Model& model, std::vector<std::string>& not_said) {
  Facts facts;
  add_model_sizes(model, facts);
  add_model_kinds(model, facts);
  facts.set("model.name", model.name);
  not_said.emplace_back(
      "norm epsilon, dropout, scaling of rotary positions and initialisation: state those of the "
      "model's own "
      "configuration");
  const auto any = [&](auto holds) {
    return model.layers.any([&](const models::Layer& layer) {
      return layer.attention() != nullptr && holds(*layer.attention());
    });
  };
  const bool recurs = model.layers.any([](const models::Layer& layer) {
    return layer.attention() == nullptr && !std::holds_alternative<models::NoPart>(layer.mixer);
  });
  const std::pair<bool, const char*> others[] = {
      {any([](const auto& of) { return of.window > 0; }), "sliding windows"},
      {any([](const auto& of) { return of.chunk > 0; }), "attention in chunks"},
      {any([](const auto& of) { return of.gated; }), "gate of attention's output"},
      {recurs, "layers without attention"},
      {any([](const auto& of) { return of.sinks; }), "attention sinks"},
      {model.parallel_block, "attention and MLP in parallel"},
      {model.norms.sandwich || model.norms.of_outputs, "norms after attention and MLP"},
      {model.norms.offset != 0, "norms of 1 + weight"},
      {model.norms.after_residual, "norms after the residual"},
      {dense_width(model) > 0, "layers without experts (--moe-layer-freq)"},
      {!model.causal, "attention in both directions"},
      {crosses(model), "encoder and cross-attention"},
      {model.embedding.positions == models::Positions::alibi, "ALiBi positions"}};
  for (const auto& [has, what] : others) {
    if (has)
      not_said.push_back(
          fmt::format("the model's {}: state in the tool's own model configuration", what));
  }
  return facts;
}

}  // namespace orrery::scenarios
