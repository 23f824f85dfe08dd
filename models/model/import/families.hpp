#pragma once
// One reader per family of config.json; the table in read_model.cpp lists them by model_type.

#include "models/model/import/config.hpp"
#include "models/model/operation_list.hpp"

namespace orrery::models {

Model read_afmoe(Config& config);
Model read_albert(Config& config);
Model read_apertus(Config& config);
Model read_apertus1p5(Config& config);
Model read_arcee(Config& config);
Model read_aria(Config& config);
Model read_axk1(Config& config);
Model read_axk2(Config& config);
Model read_baichuan(Config& config);
Model read_bailing_hybrid(Config& config);
Model read_bailing_moe(Config& config);
Model read_bailing_moe_v2(Config& config);
Model read_bamba(Config& config);
Model read_bart(Config& config);
Model read_beam(Config& config);
Model read_beit(Config& config);
Model read_bert(Config& config);
Model read_biogpt(Config& config);
Model read_bitnet(Config& config);
Model read_bloom(Config& config);
Model read_blt(Config& config);
Model read_chatglm(Config& config);
Model read_clip(Config& config);
Model read_cohere(Config& config);
Model read_cohere2(Config& config);
Model read_cohere2_moe(Config& config);
Model read_convnext(Config& config);
Model read_cosmos3_edge(Config& config);
Model read_cpmant(Config& config);
Model read_ctrl(Config& config);
Model read_cwm(Config& config);
Model read_dbrx(Config& config);
Model read_deberta(Config& config);
Model read_deepseek(Config& config);
Model read_deepseek_moe(Config& config);
Model read_deepseek_sparse(Config& config);
Model read_deepseek_v4(Config& config);
Model read_diffllama(Config& config);
Model read_dinov2(Config& config);
Model read_dinov3_vit(Config& config);
Model read_distilbert(Config& config);
Model read_doge(Config& config);
Model read_dory(Config& config);
Model read_dots1(Config& config);
Model read_dots3_note(Config& config);
Model read_dream(Config& config);
Model read_electra(Config& config);
Model read_ernie(Config& config);
Model read_ernie4_5(Config& config);
Model read_ernie4_5_moe(Config& config);
Model read_ernie4_5_vl_moe(Config& config);
Model read_esmc(Config& config);
Model read_eurobert(Config& config);
Model read_exaone(Config& config);
Model read_exaone4(Config& config);
Model read_exaone_moe(Config& config);
Model read_falcon(Config& config);
Model read_falcon_h1(Config& config);
Model read_flint(Config& config);
Model read_gemma(Config& config);
Model read_gemma2(Config& config);
Model read_gemma3(Config& config);
Model read_gemma3n(Config& config);
Model read_gemma4(Config& config);
Model read_glm(Config& config);
Model read_glm4(Config& config);
Model read_glm4_moe(Config& config);
Model read_glm4v(Config& config);
Model read_glm4v_moe(Config& config);
Model read_glm5_next(Config& config);
Model read_glm_ocr(Config& config);
Model read_gpt2(Config& config);
Model read_gpt_bigcode(Config& config);
Model read_gpt_neo(Config& config);
Model read_gpt_neox(Config& config);
Model read_gpt_neox_japanese(Config& config);
Model read_gpt_oss(Config& config);
Model read_gptj(Config& config);
Model read_granite(Config& config);
Model read_granite_swa(Config& config);
Model read_granitemoe(Config& config);
Model read_granitemoe_swa(Config& config);
Model read_granitemoehybrid(Config& config);
Model read_granitemoeshared(Config& config);
Model read_gte(Config& config);
Model read_helium(Config& config);
Model read_hrm(Config& config);
Model read_hunyuan_v1_dense(Config& config);
Model read_hunyuan_v1_moe(Config& config);
Model read_hy_v3(Config& config);
Model read_hy_v4(Config& config);
Model read_hy_v4_vl(Config& config);
Model read_hyperclovax(Config& config);
Model read_inkling(Config& config);
Model read_inkling2(Config& config);
Model read_inkling2_loop(Config& config);
Model read_internlm(Config& config);
Model read_internlm2(Config& config);
Model read_internlm3(Config& config);
Model read_iquestcoder(Config& config);
Model read_jais2(Config& config);
Model read_jamba(Config& config);
Model read_jetmoe(Config& config);
Model read_kimi_linear(Config& config);
Model read_kolibri1(Config& config);
Model read_laguna(Config& config);
Model read_lara_mini(Config& config);
Model read_led(Config& config);
Model read_lfm2(Config& config);
Model read_lfm2_moe(Config& config);
Model read_lfm3(Config& config);
Model read_llada(Config& config);
Model read_llada2_moe(Config& config);
Model read_llama(Config& config);
Model read_llama4(Config& config);
Model read_longcat_flash(Config& config);
Model read_mamba1(Config& config);
Model read_mamba2(Config& config);
Model read_mellum(Config& config);
Model read_mimo(Config& config);
Model read_mimo_v2_flash(Config& config);
Model read_minicpm(Config& config);
Model read_minicpm3(Config& config);
Model read_minimax(Config& config);
Model read_minimax_m2(Config& config);
Model read_minimax_m3_vl(Config& config);
Model read_minimax_text(Config& config);
Model read_ministral(Config& config);
Model read_ministral3(Config& config);
Model read_mistral(Config& config);
Model read_mistral_large4(Config& config);
Model read_mixtral(Config& config);
Model read_mllama(Config& config);
Model read_modernbert(Config& config);
Model read_modernbert_decoder(Config& config);
Model read_molmo2(Config& config);
Model read_moshi(Config& config);
Model read_mpnet(Config& config);
Model read_mpt(Config& config);
Model read_muse_glimmer(Config& config);
Model read_muse_spark(Config& config);
Model read_nanochat(Config& config);
Model read_nemotron(Config& config);
Model read_nemotron_h(Config& config);
Model read_nemotron_nas(Config& config);
Model read_neomme(Config& config);
Model read_nllb_moe(Config& config);
Model read_nomic_bert(Config& config);
Model read_olmo(Config& config);
Model read_olmo2(Config& config);
Model read_olmo3(Config& config);
Model read_olmo_hybrid(Config& config);
Model read_olmoe(Config& config);
Model read_openai_gpt(Config& config);
Model read_opt(Config& config);
Model read_orion(Config& config);
Model read_ouro(Config& config);
Model read_paddleocr_vl(Config& config);
Model read_persimmon(Config& config);
Model read_phi(Config& config);
Model read_phi3(Config& config);
Model read_phi4_multimodal(Config& config);
Model read_phimoe(Config& config);
Model read_prophetnet(Config& config);
Model read_qwen(Config& config);
Model read_qwen2(Config& config);
Model read_qwen2_moe(Config& config);
Model read_qwen2_vl(Config& config);
Model read_qwen3(Config& config);
Model read_qwen3_5(Config& config);
Model read_qwen3_moe(Config& config);
Model read_qwen3_next(Config& config);
Model read_qwen3_omni_moe(Config& config);
Model read_qwen3_vl(Config& config);
Model read_qwen3_vl_moe(Config& config);
Model read_qwen4_exp(Config& config);
Model read_recurrent_gemma(Config& config);
Model read_rembert(Config& config);
Model read_roformer(Config& config);
Model read_rwkv(Config& config);
Model read_sarvam_mla(Config& config);
Model read_sarvam_moe(Config& config);
Model read_sdar(Config& config);
Model read_sdar_moe(Config& config);
Model read_seed_oss(Config& config);
Model read_siglip_text(Config& config);
Model read_siglip_vision(Config& config);
Model read_smollm3(Config& config);
Model read_stablelm(Config& config);
Model read_starcoder2(Config& config);
Model read_step3p5(Config& config);
Model read_swin(Config& config);
Model read_switch_transformers(Config& config);
Model read_t5(Config& config);
Model read_t5gemma(Config& config);
Model read_trocr(Config& config);
Model read_ultrabert(Config& config);
Model read_unlimited_ocr(Config& config);
Model read_vaultgemma(Config& config);
Model read_vit(Config& config);
Model read_voxtral_realtime(Config& config);
Model read_whisper(Config& config);
Model read_xglm(Config& config);
Model read_xlstm(Config& config);
Model read_xmod(Config& config);
Model read_youtu(Config& config);
Model read_zamba(Config& config);
Model read_zamba2(Config& config);
Model read_zaya(Config& config);

/// The values that a type's configs have without saying so, as a JSON object.
std::string_view type_defaults(std::string_view type);
/// Sizes that a file of such a model states itself, and the text of a multimodal file may leave to
/// its class.
std::string_view sizes_inside(std::string_view type);

/// Reads the epsilon of norms, the deviation of initial weights and rotary positions, for a model
/// whose norm, family and positions are already set.
void read_numerics(Config& config, Model& model);

/// Orrery's own JSON: `"format": "orrery-model"`, the fields of Model by name. `family` sets the
/// defaults of absent fields: "gpt" (GPT-2 and 3), "llama" or "bert".
Model read_orrery_model(const Node& config);

/// A frozen encoder of images in front of the model, and the projector between them: `images` of
/// Orrery's own JSON. Errors: a width that the heads do not divide, rows that patches do not fill.
void read_images(const Node& images, Model& model);

/// What a multimodal file says of its encoders in front of the model, among the assumptions; with
/// `images` in the file, the encoder of images as Model::front. Errors: `images` without an
/// encoder.
void read_front(Config& config, Model& model);

/// A list of operations (models/model/operation_list.hpp).
Model read_operation_list(const Node& config);

}  // namespace orrery::models
