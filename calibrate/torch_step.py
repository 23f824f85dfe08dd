"""A yardstick beside `orrery execute`: the same Llama's training step by PyTorch, in bf16 with
AdamW, eager and compiled. Prints one JSON object; needs nothing but torch and a GPU."""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)
        return (x.float() * scale).to(x.dtype) * self.weight


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
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
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


def step_times(of, compiled):
    """Seconds of each step, by events of the GPU."""
    torch.manual_seed(1)
    model = Llama(of).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loss_of = torch.compile(model) if compiled else model
    tokens = torch.randint(of.vocab, (of.micro_batches, of.micro_batch, of.seq), device="cuda")
    times = []
    for _ in range(of.warm_up + of.steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for each in tokens:
            (loss_of(each, each) / of.micro_batches).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return times[of.warm_up :]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    defaults = {"layers": 24, "hidden": 2048, "heads": 16, "ffn_hidden": 5504, "vocab": 32000}
    defaults |= {"seq": 2048, "micro_batch": 4, "micro_batches": 4, "warm_up": 3, "steps": 8}
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    of = parser.parse_args()
    found = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "model": vars(of)}
    for name, compiled in (("eager", False), ("compiled", True)):
        began = time.time()
        try:
            times = step_times(of, compiled)
            found[name] = {"median_step_time_s": statistics.median(times), "step_times_s": times}
        except Exception as error:  # no compiler, no room: the other way still says something
            found[name] = {"failed": str(error).splitlines()[0][:200]}
        found[name]["took_s"] = round(time.time() - began, 1)
        torch.cuda.empty_cache()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
