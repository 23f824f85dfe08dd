"""The yardstick that PyTorch is for an executed plan, on a model so small that a processor runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
SCRIPT = Path(__file__).resolve().parents[2] / "calibrate" / "torch_step.py"
SCENARIO = {
    "model": {"layers": 2, "hidden": 32, "heads": 2, "ffn_hidden": 64, "vocab": 64},
    "plan": {"micro_batch": 2, "global_batch": 4, "seq_len": 16},
}


def lines_of(tmp_path: Path, *arguments: str) -> list[dict]:
    scenario = tmp_path / "toy.json"
    scenario.write_text(json.dumps(SCENARIO))
    command = [sys.executable, str(SCRIPT), "--scenario", str(scenario), "--device", "cpu"]
    ran = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_wide_states_learn_as_narrow_ones_but_for_rounding(tmp_path: Path) -> None:
    first, narrow, wide = lines_of(
        tmp_path, "--variants", "eager", "eager-fp32", "--steps", "5", "--warm-up", "1"
    )
    assert first["model"]["micro_batches"] == 2
    assert [narrow["variant"], wide["variant"]] == ["eager", "eager-fp32"]
    assert len(narrow["step_times_s"]) == 5 and narrow["median_step_time_s"] > 0
    # bf16 keeps 8 bits: of a loss near ln 64 = 4.2 what rounding moves is some hundredths.
    assert narrow["losses"] == pytest.approx(wide["losses"], abs=0.05)
    assert narrow["losses"] != wide["losses"]
    assert wide["losses"][-1] < wide["losses"][0] - 0.02
