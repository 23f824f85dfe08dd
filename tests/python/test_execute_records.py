"""What a run leaves behind: MLflow's file store, and ranks that are started again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import orrery as orr
import pytest
from executing import DONE, PEER_FAILED, Running, execute, line, losses, needs_execute, outcome

pytestmark = needs_execute


def run_of(store: Path) -> Path:
    (found,) = [each for each in (store / "0").iterdir() if each.is_dir()]
    return found


def test_a_run_is_in_mlflows_file_store(model, tmp_path):
    environment = {**os.environ, "ORRERY_SECRET": "a secret of sixteen bytes"}
    store = tmp_path / "runs"
    answer = execute(model, "--steps", "3", "--mlflow", f"file://{store}", env=environment)
    run = run_of(store)
    points = [each.split() for each in (run / "metrics" / "loss").read_text().splitlines()]
    assert [int(each[2]) for each in points] == [1, 2, 3]
    assert [float(each[1]) for each in points] == pytest.approx(losses(answer))
    assert (run / "params" / "plan.zero").read_text() == "1"
    meta = dict(each.split(": ", 1) for each in (run / "meta.yaml").read_text().splitlines())
    assert json.loads(meta["status"]) == 3  # FINISHED
    assert json.loads(meta["run_id"]) == run.name
    written = b"".join(each.read_bytes() for each in store.rglob("*") if each.is_file())
    assert b"secret" not in written


def test_a_run_that_fails_is_failed_there(model, tmp_path):
    run = Running(model, "--mlflow", str(tmp_path))
    os.kill(run.pids[1], signal.SIGKILL)
    assert run.end()[0] == PEER_FAILED
    assert "status: 4" in (run_of(tmp_path) / "meta.yaml").read_text()


def test_a_tracking_server_is_refused(model):
    ran = outcome(line(model, "--mlflow", "http://host:5000"))
    assert ran.returncode == 2
    assert ran.stderr.startswith("--mlflow: expected a folder or file:///FOLDER, found 'http://")


def test_real_mlflow_reads_it(model, tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    orr.execute(model=str(model), plan="micro_batch=1,global_batch=2,seq_len=16", steps=2,
                mlflow=tmp_path)
    (run,) = tracking.MlflowClient(tracking_uri=tmp_path.as_uri()).search_runs(["0"])
    assert run.info.status == "FINISHED"
    assert set(run.data.metrics) == {"loss", "gradient_norm", "step_time_s", "tokens_per_s"}


def test_ranks_are_started_again_from_the_checkpoint(model, tmp_path):
    flags = ("--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "20", "--retries", "1")
    run = Running(model, *flags, steps=4000)
    os.kill(run.pids[1], signal.SIGKILL)
    out, error = run.process.communicate(timeout=60)
    said = "".join(run.lines) + error
    assert run.process.returncode == DONE, said
    assert "the ranks ended with exit code 71; starting them again from" in said
    whole = execute(model, "--ranks", "2", "--steps", "4000")
    assert f"{losses(whole)[-1]:.4f}" in out


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((), "--retries: needs --checkpoint DIR"),
        (("--checkpoint", "x", "--fabric", "threads"), "--retries: not with --fabric threads"),
    ],
)
def test_retries_that_have_no_effect_are_refused(model, flags, why):
    ran = outcome(line(model, "--retries", "2", *flags))
    assert ran.returncode == 2
    assert ran.stderr.startswith(why)
