// Encoders that multimodal configs have in front of their language model.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

/// A small Qwen3-VL: patches of 4 x 4 x 3, of which 2 x 2 are a row.
std::string seeing_config(const std::string& more) {
  return R"({"model_type": "qwen3_vl", "vision_config": {"depth": 2, "hidden_size": 64,
    "num_heads": 4, "intermediate_size": 96, "patch_size": 4, "in_channels": 3,
    "spatial_merge_size": 2}, "text_config": {"model_type": "qwen3_vl_text",
    "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256, "vocab_size": 100})" +
         more + "}";
}

Model seeing_model(const std::string& more) {
  return read_model(Document::parse(seeing_config(more), "config.json").root());
}

std::string seeing_refusal(const std::string& more) {
  try {
    seeing_model(more);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("A multimodal config trains text alone unless it says how many images, and says so") {
  const Model model = seeing_model("");
  CHECK(!model.front);
  CHECK(model.ignored_keys == std::vector<std::string>{});
  CHECK(
      model.assumptions ==
      std::vector<std::string>{
          "/vision_config: text alone assumed: the encoder of images, 2 layers of width 64, and "
          R"(its projector are not in the step; /model/images={"patches": N}, of one image, has it )"
          "frozen in front"});
}

TEST_CASE("Images of a multimodal config pass the encoder of its vision_config") {
  const Model plain = seeing_model("");
  const Model model = seeing_model(R"(, "images": {"patches": 64, "count": 3})");
  REQUIRE(model.front);
  CHECK(model.front->encoder->layers.size() == 2);
  CHECK(model.front->encoder->hidden == 64);
  CHECK(model.front->patch_columns == 3 * 4 * 4);
  CHECK(model.front->merged == 4);
  CHECK(model.front->rows() == 3 * 64 / 4);
  CHECK(model.assumptions == std::vector<std::string>{});
  // 48 x 64 + 64 of patches, 64 x 64 positions; a layer 4 x 64 x 64 + 4 x 64 of attention,
  // 2 x 64 x 96 + 96 + 64 of the MLP, 4 x 64 of norms; 2 x 64; the projector 256 x 128 + 128 and
  // 128 x 128 + 128.
  const std::int64_t encoder = 3'136 + 4'096 + 2 * (16'640 + 12'448 + 256) + 128;
  CHECK(model.parameters - plain.parameters == encoder + 32'896 + 16'512);
}

TEST_CASE("What is stated of images holds in place of the config") {
  const Model model = seeing_model(R"(, "images": {"patches": 32, "merged": 2, "layers": 5})");
  CHECK(model.front->encoder->layers.size() == 5);
  CHECK(model.front->rows() == 16);
}

TEST_CASE("A mistake in images of a multimodal config has its place") {
  CHECK(seeing_refusal(R"(, "images": {"count": 2})") == "config.json:/images/patches: missing");
  CHECK(seeing_refusal(R"(, "images": {"patches": 63})") ==
        "config.json:/images/merged: 4 does not divide the 63 patches of an image");
  const auto plain = Document::parse(R"({"model_type": "llama", "num_hidden_layers": 2,
    "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
    "images": {"patches": 4}})",
                                     "config.json");
  CHECK_THROWS_WITH(read_model(plain.root()),
                    "config.json:/images: there is no vision_config whose encoder the images would "
                    "pass");
}

}  // namespace
}  // namespace orrery::models
