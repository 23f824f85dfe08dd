"""Real runs: what they print, how they resume, and how they end when a rank cannot go on."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from executing import (
    COMMAND,
    DEADLINE,
    OUTPUT_FAILED,
    PEER_FAILED,
    PLAN,
    REQUEUE,
    SCENARIOS,
    SECONDS,
    SOON,
    Running,
    answer_of,
    execute,
    line,
    losses,
    needs_execute,
    newest_checkpoint,
    outcome,
    write_model,
)

pytestmark = needs_execute


def test_one_rank_answers_what_is_promised(model):
    answer = execute(model, "--steps", "4")
    assert answer["ranks"] == 1
    assert len(answer["steps"]) == 4
    assert all(step["step_time_s"] > 0 for step in answer["steps"])
    assert answer["median_step_time_s"] > 0
    assert answer["predicted_step_time_s"] > 0
    assert answer["peak_memory_bytes"] > 0
    assert answer["predicted_peak_memory_bytes"] > 0
    # ln(64) is the loss of a model that knows nothing.
    assert losses(answer)[0] == pytest.approx(4.16, abs=0.5)


def test_the_cut_does_not_change_the_losses(model):
    alone = losses(execute(model, "--steps", "5"))
    assert losses(execute(model, "--steps", "5", "--ranks", "2")) == pytest.approx(alone, rel=1e-4)
    tensor = PLAN.replace("tensor=1", "tensor=2")
    assert losses(execute(model, "--steps", "5", plan=tensor)) == pytest.approx(alone, rel=1e-4)
    threads = execute(model, "--steps", "5", "--ranks", "2", "--fabric", "threads")
    assert losses(threads) == pytest.approx(alone, rel=1e-4)
    assert threads["fabric"] == "threads"


def test_fp8_is_trained_and_predicted_on_the_processor(model):
    bf16 = PLAN.replace("fp32", "bf16")
    fp8 = PLAN.replace("fp32", "fp8")
    wide, narrow = (execute(model, "--steps", "5", plan=plan) for plan in (bf16, fp8))
    # Steps of 2^-3 and 2^-2 in the products of two layers; the losses of five steps feel less.
    assert losses(narrow) == pytest.approx(losses(wide), rel=1e-2)
    assert losses(narrow) != losses(wide)
    # A core computes fp8 at fp32's peak and also quantises: no faster than bf16.
    assert narrow["predicted_step_time_s"] > wide["predicted_step_time_s"]
    cut = outcome(line(model, plan=fp8.replace("tensor=1", "tensor=2,sequence=true")))
    assert cut.returncode == 70
    assert "cannot execute fp8 under sequence parallelism" in cut.stderr


def test_a_resumed_run_gives_the_losses_of_one_that_was_not_interrupted(model, tmp_path):
    whole = losses(execute(model, "--steps", "6", "--ranks", "2"))
    folder = str(tmp_path / "checkpoint")
    first = execute(model, "--steps", "3", "--ranks", "2", "--checkpoint", folder)
    again = execute(model, "--steps", "6", "--ranks", "2", "--checkpoint", folder)
    assert again["resumed_from_step"] == 3
    assert losses(first) + losses(again) == whole
    done = execute(model, "--steps", "6", "--ranks", "2", "--checkpoint", folder)
    assert done["steps"] == []


def test_another_number_of_ranks_resumes(model, tmp_path):
    whole = losses(execute(model, "--steps", "6", "--ranks", "2"))
    folder = str(tmp_path / "checkpoint")
    execute(model, "--steps", "3", "--ranks", "4", "--checkpoint", folder)
    tensor = PLAN.replace("tensor=1", "tensor=2")
    again = execute(model, "--steps", "6", "--checkpoint", folder, plan=tensor)
    assert losses(again) == pytest.approx(whole[3:], rel=1e-4)


def test_experts_resume_where_other_ranks_share_them(tmp_path):
    model = write_model(tmp_path / "model.json", experts=4, experts_per_token=2)
    plan = PLAN.replace("fp32", "fp64") + ",imbalance=2"
    whole = losses(execute(model, "--steps", "6", plan=plan))
    folder = str(tmp_path / "checkpoint")
    for steps, ranks, expert in ((2, 2, 2), (4, 4, 4), (6, 1, 1)):
        flags = ("--steps", str(steps), "--ranks", str(ranks), "--checkpoint", folder)
        part = execute(model, *flags, plan=f"{plan},expert={expert}")
        assert losses(part) == pytest.approx(whole[steps - 2 : steps], rel=1e-10)


def test_routing_that_needs_more_room_than_the_plan_gives_ends_the_run(tmp_path):
    model = write_model(tmp_path / "model.json", experts=8, experts_per_token=1)
    ran = outcome(line(model, "--steps", "2", "--ranks", "2", plan=f"{PLAN},expert=2"))
    assert ran.returncode == 70
    assert "set expert_room to at least" in ran.stderr
    assert "or set capacity, which drops the rows beyond it" in ran.stderr
    done = execute(model, "--steps", "2", "--ranks", "2", plan=f"{PLAN},expert=2,imbalance=8")
    assert len(losses(done)) == 2


def test_the_rows_that_experts_are_sent_are_counted(tmp_path):
    model = write_model(tmp_path / "model.json", experts=4, experts_per_token=2)
    ran = execute(model, "--steps", "1", "--ranks", "2", plan=f"{PLAN},expert=2,imbalance=2")
    sent = ran["expert_all_to_all"]
    assert 1 <= sent["imbalance"] <= 2
    # Slots are twice the rows that cross where routing is even, and no fewer than they are.
    assert 0 < sent["sent_bytes"] <= sent["slot_bytes"]
    alone = execute(model, "--steps", "1", plan=f"{PLAN},imbalance=2")
    assert "expert_all_to_all" not in alone


@pytest.mark.parametrize("kept", ["offload=optimizer", "moments=bf16", "moments=int8"])
def test_a_checkpoint_of_what_is_kept_elsewhere_or_narrow_resumes(model, tmp_path, kept):
    plan = f"{PLAN},{kept}"
    whole = execute(model, "--steps", "4", "--ranks", "2", plan=plan)
    assert ("offloaded_bytes" in whole) == ("offload" in kept)
    folder = str(tmp_path / "checkpoint")
    execute(model, "--steps", "2", "--ranks", "2", "--checkpoint", folder, plan=plan)
    again = execute(model, "--steps", "4", "--ranks", "2", "--checkpoint", folder, plan=plan)
    assert losses(again) == losses(whole)[2:]


def test_a_foreign_checkpoint_is_refused_in_one_sentence(model, tmp_path):
    folder = tmp_path / "checkpoint"
    execute(model, "--steps", "1", "--checkpoint", str(folder))
    ran = outcome(line(model, "--steps", "2", "--seed", "5", "--checkpoint", str(folder)))
    manifest = folder / "step-0000000001" / "manifest.json"
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.splitlines()[-1].startswith(
        f"{manifest}: is of another run (tiny): its seed is 1, in this run it is 5"
    )


def test_a_killed_rank_ends_the_run_by_name(model):
    run = Running(model, ranks=4)
    os.kill(run.pids[1], signal.SIGKILL)
    code, error, seconds = run.end()
    assert code == PEER_FAILED
    assert seconds < SOON
    assert "rank 1" in error
    assert "start again from the checkpoint" in error


def test_process_lists_name_the_ranks(model):
    run = Running(model)
    for rank, pid in enumerate(run.pids):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        assert words[:2] == [f"orrery rank {rank}".encode(), b"execute"]
        assert Path(f"/proc/{pid}/comm").read_text() == f"orrery rank {rank}\n"
    run.process.send_signal(signal.SIGINT)
    run.end()


def test_killing_rank_0_leaves_nobody(model):
    run = Running(model)
    os.kill(run.pids[0], signal.SIGKILL)
    code, error, seconds = run.end()
    assert code == PEER_FAILED
    assert seconds < SOON
    assert "rank 0 was ended by signal 9 (Killed)" in error


def test_killing_the_parent_leaves_nobody(model):
    run = Running(model)
    run.process.kill()
    run.process.communicate(timeout=SECONDS)
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in run.pids):
            return
        time.sleep(0.05)
    pytest.fail("a rank outlived its parent")


def test_a_frozen_rank_is_named(model):
    run = Running(model, "--stall", "4")
    os.kill(run.pids[1], signal.SIGSTOP)
    code, error, seconds = run.end()
    assert code == PEER_FAILED
    assert seconds < 2 * SOON
    assert "rank 1" in error


def test_making_room_writes_a_checkpoint_and_asks_to_be_queued_again(model, tmp_path):
    folder = tmp_path / "checkpoint"
    run = Running(model, "--checkpoint", str(folder))
    run.process.send_signal(signal.SIGUSR1)
    code, error, _ = run.end()
    assert code == REQUEUE
    steps = int((folder / "latest").read_text().strip().split("-")[1])
    assert steps > 0
    assert f"a checkpoint was written after {steps} steps (preempted: queue the job again)" in error


def test_a_deadline_ends_a_run(model):
    run = Running(model, "--deadline", "3")
    code, error, seconds = run.end()
    assert code == DEADLINE
    assert seconds < SOON
    assert "the deadline has passed: " in error


def test_a_full_disk_is_an_output_that_cannot_be_written(model, tmp_path):
    """A limit on the size of files fails writes as a full disk does."""
    folder = tmp_path / "checkpoint"
    ran = outcome(
        line(model, "--steps", "2", "--ranks", "2", "--checkpoint", str(folder)),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert ran.returncode == OUTPUT_FAILED
    assert "cannot be written: File too large" in ran.stderr
    assert not (folder / "latest").exists()


def test_a_run_that_dies_goes_on_from_its_newest_checkpoint(model, tmp_path):
    folder = tmp_path / "checkpoint"
    run = Running(model, "--checkpoint", str(folder), "--checkpoint-every", "2")
    while not (folder / "latest").exists():
        time.sleep(0.01)
    os.kill(run.pids[1], signal.SIGKILL)
    run.end()
    newest = newest_checkpoint(folder)
    steps = str(newest + 2)
    again = execute(model, "--steps", steps, "--ranks", "2", "--checkpoint", str(folder))
    assert again["resumed_from_step"] == newest
    whole = losses(execute(model, "--steps", steps, "--ranks", "2"))
    assert losses(again) == whole[newest:]


def test_traces_and_logs(model, tmp_path):
    trace, log = tmp_path / "trace.json", tmp_path / "steps.jsonl"
    ran = execute(model, "--steps", "3", "--ranks", "2", "--trace", str(trace), "--log", str(log))
    assert ran["recorded_step"] == 4  # after those that are measured
    assert len(ran["steps"]) == 3
    events = json.loads(trace.read_text())["traceEvents"]
    ranks = {event["args"]["id"].split("/")[0] for event in events if event["ph"] == "X"}
    assert ranks == {"0", "1", "data"}  # ... and reads of the input
    assert [json.loads(each)["step"] for each in log.read_text().splitlines()] == [1, 2, 3]


GROUPS = {
    "data ranks": PLAN + ",data=2",
    "a tensor group": PLAN.replace("tensor=1", "tensor=2,sequence=true"),
    "two stages": PLAN.replace("pipeline=1", "pipeline=2,schedule=1f1b"),
}


@pytest.mark.parametrize("plan", GROUPS.values(), ids=GROUPS.keys())
def test_mpirun_chooses_mpi(model, plan):
    folder = Path(COMMAND).resolve().parent
    modules = [folder / "liborrery_mpi.so", folder.parent / "lib" / "orrery" / "liborrery_mpi.so"]
    if shutil.which("mpirun") is None or not any(each.exists() for each in modules):
        pytest.skip("there is no mpirun, or no liborrery_mpi.so")
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    command = line(model, "--json", "--steps", "4", plan=plan)
    expected = losses(answer_of(command))
    for fabric, chosen in (("mpi", []), ("tcp", ["--fabric", "tcp"])):
        answer = answer_of(mpirun + command + chosen)
        assert answer["fabric"] == fabric
        assert losses(answer) == pytest.approx(expected, rel=1e-5)


def test_torchrun_starts_ranks(model):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--standalone"]
    command = line(model, "--json", "--steps", "4", "--ranks", "2")
    answer = answer_of([*torchrun, "--nproc-per-node", "2", *command])
    assert answer["ranks"] == 2
    assert losses(answer) == losses(answer_of(command))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_narrow_run_stays_near_a_wide_one(model, precision):
    """Parameters and activations are rounded when stored, to 8 or 11 bits, masters are not."""
    wide = losses(execute(model, "--steps", "3"))
    narrow = losses(execute(model, "--steps", "3", plan=PLAN.replace("fp32", precision)))
    assert narrow != wide
    assert narrow == pytest.approx(wide, rel=1e-2)


PLANS = [
    "both-sides-tp2",
    "experts-ep2",
    "experts-zero3-ep2",
    "gpt-1rank",
    "gpt-cp2-gather",
    "gpt-cp2-ring",
    "gpt-cp2-ulysses",
    "gpt-dp2",
    "gpt-fused-loss",
    "gpt-hsdp4",
    "gpt-pp2-1f1b",
    "gpt-pp2-zb",
    "gpt-pp2-zero3",
    "gpt-tp2-dp2",
    "llama-tp2",
]
ONE_RANK = ["--set", "/plan/tensor=1", "--set", "/plan/sequence=false"]
WHOLE_EXPERTS = ["--set", "/plan/data=1", "--set", "/plan/expert=1"]


@pytest.fixture(scope="module")
def losses_of_one_rank() -> dict[str, list[float]]:
    def alone(scenario: str, *flags: str) -> list[float]:
        path = str(SCENARIOS / f"{scenario}.json")
        return losses(answer_of([COMMAND, "execute", path, "--steps", "2", "--json", *flags]))

    return {
        "gpt": alone("gpt-1rank"),
        "llama": alone("llama-tp2", *ONE_RANK),
        "experts": alone("experts-ep2", *WHOLE_EXPERTS),
        "both": alone("both-sides-tp2", *ONE_RANK),
    }


@pytest.mark.parametrize("scenario", PLANS)
def test_what_runs_is_what_was_predicted(scenario, losses_of_one_rank, tmp_path):
    """Every operation is in both traces, the fullest rank takes the memory foretold, and the plan
    trains as one rank does."""
    path, predicted, measured = (
        str(each)
        for each in (SCENARIOS / f"{scenario}.json", tmp_path / "p.json", tmp_path / "m.json")
    )
    detail = ["--trace-detail", "operations"]
    subprocess.run([COMMAND, "simulate", path, "--trace", predicted, *detail], check=True)
    answer = answer_of(
        [COMMAND, "execute", path, "--steps", "2", "--json", "--trace", measured, *detail]
    )
    joined = answer_of([COMMAND, "compare", predicted, measured, "--json"])
    assert sum(each["count"] for each in joined["classes"]) > 100
    assert joined["unmatched"] == 0
    foretold = answer["predicted_peak_memory_bytes"]
    assert answer["peak_memory_bytes"] == pytest.approx(foretold, rel=0.03)
    expected = losses_of_one_rank[scenario.split("-")[0]]
    assert losses(answer) == pytest.approx(expected, rel=1e-5)


def test_adapters_take_the_memory_foretold_and_do_not_depend_on_the_cut():
    path = str(SCENARIOS / "gpt-lora-dp2.json")
    line = [COMMAND, "execute", path, "--steps", "3", "--json"]
    two, one = answer_of(line), answer_of([*line, "--ranks", "1"])
    assert losses(two) == pytest.approx(losses(one), rel=1e-5)
    assert two["peak_memory_bytes"] == pytest.approx(two["predicted_peak_memory_bytes"], rel=0.03)


def test_a_wrong_number_of_ranks_is_refused(model):
    plan = PLAN.replace("tensor=1", "tensor=2")
    ran = outcome(line(model, "--ranks", "3", plan=plan))
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == "--ranks: expected a multiple of tensor x pipeline = 2, found 3\n"
