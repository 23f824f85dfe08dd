#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "models/model/model_file.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

Model read_config(const std::string& text) {
  const auto document = Document::parse(text, "config.json");
  return read_model(document.root());
}

std::string config_refusal(const std::string& text) {
  try {
    read_config(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// A small valid LLaMA with one member replaced or added.
std::string llama_with(const std::string& key, const Json& value) {
  Json config = Json::parse(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})");
  config[key] = value;
  return config.dump();
}

std::string llama_without(const std::string& key) {
  Json config = Json::parse(llama_with("model_type", "llama"));
  config.erase(key);
  return config.dump();
}

}  // namespace

TEST_CASE("Published models have as many parameters as their own classes count") {
  // configs.json: the sizes of public config.json files and the parameters that the transformers
  // library counts for them (decoders with head, no MTP; ViT without head; MiMo as Qwen2, whose
  // code it takes), or for those from bert-large to Nemotron 3
  // Super the sum by their published formulas.
  const auto table =
      Document::load(std::string{ORRERY_SOURCE} + "/tests/models/model/import/configs.json");
  const auto rows = table.root().elements();
  REQUIRE(rows.size() == 76);
  for (const Node& row : rows) {
    INFO(row["model"].as<std::string>());
    const Model model = read_model(row["config"]);
    CHECK(model.parameters == row["parameters"].as<std::int64_t>());
    CHECK(model.active_parameters == row["touched"].as<std::int64_t>());
    CHECK(model.ignored_keys == std::vector<std::string>{});
    CHECK(!model.formula.empty());
  }
}

namespace {

std::int64_t attention_layers(const Model& model) {
  return model.layers.count_if([](const Layer& layer) { return layer.attention() != nullptr; });
}

}  // namespace

TEST_CASE("A model's fields hold all its parameters, whatever its family") {
  const auto table =
      Document::load(std::string{ORRERY_SOURCE} + "/tests/models/model/import/configs.json");
  int dense = 0, mixed = 0;
  for (const Node& row : table.root().elements()) {
    const Model model = read_model(row["config"]);
    if (model.further.total != 0) continue;  // of what no part states
    INFO(row["model"].as<std::string>());
    CHECK(count_parameters(model) == row["parameters"].as<std::int64_t>());
    CHECK(count_active_parameters(model) == row["touched"].as<std::int64_t>());
    (usual_experts(model).count > 0 ? mixed : dense) += 1;
  }
  CHECK(dense == 52);
  CHECK(mixed > 5);
}

TEST_CASE("Epsilon, initialisation and rotary positions are the config's") {
  const Model plain = read_config(llama_with("model_type", "llama"));
  CHECK(plain.type == "llama");
  CHECK(plain.norms.epsilon == 1e-6);
  CHECK(plain.initial_deviation == 0.02);
  CHECK(plain.embedding.rotary == Rotary{});
  CHECK(read_config(llama_with("rms_norm_eps", 1e-5)).norms.epsilon == 1e-5);
  CHECK(read_config(llama_with("initializer_range", 0.01)).initial_deviation == 0.01);
  CHECK(read_config(llama_with("rope_theta", 500000)).embedding.rotary.base == 500000);
  const Json newer = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  CHECK(read_config(llama_with("rope_parameters", newer)).embedding.rotary.base == 1e6);
  const Json slowed = {{"rope_type", "llama3"},
                       {"factor", 8},
                       {"low_freq_factor", 1},
                       {"high_freq_factor", 4},
                       {"original_max_position_embeddings", 8192}};
  const Rotary rotary = read_config(llama_with("rope_scaling", slowed)).embedding.rotary;
  CHECK(rotary.scaling == RotaryScaling::llama3);
  CHECK(rotary.factor == 8);
  const Model other = read_config(llama_with("rope_scaling", {{"type", "dynamic"}, {"factor", 4}}));
  CHECK(other.inexact == "rotary positions scaled by 'dynamic'");
  const Rotary yarn =
      read_config(llama_with("rope_scaling", {{"type", "yarn"}, {"factor", 4}})).embedding.rotary;
  CHECK(yarn.magnitude == Approx(0.1 * std::log(4.0) + 1));
  CHECK(yarn.high_turns == 32);
  CHECK(config_refusal(llama_with("rope_theta", -1)) ==
        "config.json:/rope_theta: expected a number from 1e-06 to 1000000000000, found -1");
}

TEST_CASE("Rows of tokens narrower than the layers are counted with the matrices between them") {
  // h = 8, e = 4, two layers of 2 heads, f = 16, V = 10, P = 6 and two rows more. By hand:
  //   tokens 10 * 4; positions 8 * 8; project_in and project_out 2 * 4 * 8          = 168
  //   a layer: attention 4 * 64 + 4 * 8, MLP 2 * 8 * 16 + 16 + 8, two norms of 16   = 600
  // Untied: a head of its own, 10 * 4. Without biases a layer lacks 4 * 8 + 16 + 8 = 56.
  const auto opt = [](const std::string& more) {
    return read_config(R"({"model_type": "opt", "num_hidden_layers": 2, "hidden_size": 8,
      "num_attention_heads": 2, "ffn_dim": 16, "vocab_size": 10, "max_position_embeddings": 6,
      "do_layer_norm_before": false, "word_embed_proj_dim": 4)" +
                       more + "}");
  };
  CHECK(opt("").parameters == 168 + 2 * 600);
  CHECK(opt(R"(, "tie_word_embeddings": false)").parameters == 168 + 2 * 600 + 40);
  CHECK(opt(R"(, "enable_bias": false)").parameters == 168 + 2 * (600 - 56));
  // One token multiplies the matrices of the layers (4 * 64 + 2 * 128 each), both projections and
  // the head; without attention over others that is all: 2 (2 * 512 + 64 + 40) at s = 0.
  CHECK(count_gemm_parameters(opt("")) == 2 * 512 + 64 + 40);
  CHECK(opt("").embedding.width == 4);
  CHECK(opt("").formula.find("Ve + 2eh + Ph") == 0);
}

