"""Runs on this machine's cores from Python, next to those of the command."""

from __future__ import annotations

import json
import signal
import threading
import urllib.request

import orrery as orr
import pytest
from conftest import unnamed
from executing import (
    PLAN,
    execute,
    free_port,
    losses,
    needs_execute,
    newest_checkpoint,
    write_model,
)


def run(model, **how) -> orr.Execution:
    return orr.execute(model=model, plan=PLAN, **{"progress": False, "steps": 3, **how})


@needs_execute
def test_the_losses_are_the_commands_bit_for_bit(model):
    measured = run(model, ranks=2)
    assert measured.losses == tuple(losses(execute(model, "--steps", "3", "--ranks", "2")))
    named = execute(model, "--steps", "3", "--ranks", "2", "--fabric", "threads")
    assert measured["fabric"] == named["fabric"] == "threads"
    assert set(unnamed(measured.json)) == set(unnamed(named))


def test_an_execution_prints_and_becomes_a_table(model):
    measured = run(model)
    assert measured.complete
    assert measured.fits
    assert repr(measured) == "Execution(3 steps)"
    assert f"predicted {measured.predicted_step_time}" in str(measured)
    assert list(measured.to_frame()["loss"]) == list(measured.losses)
    assert measured.step_time > 0
    assert measured.peak_memory > 0


def test_what_runs_may_be_a_scenario_and_changed(model):
    scenario = orr.load("gpt-dp2")
    measured = orr.execute(
        scenario, changes={"/plan/global_batch": 4}, steps=1, progress=False
    )
    assert measured["ranks"] == 2


def test_each_step_is_reported(model):
    seen, steps = [], []
    measured = run(
        model, progress=lambda done, of: seen.append((done, of)), on_step=steps.append
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert tuple(step.loss for step in steps) == measured.losses
    assert [step.step for step in steps] == [1, 2, 3]


def test_one_more_step_is_compared_with_its_prediction(model, tmp_path):
    trace = tmp_path / "trace.json"
    measured = run(model, ranks=2, explain=True, trace=trace)
    assert measured.comparison["ranks"] == 2
    assert str(measured.comparison) in str(measured)
    assert measured["recorded_step"] == 4
    assert json.loads(trace.read_text())["traceEvents"]


def test_a_checkpoint_is_gone_on_from_and_a_log_is_appended_to(model, tmp_path):
    folder, log = tmp_path / "checkpoints", tmp_path / "log"
    whole = run(model, steps=4)
    first = run(model, steps=2, checkpoint=folder, log=log)
    assert newest_checkpoint(folder) == 2
    second = run(model, steps=4, checkpoint=folder, log=log)
    assert second["resumed_from_step"] == 2
    assert first.losses + second.losses == whole.losses
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]


def test_ctrl_c_keeps_the_steps_so_far_and_writes_the_checkpoint(model, tmp_path):
    folder = tmp_path / "checkpoints"

    def stop(step: orr.Step) -> None:
        if step.step == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(orr.Interrupted, match="^interrupted: [0-9]+ steps so far$") as stopped:
        run(model, ranks=2, steps=10**8, checkpoint=folder, on_step=stop)
    measured = stopped.value.partial
    assert not measured.complete
    assert len(measured.losses) >= 3
    assert newest_checkpoint(folder) == len(measured.losses)
    assert "steps" in str(measured)


def test_ctrl_c_ends_a_run_without_checkpoints_at_once(model):
    timer = threading.Timer(1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    measured = run(model, ranks=2, steps=10**8, partial=True)
    timer.join()
    assert not measured.complete


def test_what_the_caller_raises_ends_the_run(model):
    def fail(step: orr.Step) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(model, steps=10**8, on_step=fail)


def test_a_deadline_is_a_run_failure_with_the_commands_code(model):
    with pytest.raises(orr.RunFailure, match="^the deadline has passed: ") as caught:
        run(model, ranks=2, steps=10**8, deadline=1)
    assert caught.value.code == 124


def test_a_wrong_argument_is_named(model):
    with pytest.raises(orr.InputError, match="^steps: expected 1 or more, found 0$"):
        run(model, steps=0)
    with pytest.raises(orr.InputError, match="^checkpoint_every: needs --checkpoint DIR$"):
        run(model, checkpoint_every=10)
    with pytest.raises(orr.InputError, match="^fabric: expected threads or nccl: "):
        run(model, fabric="tcp")
    with pytest.raises(orr.InputError, match="^backend: expected cpu or cuda, found 'tpu'$"):
        run(model, backend="tpu")
    with pytest.raises(orr.InputError, match="^ranks: expected a multiple of tensor x pipeline"):
        run(model, ranks=0)


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    bytes_model = write_model(tmp_path / "bytes.json", vocab=256)
    with pytest.raises(orr.InputError, match="missing.txt"):
        run(bytes_model, data=tmp_path / "missing.txt")


def test_what_does_not_fit_is_an_answer():
    measured = orr.execute(
        model="gpt3-175b",
        plan="tensor=1,pipeline=1,micro_batch=1,global_batch=1,seq_len=2048",
        progress=False,
    )
    assert not measured.fits
    assert measured.out_of_memory.needed > measured.out_of_memory.available
    assert str(measured).startswith("does not fit: ")


def test_metrics_are_served_on_the_loopback_interface_while_it_runs(model):
    port, pages = free_port(), []

    def read(step: orr.Step) -> None:
        if step.step == 2:
            page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)
            pages.append(page.read().decode())

    run(model, steps=500, metrics_port=port, on_step=read)
    assert "orrery_loss " in pages[0]


def test_two_runs_go_on_next_to_each_other(model):
    alone = run(model)
    both: list[orr.Execution] = []
    threads = [threading.Thread(target=lambda: both.append(run(model))) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.losses for each in both] == [alone.losses] * 2
