"""Small checkpoints of the transformers library's models, by formula: the same weights everywhere."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

STEPS, SEQUENCES, LENGTH = 3, 4, 16
PLAN = f"micro_batch=2,global_batch={SEQUENCES},seq_len={LENGTH},precision=fp64"
RATE, BETAS, EPSILON, DECAY, CLIP = 3e-4, (0.9, 0.95), 1e-8, 0.1, 1.0  # Orrery's optimizer
TEXT = "".join(chr(33 + (7 * i + i * i // 11) % 90) for i in range(STEPS * SEQUENCES * LENGTH + 1))
RECORDED = Path(__file__).with_name("pretrained.json")

LLAMA = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 256,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-3,
}
DEEPSEEK = {
    **LLAMA,
    "num_key_value_heads": 4,
    "kv_lora_rank": 12,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 6,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 24,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "num_nextn_predict_layers": 0,
}
GEMMA = {
    **LLAMA,
    "head_dim": 16,
    "hidden_activation": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
}
# An encoder reads 12 tokens before those of the decoder.
BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "vocab_size": 256,
    "max_position_embeddings": 20,
    "activation_function": "gelu",
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "tie_word_embeddings": True,
    "source_len": 12,
}
CONFIGS = {
    "llama": {
        **LLAMA,
        "model_type": "llama",
        "attention_bias": True,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 100.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16,
        },
    },
    "mistral": {**LLAMA, "model_type": "mistral", "sliding_window": 5},
    "qwen2": {
        **LLAMA,
        "model_type": "qwen2",
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0},
    },
    "qwen3": {**LLAMA, "model_type": "qwen3", "head_dim": 16},
    "deepseek_v2": {
        **DEEPSEEK,
        "model_type": "deepseek_v2",
        "q_lora_rank": None,
        "topk_method": "group_limited_greedy",
        "norm_topk_prob": False,
        "routed_scaling_factor": 1.5,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 100.0,
            "factor": 4.0,
            "beta_fast": 4.0,
            "beta_slow": 0.5,
            "original_max_position_embeddings": 16,
        },
    },
    "deepseek_v3": {
        **DEEPSEEK,
        "model_type": "deepseek_v3",
        "q_lora_rank": 16,
        "topk_method": "noaux_tc",
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1000.0,
            "factor": 8.0,
            "beta_fast": 2.0,
            "beta_slow": 0.25,
            "mscale": 0.7,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 16,
        },
    },
    "mixtral": {
        **LLAMA,
        "model_type": "mixtral",
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
    "qwen3_moe": {
        **LLAMA,
        "model_type": "qwen3_moe",
        "head_dim": 16,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
        "decoder_sparse_step": 2,
    },
    "qwen3_moe_unnormalised": {
        **LLAMA,
        "model_type": "qwen3_moe",
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": False,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1000.0,
            "factor": 4.0,
            "truncate": False,
            "original_max_position_embeddings": 16,
        },
    },
    "gpt2": {
        "model_type": "gpt2",
        "n_layer": 2,
        "n_embd": 32,
        "n_head": 4,
        "n_positions": 64,
        "vocab_size": 256,
        "layer_norm_epsilon": 1e-3,
        "activation_function": "gelu_new",
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
    },
    "bert": {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "vocab_size": 260,
        "max_position_embeddings": 64,
        "layer_norm_eps": 1e-3,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    "bart": {**BART, "model_type": "bart"},
    "mbart": {**BART, "model_type": "mbart", "scale_embedding": True},
    "gpt_neox": {
        "model_type": "gpt_neox",
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 256,
        "max_position_embeddings": 64,
        "hidden_act": "gelu",
        "rotary_pct": 0.5,
        "rotary_emb_base": 500,
        "layer_norm_eps": 1e-3,
        "use_parallel_residual": True,
    },
    "gpt_oss": {
        **LLAMA,
        "model_type": "gpt_oss",
        "head_dim": 16,
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "intermediate_size": 24,
        "swiglu_limit": 0.2,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1000.0,
            "factor": 4.0,
            "beta_fast": 4.0,
            "beta_slow": 0.5,
            "truncate": False,
            "original_max_position_embeddings": 16,
        },
    },
    "exaone4": {
        **LLAMA,
        "model_type": "exaone4",
        "head_dim": 16,
        "sliding_window": None,
        "layer_types": ["full_attention", "full_attention"],
    },
    "gemma": {**GEMMA, "model_type": "gemma"},
    "gemma2": {
        **GEMMA,
        "model_type": "gemma2",
        "sliding_window": 5,
        "query_pre_attn_scalar": 24,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    },
    "gemma3": {
        **GEMMA,
        "model_type": "gemma3_text",
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 24,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        },
    },
    "qwen3_next": {
        **LLAMA,
        "model_type": "qwen3_next",
        "head_dim": 16,
        "partial_rotary_factor": 0.5,
        "full_attention_interval": 2,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 6,
        "linear_num_value_heads": 4,
        "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 3,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 20,
        "norm_topk_prob": True,
    },
    "nemotron_h": {
        **LLAMA,
        "model_type": "nemotron_h",
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
        "head_dim": 16,
        "layer_norm_epsilon": 1e-3,
        "mamba_num_heads": 4,
        "mamba_head_dim": 8,
        "n_groups": 2,
        "ssm_state_size": 6,
        "conv_kernel": 3,
        "chunk_size": 6,
        "time_step_min": 0.6,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "moe_shared_expert_intermediate_size": 20,
        "moe_latent_size": 12,
        "routed_scaling_factor": 1.5,
        "n_group": 2,
        "topk_group": 1,
        "mlp_hidden_act": "relu2",
        "num_nextn_predict_layers": 0,
    },
}


# What checkpoints call a layer's experts, and the gate, the other input and the output of one.
EXPERTS = {
    "mixtral": ("block_sparse_moe", "w1", "w3", "w2"),
    **{
        family: ("mlp", "gate_proj", "up_proj", "down_proj")
        for family in (
            "deepseek_v2",
            "deepseek_v3",
            "qwen3_moe",
            "qwen3_moe_unnormalised",
            "qwen3_next",
        )
    },
    "nemotron_h": ("mixer", None, "up_proj", "down_proj"),
}


def stored(family: str, name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Views of a parameter of the library as checkpoints hold it: each expert by itself."""
    if family not in EXPERTS:
        return {name: values}
    block, gate, up, down = EXPERTS[family]
    if family == "nemotron_h" and name.startswith("model."):
        name = "backbone." + name.removeprefix("model.")
    inside = ".mixer." if family == "nemotron_h" else ".mlp."
    layer, _, joined = name.partition(f"{inside}experts.")
    if not joined:
        return {name.replace(".mlp.gate.", f".{block}.gate."): values}
    parts = {}
    for number, one in enumerate(values):
        if joined == "gate_up_proj":
            of = dict(zip((gate, up), np.split(one, 2)))
        else:
            of = {down if joined == "down_proj" else up: one}
        for which, part in of.items():
            parts[f"{layer}.{block}.experts.{number}.{which}.weight"] = part
    return parts


