#!/usr/bin/env python3
"""Do two builds answer alike, byte for byte? For changes that must not move a prediction.

Both commands are asked the same questions: every shipped scenario (the answer, the answer with
shared links and the Program), collectives on shared links, every published run, and random plans, a
fifth of which are legal. Refusals are compared word for word.

    tests/same_answers.py OLD/orrery build/orrery [--plans 1500] [--seed 1]

Prints each question whose answers differ, with the first line that does; exits 1 if any does.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = ROOT / "scenarios/validation/runs.csv"

#: Values of plan fields and how often each field is stated, in percent.
FIELDS = {
    "tensor": (60, [1, 2, 4, 8]),
    "pipeline": (50, [1, 2, 4, 8]),
    "context": (15, [2, 4]),
    "context_form": (8, ["all-gather", "ulysses", "contiguous"]),
    "expert": (30, [2, 4, 8]),
    "sequence": (30, ["true", "false"]),
    "virtual_stages": (15, [2, 4]),
    "schedule": (10, ["gpipe", "zb-h1", "zb-v", "interleaved-1f1b"]),
    "zero": (50, [0, 1, 2, 3]),
    "data_shard": (5, [2, 4]),
    "micro_batch": (40, [1, 2, 4]),
    "precision": (40, ["bf16", "fp8", "fp16", "mxfp8", "nvfp4", "fp8-current"]),
    "recompute": (40, ["none", "full", "selective"]),
    "recompute_layers": (8, [2]),
    "offload": (5, ["optimizer"]),
    "offload_layers": (5, [2]),
    "task": (20, ["lora", "sft", "qlora", "dpo"]),
    "lora_targets": (8, ["qkv", "qkv:projection:up:down"]),
    "optimizer": (5, ["muon"]),
    "moments": (5, ["bf16", "int8"]),
    "compression": (6, ["fp16", "int8", "top-k", "power-sgd"]),
    "overlap": (10, ["true", "false"]),
    "tensor_overlap": (8, ["false"]),
    "dispatcher": (8, ["deepep"]),
    "expert_overlap": (8, ["shared", "micro-batches"]),
    "capacity": (5, [1.25]),
    "imbalance": (8, [1.5]),
    "cuda_graphs": (8, ["true"]),
    "fused_cross_entropy": (5, ["true"]),
    "attention": (8, ["flash-2", "unfused", "cudnn"]),
    "embedding_counts": (5, ["true"]),
    "rank_order": (5, ["tp-cp-ep-pp-dp"]),
    "low_precision_attention": (4, ["true"]),
    "start_layers_bf16": (4, [1]),
}
CLUSTERS = ["dgx-h100 x 2", "dgx-h100 x 8", "dgx-a100-80gb x 4", "mi300x-8x x 2", "dgx-b200 x 4"]
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]


def names(command: str, what: str) -> list[str]:
    shown = subprocess.run([command, "show", what, "--json"], capture_output=True, text=True)
    shown = json.loads(shown.stdout)
    if isinstance(shown, dict):  # one of a version that names its documents
        shown = shown[f"{what}s" if what == "scenario" else what]
    return [each["name"] if isinstance(each, dict) else each for each in shown]


def questions(command: str, plans: int, seed: int) -> list[list[str]]:
    asked = [["validate", str(RUNS), "--json"]]
    for scenario in names(command, "scenario"):
        asked.append(["simulate", scenario, "--json"])
        asked.append(["simulate", scenario, "--network", "events", "--json"])
        asked.append(["show", "program", scenario])
    for cluster in CLUSTERS:
        for operation in COLLECTIVES:
            for network in ("events", "steps"):
                asked.append(["collective", "--cluster", cluster, "--op", operation])
                asked[-1] += ["--sizes", "1MiB,1GiB", "--network", network, "--json"]
    draw = random.Random(seed)
    models, stacks = names(command, "models"), names(command, "software")
    for _ in range(plans):
        plan = {
            key: draw.choice(values)
            for key, (chance, values) in FIELDS.items()
            if draw.randrange(100) < chance
        }
        parts = ["--model", draw.choice(models), "--cluster", draw.choice(CLUSTERS)]
        parts += ["--software", draw.choice(stacks)]
        if plan:
            parts += ["--plan", ",".join(f"{key}={value}" for key, value in plan.items())]
        simulate = ["simulate", "--json"]
        what = draw.choice([simulate, [*simulate, "--network", "events"], ["show", "program"]])
        asked.append(what + parts)
    return asked


def unnamed(text: str) -> str:
    """A document without what it was made with."""
    try:
        document = json.loads(text)
    except ValueError:
        return text
    for key in ("orrery", "command", "inputs", "changes"):
        document.pop(key, None)
    return json.dumps(document, indent=2)


def answer(command: str, asked: list[str]) -> str:
    done = subprocess.run([command, *asked], capture_output=True, text=True, cwd=ROOT)
    stdout = unnamed(done.stdout) if "--json" in asked else done.stdout
    return f"exit {done.returncode}\n{stdout}\n{done.stderr}"


def first_difference(old: str, new: str) -> str:
    pairs = zip(old.splitlines() + [""], new.splitlines() + [""])
    was, is_now = next(((a, b) for a, b in pairs if a != b), ("", "more lines"))
    start = next((i for i, (a, b) in enumerate(zip(was, is_now)) if a != b), 0)
    window = slice(max(0, start - 60), start + 100)
    return f"    was {was[window]}\n    is  {is_now[window]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--plans", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    old, new = os.path.abspath(given.old), os.path.abspath(given.new)
    asked = questions(old, given.plans, given.seed)

    def compare(each: list[str]) -> tuple[bool, str]:
        was, is_now = answer(old, each), answer(new, each)
        return was.startswith("exit 0"), "" if was == is_now else first_difference(was, is_now)

    answered = different = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for each, (good, difference) in zip(asked, pool.map(compare, asked)):
            answered += good
            if difference:
                different += 1
                print("orrery " + " ".join(each) + "\n" + difference)
    print(f"{len(asked)} questions, {answered} answered and the rest refused; {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
