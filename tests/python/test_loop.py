"""Measure this machine, predict, run, compare: the loop of executor/README.md, in its commands.

Results are asserted. Times are printed and asserted only to be of the same order: who runs the
tests may share the machine.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from executing import COMMAND, SECONDS, needs_execute

pytestmark = needs_execute

BUDGET = "8s"
SAME_ORDER = 10  # how far a shared machine may be from the quiet one that is predicted
MEMORY = 0.03


def answer(*arguments: str) -> dict:
    ran = subprocess.run(
        [COMMAND, *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "machine.json"
    made = answer("calibrate", "--backend", "cpu", "--budget", BUDGET, "--out", str(path))
    assert made["profile"] == str(path)
    assert all(curve["points"] > 0 for curve in made["curves"])
    assert {"gemm fp32", "adam"} <= {curve["name"] for curve in made["curves"]}
    return path


@pytest.mark.parametrize("scenario", ["gpt-1rank", "gpt-dp2"])
def test_what_was_measured_predicts_what_is_run(
    scenario: str, profile: Path, tmp_path: Path
) -> None:
    predicted, measured = tmp_path / "predicted.json", tmp_path / "measured.json"
    question = (scenario, "--cluster", str(profile))
    trace = ("--trace-detail", "operations", "--trace")
    forecast = answer("simulate", *question, *trace, str(predicted))
    run = answer("execute", *question, "--steps", "3", *trace, str(measured))
    joined = answer("compare", str(predicted), str(measured))

    assert joined["unmatched"] == 0
    assert run["predicted_step_time_s"] == pytest.approx(forecast["step_time_s"])
    assert run["peak_memory_bytes"] == pytest.approx(run["predicted_peak_memory_bytes"], rel=MEMORY)
    ratio = run["predicted_step_time_s"] / run["median_step_time_s"]
    print(f"{scenario}: predicted / measured {ratio:.3f}")
    assert 1 / SAME_ORDER < ratio < SAME_ORDER
    worked = {each["class"] for each in joined["classes"] if each["measured_s"] > 0}
    assert {"gemm", "attention", "memory_bound", "optimizer"} <= worked
