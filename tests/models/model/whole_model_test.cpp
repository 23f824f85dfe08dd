// Multimodal files: what is counted is the model of text, and next to it the whole of the file.
#include "models/model/whole_model.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "sim/errors.hpp"

namespace orrery::models {
namespace {

Document with_class_of(const Node& row) {
  Json config = row["config"].json();
  config["architectures"] = Json::array({row["class"].as<std::string>()});
  return Document::from(std::move(config), "config.json");
}

std::optional<WholeModel> whole_of(const std::string& text) {
  const auto file = Document::parse(text, "config.json");
  return whole_model(file.root(), read_model(file.root()));
}

const std::string small_text =
    R"("text_config": {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
       "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})";

}  // namespace

TEST_CASE("Multimodal files have as many parameters as their class has, encoder and all") {
  // whole_configs.json: sizes chosen here, and how many parameters the class of the transformers
  // library (5.24) has then.
  const auto table =
      Document::load(std::string{ORRERY_SOURCE} + "/tests/models/model/whole_configs.json");
  for (const Node& row : table.root().elements()) {
    INFO(row["config"].json().dump());
    const Document file = with_class_of(row);
    const auto whole = whole_model(file.root(), read_model(file.root()));
    REQUIRE(whole);
    REQUIRE(whole->parameters);
    CHECK(*whole->parameters == row["parameters"].as<std::int64_t>());
  }
}

TEST_CASE("A file of text is all of it; one of an unknown encoder says that it is not") {
  CHECK(!whole_of(R"({"model_type": "clip_text_model"})"));
  const auto unknown =
      whole_of(R"({"model_type": "glimpse", "vision_config": {}, )" + small_text + "}");
  REQUIRE(unknown);
  CHECK(!unknown->parameters);
  const auto other =
      whole_of(R"({"model_type": "glimpse", "encoder_config": {}, )" + small_text + "}");
  REQUIRE(other);
  CHECK(!other->parameters);
  const auto sound = whole_of(
      R"({"model_type": "llava", "vision_config": {}, "audio_config": {}, )" + small_text + "}");
  REQUIRE(sound);
  CHECK(!sound->parameters);
}

TEST_CASE("A multimodal file ties its head by what it says outside of the text's own part") {
  // V h = 100 x 64 more where the head is not tied.
  const auto parameters = [](const std::string& outside, const std::string& inside) {
    std::string text = small_text;
    text.insert(text.size() - 1, inside);
    const auto file = Document::parse(
        R"({"model_type": "llava", "vision_config": {})" + outside + ", " + text + "}", "x.json");
    return read_model(file.root()).parameters;
  };
  const std::string tied = R"(, "tie_word_embeddings": true)",
                    untied = R"(, "tie_word_embeddings": false)";
  const std::int64_t one = parameters(tied, untied);
  CHECK(one == parameters("", tied));
  CHECK(parameters(untied, tied) == one + 6400);
  CHECK(parameters("", "") == one + 6400);
}

}  // namespace orrery::models
