"""How the tests run `orrery execute`: the command, a small model, and what a run answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# A step of it takes milliseconds on one core.
MODEL = {
    "format": "orrery-model",
    "name": "tiny",
    "source": "made for tests",
    "family": "llama",
    "layers": 2,
    "hidden": 32,
    "heads": 4,
    "kv_heads": 4,
    "ffn_hidden": 64,
    "vocab": 64,
    "max_positions": 32,
}
PLAN = "tensor=1,pipeline=1,zero=1,micro_batch=1,global_batch=4,seq_len=16,precision=fp32"
DONE, PEER_FAILED, LOCAL_FAILURE, REQUEUE, DEADLINE, INTERRUPTED = 0, 71, 72, 75, 124, 130
SECONDS = 20  # no run of these, however it ends, takes longer
SCENARIOS = Path(__file__).parents[2] / "scenarios" / "local"


def found_command() -> str | None:
    beside = Path(sys.executable).parent / "orrery"
    told = os.environ.get("ORRERY_COMMAND")
    return told or (str(beside) if beside.exists() else shutil.which("orrery"))


COMMAND = found_command()


def lacks_execute() -> bool:
    if COMMAND is None:
        return True
    asked = subprocess.run([COMMAND, "execute", "--help"], capture_output=True, check=False)
    return asked.returncode != 0


needs_execute = pytest.mark.skipif(lacks_execute(), reason="there is no orrery with execute")


def write_model(path: Path, **changes) -> Path:
    path.write_text(json.dumps({**MODEL, **changes}))
    return path


def line(model: Path, *flags: str, plan: str = PLAN) -> list[str]:
    return [COMMAND, "execute", "--model", str(model), "--plan", plan, *flags]


def outcome(command: list[str], **how) -> subprocess.CompletedProcess:
    """However it ends."""
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, **how
    )


def answer_of(command: list[str], **how) -> dict:
    """What a command that must succeed prints as JSON."""
    ran = outcome(command, **how)
    assert ran.returncode == DONE, ran.stderr
    return json.loads(ran.stdout)


def execute(model: Path, *flags: str, plan: str = PLAN, **how) -> dict:
    return answer_of(line(model, "--json", *flags, plan=plan), **how)


def losses(answer: dict) -> list[float]:
    return [step["loss"] for step in answer["steps"]]


def newest_checkpoint(folder: Path) -> int:
    """Steps of the newest whole one: what has no manifest is none."""
    return max(int(each.parent.name.split("-")[1]) for each in folder.glob("step-*/manifest.json"))
