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
    {"arcee", R"({"vocab_size": 32000, "hidden_size": 2560, "intermediate_size": 18432,
"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "relu2",
"max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false,
"mlp_bias": false})"},
    {"bart", R"({"vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12,
"encoder_ffn_dim": 4096, "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim":
4096, "decoder_attention_heads": 16, "activation_function": "gelu", "d_model": 1024,
"tie_word_embeddings": true})"},
    {"bitnet", R"({"vocab_size": 128256, "hidden_size": 2560, "intermediate_size": 6912,
"num_hidden_layers": 30, "num_attention_heads": 20, "num_key_value_heads": 5, "hidden_act":
"relu2", "max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false})"},
    {"clip", R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
"num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act":
"quick_gelu"})"},
    {"clip_text_model", R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
"num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act":
"quick_gelu"})"},
    {"cohere", R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528,
"num_hidden_layers": 40, "num_attention_heads": 64, "hidden_act": "silu",
"max_position_embeddings": 8192, "tie_word_embeddings": true, "attention_bias": false,
"use_qk_norm": false})"},
    {"cohere2", R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528,
"num_hidden_layers": 40, "num_attention_heads": 64, "hidden_act": "silu",
"max_position_embeddings": 8192, "tie_word_embeddings": true, "attention_bias": false,
"sliding_window": 4096})"},
    {"cwm", R"({"head_dim": 128})"},
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
    {"ernie4_5", R"({"head_dim": 128})"},
    {"ernie4_5_moe", R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288,
"num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": true, "use_bias": false,
"moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2,
"moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1})"},
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
    {"gemma", R"({"head_dim": 256})"},
    {"gemma2", R"({"head_dim": 256})"},
    {"gemma3", R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
"num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
"hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072,
"tie_word_embeddings": true, "attention_bias": false, "sliding_window": 4096,
"use_bidirectional_attention": false})"},
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
    {"glm", R"({"head_dim": 128})"},
    {"glm4", R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
"hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": false,
"attention_bias": true})"},
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
"attention_bias": false})"},
    {"gpt_oss", R"({"head_dim": 64})"},
    {"granitemoeshared", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size":
11008, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
"max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
"embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0,
"attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2,
"shared_intermediate_size": 0})"},
    {"helium", R"({"head_dim": 128})"},
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
    {"mimo_v2_flash", R"({"vocab_size": 152576, "hidden_size": 4096, "intermediate_size": 16384,
"num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_bias":
false, "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "n_routed_experts": 256,
"routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "head_dim":
192, "v_head_dim": 128, "sliding_window": 129})"},
    {"minimax", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "num_experts_per_tok":
2, "num_local_experts": 8})"},
    {"minimax_m2", R"({"head_dim": 128})"},
    {"ministral3", R"({"head_dim": 128})"},
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
    {"moshi", R"({"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
"num_attention_heads": 32, "max_position_embeddings": 3000, "hidden_act": "silu",
"sliding_window": 3000, "ffn_dim": 22528, "tie_word_embeddings": false})"},
    {"mt5", R"({"vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8,
"num_heads": 6, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
"feed_forward_proj": "gated-gelu", "tie_word_embeddings": true})"},
    {"nanochat", R"({"vocab_size": 50304, "hidden_size": 768, "intermediate_size": 8192,
"num_hidden_layers": 12, "num_attention_heads": 6, "max_position_embeddings": 2048,
"hidden_act": "relu2", "attention_bias": false, "tie_word_embeddings": false})"},
    {"nemotron_h", R"({"head_dim": 128})"},
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
    {"persimmon", R"({"vocab_size": 262144, "hidden_size": 4096, "intermediate_size": 16384,
"num_hidden_layers": 36, "num_attention_heads": 64, "hidden_act": "relu2",
"max_position_embeddings": 16384, "tie_word_embeddings": false, "qk_layernorm": true})"},
    {"phimoe", R"({"vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 6400,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act":
"silu", "max_position_embeddings": 131072, "tie_word_embeddings": false, "num_experts_per_tok":
2, "num_local_experts": 16, "input_jitter_noise": 0.0, "attention_bias": false, "lm_head_bias":
false})"},
    {"qwen2_moe", R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "hidden_act":
"silu", "max_position_embeddings": 32768, "tie_word_embeddings": false, "use_sliding_window":
false, "sliding_window": 4096, "max_window_layers": 28, "decoder_sparse_step": 1,
"moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok":
4, "num_experts": 60, "norm_topk_prob": false, "qkv_bias": true})"},
    {"qwen3", R"({"head_dim": 128})"},
    {"qwen3_5", R"({"vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288,
"num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act":
"silu", "max_position_embeddings": 32768, "tie_word_embeddings": false, "attention_bias": false,
"head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
"linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32})"},
    {"qwen3_next", R"({"head_dim": 256})"},
    {"recurrent_gemma", R"({"num_hidden_layers": 26, "vocab_size": 256000, "hidden_size": 2560,
"intermediate_size": 7680, "num_attention_heads": 10, "attention_window_size": 2048,
"conv1d_width": 4, "hidden_activation": "gelu_pytorch_tanh", "block_types": ["recurrent",
"recurrent", "attention"], "attention_bias": false, "tie_word_embeddings": true})"},
    {"rwkv", R"({"vocab_size": 50277, "hidden_size": 4096, "num_hidden_layers": 32,
"tie_word_embeddings": false})"},
    {"seed_oss", R"({"head_dim": 128})"},
    {"siglip_vision_model", R"({"hidden_size": 768, "intermediate_size": 3072,
"num_hidden_layers": 12, "num_attention_heads": 12, "num_channels": 3, "image_size": 224,
"patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "vision_use_head": true})"},
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
    {"switch_transformers", R"({"vocab_size": 32128, "d_model": 768, "d_kv": 64, "d_ff": 2048,
"num_layers": 12, "num_sparse_encoder_layers": 3, "num_decoder_layers": 12,
"num_sparse_decoder_layers": 3, "num_heads": 12, "num_experts": 8, "router_bias": false,
"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "dense_act_fn":
"relu", "tie_word_embeddings": true})"},
    {"t5", R"({"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
"num_heads": 8, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
"feed_forward_proj": "relu"})"},
    {"umt5", R"({"vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers":
8, "num_heads": 6, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
"feed_forward_proj": "gated-gelu"})"},
    {"vaultgemma", R"({"head_dim": 256})"},
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
