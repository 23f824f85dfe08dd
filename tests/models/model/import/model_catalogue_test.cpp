#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

Model shipped(const std::string& name) {
  const auto document = Document::from(model_config(name), name);
  return read_model(document.root());
}

}  // namespace

TEST_CASE("Every shipped model is read whole, carries its source and its own name") {
  REQUIRE(model_names().size() >= 41);
  for (const std::string& name : model_names()) {
    INFO(name);
    const Model model = shipped(name);
    CHECK(model.name == name);
    CHECK(model.ignored_keys.empty());
    CHECK(model.embedding.max_positions > 0);
    CHECK(!model_config(name)["source"].get<std::string>().empty());
  }
}

TEST_CASE("The GPTs of Megatron's scaling table have their published parameters") {
  // arXiv 2104.04473, Table 1, in billions to one decimal; 22B from arXiv 2205.05198.
  const std::map<std::string, double> published{
      {"gpt-1.7b", 1.7},   {"gpt-3.6b", 3.6},  {"gpt-7.5b", 7.5},   {"gpt-18b", 18.4},
      {"gpt-39b", 39.1},   {"gpt-76b", 76.1},  {"gpt-145b", 145.6}, {"gpt-310b", 310.1},
      {"gpt-530b", 529.6}, {"gpt-1t", 1008.0}, {"gpt-22b", 22.1},   {"gpt3-175b", 174.6},
  };
  for (const auto& [name, billions] : published) {
    INFO(name);
    CHECK(static_cast<double>(shipped(name).parameters) / 1e9 == Approx(billions).margin(0.051));
  }
}

TEST_CASE("Shipped models have their published exact number of parameters") {
  CHECK(shipped("gpt2").parameters == 124'439'808);
  CHECK(shipped("bloom-176b").parameters == 176'247'271'424);
  CHECK(shipped("llama2-70b").parameters == 68'976'648'192);
  CHECK(shipped("llama3.1-405b").parameters == 405'853'388'800);
  CHECK(shipped("mistral-7b").parameters == 7'241'732'096);
  CHECK(shipped("qwen2.5-72b").parameters == 72'706'203'648);
  CHECK(shipped("qwen3-32b").parameters == 32'762'123'264);
  CHECK(shipped("gpt-neox-20b").parameters == 20'554'567'680);
  CHECK(shipped("opt-175b").parameters == 174'604'468'224);
  CHECK(shipped("falcon-180b").parameters == 179'522'565'120);
  CHECK(shipped("bert-large").parameters == 336'226'108);
  CHECK(shipped("mixtral-8x7b").active_parameters == 12'879'925'248);
  CHECK(shipped("deepseek-v3").parameters == 682'636'472'320);  // 671'026'404'352 without MTP
}

TEST_CASE("An unknown model name is answered with the known ones") {
  std::string message;
  try {
    model_config("gpt5");
  } catch (const InputError& error) {
    message = error.what();
  }
  CHECK(message.starts_with("unknown model 'gpt5'; known: bert-base bert-large bird-eye-view "));
  CHECK_THROWS_AS(model_config(""), InputError);
}

}  // namespace orrery::models