TEST_CASE("A config of a LLaMA becomes its sizes") {
  const Model model =
      read_config(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
    "vocab_size": 100, "max_position_embeddings": 512, "tie_word_embeddings": true,
    "dtype": "bfloat16", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}})");
  CHECK(model.family == Family::llama);
  CHECK(model.layers.size() == 2);
  CHECK(model.hidden == 64);
  CHECK(usual_attention(model).heads == 4);
  CHECK(usual_attention(model).kv_heads == 2);
  CHECK(usual_attention(model).head_dim == 16);
  CHECK(usual_mlp(model).width == 128);
  CHECK(model.embedding.vocab == 100);
  CHECK(model.embedding.max_positions == 512);
  CHECK(model.norms.kind == Norm::rms_norm);
  CHECK(model.embedding.positions == Positions::rotary);
  CHECK(usual_mlp(model).gated);
  CHECK(!usual_attention(model).qkv_bias);
  CHECK(model.embedding.tied);
  CHECK(model.ignored_keys == std::vector<std::string>{});
}

TEST_CASE("BERT is an encoder with its pre-training heads") {
  const Model model =
      read_config(R"({"model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024,
    "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522,
    "max_position_embeddings": 512, "type_vocab_size": 2})");
  // (30522 + 512 + 2) 1024 + 2048; 24 (12 * 1024^2 + 13 * 1024); transform 1024^2 + 1024 + 2048;
  // bias 30522; pooler 1024^2 + 1024 and classifier 2050.
  CHECK(model.parameters == 336'226'108);
  CHECK(!model.causal);
  CHECK(!model.norms.final);
  CHECK(model.norms.embedding);
}

TEST_CASE("A decoder nested in a multimodal file is read where it is") {
  const Model model = read_config(R"({"model_type": "llava", "tie_word_embeddings": true,
    "vision_config": {"hidden_size": 1024}, "text_config": {"model_type": "llama",
    "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100}})");
  CHECK(model.hidden == 64);
  CHECK(model.embedding.tied);  // from above
  CHECK(model.ignored_keys == std::vector<std::string>{});
}

TEST_CASE("Keys that nobody reads are reported unless they are known not to matter") {
  const Model model = read_config(llama_with("padded_vocab_size", 128));
  CHECK(model.ignored_keys == std::vector<std::string>{"padded_vocab_size"});
  CHECK(read_config(llama_with("initializer_range", 0.02)).ignored_keys.empty());
}

TEST_CASE("A key that is a slip for one that was missed says so") {
  const Model slip = read_config(llama_with("num_key_value_head", 2));
  CHECK(slip.ignored_keys == std::vector<std::string>{"num_key_value_head"});
  CHECK(slip.assumptions ==
        std::vector<std::string>{
            "/num_key_value_head: not used; did you mean 'num_key_value_heads'?"});
  CHECK(unused_keys_said(slip).empty());  // the assumption says it
  const Model other = read_config(llama_with("padded_vocab_size", 128));
  CHECK(other.assumptions.empty());
  CHECK(unused_keys_said(other) == std::vector<std::string>{"/model/padded_vocab_size: not used"});
}

// Types without experts would be read as dense models of another size.
TEST_CASE("Experts that a model's type does not have are refused, not left out") {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    CHECK(config_refusal(llama_with(key, 8)) ==
          std::string{"config.json:/"} + key +
              ": 8 experts, but a model of type 'llama' has none; expected another model_type, "
              "such as 'mixtral', or no such key");
    for (const Json& none : {Json(0), Json(1), Json(nullptr)}) {
      CHECK(config_refusal(llama_with(key, none)) == "accepted");
    }
  }
}

