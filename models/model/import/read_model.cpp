// Chooses the reader of a config.json by its model_type.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/model/import/families.hpp"
#include "models/model/model_file.hpp"

namespace orrery::models {
namespace {

using Reader = Model (*)(Config&);

const std::map<std::string, Reader, std::less<>>& readers() {
  static const std::map<std::string, Reader, std::less<>> known{
      {"Dream", read_dream},
      {"PanguEmbedded", read_internlm},
      {"afmoe", read_afmoe},
      {"albert", read_albert},
      {"apertus", read_apertus},
      {"apertus1p5", read_apertus1p5},
      {"arcee", read_arcee},
      {"aria", read_aria},
      {"axk1", read_axk1},
      {"axk2", read_axk2},
      {"baichuan", read_baichuan},
      {"bailing_hybrid", read_bailing_hybrid},
      {"bailing_moe", read_bailing_moe},
      {"bailing_moe_v2", read_bailing_moe_v2},
      {"bamba", read_bamba},
      {"bart", read_bart},
      {"beam", read_beam},
      {"beit", read_beit},
      {"bert", read_bert},
      {"bert-generation", read_bert},
      {"bigbird_pegasus", read_bart},
      {"biogpt", read_biogpt},
      {"bitnet", read_bitnet},
      {"blenderbot", read_bart},
      {"blenderbot-small", read_bart},
      {"bloom", read_bloom},
      {"blt", read_blt},
      {"camembert", read_bert},
      {"chatglm", read_chatglm},
      {"clip", read_clip},
      {"clip_text_model", read_clip},
      {"codegen", read_gptj},
      {"cohere", read_cohere},
      {"cohere2", read_cohere2},
      {"cohere2_moe", read_cohere2_moe},
      {"convnext", read_convnext},
      {"convnextv2", read_convnext},
      {"cosmos3_edge", read_cosmos3_edge},
      {"cpmant", read_cpmant},
      {"ctrl", read_ctrl},
      {"cwm", read_cwm},
      {"data2vec-text", read_bert},
      {"data2vec-vision", read_beit},
      {"dbrx", read_dbrx},
      {"deberta", read_deberta},
      {"deberta-v2", read_deberta},
      {"deepseek", read_deepseek_moe},
      {"deepseek_v2", read_deepseek},
      {"deepseek_v3", read_deepseek},
      {"deepseek_v32", read_deepseek_sparse},
      {"deepseek_v4", read_deepseek_v4},
      {"deit", read_vit},
      {"diffllama", read_diffllama},
      {"dinov2", read_dinov2},
      {"dinov2_with_registers", read_dinov2},
      {"dinov3_vit", read_dinov3_vit},
      {"distilbert", read_distilbert},
      {"doge", read_doge},
      {"dory", read_dory},
      {"dots1", read_dots1},
      {"dots3_note", read_dots3_note},
      {"electra", read_electra},
      {"ernie", read_ernie},
      {"ernie4_5", read_ernie4_5},
      {"ernie4_5_moe", read_ernie4_5_moe},
      {"ernie4_5_vl_moe", read_ernie4_5_vl_moe},
      {"esmc", read_esmc},
      {"eurobert", read_eurobert},
      {"exaone", read_exaone},
      {"exaone4", read_exaone4},
      {"exaone_moe", read_exaone_moe},
      {"falcon", read_falcon},
      {"falcon_h1", read_falcon_h1},
      {"falcon_mamba", read_mamba1},
      {"flex_olmo", read_olmoe},
      {"flint", read_flint},
      {"gemma", read_gemma},
      {"gemma2", read_gemma2},
      {"gemma3", read_gemma3},
      {"gemma3n", read_gemma3n},
      {"gemma4", read_gemma4},
      {"gemma4_unified", read_gemma4},
      {"glm", read_glm},
      {"glm4", read_glm4},
      {"glm46v", read_glm4v},
      {"glm4_moe", read_glm4_moe},
      {"glm4_moe_lite", read_deepseek},
      {"glm4v", read_glm4v},
      {"glm4v_moe", read_glm4v_moe},
      {"glm5_next", read_glm5_next},
      {"glm_moe_dsa", read_deepseek_sparse},
      {"glm_ocr", read_glm_ocr},
      {"gpt-sw3", read_gpt2},
      {"gpt2", read_gpt2},
      {"gpt_bigcode", read_gpt_bigcode},
      {"gpt_neo", read_gpt_neo},
      {"gpt_neox", read_gpt_neox},
      {"gpt_neox_japanese", read_gpt_neox_japanese},
      {"gpt_oss", read_gpt_oss},
      {"gptj", read_gptj},
      {"granite", read_granite},
      {"granite_swa", read_granite_swa},
      {"granitemoe", read_granitemoe},
      {"granitemoe_swa", read_granitemoe_swa},
      {"granitemoehybrid", read_granitemoehybrid},
      {"granitemoeshared", read_granitemoeshared},
      {"gte", read_gte},
      {"helium", read_helium},
      {"hrm", read_hrm},
      {"hunyuan_v1_dense", read_hunyuan_v1_dense},
      {"hunyuan_v1_moe", read_hunyuan_v1_moe},
      {"hy_v3", read_hy_v3},
      {"hy_v4", read_hy_v4},
      {"hy_v4_vl", read_hy_v4_vl},
      {"hyperclovax", read_hyperclovax},
      {"ibert", read_bert},
      {"ijepa", read_vit},
      {"inkling", read_inkling},
      {"inkling2", read_inkling2},
      {"inkling2_loop", read_inkling2_loop},
      {"internlm", read_internlm},
      {"internlm2", read_internlm2},
      {"internlm3", read_internlm3},
      {"iquestcoder", read_iquestcoder},
      {"jais2", read_jais2},
      {"jamba", read_jamba},
      {"jetmoe", read_jetmoe},
      {"jina_embeddings_v3", read_bert},
      {"kimi_k2", read_deepseek},
      {"kimi_k25", read_deepseek},
      {"kimi_linear", read_kimi_linear},
      {"kolibri1", read_kolibri1},
      {"laguna", read_laguna},
      {"lara_mini", read_lara_mini},
      {"led", read_led},
      {"lfm2", read_lfm2},
      {"lfm2_moe", read_lfm2_moe},
      {"lfm3", read_lfm3},
      {"llada", read_llada},
      {"llada2_moe", read_llada2_moe},
      {"llama", read_llama},
      {"llama4", read_llama4},
      {"longcat_flash", read_longcat_flash},
      {"longt5", read_t5},
      {"m2m_100", read_bart},
      {"mamba", read_mamba1},
      {"mamba2", read_mamba2},
      {"marian", read_bart},
      {"mbart", read_bart},
      {"megatron-bert", read_bert},
      {"mellum", read_mellum},
      {"metaclip_2", read_clip},
      {"metaclip_2_text_model", read_clip},
      {"mimo", read_mimo},
      {"mimo_v2_flash", read_mimo_v2_flash},
      {"minicpm", read_minicpm},
      {"minicpm3", read_minicpm3},
      {"minimax", read_minimax},
      {"minimax_m1", read_minimax_text},
      {"minimax_m2", read_minimax_m2},
      {"minimax_m3_vl", read_minimax_m3_vl},
      {"minimax_text_01", read_minimax_text},
      {"ministral", read_ministral},
      {"ministral3", read_ministral3},
      {"mistral", read_mistral},
      {"mistral4", read_deepseek},
      {"mistral_large4", read_mistral_large4},
      {"mixtral", read_mixtral},
      {"mllama", read_mllama},
      {"mllama_text_model", read_mllama},
      {"modernbert", read_modernbert},
      {"modernbert-decoder", read_modernbert_decoder},
      {"molmo2", read_molmo2},
      {"moshi", read_moshi},
      {"mpnet", read_mpnet},
      {"mpt", read_mpt},
      {"mt5", read_t5},
      {"muse_glimmer", read_muse_glimmer},
      {"muse_spark", read_muse_spark},
      {"mvp", read_bart},
      {"nanochat", read_nanochat},
      {"nemotron", read_nemotron},
      {"nemotron-nas", read_nemotron_nas},
      {"nemotron_h", read_nemotron_h},
      {"neomme", read_neomme},
      {"nllb-moe", read_nllb_moe},
      {"nomic_bert", read_nomic_bert},
      {"olmo", read_olmo},
      {"olmo2", read_olmo2},
      {"olmo3", read_olmo3},
      {"olmo_hybrid", read_olmo_hybrid},
      {"olmoe", read_olmoe},
      {"openai-gpt", read_openai_gpt},
      {"opt", read_opt},
      {"orion", read_orion},
      {"ouro", read_ouro},
      {"paddleocr_vl", read_paddleocr_vl},
      {"pegasus", read_bart},
      {"persimmon", read_persimmon},
      {"phi", read_phi},
      {"phi3", read_phi3},
      {"phi4_multimodal", read_phi4_multimodal},
      {"phimoe", read_phimoe},
      {"plbart", read_bart},
      {"prophetnet", read_prophetnet},
      {"qwen", read_qwen},
      {"qwen2", read_qwen2},
      {"qwen2_5_omni", read_qwen2_vl},
      {"qwen2_5_omni_thinker", read_qwen2_vl},
      {"qwen2_5_vl", read_qwen2_vl},
      {"qwen2_moe", read_qwen2_moe},
      {"qwen2_vl", read_qwen2_vl},
      {"qwen3", read_qwen3},
      {"qwen3_5", read_qwen3_5},
      {"qwen3_5_moe", read_qwen3_next},
      {"qwen3_moe", read_qwen3_moe},
      {"qwen3_next", read_qwen3_next},
      {"qwen3_omni_moe", read_qwen3_omni_moe},
      {"qwen3_omni_moe_thinker", read_qwen3_omni_moe},
      {"qwen3_vl", read_qwen3_vl},
      {"qwen3_vl_moe", read_qwen3_vl_moe},
      {"qwen4_exp", read_qwen4_exp},
      {"recurrent_gemma", read_recurrent_gemma},
      {"rembert", read_rembert},
      {"roberta", read_bert},
      {"roberta-prelayernorm", read_bert},
      {"roformer", read_roformer},
      {"rwkv", read_rwkv},
      {"sarvam_mla", read_sarvam_mla},
      {"sarvam_moe", read_sarvam_moe},
      {"sdar", read_sdar},
      {"sdar_moe", read_sdar_moe},
      {"seed_oss", read_seed_oss},
      {"siglip", read_siglip_text},
      {"siglip2", read_siglip_text},
      {"siglip2_text_model", read_siglip_text},
      {"siglip_text_model", read_siglip_text},
      {"siglip_vision_model", read_siglip_vision},
      {"smollm3", read_smollm3},
      {"solar_open", read_glm4_moe},
      {"stablelm", read_stablelm},
      {"starcoder2", read_starcoder2},
      {"step3p5", read_step3p5},
      {"step3p7", read_step3p5},
      {"swin", read_swin},
      {"swinv2", read_swin},
      {"switch_transformers", read_switch_transformers},
      {"t5", read_t5},
      {"t5gemma", read_t5gemma},
      {"trocr", read_trocr},
      {"ultrabert", read_ultrabert},
      {"umt5", read_t5},
      {"unlimited_ocr", read_unlimited_ocr},
      {"vaultgemma", read_vaultgemma},
      {"vit", read_vit},
      {"vit_msn", read_vit},
      {"voxtral_realtime", read_voxtral_realtime},
      {"whisper", read_whisper},
      {"xglm", read_xglm},
      {"xlm-roberta", read_bert},
      {"xlm-roberta-xl", read_bert},
      {"xlstm", read_xlstm},
      {"xmod", read_xmod},
      {"xverse", read_llama},
      {"youtu", read_youtu},
      {"youtu_llm", read_youtu},
      {"zamba", read_zamba},
      {"zamba2", read_zamba2},
      {"zaya", read_zaya},
  };
  return known;
}

/// Refuses a file that counts experts where its type's reader asked for none: it would be read as
/// another model. Keys that count one expert or none say what a dense model is, and a list of the
/// layers' kinds decides by itself.
void refuse_unread_experts(Config& config, const Model& model) {
  constexpr std::string_view counts[] = {"num_local_experts", "num_experts", "n_routed_experts",
                                         "moe_num_experts"};
  const bool listed = config.find("hybrid_override_pattern") || config.find("layers_block_type");
  if (usual_experts(model).count > 0 || listed) return;
  for (const std::string_view key : counts) {
    if (std::ranges::find(model.ignored_keys, key) == model.ignored_keys.end()) continue;
    const auto stated = config.find(key);
    if (!stated || !stated->json().is_number_integer()) continue;
    const auto experts = stated->json().get<std::int64_t>();
    if (experts < 2) continue;
    stated->fail(
        fmt::format("{} experts, but a model of type '{}' has none; expected another "
                    "model_type, such as 'mixtral', or no such key",
                    experts, config.type()));
  }
}

/// A key that is not used and nearly one that the reader missed is taken for a slip.
void say_slips(const Config& config, Model& model) {
  for (const std::string& key : model.ignored_keys) {
    const std::string meant = config.meant_by(key);
    if (meant.empty()) continue;
    model.assumptions.push_back(fmt::format("/{}: not used; did you mean '{}'?", key, meant));
  }
}

}  // namespace

std::vector<std::string> unused_keys_said(const Model& model) {
  std::vector<std::string> lines;
  for (const std::string& key : model.ignored_keys) {
    const std::string head = fmt::format("/{}: not used", key);
    const bool said = std::ranges::any_of(
        model.assumptions, [&](const std::string& each) { return each.starts_with(head); });
    if (!said) lines.push_back("/model" + head);
  }
  return lines;
}

std::vector<std::string> assumptions_said(const Model& model) {
  std::vector<std::string> lines;
  for (const std::string& each : model.assumptions) {
    lines.push_back((each.starts_with('/') ? "/model" : "/model: ") + each);
  }
  return lines;
}

std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const auto& [type, reader] : readers()) types.push_back(type);
  return types;
}

