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