TEST_CASE("Small configs of each type have as many parameters as their class has tensors") {
  // small_configs.json: sizes chosen here, all else left to the type's own defaults; how many
  // tensors of which shape the class of the transformers library (5.24) has then.
  const auto table =
      Document::load(std::string{ORRERY_SOURCE} + "/tests/models/model/import/small_configs.json");
  for (const Node& row : table.root().elements()) {
    INFO(row["config"].json().dump());
    Json config = row["config"].json();
    config["architectures"] = Json::array({row["class"].as<std::string>()});
    const auto file = Document::from(std::move(config), "config.json");
    std::int64_t expected = 0;
    for (const Node& tensors : row["tensors"].elements()) {
      std::int64_t product = 1;
      for (const Node& size : tensors.elements()) product *= size.as<std::int64_t>();
      expected += product;
    }
    const Model model = read_model(file.root());
    CHECK(model.parameters - count_prediction_parameters(model) == expected);
    CHECK(model.active_parameters <= model.parameters);
    CHECK(model.ignored_keys == std::vector<std::string>{});
    CHECK(!model.formula.empty());
  }
}

TEST_CASE("Models whose code lies next to their weights have as many parameters as published") {
  // own_code_configs.json: what the configs of these models say of their shape, and the parameters
  // of their weights.
  const auto table = Document::load(std::string{ORRERY_SOURCE} +
                                    "/tests/models/model/import/own_code_configs.json");
  for (const Node& row : table.root().elements()) {
    INFO(row["model"].as<std::string>());
    const auto file = Document::from(row["config"].json(), "config.json");
    const Model model = read_model(file.root());
    CHECK(model.parameters == row["parameters"].as<std::int64_t>());
    CHECK(model.ignored_keys == std::vector<std::string>{});
  }
}

TEST_CASE("Layers that a search thinned out have their own heads, MLPs, or nothing") {
  const auto thinned = [](const std::string& blocks) {
    return read_config(
        R"({"model_type": "nemotron-nas", "vocab_size": 1000, "hidden_size": 512,
            "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": null,
            "intermediate_size": null, "hidden_act": "silu", "block_configs": [)" +
        blocks + "]}");
  };
  const std::string full = R"({"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.3125}})";
  const std::string mlp_alone = R"({"attention": {"no_op": true}, "ffn": {"ffn_mult": 2.625}})";
  const std::string attention_alone =
      R"({"attention": {"n_heads_in_group": 8}, "ffn": {"no_op": true}})";
  const Model model = thinned(full + "," + mlp_alone + "," + attention_alone);
  // Widths 448 and 896, in full 256.
  const std::int64_t h = 512, attention = h * (h + 2 * 128) + h * h;
  CHECK(model.parameters == 2 * 1000 * h + (attention + 3 * h * 512 + 2 * h) + (3 * h * 1024 + h) +
                                (h * (h + 2 * 64) + h * h + h) + h);
  CHECK(!model.not_simulated);
  CHECK(model.layers[0].attention()->kv_heads == 2);
  CHECK(model.layers[1].attention() == nullptr);
  CHECK(model.layers[2].mlp() == nullptr);
  const Model linear =
      thinned(full + "," + full +
              R"(, {"attention": {"replace_with_linear": true}, "ffn": {"ffn_mult": 1.3125}})");
  CHECK(linear.parameters == 2 * 1000 * h + 3 * (3 * h * 512 + 2 * h) + 2 * attention + h * h + h);
  CHECK(linear.not_simulated);
  CHECK_THROWS_WITH(thinned(full + "," + full), Catch::Contains("has 2 entries for 3 layers"));
  CHECK_THROWS_WITH(
      thinned(full + "," + full +
              R"(, {"attention": {"n_heads_in_group": 3}, "ffn": {"ffn_mult": 1}})"),
      Catch::Contains("/block_configs/2/attention/n_heads_in_group: does not divide"));
  CHECK_THROWS_WITH(thinned(full + "," + full +
                            R"(, {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": -1}})"),
                    Catch::Contains("/block_configs/2/ffn/ffn_mult: makes an MLP"));
}

