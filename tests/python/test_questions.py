"""plan, buy, scale, contention and the others: as the commands answer, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import orrery as orr
import pytest
from conftest import unnamed
from executing import COMMAND, answer_of, outcome

needs_command = pytest.mark.skipif(COMMAND is None, reason="there is no orrery")
ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "validation" / "runs.csv"
PLAN = {"model": "llama3.1-8b", "cluster": "dgx-h100 x 1", "global_batch": 64, "seq_len": 4096}
BUY = {"model": "llama3.1-8b", "tokens": "10B", "nodes": ["p5", "hgx-h100"]}


def few_runs(folder: Path, rows: int = 12) -> Path:
    """The first rows of the published runs."""
    file = folder / "runs.csv"
    file.write_text("".join(RUNS.read_text().splitlines(keepends=True)[: rows + 1]))
    return file


@pytest.fixture(scope="module")
def plans():
    return orr.plan(**PLAN, progress=False)


@needs_command
def test_plan_answers_as_the_command_does(plans):
    flags = ["--model", "llama3.1-8b", "--cluster", "dgx-h100 x 1", "--global-batch", "64"]
    found = answer_of([COMMAND, "plan", *flags, "--seq-len", "4096", "--json"])
    assert unnamed(plans.json) == unnamed(found)


def test_plans_print_become_a_table_and_name_the_best(plans):
    assert plans.complete
    assert plans.fits
    assert str(plans).startswith("Plans for llama3.1-8b on dgx-h100 x 1")
    assert repr(plans) == "Plans(10 plans)"
    frame = plans.to_frame()
    assert list(frame["plan.tensor"]) == [each["plan"]["tensor"] for each in plans["plans"]]
    best = orr.load(model=PLAN["model"], cluster=PLAN["cluster"], plan=plans.best).simulate()
    assert best.step_time == pytest.approx(frame["step_time_s"][0], rel=1e-12)


def test_what_may_be_a_name_may_be_a_document(plans):
    model = orr.load(model=PLAN["model"], cluster=PLAN["cluster"]).json["model"]
    again = orr.plan(**{**PLAN, "model": model}, progress=False)
    assert [each["flag"] for each in again["plans"]] == [each["flag"] for each in plans["plans"]]


def test_a_search_proves_its_best_plan_and_draws_a_front(plans):
    found = orr.plan(**PLAN, exclude="zero=3", pareto="memory", progress=False)
    assert found["proven"] is True
    assert found["bound_s"] == found["plans"][0]["static_step_time_s"] or found["gap"] >= 0
    steps = [each["static_step_time_s"] for each in found["front"]["plans"]]
    held = [each["peak_memory_bytes"] for each in found["front"]["plans"]]
    assert steps == sorted(steps)
    assert held == sorted(held, reverse=True)
    assert all(each["plan"]["zero"] != 3 for each in found["plans"])


def test_a_search_reports_its_progress_to_the_caller():
    seen = []
    orr.plan(**PLAN, progress=lambda done, of: seen.append((done, of)))
    done, of = seen[-1]
    assert done == of > 0


def test_a_wrong_argument_is_named():
    with pytest.raises(orr.InputError, match="^objective: expected time, cost, energy, memory or days, found"):
        orr.plan(**PLAN, objective="speed", progress=False)
    with pytest.raises(orr.InputError, match="^nodes: unknown node 'x'; known: "):
        orr.buy(model="llama3.1-8b", tokens="10B", nodes="x", progress=False)
    with pytest.raises(orr.InputError, match="^cluster: "):
        orr.plan(**{**PLAN, "cluster": "dgx-h1000 x 1"}, progress=False)


def test_an_interrupted_search_keeps_the_best_plans_so_far():
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    asked = {**PLAN, "cluster": "dgx-h100 x 64", "progress": interrupt, "threads": 1}
    with pytest.raises(orr.Interrupted, match="^interrupted: the best plans so far$") as stop:
        orr.plan(**asked)
    assert isinstance(stop.value.partial, orr.Plans)
    assert not stop.value.partial.complete
    assert not orr.plan(**asked, partial=True).complete


def test_what_progress_raises_ends_the_search():
    def fail(done: int, of: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        orr.plan(**PLAN, progress=fail)


def test_ctrl_c_reaches_a_search_and_other_threads_run_meanwhile():
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(orr.Interrupted, match="^interrupted: the clusters so far$") as stop:
            orr.buy(model="gpt3-175b", tokens="300B", threads=1, progress=False)
    finally:
        over.set()
        thread.join()
        timer.join()
    assert not stop.value.partial.complete
    assert counted > 1000


@needs_command
def test_buy_answers_as_the_command_does():
    bought = orr.buy(**BUY, progress=False)
    flags = ["--model", "llama3.1-8b", "--tokens", "10B", "--nodes", "p5,hgx-h100"]
    assert unnamed(bought.json) == unnamed(answer_of([COMMAND, "buy", *flags, "--json"]))
    assert bought.meets
    assert {"cluster", "days.p50", "cost_usd.p90"} <= set(bought.to_frame().columns)


@needs_command
def test_train_answers_as_the_command_does(tmp_path):
    picture = tmp_path / "run.svg"
    trained = orr.train(
        "llama3-8b-8-h100", tokens="100B", deadline="60d", samples=200, svg=picture, progress=False
    )
    flags = ["--tokens", "100B", "--deadline", "60d", "--samples", "200"]
    found = answer_of([COMMAND, "train", "llama3-8b-8-h100", *flags, "--json"])
    assert unnamed(trained.json) == unnamed(found)
    assert trained.meets
    assert sum(trained["ledger"].values()) == pytest.approx(1)
    assert picture.read_text().startswith("<svg")
    scenario = orr.load("llama3-8b-8-h100")
    again = orr.train(scenario, tokens="100B", deadline="10d", samples=200, progress=False)
    assert not again.meets
    assert again["days"] == trained["days"]


@needs_command
def test_check_answers_as_the_command_does():
    articles = ROOT / "scenarios" / "claims" / "articles.json"
    judged = orr.check(articles)
    ran = outcome([COMMAND, "check", str(articles), "--json"])
    assert ran.returncode == 1  # some are impossible
    assert unnamed(judged.json) == unnamed(json.loads(ran.stdout))
    frame = judged.to_frame()
    assert list(frame["verdict"]) == list(frame["expected"])
    one = orr.check([{"quantity": "pue", "value": 0.9}])
    assert one["claims"][0]["verdict"] == "impossible"
    with pytest.raises(orr.InputError, match="unknown quantity"):
        orr.check([{"quantity": "colour", "value": 1}])


@needs_command
def test_validate_answers_as_the_command_does(tmp_path):
    file = few_runs(tmp_path)
    seen = []
    validation = orr.validate(file, by=["model"], progress=lambda done, of: seen.append(of))
    found = answer_of([COMMAND, "validate", str(file), "--by", "model", "--json"])
    assert unnamed(validation.json) == unnamed(found)
    assert seen[-1] == 12
    assert len(validation.to_frame()) == len(validation["runs"])
    assert 0 < validation.median_error < 1


def test_validate_writes_the_page(tmp_path):
    orr.validate(few_runs(tmp_path), page=tmp_path / "page", progress=False)
    assert {each.name for each in (tmp_path / "page").iterdir()} == {"accuracy.md", "accuracy.svg"}


def test_an_interrupted_validation_is_a_keyboard_interrupt(tmp_path):
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        orr.validate(few_runs(tmp_path), page=tmp_path / "page", progress=interrupt)
    assert not (tmp_path / "page").exists()


def test_a_column_that_is_not_there_is_refused(tmp_path):
    file = few_runs(tmp_path)
    with pytest.raises(orr.InputError, match="^by: unknown column 'colour' in "):
        orr.validate(file, by="colour", progress=False)


def test_a_trace_compared_with_itself_has_the_ratio_one(small_run, tmp_path):
    path = tmp_path / "trace.json"
    small_run.trace.save(path)
    comparison = orr.compare(path, path)
    assert comparison.predicted == comparison.measured
    assert comparison["unmatched"] == 0
    assert set(comparison.to_frame()["ratio"].dropna()) == {1.0}


@needs_command
def test_a_run_compared_and_diagnosed_answers_as_the_command_does(tmp_path):
    log = tmp_path / "steps.csv"
    rows = [f"{step},{rank},{130 if rank == 2 else 100}" for step in range(6) for rank in range(4)]
    log.write_text("step,rank,compute_ms\n" + "\n".join(rows) + "\n")
    found = orr.diagnose(log)
    assert found.anything_slow
    assert list(found.to_frame()["name"]) == ["rank 2"]
    assert found.json["slow"] == answer_of([COMMAND, "diagnose", log, "--json"])["slow"]
    megatron = tmp_path / "train.log"
    line = " iteration {:8}/ 99 | elapsed time per iteration (ms): {}.0 |"
    megatron.write_text("\n".join(line.format(i, 2000 + i) for i in range(1, 9)) + "\n")
    run = orr.compare(orr.load("llama3-8b-8-h100"), megatron)
    command = [COMMAND, "compare", "llama3-8b-8-h100", megatron, "--json"]
    assert run.json["measured_s"] == answer_of(command)["measured_s"]
    assert isinstance(run, orr.RunComparison)


@needs_command
def test_scale_answers_as_the_command_does(tmp_path):
    asked = orr.load("llama3-8b-8-h100")
    scales = orr.scale(asked, gpus=[8, 16], progress=False, svg=tmp_path / "scale.svg")
    command = [COMMAND, "scale", "llama3-8b-8-h100", "--gpus", "8,16", "--json"]
    assert scales.json["points"] == answer_of(command)["points"]
    assert list(scales.to_frame()["gpus"]) == [8, 16]
    assert (tmp_path / "scale.svg").read_text().startswith("<svg")


@needs_command
def test_contention_answers_as_the_command_does(tmp_path):
    found = orr.contention(orr.load("llama3-70b-64-h100"), page=tmp_path, progress=False)
    asked = answer_of([COMMAND, "contention", "llama3-70b-64-h100", "--json"])
    assert found.json["cases"] == asked["cases"]
    assert found.sentence == asked["sentence"]
    assert list(found.to_frame()["name"]) == [case["name"] for case in asked["cases"]]
    assert (tmp_path / "contention.svg").read_text().startswith("<svg")


def test_a_run_says_what_contention_cost_and_to_whom():
    scenario = orr.load("gpt3-175b-1024-a100")
    assert scenario.simulate().network.evaluation == "static"
    run = scenario.replace({"/placement": {"scattered": 1}}).simulate()
    assert run.network.evaluation == "events"
    assert run.network.contention > 0
    losses = run.network.losses()
    assert losses["lost_s"].max() > 0
    assert [sum(shares.values()) for shares in losses["to"]] == pytest.approx([1.0] * len(losses))
    assert (run.network.links()["over_capacity_s"] > 0).all()


@needs_command
def test_a_choice_is_made_as_by_nccl():
    asked = {"cluster": "dgx-a100-80gb x 4", "op": "all_reduce", "sizes": "1MiB"}
    ring = orr.collective(**asked, choice="nccl", env="NCCL_ALGO=Ring")
    tree = orr.collective(**asked, choice="nccl", env=["NCCL_ALGO=Tree"])
    assert ring["rows"][0]["algorithm"] == "ring"
    assert tree["rows"][0]["algorithm"] == "tree"


@needs_command
def test_collective_answers_as_the_command_does():
    cluster, sizes = "dgx-h100 x 2", "1MiB:4MiB:2"
    asked = orr.collective(cluster=cluster, op="all_gather", sizes=sizes, algo="ring")
    command = [COMMAND, "collective", "--cluster", cluster, "--op", "all_gather"]
    command += ["--sizes", sizes, "--algo", "ring", "--json"]
    assert unnamed(asked.json) == unnamed(answer_of(command))
    assert list(asked.to_frame()["bytes"]) == [1 << 20, 1 << 21, 1 << 22]
    with pytest.raises(orr.InputError, match="expected one of all_reduce"):
        orr.collective(cluster=cluster, op="all", sizes=sizes)
