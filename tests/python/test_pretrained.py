"""Runs that begin with a checkpoint of the transformers library, against what that library itself
computed (pretrained.json, which test_transformers.py makes and compares live)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import orrery as orr
import pytest
from pretrained import (
    CONFIGS,
    PLAN,
    STEPS,
    TEXT,
    read_safetensors,
    recorded,
    weights,
    write_safetensors,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.txt").write_text(TEXT)
    return tmp_path


def checkpoint(folder: Path, family: str) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIGS[family]))
    tensors = {name: weights(name, shape) for name, shape in recorded()[family]["shapes"].items()}
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts")
CUTS_OF_EXPERTS = {
    "": "",
    "tensor=2": "tensor=2,sequence=true",
    "pipeline=2": "pipeline=2",
    "data=2,zero=1": "data=2,expert=2,zero=1",
}


# In these the library computes norms, sums or recurrences in fp32 whatever the model's format.
PARTLY_IN_FP32 = {
    "exaone4",
    "gemma",
    "gemma2",
    "gemma3",
    "gpt_oss",
    "nemotron_h",
    "qwen3_next",
}


def cut_of(family: str, cut: str) -> str:
    """With experts: room for all tokens to choose the same ones."""
    config = CONFIGS[family]
    met = config.get("num_experts_per_tok")
    if met is None:
        return cut
    experts = next(config[key] for key in EXPERT_COUNTS if key in config)
    whole = "expert_tensor=1" if family == "gpt_oss" and "tensor" in cut else ""  # biases
    return ",".join(filter(None, (f"imbalance={experts / met}", CUTS_OF_EXPERTS[cut], whole)))


def train(folder: Path, plan: str = PLAN, **how) -> orr.Execution:
    return orr.execute(
        model=folder / "config.json",
        plan=plan,
        **{"data": folder / "data.txt", "steps": STEPS, "progress": False, **how},
    )


@pytest.mark.parametrize("family", sorted(CONFIGS))
@pytest.mark.parametrize("cut", ["", "tensor=2", "pipeline=2", "data=2,zero=1"])
def test_a_model_learns_as_in_the_transformers_library(folder, family, cut):
    if cut == "pipeline=2" and "source_len" in CONFIGS[family]:
        pytest.skip("a pipeline is not simulated with cross-attention")
    exported = folder / "after.safetensors"
    parts = (PLAN.replace("micro_batch=2", "micro_batch=1"), cut_of(family, cut))
    plan = ",".join(filter(None, parts))
    steps: list[orr.Step] = []
    measured = train(
        checkpoint(folder, family), plan, init=folder, export=exported, on_step=steps.append
    )
    known = recorded()[family]
    # That library rounds the frequencies of rotary positions to fp32.
    partly = family in PARTLY_IN_FP32
    assert measured.losses == pytest.approx(known["losses"], rel=1e-6 if partly else 1e-7)
    norms = [step.gradient_norm for step in steps]
    assert norms == pytest.approx(known["gradient_norms"], rel=1e-5 if partly else 1e-6)
    after = read_safetensors(exported)
    assert set(after) == set(known["shapes"])
    for name, norm in known["norms_after"].items():
        assert np.linalg.norm(after[name]) == pytest.approx(norm, rel=1e-5), name


def test_what_is_exported_can_be_begun_with(folder):
    exported = folder / "after.safetensors"
    plan = PLAN.replace("fp64", "fp32")
    train(checkpoint(folder, "qwen3"), plan, init=folder, export=exported, steps=1)
    again = folder / "again.safetensors"
    train(folder, plan, init=exported, export=again, steps=1)
    first, second = read_safetensors(exported), read_safetensors(again)
    assert str(next(iter(first.values())).dtype) == "float32"
    moved = max(np.abs(first[name] - second[name]).max() for name in first)
    assert 0 < moved < 1e-3  # one step of 3e-4


def test_a_run_goes_on_with_the_biases_that_routers_began_with(folder):
    checkpoint(folder, "deepseek_v3")
    plan = f"{PLAN},imbalance={8 / 3}"
    whole = train(folder, plan, init=folder)
    written = folder / "checkpoint"
    first = train(folder, plan, init=folder, steps=1, checkpoint=written)
    rest = train(folder, plan, init=folder, checkpoint=written)
    assert first.losses + rest.losses == whole.losses
    # A checkpoint has none of what is not trained.
    with pytest.raises(orr.InputError, match="init"):
        train(folder, plan, checkpoint=written, steps=STEPS + 1)


def test_half_precision_is_read(folder):
    checkpoint(folder, "llama")
    exact = train(folder, init=folder, steps=1).losses
    names = recorded()["llama"]["shapes"]
    halves = {name: weights(name, shape).astype(np.float16) for name, shape in names.items()}
    write_safetensors(folder / "half.safetensors", halves)
    rounded = train(folder, init=folder / "half.safetensors", steps=1).losses
    assert rounded != exact
    assert rounded == pytest.approx(exact, rel=1e-3)


def test_files_may_be_listed_in_an_index(folder):
    checkpoint(folder, "gpt2")
    whole = train(folder, init=folder, steps=1).losses
    shapes = recorded()["gpt2"]["shapes"]
    files = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(shapes)}
    (folder / "model.safetensors").unlink()
    for file in sorted(set(files.values())):
        held = {n: weights(n, s) for n, s in shapes.items() if files[n] == file}
        write_safetensors(folder / file, held)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    assert train(folder, init=folder, steps=1).losses == whole
    assert train(folder, init=index, steps=1).losses == whole


def refusal(folder: Path, **how) -> str:
    with pytest.raises((orr.InputError, orr.RunFailure)) as raised:
        train(folder, steps=1, **how)
    return str(raised.value)


def test_a_checkpoint_that_lacks_something_is_refused(folder):
    checkpoint(folder, "llama")
    file = folder / "model.safetensors"
    tensors = read_safetensors(file)
    norm = tensors.pop("model.norm.weight")
    write_safetensors(file, tensors)
    assert "has no tensor model.norm.weight" in refusal(folder, init=file)
    write_safetensors(file, {**tensors, "model.norm.weight": norm[:7]})
    assert "model.norm.weight is [7], in the model it is [32]" in refusal(folder, init=file)
    file.write_bytes(file.read_bytes()[:1000])
    assert str(file) in refusal(folder, init=file)
    file.write_bytes(b"12345678 not one")
    assert "is not a safetensors file" in refusal(folder, init=file)
    assert "none.safetensors: cannot be read: No such file" in refusal(
        folder, init=folder / "none.safetensors"
    )


def test_a_model_of_our_own_has_no_names_in_that_library(folder, model):
    (folder / "config.json").write_text(Path(model).read_text())
    known = (
        "known: bart bert deepseek_v2 deepseek_v3 exaone4 gemma gemma2 gemma3 gpt2 gpt_neox "
        "gpt_oss kimi_k2 llama mbart mistral mixtral nemotron_h qwen2 qwen3 qwen3_moe qwen3_next"
    )
    assert known in refusal(folder, data=(), export=folder / "after.safetensors")
    assert not (folder / "after.safetensors").exists()


def test_positions_that_are_scaled_otherwise_are_refused(folder):
    checkpoint(folder, "llama")
    scaled = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    config = {**CONFIGS["llama"], "rope_parameters": scaled}
    (folder / "config.json").write_text(json.dumps(config))
    assert "rotary positions scaled by 'dynamic'" in refusal(folder)