TEST_CASE(
    "What a model next to its weights computes differently is read or refused, not passed over") {
  const auto with = [](const std::string& file, Json more) {
    Json config = Json::parse(file);
    config.update(more);
    return read_model(Document::from(std::move(config), "config.json").root());
  };
  const std::string llada =
      R"({"model_type": "llada", "d_model": 64, "n_layers": 2, "n_heads": 4, "mlp_hidden_size": 96,
          "vocab_size": 100})";
  CHECK(usual_attention(with(llada, Json::object())).kv_heads == 4);
  CHECK(usual_attention(with(llada, {{"multi_query_attention", true}})).kv_heads == 1);
  CHECK_THROWS_WITH(with(llada, {{"alibi", true}}), Catch::Contains("/alibi"));
  CHECK_THROWS_WITH(with(llada, {{"rope", false}}), Catch::Contains("/rope"));
  CHECK_THROWS_WITH(with(llada, {{"layer_norm_type", "default"}}), Catch::Contains("\"rms\""));
  CHECK_THROWS_WITH(with(llada, {{"activation_type", "gelu"}}), Catch::Contains("\"silu\""));
  const std::string chatglm =
      R"({"model_type": "chatglm", "hidden_size": 64, "num_layers": 2, "num_attention_heads": 4,
          "kv_channels": 16, "ffn_hidden_size": 96, "padded_vocab_size": 1000, "vocab_size": 500})";
  CHECK(with(chatglm, Json::object()).embedding.vocab == 1000);
  CHECK_THROWS_WITH(with(chatglm, {{"pre_seq_len", 8}}), Catch::Contains("/pre_seq_len"));
  CHECK(with(chatglm, {{"num_hidden_layers", 2}}).layers.size() == 2);
  CHECK_THROWS_WITH(with(chatglm, {{"num_hidden_layers", 10}}),
                    Catch::Contains("/num_layers: differs from num_hidden_layers"));
  const Model dbrx =
      with(R"({"model_type": "dbrx", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100,
              "attn_config": {}, "ffn_config": {"moe_num_experts": 8, "moe_top_k": 2,
              "ffn_hidden_size": 96}})",
           Json::object());
  CHECK(dbrx.assumptions ==
        std::vector<std::string>{"/attn_config/kv_n_heads: not stated; 1 assumed"});
  const std::string qwen =
      R"({"model_type": "qwen", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
          "num_attention_heads": 4, "intermediate_size": 97, "seq_length": 64})";
  CHECK_THROWS_WITH(with(qwen, Json::object()), Catch::Contains("/intermediate_size: is odd"));
  const std::string ouro =
      R"({"model_type": "ouro", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
          "num_attention_heads": 4, "intermediate_size": 96})";
  CHECK(with(ouro, Json::object()).not_simulated.value_or("").ends_with("one of 4 passes"));
  CHECK(!with(ouro, {{"total_ut_steps", 1}}).not_simulated);
  const std::string qwen4 =
      R"({"model_type": "qwen4_exp", "num_hidden_layers": 4, "ngram_vocab_size_base": 100,
          "ple_layer_ids": [1]})";
  const std::int64_t gated = with(qwen4, Json::object()).parameters;
  CHECK(with(qwen4, {{"attn_output_gate", false}}).parameters == gated - 2048 * 16 * 256);
  CHECK(with(qwen4, {{"ple_layer_ids", {1, 1}}}).parameters == gated);
  CHECK_THROWS_WITH(with(qwen4, {{"ple_layer_ids", {1, 5}}}), Catch::Contains("/ple_layer_ids/1"));
  CHECK_THROWS_WITH(with(qwen4, {{"ngram_size", 1}}), Catch::Contains("/ngram_size"));
}

