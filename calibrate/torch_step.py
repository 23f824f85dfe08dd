"""A PyTorch reference for `orrery execute`: times the training step of a Llama, with AdamW, on the
shape of a scenario file. Prints a line of JSON when it begins and one for each variant as soon as
that is done; needs nothing but torch.

Variants: `eager` and `compiled` keep parameters, gradients and moments in bf16; with `-fp32` after
it a variant keeps fp32 master weights and moments and adds the micro-batches' gradients up in fp32,
as Orrery does."""

import argparse
import contextlib
import json
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

VARIANTS = ("eager", "eager-fp32", "compiled", "compiled-fp32")
SCENARIO = Path(__file__).resolve().parent.parent / "scenarios/local/llama-1b-1gpu.json"


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


def rotate(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Layer(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.heads = of.heads
        self.norms = nn.ModuleList(Norm(of.hidden) for _ in range(2))
        self.qkv = nn.Linear(of.hidden, 3 * of.hidden, bias=False)
        self.out = nn.Linear(of.hidden, of.hidden, bias=False)
        self.up = nn.Linear(of.hidden, 2 * of.ffn_hidden, bias=False)
        self.down = nn.Linear(of.ffn_hidden, of.hidden, bias=False)

    def forward(self, x, cosine, sine):
        batch, seq, hidden = x.shape
        shape = (batch, seq, self.heads, hidden // self.heads)
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(context.transpose(1, 2).reshape(batch, seq, hidden))
        gate, up = self.up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.embedding = nn.Embedding(of.vocab, of.hidden)
        self.layers = nn.ModuleList(Layer(of) for _ in range(of.layers))
        self.norm = Norm(of.hidden)
        self.head = nn.Linear(of.hidden, of.vocab, bias=False)
        half = of.hidden // of.heads // 2
        angles = torch.outer(
            torch.arange(of.seq).float(), 10000.0 ** (-torch.arange(half).float() / half)
        )
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


class NarrowStates:
    """All states in the parameters' own format; backward accumulates gradients in place."""

    def __init__(self, parameters, fused):
        self.parameters = parameters
        self.optimizer = torch.optim.AdamW(parameters, lr=3e-4, fused=fused)

    def take_gradients(self):
        pass

    def step(self):
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class WideStates:
    """fp32 master weights, moments and gradient sums; parameters are the rounded masters."""

    def __init__(self, parameters, fused):
        self.parameters = parameters
        self.masters = [each.detach().float() for each in parameters]
        for each in self.masters:
            each.grad = torch.zeros_like(each)
        self.optimizer = torch.optim.AdamW(self.masters, lr=3e-4, fused=fused)

    def take_gradients(self):
        sums = [each.grad for each in self.masters]
        torch._foreach_add_(sums, [each.grad for each in self.parameters])
        for each in self.parameters:
            each.grad = None

    def step(self):
        nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.masters)
        torch._foreach_zero_([each.grad for each in self.masters])


class GpuTimer:
    """Seconds between two CUDA events."""

    def __enter__(self):
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.begin.record()
        return self

    def __exit__(self, *_):
        self.end.record()
        torch.cuda.synchronize()
        self.seconds = self.begin.elapsed_time(self.end) / 1e3


class HostTimer:
    def __enter__(self):
        self.begin = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.begin


def measure(of, variant, device):
    """Step times and the loss of each step; the first ones warm up."""
    torch.manual_seed(1)
    on_gpu = device == "cuda"
    model = Llama(of).to(device, torch.bfloat16)
    states = (WideStates if variant.endswith("-fp32") else NarrowStates)(
        list(model.parameters()), on_gpu
    )
    loss_of = torch.compile(model) if variant.startswith("compiled") else model
    shape = (of.micro_batches, of.micro_batch, of.seq)
    tokens = torch.randint(of.vocab, shape, device=device)
    times, losses = [], []
    for _ in range(of.warm_up + of.steps):
        total = torch.zeros((), device=device)
        with (GpuTimer if on_gpu else HostTimer)() as timer:
            for each in tokens:
                loss = loss_of(each, each) / of.micro_batches
                loss.backward()
                states.take_gradients()
                total += loss.detach()
            states.step()
        times.append(timer.seconds)
        losses.append(total.item())
    return times[of.warm_up :], losses


def shape_of(scenario, changes):
    """Model and batch sizes of a scenario's Llama."""
    model, plan = scenario["model"], scenario["plan"]
    of = {key: model[key] for key in ("layers", "hidden", "heads", "ffn_hidden", "vocab")}
    of["seq"], of["micro_batch"] = plan["seq_len"], plan["micro_batch"]
    of["micro_batches"] = plan["global_batch"] // plan["micro_batch"]
    of |= {"warm_up": 3, "steps": 8}
    return SimpleNamespace(**(of | changes))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", type=Path, default=SCENARIO)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--warm-up", type=int)
    parser.add_argument("--steps", type=int)
    asked = parser.parse_args()
    changes = {name: getattr(asked, name) for name in ("warm_up", "steps")}
    changes = {name: value for name, value in changes.items() if value is not None}
    of = shape_of(json.loads(asked.scenario.read_text()), changes)
    name = torch.cuda.get_device_name() if asked.device == "cuda" else "the processor"
    print(json.dumps({"torch": torch.__version__, "device": name, "model": vars(of)}), flush=True)
    failed = []
    for variant in asked.variants:
        found, began = {"variant": variant}, time.time()
        try:
            times, losses = measure(of, variant, asked.device)
            found["median_step_time_s"] = statistics.median(times)
            found["step_times_s"], found["losses"] = times, losses
            if asked.device == "cuda":
                found["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        except Exception as error:  # no compiler, or out of memory: the other variants still run
            found["failed"] = (str(error).splitlines() or [type(error).__name__])[0][:200]
            failed.append(f"{variant}: {found['failed']}")
        found["took_s"] = round(time.time() - began, 1)
        print(json.dumps(found), flush=True)
        with contextlib.suppress(Exception):
            torch.compiler.reset()
        if asked.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    if failed:
        sys.exit("; ".join(failed))


if __name__ == "__main__":
    main()
