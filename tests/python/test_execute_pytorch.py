"""The executor against PyTorch: the same model written again there, from a checkpoint's parameters,
gives the same loss, the same gradient of every tensor, and the same parameters after AdamW."""

from __future__ import annotations

import json
import math
from array import array
from pathlib import Path

import pytest
from executing import execute, needs_execute, write_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional, FP64 = torch.nn.functional, torch.float64

pytestmark = needs_execute

HEADS, HIDDEN, LAYERS, VOCAB = 4, 32, 2, 256
SEQUENCE, BATCH = 16, 4
GPT = {"family": "gpt", "ffn_hidden": 128, "vocab": VOCAB, "kv_heads": HEADS}
LLAMA = {"family": "llama", "ffn_hidden": 80, "vocab": VOCAB, "kv_heads": 2}
PLAN = f"micro_batch=1,global_batch={BATCH},seq_len={SEQUENCE},precision=fp64"
CUTS = {
    "one rank": "tensor=1,pipeline=1,data=1",
    "stages of tensor groups": "tensor=2,pipeline=2,schedule=1f1b,data=1",
    "sharded data ranks of tensor groups": "tensor=2,sequence=true,pipeline=1,data=2,zero=3",
}
# Sums in another order, in fp64: some 1e-14; a term forgotten shows at 1e-3 or more.
CLOSE = 1e-9
PARAMETER, FIRST_MOMENT, SECOND_MOMENT = range(3)
# What execute trains with.
RATE, BETA1, BETA2, EPSILON, DECAY, CLIP = 3e-4, 0.9, 0.95, 1e-8, 0.1, 1.0

Tensors = dict[str, torch.Tensor]


def read_checkpoint(folder: Path) -> list[Tensors]:
    """Parameters and moments by the names of the uncut model, whichever rank wrote them."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["element"] == "fp64"
    shapes = manifest["tensors"]
    state: list[Tensors] = [
        {
            each["name"]: torch.full([each["rows"] * each["columns"]], math.nan, dtype=FP64)
            for each in shapes
        }
        for _ in range(3)
    ]
    for part in manifest["parts"]:
        elements = array("d", (folder / (part["name"] + ".bin")).read_bytes())
        for tile in json.loads((folder / (part["name"] + ".json")).read_text())["tiles"]:
            tensor = state[tile["kind"]][shapes[tile["tensor"]]["name"]]
            for row in range(tile["rows"]):
                first = tile["first"] + row * tile["stride"]
                at = tile["at"] // 8 + row * tile["count"]
                values = elements[at : at + tile["count"]]
                tensor[first : first + tile["count"]] = torch.tensor(values, dtype=FP64)
    for kind in state:
        for each in shapes:
            kind[each["name"]] = kind[each["name"]].view(each["rows"], each["columns"])
            assert not kind[each["name"]].isnan().any()
    return state


def samples(text: bytes, step: int) -> torch.Tensor:
    """Sample i of step s is number n = s batch + i, and begins at byte n sequence: [batch, sequence
    + 1], of which the last is only a label."""
    rows = []
    for number in range(step * BATCH, (step + 1) * BATCH):
        first = number * SEQUENCE
        rows.append([text[at % len(text)] for at in range(first, first + SEQUENCE + 1)])
    return torch.tensor(rows)


def linear(x: torch.Tensor, p: Tensors, name: str) -> torch.Tensor:
    """Weights are [in, out]."""
    return x @ p[name + ".weight"] + p.get(name + ".bias", 0.0)


def norm(x: torch.Tensor, p: Tensors, name: str) -> torch.Tensor:
    weight, bias = p[name + ".weight"].view(-1), p.get(name + ".bias")
    if bias is not None:
        return functional.layer_norm(x, (HIDDEN,), weight, bias.view(-1), eps=1e-5)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotated(x: torch.Tensor) -> torch.Tensor:
    """[batch, heads, sequence, d]: (x_i, x_{i+d/2}) turns by position 10000^(-2 i / d)."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(half, dtype=FP64) / half)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=FP64), frequency)
    pairs = torch.complex(x[..., :half], x[..., half:])
    turned = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)