TEST_CASE("The decoder of a multimodal file is found by the names that such files have for it") {
  for (const std::string key : {"text_config", "llm_config", "language_config"}) {
    const Model model =
        read_config(R"({"model_type": "internvl_chat", ")" + key +
                    R"(": {"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 2,
               "num_attention_heads": 4, "num_key_value_heads": 2,
               "intermediate_size": 96, "vocab_size": 100}})");
    CHECK(model.hidden == 64);
    CHECK(model.ignored_keys == std::vector<std::string>{});
  }
}

TEST_CASE("What a type assumes gives way to what the file says, null included") {
  const auto gemma = [](const std::string& more) {
    return read_config(R"({"model_type": "gemma3_text", "num_hidden_layers": 6)" + more + "}");
  };
  CHECK(gemma("").hidden == 2304);
  CHECK(gemma(R"(, "hidden_size": 128)").hidden == 128);
  CHECK(usual_attention(gemma("")).window == 4096);
  CHECK(usual_attention(gemma(R"(, "sliding_window": null)")).window == 0);
  // Every sixth layer attends to all tokens.
  const Model model = gemma("");
  CHECK(model.layers[4].attention()->window == 4096);
  CHECK(model.layers[5].attention()->window == 0);
}

TEST_CASE("Gemma's norms add one to their weights, and its windows rotate by a base of their own") {
  const auto gemma = [](const std::string& more) {
    return read_config(R"({"model_type": "gemma3_text", "num_hidden_layers": 6)" + more + "}");
  };
  const Model model = gemma("");
  CHECK(model.norms.offset == 1);
  CHECK(model.norms.sandwich);
  CHECK(model.embedding.multiplier == 48);          // the root of 2304
  CHECK(model.embedding.rotary.score_factor == 1);  // heads of 256, and 256 is stated
  CHECK(model.embedding.rotary.base == 1e6);
  CHECK(model.layers[4].attention()->rotary_base == 1e4);
  CHECK_FALSE(model.layers[5].attention()->rotary_base);
  CHECK(model.inexact.empty());
  const Model nested = gemma(R"(, "query_pre_attn_scalar": 64, "rope_parameters": {
    "full_attention": {"rope_type": "linear", "rope_theta": 500, "factor": 8},
    "sliding_attention": {"rope_type": "default", "rope_theta": 70}})");
  CHECK(nested.embedding.rotary.score_factor == 2);  // the root of 256 / 64
  CHECK(nested.embedding.rotary.base == 500);
  CHECK(nested.embedding.rotary.factor == 8);
  CHECK(nested.layers[0].attention()->rotary_base == 70);
  CHECK(gemma(R"(, "final_logit_softcapping": 30)").inexact == "softcaps of scores and logits");
}

TEST_CASE("Norms of outputs and norms of inputs are different configurations") {
  const auto norms = [](const std::string& type) {
    return read_config(R"({"model_type": ")" + type + "\"}").norms;
  };
  CHECK(norms("olmo2").of_outputs);
  CHECK_FALSE(norms("olmo2").sandwich);
  CHECK(norms("glm4").sandwich);
  CHECK_FALSE(norms("glm4").of_outputs);
  CHECK_FALSE(norms("olmo").of_outputs);
}

