"""How the tests run `orrery execute`: the command, a small model, and what a run answers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
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
DONE, PEER_FAILED, OUTPUT_FAILED, REQUEUE, DEADLINE, INTERRUPTED = 0, 71, 74, 75, 124, 130
TERMINATED = 143
SECONDS = 60  # no run of these, however it ends, takes longer, on a busy machine either
SOON = 20  # s: what ends by itself, and not because of SECONDS or of a stall
SCENARIOS = Path(__file__).parents[2] / "scenarios" / "local"


def found_command() -> str | None:
    installed = Path(sys.executable).parent / "orrery"
    named = os.environ.get("ORRERY_COMMAND")
    return named or (str(installed) if installed.exists() else shutil.which("orrery"))


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


def newest_checkpoint(folder: Path) -> int | None:
    """Steps of the newest whole one: what has no manifest is none."""
    manifests = folder.glob("step-*/manifest.json")
    return max((int(each.parent.name.split("-")[1]) for each in manifests), default=None)


def children(parent: int) -> list[int]:
    """Ranks, in the order of their numbers."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) != parent:
                continue
            for variable in (entry / "environ").read_bytes().split(b"\0"):
                if variable.startswith(b"ORRERY_RANK="):
                    found[int(variable.split(b"=")[1])] = int(entry.name)
        except (OSError, IndexError):
            continue
    return [found[rank] for rank in sorted(found)]


class Running:
    """A run that would go on for ever, once it is under way."""

    def __init__(
        self,
        model: Path,
        *flags: str,
        ranks: int = 2,
        plan: str = PLAN,
        steps: int = 100000000,
        **how,
    ):
        self.ranks = ranks
        self.process = subprocess.Popen(
            line(model, "--steps", str(steps), "--ranks", str(ranks), *flags, plan=plan),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )
        self.lines = []
        for text in self.process.stderr:
            self.lines.append(text)
            if text.startswith("step "):
                break
        self.pids = children(self.process.pid)
        assert len(self.pids) == (ranks if ranks > 1 else 0)

    def end(self) -> tuple[int, str, float]:
        """Exit code, what it said, and how long it took; nothing of it may be left."""
        begin = time.monotonic()
        _, error = self.process.communicate(timeout=SECONDS)
        seconds = time.monotonic() - begin
        for pid in self.pids:
            assert not Path(f"/proc/{pid}").exists()
        return self.process.returncode, "".join(self.lines) + error, seconds


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