def attention(x: torch.Tensor, p: Tensors, layer: str, model: dict) -> torch.Tensor:
    """Columns of qkv are all queries, all keys, all values, head by head."""
    batch, sequence, _ = x.shape
    d, kv_heads = HIDDEN // HEADS, model["kv_heads"]
    columns = linear(x, p, layer + "qkv").split([HEADS * d, kv_heads * d, kv_heads * d], -1)
    q, k, v = (each.view(batch, sequence, -1, d).transpose(1, 2) for each in columns)
    if model["family"] == "llama":
        q, k = rotated(q), rotated(k)
    k, v = (each.repeat_interleave(HEADS // kv_heads, 1) for each in (k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(d)
    future = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
    seen = scores.masked_fill(future, -math.inf).softmax(-1) @ v
    seen = seen.transpose(1, 2).reshape(batch, sequence, HIDDEN)
    return linear(seen, p, layer + "projection") + p.get(layer + "attention.add.bias", 0.0)


def mlp(x: torch.Tensor, p: Tensors, layer: str, model: dict) -> torch.Tensor:
    up = linear(x, p, layer + "up")
    if model["family"] == "llama":
        gate, up = up.chunk(2, -1)
        return linear(functional.silu(gate) * up, p, layer + "down")
    inner = functional.gelu(up, approximate="tanh")
    return linear(inner, p, layer + "down") + p[layer + "mlp.add.bias"]


def loss_of(p: Tensors, tokens: torch.Tensor, model: dict) -> torch.Tensor:
    """Mean over all tokens of -log p(next token)."""
    x = p["embedding.weight"][tokens[:, :-1]]
    if model["family"] == "gpt":
        x = x + p["positions.weight"][:SEQUENCE]
    for layer in (f"layer{i}." for i in range(LAYERS)):
        x = x + attention(norm(x, p, layer + "norm1"), p, layer, model)
        x = x + mlp(norm(x, p, layer + "norm2"), p, layer, model)
    head = p["embedding.weight"] if model["family"] == "gpt" else p["head.weight"]
    logits = norm(x, p, "final_norm") @ head.T
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    return ((found - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("model", [GPT, LLAMA], ids=["gpt", "llama"])
def test_pytorch_takes_the_same_step(tmp_path, model, cut):
    text = b"It was the best of times, it was the worst of times, it was the age of wisdom; " * 3
    (tmp_path / "text").write_bytes(text)
    answer = execute(
        write_model(tmp_path / "model.json", **model),
        *("--steps", "2", "--data", str(tmp_path / "text")),
        *("--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "1"),
        plan=f"{PLAN},{cut}",
    )
    before = read_checkpoint(tmp_path / "kept" / "step-0000000001")
    after = read_checkpoint(tmp_path / "kept" / "step-0000000002")

    parameters = {name: each.clone().requires_grad_() for name, each in before[PARAMETER].items()}
    loss = loss_of(parameters, samples(text, step=1), model)
    loss.backward()
    assert answer["steps"][1]["loss"] == pytest.approx(loss.item(), rel=1e-12)
    length = math.sqrt(sum(each.grad.pow(2).sum().item() for each in parameters.values()))
    assert answer["steps"][1]["gradient_norm"] == pytest.approx(length, rel=CLOSE)

    # m' = beta1 m + (1 - beta1) clip g, solved for the gradient.
    clip = min(1.0, CLIP / length)
    for name, each in parameters.items():
        step = after[FIRST_MOMENT][name] - BETA1 * before[FIRST_MOMENT][name]
        assert distance(step / (1 - BETA1) / clip, each.grad) < CLOSE, name

    optimizer = torch.optim.AdamW(
        parameters.values(), lr=RATE, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY
    )
    for name, each in parameters.items():
        each.grad *= clip
        optimizer.state[each] = {
            "step": torch.tensor(1.0),
            "exp_avg": before[FIRST_MOMENT][name].clone(),
            "exp_avg_sq": before[SECOND_MOMENT][name].clone(),
        }
    optimizer.step()
    for name, each in parameters.items():
        moved = after[PARAMETER][name] - before[PARAMETER][name]
        assert distance(moved, each.detach() - before[PARAMETER][name]) < CLOSE, name
        assert distance(after[SECOND_MOMENT][name], optimizer.state[each]["exp_avg_sq"]) < CLOSE