TEST_CASE("A class names the head of an encoder, and one of an unknown head is refused") {
  // BERT of width 64, 2 layers, MLP 128: a pooler is 64 x 64 + 64, two labels 2 x 64 + 2, five
  // 5 x 64 + 5.
  const auto encoder = [](const std::string& name, const std::string& more = "") {
    return read_config(R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "architectures": [")" +
                       name + "\"]" + more + "}");
  };
  const std::int64_t bare = encoder("BertModel").parameters;
  CHECK(encoder("BertForSequenceClassification").parameters == bare + 130);
  CHECK(encoder("BertForTokenClassification").parameters == bare - 4160 + 130);
  CHECK(encoder("BertForSequenceClassification",
                R"(, "id2label": {"0": "a", "1": "b", "2": "c", "3": "d", "4": "e"})")
            .parameters == bare + 325);
  CHECK(encoder("BertForMaskedLM").head.transform);
  CHECK(encoder("BertLMHeadModel", R"(, "is_decoder": true)").causal);
  CHECK(config_refusal(R"({"model_type": "roberta", "architectures": ["RobertaForChess"]})")
            .find("config.json:/architectures/0: the head of class 'RobertaForChess' is not known; "
                  "expected a name that ends on one of ForMaskedLM") == 0);
  CHECK(config_refusal(R"({"model_type": "bert", "position_embedding_type": "alibi"})")
            .find("config.json:/position_embedding_type: expected \"absolute\"") == 0);
  CHECK(config_refusal(R"({"model_type": "vit", "architectures": ["ViTForChess"]})")
            .find("the head of class 'ViTForChess' is not known") != std::string::npos);
  const Model assumed = read_config(R"({"model_type": "roberta"})");
  REQUIRE(assumed.assumptions.size() == 2);
  CHECK(assumed.assumptions[0] == "/architectures: a class ...ForMaskedLM assumed");
  CHECK(assumed.assumptions[1] ==
        "not stated, as the class of 'roberta' has them: vocab_size=50265, hidden_size=768, "
        "intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, "
        "max_position_embeddings=512, type_vocab_size=2");
}

TEST_CASE("Attention next to Mamba-2 in one layer is simulated as two layers, and says so") {
  const Model model = read_config(R"({"model_type": "falcon_h1", "num_hidden_layers": 3,
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
    "intermediate_size": 80, "mamba_n_heads": 8, "mamba_d_ssm": 64, "mamba_d_state": 16})");
  CHECK(model.layers.size() == 6);
  CHECK(model.inexact == "attention next to Mamba-2, simulated one after the other");
  CHECK(!model.not_simulated);
  CHECK(
      model.assumptions.front() ==
      "/num_hidden_layers: each of the 3 is simulated as two, Mamba-2 and then attention with its "
      "MLP");
}

TEST_CASE("What is counted but not simulated says why") {
  const auto reason = [](const std::string& type) {
    return read_config(R"({"model_type": ")" + type + "\"}").not_simulated.value_or("simulated");
  };
  CHECK(reason("mamba") == "state-space layers are counted, not yet simulated");
  CHECK(reason("prophetnet") == "cross-attention is counted, not yet simulated");
  CHECK(reason("dinov2") == "vision transformers are counted, not yet simulated");
  CHECK(reason("deepseek_v4") == "compressed attention is counted, not yet simulated");
  CHECK(read_config(R"({"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "intermediate_size": 128, "image_size": 32, "patch_size": 8})")
            .not_simulated == "vision transformers are counted, not yet simulated");
  CHECK(reason("albert") == "layers that share their weights are counted, not yet simulated");
  CHECK(reason("swin") == "vision transformers are counted, not yet simulated");
  CHECK(reason("zaya") == "attention on convolved queries and keys is counted, not yet simulated");
  CHECK(reason("mamba2") == "simulated");
  CHECK(reason("marian") == "simulated");
  CHECK(reason("switch_transformers") == "simulated");
  CHECK(reason("olmo2") == "simulated");
  CHECK(reason("umt5") == "simulated");
  CHECK(reason("afmoe") == "simulated");
}

TEST_CASE("An unknown model type is answered with the known ones") {
  const std::string refusal = config_refusal(R"({"model_type": "perceptron"})");
  CHECK(refusal.starts_with("config.json:/model_type: unknown model type 'perceptron'; known: "));
  for (const std::string& type : model_types()) CHECK(refusal.find(type) != std::string::npos);
  CHECK(config_refusal("{}") == "config.json:/model_type: missing");
}

TEST_CASE("A mistake in a config is reported on one line with its place") {
  CHECK(config_refusal(llama_without("hidden_size")) == "config.json:/hidden_size: missing");
  CHECK(config_refusal(llama_with("hidden_size", "wide")) ==
        "config.json:/hidden_size: expected an integer from 1 to 262144, found \"wide\"");
  CHECK(config_refusal(llama_with("num_hidden_layers", 0)) ==
        "config.json:/num_hidden_layers: expected an integer from 1 to 4096, found 0");
  CHECK(
      config_refusal(llama_with("vocab_size", 1e18))
          .starts_with("config.json:/vocab_size: expected an integer from 1 to 16777216, found 1"));
  CHECK(config_refusal(llama_with("num_attention_heads", 5)) ==
        "config.json:/hidden_size: 64 is not a multiple of the 5 attention heads");
  CHECK(config_refusal(llama_with("num_key_value_heads", 3)) ==
        "config.json:/num_key_value_heads: 3 key-value heads do not divide the 4 attention heads");
  CHECK(config_refusal(llama_with("hidden_act", "tanh")) ==
        "config.json:/hidden_act: expected one of \"gelu\", \"silu\", \"relu\", found \"tanh\"");
  CHECK(config_refusal("[]") == "config.json: expected an object, found []");
}

