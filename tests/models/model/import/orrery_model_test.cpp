#include <catch2/catch.hpp>
#include <string>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

Model read_orrery(const std::string& text) {
  const auto document = Document::parse(text, "model.json");
  return read_model(document.root());
}

std::string refused_model(const std::string& text) {
  try {
    read_orrery(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Orrery's own JSON and config.json describe the same model") {
  const Model own = read_orrery(R"({"format": "orrery-model", "family": "llama", "layers": 32,
    "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn_hidden": 14336, "vocab": 128256,
    "max_positions": 8192})");
  const Model imported = read_orrery(R"({"model_type": "llama", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192})");
  CHECK(own.parameters == 8'030'261'248);
  CHECK(own.parameters == imported.parameters);
  CHECK(own.formula == imported.formula);
  CHECK(own.layers[0] == imported.layers[0]);
  CHECK(own.embedding.positions == imported.embedding.positions);
  CHECK(forward_flops_per_token(own, 8192) == forward_flops_per_token(imported, 8192));
}

TEST_CASE("A GPT needs no more than its sizes") {
  const Model model = read_orrery(R"({"format": "orrery-model", "name": "small", "layers": 2,
    "hidden": 64, "heads": 4, "vocab": 100, "max_positions": 32})");
  CHECK(model.name == "small");
  CHECK(model.family == Family::gpt);
  CHECK(usual_mlp(model).width == 256);
  CHECK(usual_attention(model).kv_heads == 4);
  CHECK(model.embedding.positions == Positions::learned);
  // (100 + 32) 64 + 2 (12 * 64^2 + 13 * 64) + 128
  CHECK(model.parameters == 108'544);
}

TEST_CASE("A clamped activation has a limit, stated or assumed") {
  const auto with = [](const std::string& members) {
    return R"({"format": "orrery-model", "layers": 2, "hidden": 64, "heads": 4, "vocab": 100,
      "max_positions": 32, "gated_mlp": true)" +
           members + "}";
  };
  const Model stated = read_orrery(with(R"(, "clamped_activation": true, "activation_limit": 5)"));
  CHECK(usual_mlp(stated).limit == 5);
  CHECK(stated.assumptions.empty());
  const Model open = read_orrery(with(R"(, "clamped_activation": true)"));
  CHECK(usual_mlp(open).limit == 7);
  REQUIRE(open.assumptions.size() == 1);
  CHECK(open.assumptions[0] == "/activation_limit: not stated; 7 assumed, as GPT-OSS");
  CHECK(read_orrery(with("")).assumptions.empty());
  CHECK(
      refused_model(with(R"(, "activation_limit": 5)")).find("/activation_limit: has no effect") !=
      std::string::npos);
}

TEST_CASE("A mistake in Orrery's own JSON is reported with its place") {
  CHECK(refused_model(R"({"format": "json"})") ==
        "model.json:/format: expected one of \"orrery-model\", found \"json\"");
  CHECK(refused_model(R"({"format": "orrery-model"})") == "model.json:/layers: missing");
  CHECK(refused_model(R"({"format": "orrery-model", "layers": 2, "hidden": 64, "heads": 4,
    "vocab": 100})") == "model.json:/max_positions: missing");
  CHECK(refused_model(R"({"format": "orrery-model", "layers": 2, "hidden": 64, "heads": 3,
    "vocab": 100, "max_positions": 32})") ==
        "model.json:/hidden: 64 is not a multiple of the 3 attention heads");
  CHECK(refused_model(R"({"format": "orrery-model", "layers": 2, "hidden": 64, "heads": 4,
    "kv_heads": 3, "vocab": 100, "max_positions": 32})") ==
        "model.json:/kv_heads: 3 key-value heads do not divide the 4 attention heads");
  CHECK(refused_model(R"({"format": "orrery-model", "layer": 2})")
            .starts_with("model.json:/layer: unknown key; did you mean 'layers'?"));
}

}  // namespace orrery::models
