// What the transformers library assumes for keys that a config.json does not have.
// Source  the configuration classes of the transformers library, release 5.24
#include <map>

#include "models/model/import/families.hpp"

namespace orrery::models {

std::string_view type_defaults(std::string_view type) {
  // clang-format off
  static const std::map<std::string_view, std::string_view> known{
    {"afmoe", R"({"vocab_size": 200192, "hidden_size": 2048, "intermediate_size": 6144,
"moe_intermediate_size": 1408, "num_hidden_layers": 32, "num_dense_layers": 1,
"num_attention_heads": 16, "head_dim": 128, "hidden_act": "silu", "max_position_embeddings":
16384, "tie_word_embeddings": false, "num_experts": 64, "num_experts_per_tok": 6,
"num_shared_experts": 2, "global_attn_every_n_layers": 4, "sliding_window": 1024, "mup_enabled":
false, "attention_bias": false})"},
    {"apertus", R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "xielu",
"max_position_embeddings": 65536, "tie_word_embeddings": false, "attention_bias": false})"},
    {"apertus1p5", R"({"vocab_size": 266752, "hidden_size": 4096, "intermediate_size":
14336, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "xielu",
"max_position_embeddings": 65536, "tie_word_embeddings": false, "attention_bias": false})"},
    {"arcee", R"({"vocab_size": 32000, "hidden_size": 2560, "intermediate_size": 18432,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "relu2",
"max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false})"},
    {"aria", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 4096,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false, "moe_num_experts": 8, "moe_topk": 2, "moe_num_shared_experts": 2})"},
    {"axk1", R"({"vocab_size": 163840, "hidden_size": 7168, "intermediate_size": 18432,
"moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 64,
"n_shared_experts": 1, "n_routed_experts": 192, "routed_scaling_factor": 2.5, "kv_lora_rank":
512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
"n_group": 8, "topk_group": 4, "num_experts_per_tok": 8, "norm_topk_prob": true, "hidden_act":
"silu", "max_position_embeddings": 32768, "tie_word_embeddings": false, "rope_interleave": true,
"attention_bias": false, "first_k_dense_replace": 1})"},
    {"axk2", R"({"vocab_size": 163840, "hidden_size": 2048, "intermediate_size": 5120,
"moe_intermediate_size": 512, "num_hidden_layers": 48, "num_attention_heads": 32,
"n_shared_experts": 1, "n_routed_experts": 128, "routed_scaling_factor": 2.5, "kv_lora_rank":
128, "q_lora_rank": 384, "qk_rope_head_dim": 32, "v_head_dim": 64, "qk_nope_head_dim": 64,
"num_experts_per_tok": 8, "norm_topk_prob": true, "hidden_act": "silu",
"max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias": false,
"index_topk": 2048, "index_head_dim": 128, "index_n_heads": 16, "gated_norm_rank": 16,
"first_k_dense_replace": 1})"},
    {"bart", R"({"vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12,
"encoder_ffn_dim": 4096, "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim":
4096, "decoder_attention_heads": 16, "activation_function": "gelu", "d_model": 1024,
"tie_word_embeddings": true})"},
    {"beam", R"({"vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 20480,
"num_hidden_layers": 52, "num_attention_heads": 48, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 8192, "tie_word_embeddings": false, "attention_bias": false,
"sliding_window": 512, "moe_intermediate_size": 2560, "num_experts_per_tok": 8, "num_experts":
256, "norm_topk_prob": true, "head_dim": 128, "n_group": 8, "topk_group": 4,
"routed_scaling_factor": 2.5})"},
    {"biogpt", R"({"vocab_size": 42384, "hidden_size": 1024, "num_hidden_layers": 24,
"num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": "gelu",
"max_position_embeddings": 1024, "scale_embedding": true, "tie_word_embeddings": true})"},
    {"bitnet", R"({"vocab_size": 128256, "hidden_size": 2560, "intermediate_size": 6912,
"num_hidden_layers": 30, "num_attention_heads": 20, "num_key_value_heads": 5, "hidden_act":
"relu2", "max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false})"},
    {"clip", R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
"num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act":
"quick_gelu"})"},
    {"clip_text_model", R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
"num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act":
"quick_gelu"})"},
    {"codegen", R"({"vocab_size": 50400, "n_positions": 2048, "n_ctx": 2048, "n_embd": 4096,
"n_layer": 28, "n_head": 16, "rotary_dim": 64, "activation_function": "gelu_new",
"tie_word_embeddings": false})"},
    {"cohere", R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528,
"num_hidden_layers": 40, "num_attention_heads": 64, "hidden_act": "silu",
"max_position_embeddings": 8192, "tie_word_embeddings": true, "attention_bias": false,
"use_qk_norm": false})"},
    {"cohere2", R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528,
"num_hidden_layers": 40, "num_attention_heads": 64, "hidden_act": "silu",
"max_position_embeddings": 8192, "tie_word_embeddings": true, "attention_bias": false,
"sliding_window": 4096})"},
    {"cohere2_moe", R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size":
22528, "num_hidden_layers": 40, "num_attention_heads": 64, "head_dim": 128, "hidden_act":
"silu", "max_position_embeddings": 8192, "tie_word_embeddings": true, "rope_theta": 10000.0,
"attention_bias": false, "sliding_window": 4096, "num_experts_per_tok": 2, "num_experts": 8,
"num_shared_experts": 0, "shared_expert_combination_strategy": "average", "expert_selection_fn":
"softmax", "prefix_dense_sliding_window_pattern": 1, "norm_topk_prob": true,
"sliding_window_pattern": 4})"},
    {"cosmos3_edge", R"({"vocab_size": 131072, "hidden_size": 2048, "intermediate_size":
9216, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
"hidden_act": "relu2", "max_position_embeddings": 131072, "tie_word_embeddings": false,
"attention_bias": false, "mlp_bias": false, "head_dim": 128})"},
    {"cpmant", R"({"vocab_size": 30720, "hidden_size": 4096, "num_attention_heads": 32,
"dim_head": 128, "dim_ff": 10240, "num_hidden_layers": 48, "dropout_p": 0.0,
"position_bias_num_buckets": 512, "position_bias_max_distance": 2048, "prompt_types": 32,
"prompt_length": 32, "segment_types": 32, "tie_word_embeddings": true})"},
    {"ctrl", R"({"vocab_size": 246534, "n_positions": 256, "n_embd": 1280, "dff": 8192,
"n_layer": 48, "n_head": 16, "tie_word_embeddings": true})"},
    {"cwm", R"({"num_key_value_heads": 8, "head_dim": 128})"},
    {"deepseek_v4", R"({"vocab_size": 129280, "hidden_size": 4096, "moe_intermediate_size":
2048, "num_hidden_layers": 43, "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim":
512, "q_lora_rank": 1024, "num_experts_per_tok": 6, "n_routed_experts": 256, "n_shared_experts":
1, "norm_topk_prob": true, "routed_scaling_factor": 1.5, "max_position_embeddings": 1048576,
"rope_theta": 10000.0, "hc_mult": 4, "sliding_window": 128, "o_groups": 8, "o_lora_rank": 1024,
"index_n_heads": 64, "index_head_dim": 128, "num_nextn_predict_layers": 1, "hidden_act": "silu",
"tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false})"},
    {"diffllama", R"({"vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 8192,
"num_hidden_layers": 16, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false})"},
    {"dinov2", R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
"mlp_ratio": 4, "hidden_act": "gelu", "image_size": 224, "patch_size": 14, "num_channels": 3,
"qkv_bias": true, "use_swiglu_ffn": false, "use_mask_token": true})"},
    {"dinov3_vit", R"({"patch_size": 16, "hidden_size": 384, "intermediate_size": 1536,
"num_hidden_layers": 12, "num_attention_heads": 6, "hidden_act": "gelu", "rope_theta": 100.0,
"image_size": 224, "num_channels": 3, "query_bias": true, "key_bias": false, "value_bias": true,
"proj_bias": true, "mlp_bias": true, "use_gated_mlp": false, "num_register_tokens": 0})"},
    {"doge", R"({"vocab_size": 32768, "hidden_size": 1024, "intermediate_size": 2048,
"num_hidden_layers": 32, "hidden_act": "silu", "tie_word_embeddings": false,
"max_position_embeddings": 2048, "num_attention_heads": 8, "attention_bias": false, "mlp_bias":
false, "keep_window_size": 2048, "num_experts": 16384, "num_experts_per_tok": 64,
"norm_topk_prob": false})"},
    {"dory", R"({"vocab_size": 131072, "hidden_size": 2560, "intermediate_size": 7168,
"num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
"hidden_act": "silu", "max_position_embeddings": 8192, "tie_word_embeddings": false,
"attention_bias": false, "mlp_bias": false, "sliding_window": 1024, "ngpt_alpha_init": 0.05,
"n_input_layers": 8, "n_output_layers": 8, "n_recurrent_loops": 2, "recurrent_kv_cache_mode":
"per_loop"})"},
    {"dots3_note", R"({"vocab_size": 152064, "hidden_size": 5120, "intermediate_size":
13824, "moe_intermediate_size": 1536, "num_hidden_layers": 46, "num_attention_heads": 128,
"n_shared_experts": 1, "n_routed_experts": 256, "routed_scaling_factor": 1.0, "kv_lora_rank":
512, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
"n_group": 1, "topk_group": 1, "num_experts_per_tok": 8, "norm_topk_prob": true, "hidden_act":
"silu", "max_position_embeddings": 524288, "tie_word_embeddings": false, "attention_bias":
false, "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64, "mlp_bias": false,
"shared_experts_intermediate_size": 1536, "first_k_dense_replace": 1})"},
    {"ernie4_5", R"({"num_key_value_heads": 2, "head_dim": 128})"},
    {"ernie4_5_moe", R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288,
"num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": true, "use_bias": false,
"moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2,
"moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1})"},
    {"ernie4_5_vl_moe", R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size":
12288, "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": true,
"use_bias": false, "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2,
"moe_norm_min": 1e-12})"},
    {"exaone", R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false})"},
    {"exaone4", R"({"num_key_value_heads": 32})"},
    {"exaone_moe", R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 16384,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act":
"silu", "max_position_embeddings": 2048, "tie_word_embeddings": false, "sliding_window": 4096,
"sliding_window_pattern": 4, "first_k_dense_replace": 1, "moe_intermediate_size": 1024,
"num_experts": 64, "num_experts_per_tok": 8, "num_shared_experts": 1, "norm_topk_prob": true,
"routed_scaling_factor": 2.5, "n_group": 1, "topk_group": 1})"},
    {"falcon_mamba", R"({"vocab_size": 50280, "hidden_size": 768, "state_size": 16,
"num_hidden_layers": 32, "expand": 2, "conv_kernel": 4, "use_bias": false, "use_conv_bias":
true, "hidden_act": "silu", "time_step_rank": "auto", "tie_word_embeddings": true})"},
    {"flex_olmo", R"({"vocab_size": 100352, "hidden_size": 4096, "intermediate_size": 11008,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false,
"num_experts_per_tok": 5, "num_experts": 7, "norm_topk_prob": false})"},
    {"flint", R"({"vocab_size": 150144, "hidden_size": 2048, "intermediate_size": 6144,
"num_hidden_layers": 49, "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 262144, "tie_word_embeddings": false, "sliding_window": 513,
"decoder_sparse_step": 1, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 1024,
"num_experts_per_tok": 6, "num_experts": 256, "norm_topk_prob": true, "head_dim": 128,
"attention_bias": false})"},
    {"gemma", R"({"num_key_value_heads": 16, "head_dim": 256})"},
    {"gemma2", R"({"num_key_value_heads": 4, "head_dim": 256, "query_pre_attn_scalar": 256,
"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0})"},
    {"gemma3", R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
"num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
"hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072,
"tie_word_embeddings": true, "attention_bias": false, "sliding_window": 4096,
"query_pre_attn_scalar": 256, "use_bidirectional_attention": false})"},
    {"gemma3n", R"({"vocab_size": 262400, "hidden_size": 2048, "intermediate_size": 16384,
"num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
"hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 32768,
"tie_word_embeddings": true, "attention_bias": false, "sliding_window": 512,
"vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "altup_num_inputs": 4,
"num_kv_shared_layers": 15, "laurel_rank": 64})"},
    {"gemma4", R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
"num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
"hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072,
"tie_word_embeddings": true, "attention_bias": false, "sliding_window": 512,
"vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "attention_k_eq_v":
false, "num_kv_shared_layers": 0, "enable_moe_block": false, "use_double_wide_mlp": false})"},
    {"gemma4_unified", R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size":
9216, "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim":
256, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 262144,
"tie_word_embeddings": true, "attention_bias": false, "sliding_window": 1024,
"use_bidirectional_attention": "vision", "attention_k_eq_v": false, "num_kv_shared_layers": 0,
"use_double_wide_mlp": false})"},
    {"glm", R"({"num_key_value_heads": 2, "head_dim": 128})"},
    {"glm4", R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": false,
"attention_bias": true})"},
    {"glm46v", R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "hidden_act":
"silu", "max_position_embeddings": 32768})"},
    {"glm4_moe", R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944,
"num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias":
false, "moe_intermediate_size": 1408, "num_experts_per_tok": 8, "n_shared_experts": 1,
"n_routed_experts": 128, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1,
"first_k_dense_replace": 1, "norm_topk_prob": true, "use_qk_norm": false})"},
    {"glm4_moe_lite", R"({"vocab_size": 154880, "hidden_size": 2048, "intermediate_size": 10240,
"moe_intermediate_size": 1536, "num_hidden_layers": 47, "num_attention_heads": 20,
"num_key_value_heads": 20, "n_shared_experts": 1, "n_routed_experts": 64,
"routed_scaling_factor": 1.8, "kv_lora_rank": 512, "q_lora_rank": 768, "qk_rope_head_dim": 64,
"v_head_dim": 256, "qk_nope_head_dim": 192, "n_group": 1, "topk_group": 1,
"num_experts_per_tok": 4, "norm_topk_prob": true, "hidden_act": "silu",
"max_position_embeddings": 202752, "tie_word_embeddings": false, "rope_interleave": true,
"attention_bias": false, "first_k_dense_replace": 1})"},
    {"glm4v", R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "hidden_act":
"silu", "max_position_embeddings": 32768})"},
    {"glm4v_moe", R"({"vocab_size": 151424, "hidden_size": 4096, "intermediate_size": 10944,
"num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 65536, "tie_word_embeddings": false, "attention_bias": true,
"moe_intermediate_size": 1408, "num_experts_per_tok": 8, "n_shared_experts": 1,
"n_routed_experts": 128, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1,
"first_k_dense_replace": 1, "norm_topk_prob": true})"},
    {"glm5_next", R"({"vocab_size": 154880, "hidden_size": 4096, "intermediate_size": 12288,
"moe_intermediate_size": 2048, "num_hidden_layers": 45, "num_attention_heads": 64,
"n_shared_experts": 1, "n_routed_experts": 288, "routed_scaling_factor": 2.5, "kv_lora_rank":
512, "q_lora_rank": 1536, "qk_rope_head_dim": 0, "v_head_dim": 256, "qk_nope_head_dim": 256,
"n_group": 1, "topk_group": 1, "num_experts_per_tok": 8, "norm_topk_prob": true, "hidden_act":
"silu", "max_position_embeddings": 1048576, "tie_word_embeddings": false, "attention_bias":
false, "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 32, "swiglu_limit": 10.0,
"linear_head_dim": 128, "linear_num_heads": 64, "linear_conv_kernel_dim": 4,
"linear_lower_bound": -5.0, "hc_mult": 4, "hc_eps": 1e-06, "hc_sinkhorn_iters": 20,
"index_kpool": 16, "index_kpool_always_select_tail": true})"},
    {"glm_ocr", R"({"vocab_size": 59392, "hidden_size": 1024, "intermediate_size": 4096,
"num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072})"},
    {"gpt-sw3", R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12,
"n_head": 12, "activation_function": "gelu_new", "add_cross_attention": false,
"tie_word_embeddings": true})"},
    {"gpt_bigcode", R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer":
12, "n_head": 12, "activation_function": "gelu_pytorch_tanh", "attention_softmax_in_fp32": true,
"scale_attention_softmax_in_fp32": true, "multi_query": true, "add_cross_attention": false,
"tie_word_embeddings": true})"},
    {"gpt_neo", R"({"vocab_size": 50257, "max_position_embeddings": 2048, "hidden_size":
2048, "num_layers": 24, "num_heads": 16, "window_size": 256, "activation_function": "gelu_new",
"resid_dropout": 0.0, "embed_dropout": 0.0, "classifier_dropout": 0.1, "tie_word_embeddings":
true})"},
    {"gpt_neox_japanese", R"({"vocab_size": 32000, "hidden_size": 2560, "num_hidden_layers":
32, "num_attention_heads": 32, "intermediate_multiple_size": 4, "hidden_act": "gelu",
"max_position_embeddings": 2048, "is_decoder": false, "tie_word_embeddings": true})"},
    {"gpt_oss", R"({"head_dim": 64, "num_key_value_heads": 8})"},
    {"granite_swa", R"({"vocab_size": 100352, "hidden_size": 2560, "intermediate_size":
8192, "num_hidden_layers": 24, "num_attention_heads": 20, "num_key_value_heads": 4,
"hidden_act": "silu", "max_position_embeddings": 8192, "tie_word_embeddings": true,
"attention_bias": false, "mlp_bias": false, "embedding_multiplier": 1.0, "logits_scaling": 1.0,
"residual_multiplier": 1.0, "attention_multiplier": 1.0, "sliding_window": 128})"},
    {"granitemoe_swa", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size":
11008, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0,
"attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2,
"shared_intermediate_size": 0, "sliding_window": 128})"},
    {"granitemoeshared", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size":
11008, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0,
"attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2,
"shared_intermediate_size": 0})"},
    {"helium", R"({"num_key_value_heads": 20, "head_dim": 128})"},
    {"hrm", R"({"vocab_size": 151808, "hidden_size": 1536, "intermediate_size": 4096,
"num_hidden_layers": 16, "num_attention_heads": 12, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false, "head_dim": 128, "H_cycles": 2, "L_cycles": 3, "prefix_lm": true})"},
    {"hy_v3", R"({"vocab_size": 120832, "hidden_size": 4096, "intermediate_size": 13312,
"num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": false,
"attention_bias": false, "mlp_bias": false, "num_experts": 192, "num_experts_per_tok": 8,
"num_shared_experts": 1, "moe_intermediate_size": 1536, "router_scaling_factor": 2.826,
"enable_moe_fp32_combine": true})"},
    {"hy_v4", R"({"vocab_size": 120832, "hidden_size": 2816, "intermediate_size": 6912,
"moe_intermediate_size": 768, "num_hidden_layers": 34, "num_attention_heads": 32, "hidden_act":
"silu", "max_position_embeddings": 262144, "tie_word_embeddings": false, "attention_bias":
false, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
"routed_scaling_factor": 2.827, "norm_topk_prob": true, "n_group": 1, "topk_group": 1,
"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
"v_head_dim": 256, "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 16, "hc_mult": 4,
"hc_magnitude": 2.0, "hc_eps": 1e-06, "learnable_sink_init": 0.0, "swiglu_limit": 10.0})"},
    {"hy_v4_vl", R"({"vocab_size": 120832, "hidden_size": 6144, "intermediate_size": 18432,
"moe_intermediate_size": 2048, "num_hidden_layers": 78, "num_attention_heads": 64, "hidden_act":
"silu", "max_position_embeddings": 262144, "tie_word_embeddings": false, "attention_bias":
false, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
"routed_scaling_factor": 2.827, "norm_topk_prob": true, "n_group": 1, "topk_group": 1,
"q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
"v_head_dim": 256, "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 32, "hc_mult": 4,
"hc_magnitude": 2.0, "hc_eps": 1e-06, "learnable_sink_init": 0.0, "swiglu_limit": 10.0})"},
    {"hyperclovax", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size":
11008, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false, "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier":
1.0, "use_post_norm": true})"},
    {"inkling", R"({"vocab_size": 201024, "hidden_size": 6144, "num_hidden_layers": 66,
"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "swa_num_attention_heads":
64, "swa_num_key_value_heads": 16, "swa_head_dim": 128, "sliding_window_size": 512, "d_rel": 16,
"rel_extent": 1024, "log_scaling_alpha": 0.1, "max_position_embeddings": 131072,
"conv_kernel_size": 4, "intermediate_size": 24576, "hidden_act": "silu",
"moe_intermediate_size": 3072, "n_routed_experts": 256, "num_experts_per_tok": 6,
"n_shared_experts": 2, "shared_expert_sink": true, "route_scale": 8.0,
"logits_mup_width_multiplier": 24.0, "rms_norm_eps_moe_gate": 1e-06, "chain_hidden_post_norm":
false, "mtp_hidden_states_first": true})"},
    {"inkling2", R"({"vocab_size": 201024, "unpadded_vocab_size": 200058, "hidden_size":
4608, "num_hidden_layers": 48, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim":
128, "swa_num_attention_heads": 48, "swa_num_key_value_heads": 8, "swa_head_dim": 128,
"sliding_window_size": 1024, "d_rel": 16, "rel_extent": 1024, "log_scaling_n_floor": 128000,
"log_scaling_alpha": 0.1, "max_position_embeddings": 1048576, "conv_kernel_size": 4,
"hidden_act": "silu", "moe_intermediate_size": 2304, "n_routed_experts": 384,
"num_experts_per_tok": 8, "route_scale": 8.0, "qk_l2_clip_threshold": 22.627416997969522,
"rel_l2_clip_threshold": 8.0, "n_layers_per_attn_res_block": 6, "mlp_gate_softcap": 4.0,
"mlp_up_softcap": 25.0, "scoring_func": "sigmoid"})"},
    {"inkling2_loop", R"({"vocab_size": 201024, "unpadded_vocab_size": 200058,
"hidden_size": 2304, "num_hidden_layers": 24, "num_attention_heads": 24, "num_key_value_heads":
8, "head_dim": 128, "swa_num_attention_heads": 24, "swa_num_key_value_heads": 8, "swa_head_dim":
128, "sliding_window_size": 1024, "d_rel": 16, "rel_extent": 1024, "log_scaling_n_floor": 8192,
"log_scaling_alpha": 0.1, "max_position_embeddings": 1048576, "conv_kernel_size": 4,
"hidden_act": "silu", "moe_intermediate_size": 1152, "n_routed_experts": 128,
"num_experts_per_tok": 8, "route_scale": 8.0, "qk_l2_clip_threshold": 22.627416997969522,
"rel_l2_clip_threshold": 8.0, "n_layers_per_attn_res_block": 6, "mlp_gate_softcap": 4.0,
"mlp_up_softcap": 25.0, "scoring_func": "sigmoid", "loop_layer_index_start": 6,
"loop_layer_index_end": 18, "loop_num_passes": 3, "loop_gate_rank": 64})"},
    {"internlm3", R"({"vocab_size": 128512, "hidden_size": 4096, "intermediate_size": 10240,
"num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 2, "hidden_act":
"silu", "max_position_embeddings": 32768, "tie_word_embeddings": false, "head_dim": 128})"},
    {"iquestcoder", R"({"vocab_size": 76800, "hidden_size": 5120, "intermediate_size":
27648, "num_hidden_layers": 80, "num_attention_heads": 40, "num_key_value_heads": 8,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": false,
"attention_bias": false, "mlp_bias": false, "head_dim": 128})"},
    {"jais2", R"({"vocab_size": 150272, "hidden_size": 3328, "intermediate_size": 26624,
"num_hidden_layers": 32, "num_attention_heads": 26, "hidden_act": "relu2",
"max_position_embeddings": 8192, "tie_word_embeddings": false, "attention_bias": true,
"mlp_bias": true})"},
    {"jamba", R"({"vocab_size": 65536, "tie_word_embeddings": false, "hidden_size": 4096,
"intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
"num_key_value_heads": 8, "hidden_act": "silu", "max_position_embeddings": 262144,
"num_experts_per_tok": 2, "num_experts": 16, "expert_layer_period": 2, "expert_layer_offset": 1,
"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4,
"mamba_expand": 2, "mamba_dt_rank": "auto", "mamba_conv_bias": true, "mamba_proj_bias": false})"},
    {"jetmoe", R"({"vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 12,
"num_key_value_heads": 16, "kv_channels": 128, "intermediate_size": 5632,
"max_position_embeddings": 4096, "activation_function": "silu", "num_local_experts": 8,
"num_experts_per_tok": 2, "tie_word_embeddings": true})"},
    {"kimi_linear", R"({"vocab_size": 163840, "hidden_size": 2304, "intermediate_size": 9216,
"moe_intermediate_size": 1024, "num_hidden_layers": 27, "num_attention_heads": 32,
"num_key_value_heads": 32, "n_shared_experts": 1, "routed_scaling_factor": 2.446,
"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
"n_group": 1, "topk_group": 1, "num_experts_per_tok": 8, "norm_topk_prob": true, "hidden_act":
"silu", "max_position_embeddings": 1048576, "tie_word_embeddings": false, "attention_bias":
false, "num_local_experts": 256, "linear_head_dim": 128, "linear_num_heads": 32,
"linear_conv_kernel_dim": 4})"},
    {"kolibri1", R"({"vocab_size": 128000, "hidden_size": 2560, "num_hidden_layers": 50,
"num_attention_heads": 48, "num_key_value_heads": 4, "hidden_act": "silu",
"max_position_embeddings": 262144, "tie_word_embeddings": false, "sliding_window": 513,
"moe_intermediate_size": 512, "num_experts_per_tok": 6, "num_experts": 384, "norm_topk_prob":
false, "head_dim": 128, "shared_expert_intermediate_size": 512})"},
    {"laguna", R"({"vocab_size": 100352, "hidden_size": 2048, "intermediate_size": 8192,
"num_hidden_layers": 40, "num_attention_heads": 48, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "sliding_window": 512,
"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts_per_tok": 8,
"num_experts": 256, "head_dim": 128, "attention_bias": false, "moe_routed_scaling_factor": 1.0,
"moe_apply_router_weight_on_input": false, "moe_router_logit_softcapping": 0.0})"},
    {"lara_mini", R"({"vocab_size": 151936, "hidden_size": 1024, "num_hidden_layers": 34,
"num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act": "silu",
"max_position_embeddings": 131072, "tie_word_embeddings": true, "attention_bias": false,
"head_dim": 128, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
"linear_value_head_dim": 128, "linear_num_key_heads": 8, "linear_num_value_heads": 16,
"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts_per_tok": 4,
"num_experts": 128, "norm_topk_prob": true, "sliding_window": 512})"},
    {"lfm2", R"({"vocab_size": 65536, "hidden_size": 2560, "intermediate_size": 12288,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
"max_position_embeddings": 128000, "tie_word_embeddings": true, "conv_bias": false,
"conv_L_cache": 3, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
"block_auto_adjust_ff_dim": true})"},
    {"longcat_flash", R"({"vocab_size": 131072, "hidden_size": 6144, "num_layers": 28,
"num_attention_heads": 64, "hidden_act": "silu", "max_position_embeddings": 131072,
"tie_word_embeddings": false, "attention_bias": false, "ffn_hidden_size": 12288, "q_lora_rank":
1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "head_dim": 64,
"v_head_dim": 128, "moe_topk": 12, "n_routed_experts": 512, "zero_expert_num": 256,
"expert_ffn_hidden_size": 2048, "routed_scaling_factor": 6.0})"},
    {"mamba", R"({"vocab_size": 50280, "hidden_size": 768, "state_size": 16,
"num_hidden_layers": 32, "expand": 2, "conv_kernel": 4, "use_bias": false, "use_conv_bias":
true, "hidden_act": "silu", "time_step_rank": "auto", "tie_word_embeddings": true})"},
    {"mellum", R"({"vocab_size": 98304, "hidden_size": 2304, "intermediate_size": 7168,
"num_hidden_layers": 28, "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias":
false, "sliding_window": 1024, "moe_intermediate_size": 896, "num_experts_per_tok": 8,
"num_experts": 64, "norm_topk_prob": true, "head_dim": 128})"},
    {"mimo_v2_flash", R"({"vocab_size": 152576, "hidden_size": 4096, "intermediate_size": 16384,
"num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias":
false, "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "n_routed_experts": 256,
"routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "head_dim":
192, "v_head_dim": 128, "sliding_window": 129})"},
    {"minicpm3", R"({"vocab_size": 73448, "hidden_size": 2560, "intermediate_size": 6400,
"num_hidden_layers": 62, "num_attention_heads": 40, "hidden_act": "silu",
"max_position_embeddings": 32768, "tie_word_embeddings": true, "attention_bias": false,
"mlp_bias": false, "kv_lora_rank": 256, "q_lora_rank": 768, "qk_nope_head_dim": 64,
"qk_rope_head_dim": 32, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256})"},
    {"minimax", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "num_experts_per_tok":
2, "num_local_experts": 8})"},
    {"minimax_m2", R"({"num_key_value_heads": 8, "head_dim": 128})"},
    {"minimax_m3_vl", R"({"vocab_size": 200064, "hidden_size": 6144, "intermediate_size":
3072, "num_hidden_layers": 60, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim":
128, "hidden_act": "silu", "max_position_embeddings": 524288, "tie_word_embeddings": false,
"num_experts_per_tok": 4, "num_local_experts": 128, "dense_intermediate_size": 12288,
"shared_intermediate_size": 3072, "routed_scaling_factor": 2.0, "swiglu_limit": 7.0,
"index_n_heads": 4, "index_head_dim": 128, "index_block_size": 128, "index_topk_blocks": 16,
"index_local_blocks": 1})"},
    {"ministral3", R"({"num_key_value_heads": 8, "head_dim": 128})"},
    {"mistral", R"({"num_key_value_heads": 8})"},
    {"mistral4", R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 12288,
"moe_intermediate_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 32,
"n_shared_experts": 1, "n_routed_experts": 128, "routed_scaling_factor": 1.0, "kv_lora_rank":
256, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 64,
"n_group": 1, "topk_group": 1, "num_experts_per_tok": 4, "first_k_dense_replace": 0,
"norm_topk_prob": true, "hidden_act": "silu", "max_position_embeddings": 1048576,
"tie_word_embeddings": false, "rope_interleave": true, "attention_bias": false, "scoring_func":
"softmax", "topk_method": "greedy"})"},
    {"mistral_large4", R"({"vocab_size": 204800, "hidden_size": 6144, "intermediate_size":
24576, "moe_intermediate_size": 6144, "num_hidden_layers": 72, "num_attention_heads": 64,
"n_shared_experts": 1, "n_routed_experts": 128, "routed_scaling_factor": 1.0, "kv_lora_rank":
512, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 64, "n_group": 1,
"topk_group": 1, "num_experts_per_tok": 4, "hidden_act": "silu", "max_position_embeddings":
1048576, "tie_word_embeddings": false, "attention_bias": false, "index_topk": 2048,
"index_head_dim": 128, "index_n_heads": 32, "first_k_dense_replace": 1})"},
    {"mixtral", R"({"num_key_value_heads": 8})"},
    {"mllama", R"({"vocab_size": 128256, "hidden_size": 4096, "hidden_act": "silu",
"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
"intermediate_size": 14336, "max_position_embeddings": 131072, "tie_word_embeddings": false})"},
    {"mllama_text_model", R"({"vocab_size": 128256, "hidden_size": 4096, "hidden_act":
"silu", "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
"intermediate_size": 14336, "max_position_embeddings": 131072, "tie_word_embeddings": false})"},
    {"modernbert", R"({"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152,
"num_hidden_layers": 22, "num_attention_heads": 12, "hidden_activation": "gelu",
"max_position_embeddings": 8192, "norm_bias": false, "attention_bias": false, "local_attention":
128, "embedding_dropout": 0.0, "mlp_bias": false, "decoder_bias": true, "classifier_bias":
false, "tie_word_embeddings": true})"},
    {"modernbert-decoder", R"({"vocab_size": 50368, "hidden_size": 768, "intermediate_size":
1152, "num_hidden_layers": 22, "num_attention_heads": 12, "hidden_activation": "gelu",
"max_position_embeddings": 8192, "norm_bias": false, "attention_bias": false,
"embedding_dropout": 0.0, "mlp_bias": false, "decoder_bias": true, "classifier_bias": false,
"local_attention": 128, "tie_word_embeddings": true})"},
    {"molmo2", R"({"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
"head_dim": 128, "vocab_size": 151936, "additional_vocab_size": 128, "attention_bias": false,
"qk_norm_type": "qwen3", "num_hidden_layers": 36, "intermediate_size": 12288, "hidden_act":
"silu", "max_position_embeddings": 36864, "norm_after": false, "tie_word_embeddings": false})"},
    {"moshi", R"({"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
"num_attention_heads": 32, "max_position_embeddings": 3000, "hidden_act": "silu",
"sliding_window": 3000, "ffn_dim": 22528, "tie_word_embeddings": false})"},
    {"mt5", R"({"vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8,
"num_heads": 6, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
"feed_forward_proj": "gated-gelu", "tie_word_embeddings": true})"},
    {"muse_glimmer", R"({"vocab_size": 202048, "hidden_size": 6656, "intermediate_size":
19968, "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim":
128, "hidden_activation": "silu", "max_position_embeddings": 131072, "tie_word_embeddings":
false, "attention_bias": false, "sliding_window": 2048, "qk_scale_factor": 3.87,
"output_multiplier": 0.19611613513818404, "post_norm_eps": 1e-08})"},
    {"muse_spark", R"({"vocab_size": 202048, "hidden_size": 8192, "intermediate_size":
16384, "num_hidden_layers": 62, "num_attention_heads": 128, "num_key_value_heads": 16,
"head_dim": 64, "max_position_embeddings": 1048576, "tie_word_embeddings": false,
"attention_bias": false, "sliding_window": 2048, "qk_scale_factor": 5.4730064863875,
"output_multiplier": 0.1767766952966369, "post_norm_eps": 1e-08, "hidden_act": "silu",
"moe_intermediate_size": 4096, "num_local_experts": 256, "num_experts_per_tok": 8,
"routed_scaling_factor": 1.0, "moe_hidden_size": 4096, "residual_gate_temperature": 0.3})"},
    {"nanochat", R"({"vocab_size": 50304, "hidden_size": 768, "intermediate_size": 8192,
"num_hidden_layers": 12, "num_attention_heads": 6, "max_position_embeddings": 2048,
"hidden_act": "relu2", "attention_bias": false, "tie_word_embeddings": false})"},
    {"nemotron_h", R"({"time_step_min": 0.001, "layer_norm_epsilon": 1e-5})"},
    {"nllb-moe", R"({"vocab_size": 128112, "max_position_embeddings": 1024, "encoder_layers":
12, "encoder_ffn_dim": 4096, "encoder_attention_heads": 16, "decoder_layers": 12,
"decoder_ffn_dim": 4096, "decoder_attention_heads": 16, "activation_function": "relu",
"d_model": 1024, "router_bias": false, "num_experts": 128, "encoder_sparse_step": 4,
"decoder_sparse_step": 4, "tie_word_embeddings": true})"},
    {"olmo", R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false})"},
    {"olmo2", R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false})"},
    {"olmo3", R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"sliding_window": 4096})"},
    {"olmoe", R"({"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048,
"num_hidden_layers": 16, "num_attention_heads": 16, "hidden_act": "silu",
"max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false,
"num_experts_per_tok": 8, "num_experts": 64, "norm_topk_prob": false})"},
    {"openai-gpt", R"({"vocab_size": 40478, "n_positions": 512, "n_embd": 768, "n_layer":
12, "n_head": 12, "afn": "gelu", "tie_word_embeddings": true})"},
    {"paddleocr_vl", R"({"vocab_size": 103424, "hidden_size": 1024, "intermediate_size":
3072, "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": true,
"use_bias": false, "head_dim": 128})"},
    {"persimmon", R"({"vocab_size": 262144, "hidden_size": 4096, "intermediate_size": 16384,
"num_hidden_layers": 36, "num_attention_heads": 64, "hidden_act": "relu2",
"max_position_embeddings": 16384, "tie_word_embeddings": false, "qk_layernorm": true})"},
    {"phi4_multimodal", R"({"vocab_size": 200064, "hidden_size": 3072, "intermediate_size":
8192, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
"hidden_act": "silu", "max_position_embeddings": 131072, "original_max_position_embeddings":
4096, "tie_word_embeddings": false})"},
    {"phimoe", R"({"vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 6400,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "num_experts_per_tok":
2, "num_local_experts": 16, "input_jitter_noise": 0.0, "attention_bias": false, "lm_head_bias":
false})"},
    {"qwen2", R"({"num_key_value_heads": 32})"},
    {"qwen2_5_omni", R"({"vocab_size": 152064, "hidden_size": 3584, "intermediate_size":
18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
"hidden_act": "silu", "max_position_embeddings": 32768, "use_sliding_window": false,
"sliding_window": 32768, "max_window_layers": 28})"},
    {"qwen2_5_omni_thinker", R"({"vocab_size": 152064, "hidden_size": 3584,
"intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
"num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 32768,
"use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 28})"},
    {"qwen2_5_vl", R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size":
29568, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
"hidden_act": "silu", "max_position_embeddings": 32768, "use_sliding_window": false,
"sliding_window": 4096, "max_window_layers": 80})"},
    {"qwen2_moe", R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "hidden_act":
"silu", "max_position_embeddings": 32768, "tie_word_embeddings": false, "use_sliding_window":
false, "sliding_window": 4096, "max_window_layers": 28, "decoder_sparse_step": 1,
"moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok":
4, "num_experts": 60, "norm_topk_prob": false, "qkv_bias": true})"},
    {"qwen2_vl", R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
"num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 32768, "use_sliding_window": false, "sliding_window": 4096,
"max_window_layers": 80})"},
    {"qwen3", R"({"num_key_value_heads": 32, "head_dim": 128})"},
    {"qwen3_5", R"({"vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288,
"num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 32768, "tie_word_embeddings": false, "attention_bias": false,
"head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
"linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32})"},
    {"qwen3_moe", R"({"num_key_value_heads": 4})"},
    {"qwen3_next", R"({"num_key_value_heads": 2, "head_dim": 256, "partial_rotary_factor": 0.25})"},
    {"qwen3_omni_moe", R"({"vocab_size": 3584, "hidden_size": 2048, "intermediate_size":
18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
"hidden_act": "silu", "max_position_embeddings": 32768, "attention_bias": false,
"decoder_sparse_step": 1, "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_experts":
128, "norm_topk_prob": true})"},
    {"qwen3_omni_moe_thinker", R"({"vocab_size": 3584, "hidden_size": 2048,
"intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
"num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 32768,
"attention_bias": false, "decoder_sparse_step": 1, "moe_intermediate_size": 768,
"num_experts_per_tok": 8, "num_experts": 128, "norm_topk_prob": true})"},
    {"recurrent_gemma", R"({"num_hidden_layers": 26, "vocab_size": 256000, "hidden_size": 2560,
"intermediate_size": 7680, "num_attention_heads": 10, "attention_window_size": 2048,
"conv1d_width": 4, "hidden_activation": "gelu_pytorch_tanh", "block_types": ["recurrent",
"recurrent", "attention"], "attention_bias": false, "tie_word_embeddings": true})"},
    {"rwkv", R"({"vocab_size": 50277, "hidden_size": 4096, "num_hidden_layers": 32,
"tie_word_embeddings": false})"},
    {"sarvam_mla", R"({"vocab_size": 262144, "hidden_size": 4096, "intermediate_size":
16384, "moe_intermediate_size": 2048, "num_hidden_layers": 32, "num_attention_heads": 64,
"n_shared_experts": 1, "n_routed_experts": 128, "routed_scaling_factor": 2.5, "kv_lora_rank":
512, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128, "n_group": 1,
"topk_group": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "norm_topk_prob": true,
"hidden_act": "silu", "max_position_embeddings": 4096, "tie_word_embeddings": false,
"rope_interleave": true, "attention_bias": false, "num_mtp_layers": 0})"},
    {"sarvam_moe", R"({"vocab_size": 262144, "hidden_size": 4096, "intermediate_size": 8192,
"num_hidden_layers": 19, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias":
false, "moe_intermediate_size": 1024, "num_experts_per_tok": 6, "n_shared_experts": 1,
"n_routed_experts": 128, "routed_scaling_factor": 2.5, "n_group": 1, "topk_group": 1,
"first_k_dense_replace": 1, "norm_topk_prob": true, "use_qk_norm": true, "num_mtp_layers": 0,
"head_dim": 64})"},
    {"seed_oss", R"({"num_key_value_heads": 8, "head_dim": 128})"},
    {"siglip_vision_model", R"({"hidden_size": 768, "intermediate_size": 3072,
"num_hidden_layers": 12, "num_attention_heads": 12, "num_channels": 3, "image_size": 224,
"patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "vision_use_head": true})"},
    {"smollm3", R"({"num_key_value_heads": 4})"},
    {"solar_open", R"({"vocab_size": 196608, "hidden_size": 4096, "num_hidden_layers": 48,
"num_attention_heads": 64, "num_key_value_heads": 8, "hidden_act": "silu",
"max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias": false,
"moe_intermediate_size": 1280, "num_experts_per_tok": 8, "n_shared_experts": 1,
"n_routed_experts": 128, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1,
"norm_topk_prob": true, "head_dim": 128})"},
    {"stablelm", R"({"vocab_size": 50304, "intermediate_size": 6912, "hidden_size": 2560,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act":
"silu", "max_position_embeddings": 4096, "tie_word_embeddings": false, "use_qkv_bias": false,
"qk_layernorm": false, "use_parallel_residual": false})"},
    {"starcoder2", R"({"num_key_value_heads": 2})"},
    {"step3p5", R"({"vocab_size": 128815, "hidden_size": 4096, "intermediate_size": 11264,
"num_hidden_layers": 45, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
"hidden_act": "silu", "max_position_embeddings": 128000, "tie_word_embeddings": false,
"num_experts_per_tok": 8, "moe_intermediate_size": 1280, "n_routed_experts": 288,
"share_expert_dim": 1280, "attention_bias": false, "moe_router_scaling_factor": 1.0, "mlp_bias":
false})"},
    {"step3p7", R"({"vocab_size": 128815, "hidden_size": 4096, "intermediate_size": 11264,
"num_hidden_layers": 45, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
"hidden_act": "silu", "max_position_embeddings": 128000, "tie_word_embeddings": false,
"num_experts_per_tok": 8, "moe_intermediate_size": 1280, "n_routed_experts": 288,
"share_expert_dim": 1280, "attention_bias": false, "moe_router_scaling_factor": 1.0, "mlp_bias":
false})"},
    {"switch_transformers", R"({"vocab_size": 32128, "d_model": 768, "d_kv": 64, "d_ff": 2048,
"num_layers": 12, "num_sparse_encoder_layers": 3, "num_decoder_layers": 12,
"num_sparse_decoder_layers": 3, "num_heads": 12, "num_experts": 8, "router_bias": false,
"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "dense_act_fn":
"relu", "tie_word_embeddings": true})"},
    {"t5", R"({"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
"num_heads": 8, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
"feed_forward_proj": "relu"})"},
    {"ultrabert", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 32768, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false, "sliding_window": 128, "prediction_head_size": 768, "classifier_dropout":
0.0})"},
    {"umt5", R"({"vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers":
8, "num_heads": 6, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
"feed_forward_proj": "gated-gelu"})"},
    {"unlimited_ocr", R"({"vocab_size": 129280, "hidden_size": 1280, "intermediate_size":
6848, "num_hidden_layers": 12, "num_attention_heads": 10, "num_key_value_heads": 10,
"hidden_act": "silu", "max_position_embeddings": 32768, "tie_word_embeddings": false,
"attention_bias": false, "mlp_bias": false, "n_group": 1, "n_routed_experts": 64,
"n_shared_experts": 2, "routed_scaling_factor": 1.0, "topk_group": 1, "topk_method": "greedy",
"num_experts_per_tok": 6, "moe_intermediate_size": 896, "sliding_window": 128,
"first_k_dense_replace": 1})"},
    {"vaultgemma", R"({"num_key_value_heads": 4, "head_dim": 256})"},
    {"voxtral_realtime", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size":
14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
"hidden_act": "silu", "max_position_embeddings": 131072, "sliding_window": 4096})"},
    {"whisper", R"({"vocab_size": 51865, "num_mel_bins": 80, "encoder_layers": 4,
"encoder_attention_heads": 6, "decoder_layers": 4, "decoder_attention_heads": 6,
"decoder_ffn_dim": 1536, "encoder_ffn_dim": 1536, "activation_function": "gelu", "d_model": 384,
"max_source_positions": 1500, "max_target_positions": 448, "tie_word_embeddings": true})"},
    {"xglm", R"({"vocab_size": 256008, "max_position_embeddings": 2048, "d_model": 1024,
"ffn_dim": 4096, "num_layers": 24, "attention_heads": 16, "activation_function": "gelu",
"scale_embedding": true, "decoder_start_token_id": 2, "add_cross_attention": false,
"tie_word_embeddings": true})"},
    {"xlstm", R"({"vocab_size": 50304, "hidden_size": 4096, "num_hidden_layers": 32,
"num_heads": 8, "use_bias": false, "tie_word_embeddings": false, "add_out_norm": true,
"qk_dim_factor": 0.5, "v_dim_factor": 1.0, "ffn_proj_factor": 2.667,
"ffn_round_up_to_multiple_of": 64, "weight_mode": "single"})"},
    {"youtu", R"({"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 6144,
"num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank":
512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": true,
"rope_interleave": true, "attention_bias": false})"},
    {"zamba2", R"({"vocab_size": 32000, "max_position_embeddings": 4096, "hidden_size": 2560,
"num_hidden_layers": 54, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2,
"mamba_ngroups": 1, "n_mamba_heads": 8, "use_conv_bias": true, "use_mem_eff_path": false,
"add_bias_linear": false, "hidden_act": "gelu", "num_attention_heads": 32, "num_mem_blocks": 1,
"use_shared_attention_adapter": false, "adapter_rank": 128, "use_mem_rope": false,
"use_long_context": false, "tie_word_embeddings": true})"},
  };
  // clang-format on
  const auto found = known.find(type);
  return found == known.end() ? std::string_view{"{}"} : found->second;
}

}  // namespace orrery::models
