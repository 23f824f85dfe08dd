"""This machine, or others' logs, as a cluster profile."""

from __future__ import annotations

import json

import orrery as orr
import pytest

# Of nccl-tests 2.13: one size of one operation on 8 GPUs of a machine.
LOG = """# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    41.20   25.45   44.54      0
"""


def test_a_machine_is_measured_into_a_profile_that_predicts(tmp_path):
    profile, seen = tmp_path / "here.json", []
    measured = orr.calibrate(
        budget="2 s", ranks=1, out=profile, progress=lambda done, of: seen.append((done, of))
    )
    assert seen
    assert measured["profile"] == str(profile)
    assert len(measured.to_frame()) == len(measured["curves"]) > 0
    assert json.loads(profile.read_text())["node"]
    run = orr.load("gpt-1rank", cluster=profile).simulate()
    assert run.step_time > 0


def test_a_folders_storage_is_measured_for_a_cluster(tmp_path):
    profile = tmp_path / "mine.json"
    measured = orr.calibrate(
        storage=tmp_path, cluster="dgx-h100 x 2", budget="3 s", out=profile
    )
    assert measured["curves"] == []
    cluster = json.loads(profile.read_text())
    assert cluster["nodes"] == 2
    assert cluster["storage"]["read"].endswith("B/s")
    run = orr.load("llama3-8b-8-h100", cluster=profile).replace({"/plan/data": None})
    assert run.replace({"/data": {"format": "text-bytes"}}).simulate().step_time > 0


def test_an_interrupted_calibration_without_a_profile_is_a_keyboard_interrupt():
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        orr.calibrate(budget="2 s", progress=interrupt)


def test_logs_are_imported(tmp_path):
    log = tmp_path / "all_reduce_perf.txt"
    log.write_text(LOG)
    imported = orr.calibrate(logs=log)
    assert imported["samples"]
    assert str(imported).startswith(str(log))


def test_a_wrong_argument_is_named():
    with pytest.raises(orr.InputError, match="^budget: expected a time of 1 s or more, found"):
        orr.calibrate(budget="soon")
    with pytest.raises(orr.InputError, match="^backend: expected cpu or cuda, found 'tpu'$"):
        orr.calibrate(backend="tpu")
