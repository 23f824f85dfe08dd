// Chooses the reader of a config.json by its model_type.
#include <map>

#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

using Reader = Model (*)(Config&);

const std::map<std::string, Reader, std::less<>>& readers() {
  static const std::map<std::string, Reader, std::less<>> known{
      {"bert", read_bert},
      {"bloom", read_bloom},
      {"cwm", read_cwm},
      {"deepseek_v2", read_deepseek},
      {"deepseek_v3", read_deepseek},
      {"deepseek_v32", read_deepseek_sparse},
      {"ernie4_5", read_ernie4_5},
      {"exaone4", read_exaone4},
      {"falcon", read_falcon},
      {"gemma", read_gemma},
      {"gemma2", read_gemma2},
      {"glm", read_glm},
      {"glm_moe_dsa", read_deepseek_sparse},
      {"gpt2", read_gpt2},
      {"gpt_neox", read_gpt_neox},
      {"gpt_oss", read_gpt_oss},
      {"gptj", read_gptj},
      {"granite", read_granite},
      {"granitemoe", read_granitemoe},
      {"helium", read_helium},
      {"kimi_k2", read_deepseek},
      {"llama", read_llama},
      {"llama4", read_llama4},
      {"mimo", read_mimo},
      {"minimax_m2", read_minimax_m2},
      {"ministral3", read_ministral3},
      {"mistral", read_mistral},
      {"mixtral", read_mixtral},
      {"mpt", read_mpt},
      {"nemotron_h", read_nemotron_h},
      {"opt", read_opt},
      {"phi", read_phi},
      {"phi3", read_phi3},
      {"qwen2", read_qwen2},
      {"qwen3", read_qwen3},
      {"qwen3_5_moe", read_qwen3_next},
      {"qwen3_moe", read_qwen3_moe},
      {"qwen3_next", read_qwen3_next},
      {"qwen3_vl", read_qwen3_vl},
      {"qwen3_vl_moe", read_qwen3_vl_moe},
      {"seed_oss", read_seed_oss},
      {"smollm3", read_smollm3},
      {"starcoder2", read_starcoder2},
      {"vaultgemma", read_vaultgemma},
      {"vit", read_vit},
  };
  return known;
}

}  // namespace

std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const auto& [type, reader] : readers()) types.push_back(type);
  return types;
}

Model read_model(const Node& config) {
  if (config.has("format")) return read_orrery_model(config);
  Config reading{config};
  const auto found = readers().find(reading.type());
  if (found == readers().end()) {
    reading.type_node().fail("unknown model type '" + reading.type() +
                             "'; known: " + listed(model_types()));
  }
  Model model = found->second(reading);
  read_numerics(reading, model);
  if (model.name.empty()) {
    const auto name = config.find("name");
    const auto path = config.find("_name_or_path");
    const auto stated = path ? path->as<std::string>() : std::string{};
    model.name = name ? name->as<std::string>() : stated.empty() ? reading.type() : stated;
  }
  model.ignored_keys = reading.ignored();
  return model;
}

}  // namespace orrery::models
