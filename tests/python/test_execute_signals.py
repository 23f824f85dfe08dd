"""How a run answers signals, and what of its work is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from executing import (
    COMMAND,
    INTERRUPTED,
    OUTPUT_FAILED,
    PEER_FAILED,
    REQUEUE,
    SOON,
    TERMINATED,
    Running,
    execute,
    free_port,
    line,
    losses,
    needs_execute,
    newest_checkpoint,
    outcome,
)

pytestmark = needs_execute


def goes_on(model: Path, folder: Path, *flags: str) -> None:
    """The same command gives the losses of a run that was not interrupted."""
    newest = newest_checkpoint(folder)
    steps = str(newest + 2)
    again = execute(model, "--steps", steps, "--checkpoint", str(folder), *flags)
    assert again["resumed_from_step"] == newest
    whole = losses(execute(model, "--steps", steps, *flags))
    assert losses(again) == whole[newest:]


@pytest.mark.parametrize(
    ("signalled", "expected"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, REQUEUE)]
)
def test_the_first_signal_leaves_a_checkpoint(model, tmp_path, signalled, expected):
    folder = tmp_path / "checkpoint"
    run = Running(model, "--checkpoint", str(folder))
    assert newest_checkpoint(folder) is None  # by default none is written so early
    run.process.send_signal(signalled)
    code, error, seconds = run.end()
    assert code == expected
    assert seconds < SOON
    assert "a checkpoint was written after" in error
    assert "lost" not in error
    goes_on(model, folder, "--ranks", "2")


def test_a_terminal_that_signals_the_whole_group_asks_once(model, tmp_path):
    """Ctrl-C reaches parent and ranks, and the parent passes it on: still the first one."""
    folder = tmp_path / "checkpoint"
    run = Running(model, "--checkpoint", str(folder), start_new_session=True)
    os.killpg(run.process.pid, signal.SIGINT)
    code, error, _ = run.end()
    assert code == INTERRUPTED
    assert "a checkpoint was written after" in error


def test_the_second_signal_leaves_at_once_and_says_what_is_lost(model, tmp_path):
    folder = tmp_path / "checkpoint"
    run = Running(model, "--checkpoint", str(folder))
    os.kill(run.pids[1], signal.SIGSTOP)  # no step comes to its end
    time.sleep(0.2)
    run.process.send_signal(signal.SIGINT)
    time.sleep(1)  # the first one is heard
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    os.kill(run.pids[1], signal.SIGCONT)
    code, error, seconds = run.end()
    assert code == INTERRUPTED
    assert seconds < SOON
    assert "a second signal ends the run immediately" in error
    assert re.search(r"steps? (is|are) lost: no checkpoint was written yet", error)
    assert newest_checkpoint(folder) is None


@pytest.mark.parametrize(
    ("signalled", "expected"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)]
)
def test_without_checkpoints_a_signal_ends_the_run_at_once(model, signalled, expected):
    run = Running(model)
    run.process.send_signal(signalled)
    code, error, seconds = run.end()
    assert code == expected
    assert seconds < SOON
    assert re.search(r"\d+ steps? (is|are) lost: --checkpoint was not given", error)


def test_what_a_crash_loses_is_said(model, tmp_path):
    folder = tmp_path / "checkpoint"
    flags = ["--checkpoint", str(folder), "--checkpoint-every", "0.3 s"]
    run = Running(model, *flags)
    while newest_checkpoint(folder) is None:
        time.sleep(0.01)
    os.kill(run.pids[1], signal.SIGKILL)
    code, error, _ = run.end()
    assert code == PEER_FAILED
    lost = re.search(r"(\d+) steps? (is|are) lost: the newest checkpoint is from step (\d+)", error)
    assert lost or "lost: " not in error
    goes_on(model, folder, "--ranks", "2")


@pytest.mark.parametrize(
    ("signalled", "expected"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)]
)
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_signal_ends_ranks_that_wait_for_the_others(model, rank, signalled, expected):
    flags = ["--rank", rank, "--ranks", "2", "--address", f"127.0.0.1:{free_port()}"]
    alone = subprocess.Popen(
        line(model, "--steps", "2", *flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.5)
    assert alone.poll() is None
    alone.send_signal(signalled)
    _, error = alone.communicate(timeout=SOON)
    assert alone.returncode == expected, error


def test_a_second_run_in_the_same_folder_is_refused(model, tmp_path):
    folder = tmp_path / "checkpoint"
    run = Running(model, "--checkpoint", str(folder), "--checkpoint-every", "5")
    second = outcome(line(model, "--steps", "3", "--checkpoint", str(folder)))
    assert second.returncode == 2
    assert "another run writes its checkpoints there (process " in second.stderr
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == INTERRUPTED  # unharmed
    goes_on(model, folder, "--ranks", "2")


def test_a_folder_that_cannot_be_written_is_known_before_the_first_step(model, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    ran = outcome(line(model, "--steps", "3", "--checkpoint", str(blocked / "checkpoint")))
    assert ran.returncode == OUTPUT_FAILED
    assert "cannot be written" in ran.stderr
    assert "step 1" not in ran.stderr


def test_a_damaged_checkpoint_is_passed_over(model, tmp_path):
    folder = tmp_path / "checkpoint"
    flags = ["--ranks", "2", "--checkpoint", str(folder)]
    execute(model, "--steps", "4", "--checkpoint-every", "2", *flags)
    data = folder / "step-0000000004" / "part-00001.bin"
    damaged = bytearray(data.read_bytes())
    damaged[100] ^= 1
    data.write_bytes(damaged)
    whole = losses(execute(model, "--steps", "6", "--ranks", "2"))
    ran = outcome(line(model, "--json", "--steps", "6", *flags))
    assert ran.returncode == 0
    assert f"{data}: is damaged: its checksum is wrong" in ran.stderr
    assert "resuming from step 2" in ran.stderr
    assert losses(json.loads(ran.stdout)) == whole[2:]


def test_other_inputs_need_to_be_named(model, tmp_path):
    folder = str(tmp_path / "checkpoint")
    execute(model, "--steps", "1", "--checkpoint", folder)
    longer = ["--set", "/plan/seq_len=8"]
    ran = outcome(line(model, "--steps", "2", "--checkpoint", folder, *longer))
    assert ran.returncode == 2
    assert "seq_len was 16, in this run it is 8" in ran.stderr
    assert "use --resume changed to resume anyway" in ran.stderr
    again = execute(model, "--steps", "2", "--checkpoint", folder, "--resume", "changed", *longer)
    assert again["resumed_from_step"] == 1


def test_checkpoints_are_verified(model, tmp_path):
    folder = tmp_path / "checkpoint"
    execute(model, "--steps", "4", "--checkpoint-every", "2", "--checkpoint", str(folder))
    verified = outcome([COMMAND, "checkpoint", "verify", str(folder)])
    assert verified.returncode == 0
    assert [each.split(": ")[1] for each in verified.stdout.splitlines()] == ["complete", "complete"]
    data = folder / "step-0000000002" / "part-00000.bin"
    data.write_bytes(data.read_bytes()[:-1])
    verified = outcome([COMMAND, "checkpoint", "verify", str(folder)])
    assert verified.returncode == 1
    assert "damaged" in verified.stdout.splitlines()[1]
    assert outcome([COMMAND, "checkpoint", "verify", str(tmp_path / "none")]).returncode == 2


def test_what_cannot_fit_is_refused_before_ranks_start(tmp_path):
    plan = "tensor=8,pipeline=1,micro_batch=1,global_batch=6,seq_len=512,precision=bf16"
    ran = outcome(line(Path("llama3-70b"), "--json", plan=plan))
    assert ran.returncode == 1
    answer = json.loads(ran.stdout)
    assert answer["fits"] is False
    memory = answer["out_of_memory"]
    assert memory["needed_bytes"] > memory["available_bytes"] > 0
    assert "starting" not in ran.stderr
    assert "does not fit: " in ran.stderr
