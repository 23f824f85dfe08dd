#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

constexpr const char* tiny_config =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 128})";

}  // namespace

TEST_CASE("Parameters are given with and without the layers that predict further tokens") {
  // DeepSeek-AI 2024, arXiv 2412.19437: 671 B; its checkpoint holds 11.6 B more for MTP.
  const Json deepseek = parsed(orrery("show models deepseek-v3 --json").out);
  CHECK(deepseek["parameters"] == 682'636'472'320);
  CHECK(deepseek["parameters_without_mtp"] == 671'026'404'352);
  CHECK(orrery("show models deepseek-v3").out.find("682636472320, 671026404352 without MTP") !=
        std::string::npos);
  CHECK(orrery("simulate deepseek-v3-2048-h800").out.find("682.6B parameters (671B without MTP)") !=
        std::string::npos);
  const Json llama = parsed(orrery("show models llama3-8b --json").out);
  CHECK(llama["parameters"] == llama["parameters_without_mtp"]);
  CHECK(orrery("show models llama3-8b").out.find("MTP") == std::string::npos);
}

TEST_CASE(
    "A multimodal file says that its text is counted, and how many parameters it has in all") {
  // LLaVA's projector of two matrices with biases: 32 x 64 + 64 + 64 x 64 + 64. Its encoder of
  // width 32, one layer, MLP 64, four patches of 8 x 8 x 3: 192 x 32 + 32 + 5 x 32
  // + (4 x 32 x 32 + 4 x 32 + 2 x 32 x 64 + 64 + 32 + 4 x 32) + 4 x 32.
  const Scratch scratch;
  std::string text = tiny_config;
  scratch.write("llava.json", R"({"model_type": "llava", "text_config": )" + text +
                                  R"(, "vision_config": {"model_type": "clip_vision_model",
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "image_size": 16, "patch_size": 8}})");
  scratch.write("llama.json", text);
  const Json llava = parsed(orrery("show models " + scratch.path("llava.json") + " --json").out);
  const Json llama = parsed(orrery("show models " + scratch.path("llama.json") + " --json").out);
  CHECK(llama["counts"] == "model");
  CHECK(llama["parameters_whole"] == llama["parameters"]);
  CHECK(llava["counts"] == "text model");
  CHECK(llava["parameters"] == llama["parameters"]);
  const int encoder =
      192 * 32 + 32 + 5 * 32 + (4 * 32 * 32 + 4 * 32 + 2 * 32 * 64 + 64 + 32 + 4 * 32) + 4 * 32;
  const int projector = 32 * 64 + 64 + 64 * 64 + 64;
  CHECK(llava["parameters_whole"] == llama["parameters"].get<int>() + encoder + projector);
  CHECK(orrery("show models " + scratch.path("llava.json"))
            .out.find("with encoder of images and projector") != std::string::npos);
}

TEST_CASE("A folder as downloaded is a model, by its path or its bare name") {
  const Scratch scratch;
  for (const char* folder : {"small-llama", "gpt2", "empty"}) {
    std::filesystem::create_directory(scratch.path(folder));
  }
  scratch.write("small-llama/config.json", tiny_config);
  scratch.write("gpt2/config.json", tiny_config);
  const auto shown = [&](const std::string& model) {
    return parsed(orrery("show models " + model + " --json").out);
  };
  CHECK(shown(scratch.path("small-llama"))["name"] == "small-llama");
  CHECK(shown(scratch.path("small-llama/config.json"))["name"] == "small-llama");
  const std::string plan = " --cluster dgx-h100 --plan global_batch=8,seq_len=128";
  CHECK(orrery("simulate --model " + scratch.path("small-llama") + plan)
            .out.find("small-llama on ") == 0);
  scratch.write("scenario.json", R"({"model": "small-llama", "cluster": "dgx-h100",
    "plan": {"global_batch": 8, "seq_len": 128}})");
  CHECK(orrery("simulate " + scratch.path("scenario.json")).out.find("small-llama on ") == 0);
  // A name of the catalogue stays one.
  scratch.write("named.json", R"({"model": "gpt2", "cluster": "dgx-h100",
    "plan": {"global_batch": 8, "seq_len": 128}})");
  CHECK(orrery("simulate " + scratch.path("named.json")).out.find("gpt2 on ") == 0);
  CHECK(orrery("simulate " + scratch.path("named.json")).out.find("124.4M parameters") !=
        std::string::npos);
  scratch.write("empty/readme", "");
  CHECK(refused_line("show models " + scratch.path("empty")) ==
        scratch.path("empty") + ": is a folder without a config.json");
}

}  // namespace orrery::scenarios
