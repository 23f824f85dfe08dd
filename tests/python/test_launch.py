"""`orrery.export`: launch files, what a tool refuses, and what its files cannot say."""

from __future__ import annotations

import orrery as orr
import pytest


def test_a_plan_becomes_launch_files(tmp_path):
    launch = orr.export("llama3-70b-64-h100", to=["megatron", "slurm"])
    assert set(launch.files) == {"megatron.sh", "job.sbatch"}
    assert "--tensor-model-parallel-size 4" in launch.files["megatron.sh"]
    assert launch.refused == []
    assert str(launch).startswith("==> megatron.sh <==\n")
    paths = launch.save(tmp_path / "launch")
    assert [open(path).read() for path in paths] == list(launch.files.values())
    assert launch.json["command"] == "export"
    assert launch.json["inputs"]["to"] == ["megatron", "slurm"]


def test_what_a_tool_cannot_do_is_refused_by_name(tmp_path):
    launch = orr.export(orr.load("llama3-70b-64-h100"), to="deepspeed")
    assert launch.files == {}
    assert "tensor=4" in [each["option"] for each in launch.refused]
    with pytest.raises(ValueError, match="^no files: tensor=4"):
        launch.save(tmp_path)
    with pytest.raises(orr.InputError, match="unknown 'megatrn'; is it 'megatron'"):
        orr.export("llama3-70b-64-h100", to="megatrn")
