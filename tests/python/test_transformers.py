"""The models of the transformers library, live: three steps of each in fp64, which the recorded
numbers of pretrained.json must equal. ORRERY_RECORD=1 records them again."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from pretrained import (
    BETAS,
    CLIP,
    CONFIGS,
    DECAY,
    EPSILON,
    LENGTH,
    RATE,
    RECORDED,
    SEQUENCES,
    STEPS,
    TEXT,
    masked,
    recorded,
    stored,
    weights,
)

CACHE = {"bert": {}}  # of encoders there is none
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def parts_of(family: str, model) -> dict[str, np.ndarray]:
    """Its parameters by the names that checkpoints have."""
    parts = {}
    for name, parameter in model.named_parameters():
        parts |= stored(family, name, parameter.detach().numpy())
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            parts |= stored(family, name, buffer.numpy())
    return parts


def source_len(family: str) -> int:
    return CONFIGS[family].get("source_len", 0)


def model_of(family: str):
    config = transformers.AutoConfig.for_model(**CONFIGS[family])
    fills_in = "architectures" in CONFIGS[family]
    auto = transformers.AutoModelForMaskedLM if fills_in else transformers.AutoModelForCausalLM
    if source_len(family):
        auto = transformers.AutoModelForSeq2SeqLM
    how = {} if fills_in or source_len(family) else {"experts_implementation": "eager"}
    model = auto.from_config(config, attn_implementation="eager", **how)
    model = model.double().train()
    with torch.no_grad():
        for name, part in parts_of(family, model).items():
            part[...] = weights(name, list(part.shape))
    return model


def batch(family: str, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and labels, one sample of the global batch a row."""
    text = np.frombuffer(TEXT.encode(), np.uint8).astype(np.int64)
    rows = [step * SEQUENCES + sample for sample in range(SEQUENCES)]
    whole = source_len(family) + LENGTH  # of a sample, without the last label
    places = np.arange(whole + 1)
    both = np.stack([text[(r * whole + places) % len(text)] for r in rows])
    if "architectures" not in CONFIGS[family]:
        return torch.from_numpy(both[:, :-1]), torch.from_numpy(both[:, 1:])
    vocabulary = CONFIGS[family]["vocab_size"]
    parts = [masked(row[:-1].tolist(), step, i, vocabulary) for i, row in enumerate(both)]
    return tuple(torch.tensor(each) for each in zip(*parts))


def train(family: str) -> dict:
    model = model_of(family)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY
    )
    losses, norms = [], []
    for step in range(STEPS):
        tokens, labels = batch(family, step)
        how = CACHE.get(family, {"use_cache": False})
        if source := source_len(family):
            tokens, labels = tokens[:, : source + LENGTH], labels[:, source:]
            how = {**how, "decoder_input_ids": tokens[:, source:]}
            tokens = tokens[:, :source]
        logits = model(tokens, **how).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=-1
        )
        optimizer.zero_grad()
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        norm = float(torch.sqrt(sum((g**2).sum() for g in gradients)))
        for gradient in gradients:
            gradient *= min(1.0, CLIP / norm)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm)
    named = parts_of(family, model)
    return {
        "losses": losses,
        "gradient_norms": norms,
        "norms_after": {name: float(np.linalg.norm(p)) for name, p in named.items()},
        "shapes": {name: list(p.shape) for name, p in named.items()},
    }


@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_the_recorded_numbers_are_the_librarys(family):
    computed = train(family)
    if os.environ.get("ORRERY_RECORD"):
        known = recorded() if RECORDED.exists() else {}
        RECORDED.write_text(json.dumps({**known, family: computed}, indent=1, sort_keys=True))
    known = recorded()[family]
    assert known["shapes"] == computed["shapes"]
    # DeepSeek's routers compute in fp32, whatever the model is in (modeling_deepseek_v2 and _v3 of
    # the library), so their sums depend on the processor's kernels.
    near = 1e-7 if family.startswith("deepseek") else 1e-9
    assert computed["losses"] == pytest.approx(known["losses"], rel=near)
    assert computed["gradient_norms"] == pytest.approx(known["gradient_norms"], rel=near)
    assert computed["norms_after"] == pytest.approx(known["norms_after"], rel=near)