TEST_CASE("A layer pattern has one known letter per layer") {
  const auto with_pattern = [](const std::string& pattern) {
    return R"({"model_type": "nemotron_h", "num_hidden_layers": 3, "hidden_size": 64,
      "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100,
      "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 1, "ssm_state_size": 8,
      "conv_kernel": 4, "hybrid_override_pattern": ")" +
           pattern + "\"}";
  };
  // Tables 2 * 100 * 64 and a norm of 64; per layer a norm of 64; Mamba with d = 64, gs = 8:
  // 64 (128 + 16 + 4) + (64 + 16) 5 + 12 + 64 + 64 * 64; attention 4 * 64^2; MLP 2 * 64 * 128.
  const Model model = read_config(with_pattern("M*-"));
  CHECK(model.parameters == 12'864 + 3 * 64 + 14'044 + 16'384 + 16'384);
  CHECK(attention_layers(model) == 1);
  // Attention has no positions, MLPs square what is above zero, steps have a least length.
  CHECK(model.embedding.positions == Positions::none);
  CHECK(usual_mlp(model).activation == Activation::relu2);
  CHECK(std::get<Mamba2Part>(model.layers[0].mixer).least_step == 0.001);
  // Only that one layer attends: 4 * 64 FLOPs for each of s / 2 tokens.
  CHECK(forward_flops_per_token(model, 200) - forward_flops_per_token(model, 100) == 50.0 * 256.0);
  CHECK(config_refusal(with_pattern("M*")) ==
        "config.json:/hybrid_override_pattern: has 2 letters for 3 layers");
  CHECK(config_refusal(with_pattern("M*x")) ==
        "config.json:/hybrid_override_pattern: expected a string of the letters M, *, - and E, "
        "found \"M*x\"");
}

TEST_CASE("Layers listed in words are those of a pattern of letters") {
  const auto with_layers = [](const std::string& layers) {
    return R"({"model_type": "nemotron_h", "hidden_size": 64,
      "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100,
      "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 1, "ssm_state_size": 8,
      "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
      "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 16, "conv_kernel": 4, )" +
           layers + "}";
  };
  const Model letters =
      read_config(with_layers(R"("num_hidden_layers": 4, "hybrid_override_pattern": "M*-E")"));
  const Model words =
      read_config(with_layers(R"("layers_block_type": ["mamba", "attention", "mlp", "moe"])"));
  CHECK(words.layers.size() == 4);
  CHECK(words.parameters == letters.parameters);
  CHECK(attention_layers(words) == 1);
  // The layer of experts: a router 64 * 4, four experts and a shared one of two matrices.
  const Model fewer =
      read_config(with_layers(R"("num_hidden_layers": 3, "hybrid_override_pattern": "M*-")"));
  CHECK(letters.parameters - fewer.parameters == 64 + 64 * (4 + 4 * 2 * 32 + 2 * 16));
  // Experts on a latent of 8: in and out 64 * 8 each, and matrices of that width.
  const Model latent = read_config(with_layers(
      R"("moe_latent_size": 8, "num_hidden_layers": 4, "hybrid_override_pattern": "M*-E")"));
  CHECK(latent.parameters - fewer.parameters == 64 + 64 * (4 + 2 * 8 + 2 * 16) + 4 * 2 * 8 * 32);
  const Model newer = read_config(
      with_layers(R"("layers_block_type": ["linear_attention", "full_attention", "mlp", "moe"])"));
  CHECK(newer.parameters == letters.parameters);
  CHECK(config_refusal(with_layers(R"("layers_block_type": ["mamba", "rnn"])")) ==
        "config.json:/layers_block_type/1: expected one of \"mamba\", \"attention\", \"mlp\", "
        "\"moe\", \"linear_attention\", \"full_attention\", found \"rnn\"");
  CHECK(config_refusal(with_layers(R"("num_hidden_layers": 3, "layers_block_type": ["mlp"])")) ==
        "config.json:/layers_block_type: has 1 entries for 3 layers");
}

