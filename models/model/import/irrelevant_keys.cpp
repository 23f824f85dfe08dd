#include "models/model/import/irrelevant_keys.hpp"

#include <algorithm>
#include <array>

namespace orrery::models {
namespace {

constexpr std::array irrelevant_keys{
    // bookkeeping
    "_name_or_path", "architectures", "auto_map", "dtype", "init_config", "init_device",
    "model_type", "name", "pretraining_tp", "source", "task_specific_params", "tokenizer_class",
    "tokenizer_name", "torch_dtype", "transformers_version", "verbose", "is_encoder_decoder",
    // tokens
    "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "image_token_id",
    "video_token_id", "vision_end_token_id", "vision_start_token_id", "prefix",
    // dropout and initialisation
    "activation_dropout", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop",
    "dropout", "dropout_rate", "emb_pdrop", "embd_pdrop", "hidden_dropout", "hidden_dropout_prob",
    "init_std", "initializer_factor", "initializer_range", "layer_norm_eps", "layer_norm_epsilon",
    "layerdrop", "resid_pdrop", "rms_norm_eps",
    // positions
    "initial_context_length", "n_ctx", "offset_alibi", "original_max_position_embeddings",
    "partial_rotary_factor", "position_embedding_type", "rope_interleave", "rope_parameters",
    "rope_scaling", "rope_theta", "rotary", "rotary_dim", "rotary_emb_base", "rotary_pct",
    "seq_length", "use_mrope",
    // attention details
    "attention_softmax_in_fp32", "attn_scale", "attn_temperature_tuning", "floor_scale",
    "attn_logit_softcapping", "final_logit_softcapping", "logit_scale", "query_pre_attn_scalar",
    "scale_attn_weights", "slow_but_exact", "apply_residual_connection_post_layernorm",
    "bias_dropout_fusion", "masked_softmax_fusion", "skip_bias_add", "skip_bias_add_qkv",
    // generation
    "cache_implementation", "gradient_checkpointing", "output_past", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "use_cache",
    // routing and storage
    "aux_loss_alpha", "ep_size", "n_group", "norm_topk_prob", "output_router_logits",
    "quantization_config", "router_aux_loss_coef", "moe_shared_expert_overlap", "mamba_ssm_dtype",
    "routed_scaling_factor", "router_jitter_noise", "scoring_func", "seq_aux", "swiglu_limit",
    "topk_group", "topk_method", "use_routing_bias",
    // what every config has, and classifiers
    "add_cross_attention", "chunk_size_feed_forward", "classifier_activation", "classifier_bias",
    "classifier_dropout", "classifier_pooling", "id2label", "is_decoder", "label2id",
    "output_attentions", "output_hidden_states", "problem_type", "return_dict",
    // encoders
    "apply_layernorm", "cls_token_id", "deterministic_flash_attn", "drop_path_rate",
    "embedding_dropout", "initializer_cutoff_factor", "layerscale_value", "mlp_dropout",
    "out_features", "out_indices", "pos_embed_jitter", "pos_embed_rescale", "pos_embed_shift",
    "reshape_hidden_states", "sep_token_id", "sparse_pred_ignore_index", "sparse_prediction",
    "stage_names", "swiglu_alpha",
    // state space
    "mixer_rms_eps", "time_step_init_scheme", "time_step_scale", "use_associative_scan",
    "use_mambapy", "chunk_size", "expand", "mamba_hidden_act", "mamba_ssm_cache_dtype",
    "mlp_hidden_act", "norm_eps", "norm_epsilon", "num_logits_to_keep", "rescale_prenorm_residual",
    "residual_in_fp32", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min",
    "time_step_rank", "use_mamba_kernels"};

}  // namespace

bool irrelevant(std::string_view key) {
  return std::ranges::find(irrelevant_keys, key) != std::end(irrelevant_keys);
}

}  // namespace orrery::models