def random_bits(stream: str, index: int) -> int:
    """Philox 4x32-10 of seed 1, the stream's number by FNV-1a: the low 64 bits."""
    number = 0xCBF29CE484222325
    for byte in stream.encode():
        number = (number ^ byte) * 0x100000001B3 % 2**64
    counter = [index % 2**32, index >> 32, number % 2**32, number >> 32]
    low, high = 1, 0
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (b >> 32) ^ counter[1] ^ low,
            b % 2**32,
            (a >> 32) ^ counter[3] ^ high,
            a % 2**32,
        ]
        low, high = (low + 0x9E3779B9) % 2**32, (high + 0xBB67AE85) % 2**32
    return counter[1] << 32 | counter[0]


def masked(tokens: list[int], step: int, sample: int, vocabulary: int) -> tuple[list, list]:
    """What a run makes of a sample: 15 % of its tokens are to be filled in, labels are -1 elsewhere."""
    tokens, labels, places = list(tokens), [-1] * len(tokens), list(range(len(tokens)))
    drawn = (random_bits(f"masks of step {step}", (sample << 24) + i) for i in range(2**24))
    for i in range(max(1, round(0.15 * len(tokens)))):
        j = i + next(drawn) % (len(tokens) - i)
        places[i], places[j] = places[j], places[i]
        which, another = next(drawn) % 10, next(drawn) % vocabulary
        labels[places[i]] = tokens[places[i]]
        if which <= 8:
            tokens[places[i]] = vocabulary - 1 if which < 8 else another
    return tokens, labels


def weights(name: str, shape: list[int]) -> np.ndarray:
    """Normal numbers drawn from the tensor's name; around 1 for a norm's scale."""
    drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
    is_scale = "norm" in name.lower() or "ln_" in name
    return (1.0 if is_scale and name.endswith("weight") else 0.0) + 0.1 * drawn


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, at = {"__metadata__": {"format": "pt"}}, 0
    words = {"float64": "F64", "float32": "F32", "float16": "F16"}
    for name, values in tensors.items():
        offsets = [at, at + values.nbytes]
        header[name] = {
            "dtype": words[str(values.dtype)],
            "shape": list(values.shape),
            "data_offsets": offsets,
        }
        at = offsets[1]
    text = json.dumps(header).encode()
    body = b"".join(np.ascontiguousarray(values).tobytes() for values in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    words = {"F64": "<f8", "F32": "<f4"}
    found = {}
    for name, each in header.items():
        begin, end = (8 + length + offset for offset in each["data_offsets"])
        values = np.frombuffer(content[begin:end], words[each["dtype"]])
        found[name] = values.reshape(each["shape"])
    return found


def recorded() -> dict:
    return json.loads(RECORDED.read_text())