TEST_CASE("Only layers with an indexer of their own have its parameters") {
  const auto with_types = [](const std::string& types) {
    return read_config(R"({"model_type": "glm_moe_dsa", "num_hidden_layers": 4, "hidden_size": 64,
      "num_attention_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_nope_head_dim": 8,
      "qk_rope_head_dim": 8, "v_head_dim": 8, "intermediate_size": 128, "vocab_size": 100,
      "moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 2,
      "first_k_dense_replace": 1, "index_n_heads": 2, "index_head_dim": 4)" +
                       types + "}")
        .parameters;
  };
  // An indexer: 16 * 2 * 4 + 64 * 4 + 2 * 4 + 64 * 2 = 520.
  const std::int64_t all = with_types("");
  CHECK(with_types(R"(, "indexer_types": ["full", "full", "full", "full"])") == all);
  CHECK(with_types(R"(, "indexer_types": ["full", "shared", "full", "shared"])") == all - 2 * 520);
  CHECK_THROWS_WITH(with_types(R"(, "indexer_types": ["full"])"),
                    "config.json:/indexer_types: has 1 entries for 4 layers");
}

TEST_CASE("MiMo has the biases of queries, keys and values that its file states") {
  const auto with_bias = [](bool bias) {
    Json config = Json::parse(llama_with("attention_bias", bias));
    config["model_type"] = "mimo";
    return read_config(config.dump()).parameters;
  };
  CHECK(with_bias(true) - with_bias(false) == 2 * 3 * 64);
}

TEST_CASE("Windows are on the layers that the file lists or its family's rule says") {
  const auto full = [](Json config, std::string_view type) {
    config["model_type"] = type;
    config["num_hidden_layers"] = 4;
    std::string layers;
    const Model model = read_config(config.dump());
    CHECK(!model.not_simulated);
    for (std::int64_t i = 0; i < 4; ++i) layers += model.layers[i].attention()->full() ? 'F' : 'w';
    return layers;
  };
  Json qwen = Json::parse(llama_with("sliding_window", 16));
  qwen["num_key_value_heads"] = 4;
  qwen["max_window_layers"] = 3;
  qwen["num_key_value_heads"] = 4;       // else 32, as the transformers library has it
  CHECK(full(qwen, "qwen2") == "FFFF");  // the window does not count
  CHECK(usual_attention(read_config(qwen.dump())).window == 0);
  qwen["use_sliding_window"] = true;
  CHECK(full(qwen, "qwen2") == "FFFw");
  qwen["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention",
                         "full_attention"};
  CHECK(full(qwen, "qwen3") == "FwwF");
  qwen["layer_types"].push_back("full_attention");
  CHECK_THROWS_WITH(full(qwen, "qwen3"), "config.json:/layer_types: has 5 entries for 4 layers");
  Json llama4 = Json::parse(R"({"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "intermediate_size": 128, "intermediate_size_mlp": 128, "interleave_moe_layer_step": 1,
    "num_local_experts": 4, "num_experts_per_tok": 1})");
  CHECK(full(llama4, "llama4_text") == "wwwF");
  llama4["no_rope_layers"] = {1, 0, 1, 0};
  CHECK(full(llama4, "llama4_text") == "wFwF");
  llama4["layer_types"] = {"full_attention", "chunked_attention", "chunked_attention",
                           "chunked_attention"};
  CHECK(full(llama4, "llama4_text") == "Fwww");
}

TEST_CASE("More experts per token than experts are refused") {
  CHECK(config_refusal(R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
    "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 5})") ==
        "config.json:/num_experts_per_tok: 5 is more than the 4 experts");
}

// As llava-hf/llava-1.5-7b-hf is published: the sizes of its text are those of LlamaConfig.
TEST_CASE("The text of a multimodal file may leave its sizes to its class, as assumptions say") {
  const Model model = read_config(R"({"model_type": "llava", "text_config": {
    "model_type": "llama", "vocab_size": 32064, "max_position_embeddings": 4096},
    "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
    "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14}})");
  CHECK(model.parameters == 6'738'939'904);
  CHECK(std::ranges::count(model.assumptions,
                           "not stated, as the class of 'llama' has them: hidden_size=4096, "
                           "intermediate_size=11008, num_hidden_layers=32, "
                           "num_attention_heads=32") == 1);
  CHECK(config_refusal(R"({"model_type": "llama"})").starts_with("config.json:/"));
}

TEST_CASE("Sizes outside the text's own object are not the text's") {
  const Model model = read_config(R"({"model_type": "musicflamingo", "head_dim": 1280,
    "text_config": {"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 128, "num_hidden_layers": 2,
    "vocab_size": 100}})");
  CHECK(usual_attention(model).head_dim == 16);
}

}  // namespace orrery::models
