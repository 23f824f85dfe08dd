// What files of newer model types leave to their type or state in other words: windows by a
// pattern, heads by layer, older keys, language models inside files of models that see and speak.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

/// A small config of a type: six layers of width 64 with four heads, and what `more` adds.
Json small_config(const std::string& type, const Json& more = Json::object()) {
  Json config = {{"model_type", type},       {"num_hidden_layers", 6},   {"hidden_size", 64},
                 {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"head_dim", 16},
                 {"vocab_size", 96},         {"intermediate_size", 80}};
  config.update(more);
  return config;
}

Model small_model(const Json& config) {
  const auto document = Document::parse(config.dump(), "config.json");
  return read_model(document.root());
}

std::string small_refusal(const Json& config) {
  try {
    small_model(config);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// A letter for each layer: w with a window, f without, - without attention.
std::string windows_of(const Model& model) {
  std::string letters;
  for (std::int64_t i = 0; i < model.layers.size(); ++i) {
    const AttentionPart* const attention = model.layers[i].attention();
    letters += attention == nullptr ? '-' : attention->window > 0 ? 'w' : 'f';
  }
  return letters;
}

/// Few small experts, by the keys that most types have.
Json few_experts(const char* count, std::int64_t layers = 6) {
  return {{count, 8},
          {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 24},
          {"num_hidden_layers", layers}};
}

}  // namespace

TEST_CASE("A file without a list of layers has the windows of its type's pattern") {
  // The classes' own rules: the first and every fourth after it are full (Granite, GPT-Neo every
  // second); every sixth and the last (Beam); the first two, every fourth from 1 on and the last
  // (Flint); every fifth (Kolibri); every fourth counted from the last (Muse); none (Laguna);
  // MiMo-like lists none.
  CHECK(windows_of(small_model(small_config("granite_swa"))) == "fwwwfw");
  CHECK(windows_of(small_model(small_config("beam", few_experts("num_experts", 8)))) == "wwwwwfwf");
  CHECK(windows_of(small_model(small_config("flint", few_experts("num_experts", 8)))) ==
        "ffwwwfwf");
  CHECK(windows_of(small_model(small_config("kolibri1", few_experts("num_experts")))) == "wwwwfw");
  CHECK(windows_of(small_model(small_config("muse_glimmer"))) == "wfwwwf");
  CHECK(windows_of(small_model(small_config("laguna", few_experts("num_experts")))) == "ffffff");
  CHECK(windows_of(small_model(small_config("lara_mini", few_experts("num_experts")))) == "-w-fw-");
  CHECK(windows_of(small_model({{"model_type", "gpt_neo"},
                                {"num_layers", 4},
                                {"hidden_size", 64},
                                {"num_heads", 4},
                                {"vocab_size", 96}})) == "fwfw");
  // Two dense layers in front have a pattern of their own: each full.
  Json cohere = few_experts("num_experts");
  cohere["first_k_dense_replace"] = 2;
  CHECK(windows_of(small_model(small_config("cohere2_moe", cohere))) == "ffwwwf");
  cohere["prefix_dense_sliding_window_pattern"] = 2;
  CHECK(windows_of(small_model(small_config("cohere2_moe", cohere))) == "wfwwwf");
}

TEST_CASE("Layers of one model may have different numbers of heads") {
  // By hand for d = 16, h = 64: a head more is 2 d h of queries and output and h of its gate.
  Json more = few_experts("num_experts");
  const std::int64_t usual = small_model(small_config("laguna", more)).parameters;
  more["num_attention_heads_per_layer"] = {4, 2, 4, 6, 8, 4};
  const Model model = small_model(small_config("laguna", more));
  CHECK(model.layers[1].attention()->heads == 2);
  CHECK(model.layers[4].attention()->heads == 8);
  CHECK(model.parameters == usual + (-2 + 2 + 4) * (2 * 16 * 64 + 64));
  more["gating"] = "per-element";  // as wide as the queries in place of one column for each head
  CHECK(small_model(small_config("laguna", more)).parameters ==
        model.parameters + (6 * 4 + 4) * 15 * 64);
  more["num_attention_heads_per_layer"] = {4, 2, 4, 3, 8, 4};
  CHECK(small_refusal(small_config("laguna", more)) ==
        "config.json:/num_attention_heads_per_layer/3: is no multiple of num_key_value_heads");
  more["num_attention_heads_per_layer"] = {4, 2};
  CHECK(small_refusal(small_config("laguna", more)) ==
        "config.json:/num_attention_heads_per_layer: expected an entry for each layer");
}

TEST_CASE("Older keys of a type mean what its newer ones do") {
  const auto same = [](const Json& older, const Json& newer) {
    const Model a = small_model(older), b = small_model(newer);
    CHECK(a.parameters == b.parameters);
    CHECK(a.active_parameters == b.active_parameters);
    CHECK(windows_of(a) == windows_of(b));
    CHECK(a.ignored_keys == std::vector<std::string>{});
  };
  Json layers = small_config("exaone");
  layers.erase("num_hidden_layers");
  layers["num_layers"] = 6;
  same(layers, small_config("exaone"));

  const Json sparse = {"dense", "dense", "dense", "sparse", "sparse", "dense"};
  const Json windows = {"full_attention",    "sliding_attention", "full_attention",
                        "sliding_attention", "full_attention",    "sliding_attention"};
  const Json widths = {{"moe_intermediate_size", 24},
                       {"share_expert_dim", 40},
                       {"sliding_window", 16},
                       {"layer_types", windows}};
  Json older = small_config("step3p5", widths), newer = small_config("step3p5", widths);
  older.erase("num_key_value_heads");
  older.update({{"num_attention_groups", 2},
                {"moe_num_experts", 8},
                {"moe_top_k", 2},
                {"moe_layers_enum", "3,4"},
                {"attention_other_setting", {{"num_attention_heads", 6}}}});
  newer.update({{"n_routed_experts", 8},
                {"num_experts_per_tok", 2},
                {"mlp_layer_types", sparse},
                {"num_sliding_attention_heads", 6}});
  same(older, newer);
  CHECK(small_model(older).layers[1].attention()->heads == 6);
  CHECK(small_model(older).layers[3].experts() != nullptr);

  const Json few = {{"num_local_experts", 8}, {"num_experts_per_tok", 2}};
  older = small_config("minimax_m3_vl_text", few);
  newer = small_config("minimax_m3_vl_text", few);
  older.update({{"moe_layer_freq", {0, 0, 1, 1, 1, 1}},
                {"sparse_attention_config",
                 {{"sparse_attention_freq", {0, 0, 0, 1, 1, 1}},
                  {"sparse_num_index_heads", 2},
                  {"sparse_index_dim", 16}}}});
  newer.update({{"mlp_layer_types", {"dense", "dense", "sparse", "sparse", "sparse", "sparse"}},
                {"layer_types",
                 {"full_attention", "full_attention", "full_attention", "minimax_m3_sparse",
                  "minimax_m3_sparse", "minimax_m3_sparse"}},
                {"index_n_heads", 2},
                {"index_head_dim", 16}});
  same(older, newer);
  CHECK(small_model(newer).inexact.find("priced as attention to all tokens") != std::string::npos);
  newer["hidden_act"] = "swigluoai";  // whatever the file says, the class takes SiLU
  CHECK(usual_mlp(small_model(newer)).activation == Activation::silu);
  CHECK(small_model(newer).inexact.ends_with("activation 'swigluoai'"));
}

TEST_CASE("InternLM3 has two keys of biases") {
  // qkv_bias: queries, keys and values, 4 * 16 + 2 * 2 * 16 a layer; bias: output, gate and up,
  // down.
  const std::int64_t none = small_model(small_config("internlm3")).parameters;
  CHECK(small_model(small_config("internlm3", {{"qkv_bias", true}})).parameters ==
        none + 6 * (64 + 64));
  CHECK(small_model(small_config("internlm3", {{"bias", true}})).parameters ==
        none + 6 * (64 + 2 * 80 + 64));
}

TEST_CASE("Layers of latent attention with a window have widths of their own and no indexer") {
  Json more = few_experts("n_routed_experts");
  more.erase("num_hidden_layers");
  more.update({{"num_key_value_heads", 4},
               {"q_lora_rank", 24},
               {"kv_lora_rank", 16},
               {"qk_nope_head_dim", 12},
               {"qk_rope_head_dim", 8},
               {"v_head_dim", 20},
               {"swa_num_attention_heads", 2},
               {"swa_kv_lora_rank", 20},
               {"swa_head_dim", 32},
               {"swa_qk_nope_head_dim", 20}});
  const Model model = small_model(small_config("dots3_note_text", more));
  CHECK(windows_of(model) == "ffwwwf");
  const AttentionPart& wide = *model.layers[0].attention();
  const AttentionPart& narrow = *model.layers[2].attention();
  CHECK(wide.indexer.has_value());
  CHECK(wide.head_dim == 20);
  CHECK(narrow.window == 512);
  CHECK(!narrow.indexer.has_value());
  CHECK(narrow.heads == 2);
  CHECK(narrow.head_dim == 32);
  CHECK(narrow.latents->rotary_dim == 12);
  CHECK(narrow.latents->kv_rank == 20);
}

TEST_CASE("A model that also speaks is read by the part that thinks") {
  const Json text = small_config("qwen2_5_omni_text");
  const Json file = {{"model_type", "qwen2_5_omni"},
                     {"thinker_config",
                      {{"model_type", "qwen2_5_omni_thinker"},
                       {"text_config", text},
                       {"audio_config", {{"num_mel_bins", 128}}}}},
                     {"talker_config", {{"hidden_size", 896}}}};
  // With the head, 96 words of width 64, that the language model alone has not.
  CHECK(small_model(file).parameters == small_model(text).parameters + 96 * 64);
  CHECK(small_model(file).type == "qwen2_5_omni");
}

TEST_CASE("A model that drafts for another has that one's keys and values, and two projections") {
  // By hand for h = 64: without keys, values and their norm a layer lacks 2 * 64 * 2 d + d, d = 16
  // on five layers and 512 on the last; the projections are 3 * 40 * 64, centroids 10 * 64.
  const Json text = small_config("gemma4_unified_text");
  const std::int64_t whole = small_model(text).parameters;
  Json file = {{"model_type", "gemma4_unified_assistant"},
               {"backbone_hidden_size", 40},
               {"num_centroids", 10},
               {"text_config", text}};
  const std::int64_t lacks = 5 * (2 * 64 * 2 * 16 + 16) + (2 * 64 * 2 * 512 + 512);
  CHECK(small_model(file).parameters == whole - lacks + 3 * 40 * 64);
  file["use_ordered_embeddings"] = true;
  CHECK(small_model(file).parameters == whole - lacks + 3 * 40 * 64 + 10 * 64);
  CHECK(small_model(file).not_simulated ==
        "layers that share keys and values are counted, not yet simulated");
}

TEST_CASE("A language model whose class has no head is counted without it") {
  // 96 words of width 64, in the table and, where untied, in the head.
  for (const char* type : {"qwen2_vl_text", "glm4v_text", "glm_ocr_text", "paddleocr_vl_text",
                           "molmo2_text", "cosmos3_edge_text", "voxtral_realtime_text"}) {
    INFO(type);
    const Model tied = small_model(small_config(type, {{"tie_word_embeddings", true}}));
    const Model own = small_model(small_config(type, {{"tie_word_embeddings", false}}));
    CHECK(own.parameters == tied.parameters);
    CHECK(count_gemm_parameters(own) == count_gemm_parameters(tied));
    // The class of a multimodal file has the head; whether it is tied is said outside.
    const Json file = {{"model_type", "seen"},
                       {"tie_word_embeddings", false},
                       {"vision_config", {{"hidden_size", 32}}},
                       {"text_config", small_config(type, {{"tie_word_embeddings", true}})}};
    CHECK(small_model(file).parameters == own.parameters + 96 * 64);
  }
}

TEST_CASE("What no part simulates in newer types is counted and says why") {
  const auto why = [](const Json& config) {
    return small_model(config).not_simulated.value_or("simulated");
  };
  const auto type = [&](const char* name) { return why({{"model_type", name}}); };
  CHECK(type("dory") == "layers that run again are counted, not yet simulated");
  CHECK(type("hrm_text") == "layers that run again are counted, not yet simulated");
  CHECK(type("inkling2_loop_text") == "layers that run again are counted, not yet simulated");
  CHECK(type("hy_v4") == "parallel residual streams are counted, not yet simulated");
  CHECK(type("glm5_next_text") == "parallel residual streams are counted, not yet simulated");
  CHECK(type("mllama_text_model") == "simulated");
  CHECK(type("led") == "cross-attention is counted, not yet simulated");
  CHECK(type("ernie4_5_vl_moe_text") ==
        "experts for text and for images are counted, not yet simulated");
  CHECK(type("inkling_text") ==
        "short convolutions and relative scores are counted, not yet simulated");
  CHECK(why({{"model_type", "doge"}, {"is_moe", true}}) ==
        "experts of one column are counted, not yet simulated");
  CHECK(type("doge") == "simulated");
  CHECK(type("mistral_large4_text") == "simulated");
  Json takes = Json::array();
  for (int i = 0; i < 72; ++i) takes.push_back(i - i % 2);
  CHECK(why({{"model_type", "mistral_large4_text"}, {"kv_source_layers", takes}}) ==
        "layers that share keys and values are counted, not yet simulated");
}

TEST_CASE("What a class would count and no reader does is refused by its key") {
  CHECK(small_refusal(small_config("aria_text", {{"mlp_bias", true}})) ==
        "config.json:/mlp_bias: biases are not supported for this type; expected false");
  CHECK(small_refusal(small_config("iquestcoder", {{"use_sliding_window", true}})) ==
        "config.json:/use_sliding_window: windows are not supported for this type");
  CHECK(small_refusal({{"model_type", "gpt_bigcode"}, {"add_cross_attention", true}}) ==
        "config.json:/add_cross_attention: cross-attention is not supported; expected false");
  CHECK(small_refusal(small_config("apertus1p5_text",
                                   {{"output_vocab_size", 50}, {"tie_word_embeddings", true}})) ==
        "config.json:/output_vocab_size: is not supported with tie_word_embeddings");
}

TEST_CASE("What a type computes differently stays said next to what its numbers add") {
  Json muse = small_config("muse_glimmer");
  const std::string alone = small_model(muse).inexact;
  REQUIRE(!alone.empty());
  muse["rope_parameters"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  CHECK(small_model(muse).inexact == alone + "; rotary positions scaled by 'dynamic'");
  CHECK(small_model(small_config("flint", few_experts("num_experts"))).inexact ==
        "layers without rotary positions");
  CHECK(
      usual_experts(small_model(small_config("flint", few_experts("num_experts")))).routing.score ==
      Routing::Score::sigmoid);
}

TEST_CASE(
    "Layers that predict further tokens and are not in a type's class are said to be left out") {
  Json mellum = small_config("mellum", few_experts("num_experts"));
  const Model without = small_model(mellum);
  mellum["num_nextn_predict_layers"] = 2;
  const Model with = small_model(mellum);
  CHECK(with.parameters == without.parameters);
  CHECK(std::ranges::count(with.assumptions,
                           "/num_nextn_predict_layers: 2 layers that predict further tokens are "
                           "neither counted nor simulated") == 1);
}

TEST_CASE("A null activation is read as the type's own") {
  Json apertus = small_config("apertus1p5");
  apertus["hidden_act"] = nullptr;
  CHECK(small_model(apertus).parameters > 0);
}

TEST_CASE("Granite's hybrids have positions only where the file says rope") {
  Json granite = small_config("granitemoehybrid");
  granite["shared_intermediate_size"] = 96;
  CHECK(small_model(granite).embedding.positions == Positions::none);
  granite["position_embedding_type"] = "rope";
  CHECK(small_model(granite).embedding.positions == Positions::rotary);
}

}  // namespace orrery::models