Model read_model(const Node& config) {
  if (is_operation_list(config)) return read_operation_list(config);
  if (config.has("format")) return read_orrery_model(config);
  Config reading{config};
  const auto found = readers().find(reading.type());
  if (found == readers().end()) {
    reading.type_node().fail("unknown model type '" + reading.type() +
                             "'; known: " + listed(model_types()));
  }
  if (reading.nested()) reading.assume_class(sizes_inside(reading.type()));
  reading.assume_class(type_defaults(reading.type()));
  Model model = found->second(reading);
  also_inexact(model, reading.approximated());
  read_numerics(reading, model);
  read_front(reading, model);
  if (model.name.empty()) {
    const auto name = config.find("name");
    const auto path = config.find("_name_or_path");
    const auto stated = path ? path->as<std::string>() : std::string{};
    model.name = name ? name->as<std::string>() : stated.empty() ? reading.type() : stated;
  }
  if (const auto sizes = reading.sizes_of_class(); !sizes.empty()) {
    model.assumptions.push_back(fmt::format("not stated, as the class of '{}' has them: {}",
                                            reading.type(), fmt::join(sizes, ", ")));
  }
  model.ignored_keys = reading.ignored();
  refuse_unread_experts(reading, model);
  say_slips(reading, model);
  return model;
}

}  // namespace orrery::models
