"""Traces as files: arrows, counters, communicators, packed, and as PyTorch's profiler writes them."""

from __future__ import annotations

import collections
import gzip
import json

import orrery as orr
import pytest
from orrery.errors import InputError

PLAN = {"tensor": 2, "pipeline": 2, "data": 2, "micro_batch": 1, "global_batch": 8,
        "seq_len": 1024, "zero": 1}  # fmt: skip


@pytest.fixture(scope="module")
def run() -> orr.Run:
    """Two stages with tensor and data parallelism: every kind of traffic."""
    return orr.load(
        model="gpt2", cluster="dgx-a100-80gb x 1", software="megatron-lm", plan=PLAN
    ).simulate()


def read(path) -> dict:
    if str(path).endswith(".gz"):
        with gzip.open(path) as file:
            return json.load(file)
    return json.loads(path.read_text())


@pytest.fixture(scope="module", params=["instructions", "operations"])
def events(run, request, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("trace") / "step.json"
    assert run.trace.save(path, detail=request.param) == [str(path)]
    return read(path)["traceEvents"]


def test_an_arrow_goes_forward_and_from_work_to_work(events):
    begins = {each["id"]: each for each in events if each["ph"] == "s"}
    ends = {each["id"]: each for each in events if each["ph"] == "f"}
    assert begins and begins.keys() == ends.keys()
    work = collections.defaultdict(list)
    for each in events:
        if each["ph"] == "X":
            work[each["pid"], each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
    for number, begin in begins.items():
        end = ends[number]
        assert end["bp"] == "e" and begin["name"] == end["name"]
        assert end["ts"] >= begin["ts"] - 1e-6
        for at in (begin, end):
            spans = work[at["pid"], at["tid"]]
            assert any(a - 1e-6 <= at["ts"] <= b + 1e-6 for a, b in spans)


def test_each_message_has_one_arrow_between_two_ranks(events):
    # 4 micro-batches cross the cut once each way: 8 messages.
    messages = [each for each in events if each["ph"] in "sf" and each["name"] == "message"]
    assert len(messages) == 16
    ranks = collections.defaultdict(set)
    for each in messages:
        ranks[each["id"]].add(each["pid"])
    assert all(pair == {0, 1} for pair in ranks.values())


def counters(events) -> dict[tuple[int, str], list[tuple[float, float]]]:
    found = collections.defaultdict(list)
    for each in events:
        if each["ph"] == "C":
            (value,) = each["args"].values()
            found[each["pid"], each["name"]].append((each["ts"], value))
    return found


def test_counters_are_of_memory_nics_and_power(run, events):
    found = counters(events)
    assert {name for _, name in found} == {"memory", "NIC", "GPU power"}
    for points in found.values():
        times = [at for at, _ in points]
        assert times == sorted(times) and times[-1] <= run.step_time * 1e6 * (1 + 1e-9)
    highest = max(
        value for (_, name), points in found.items() if name == "memory" for _, value in points
    )
    assert highest == pytest.approx(run.peak_memory, rel=1e-5)


def test_the_power_over_time_is_the_steps_energy(run, events):
    # GPUs alone: what the report calls gpu_power_w is their mean over the step.
    step, sums = run.step_time * 1e6, []
    for (_, name), points in counters(events).items():
        if name == "GPU power":
            ends = [at for at, _ in points[1:]] + [step]
            sums.append(sum(value * (end - at) for (at, value), end in zip(points, ends)))
    assert sum(sums) / len(sums) / step == pytest.approx(run.json["gpu_power_w"], rel=0.01)


def test_a_collective_names_its_communicator(events):
    named = [each["args"] for each in events if "communicator" in each.get("args", {})]
    sizes = {each["communicator"]: each["group_size"] for each in named}
    assert sizes["dp"] == 2 and sizes["pp_f"] == 2
    for each in events:
        if each["ph"] == "X" and each["cat"] == "reduce_gradient":
            assert each["args"]["communicator"] == "dp"


def test_a_name_that_ends_in_gz_is_packed(run, tmp_path):
    plain, packed = tmp_path / "step.json", tmp_path / "step.json.gz"
    run.trace.save(plain)
    run.trace.save(packed)
    assert packed.read_bytes()[:2] == b"\x1f\x8b"
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert orr.compare(plain, packed)["ratio"] == 1


def test_kineto_files_are_what_analysers_of_the_profiler_read(run, tmp_path):
    files = run.trace.save(tmp_path / "kineto", format="kineto")
    assert files == [str(tmp_path / "kineto" / f"rank-{rank}.json.gz") for rank in (0, 4)]
    for file, rank in zip(files, (0, 4)):
        with gzip.open(file, "rt") as text:
            head = text.read(4000)
        assert f'"rank": {rank},' in head  # by a blank after the colon, as it is searched for
        trace = read(file)
        assert trace["distributedInfo"] == {"backend": "nccl", "rank": rank, "world_size": 8}
        assert trace["deviceProperties"][0]["name"] == "a100-sxm-80gb"
        launches, work = {}, {}
        for each in trace["traceEvents"]:
            if each["ph"] != "X":
                continue
            number = each["args"].get("correlation")
            if each["cat"] == "cuda_runtime":
                launches[number] = each
            elif each["cat"] in ("kernel", "gpu_memcpy"):
                assert (
                    each["args"]["stream"] == each["tid"] and each["pid"] == each["args"]["device"]
                )
                work[number] = each
        assert launches.keys() == work.keys() and len(work) > 100
        for number, each in work.items():
            assert launches[number]["ts"] <= each["ts"] + 1e-6
        joint = [each for each in work.values() if "nccl" in each["name"]]
        assert {each["args"]["Group size"] for each in joint} >= {2}
        for each in joint:
            assert {"Collective name", "In msg nelems", "Out msg nelems", "dtype"} <= set(
                each["args"]
            )
        last = max(each["ts"] + each["dur"] for each in work.values())
        # The step ends with the last work of any rank, which may be the host's.
        assert 0.99 * run.step_time * 1e6 < last <= run.step_time * 1e6 * (1 + 1e-6)
        steps = [each for each in trace["traceEvents"] if each["name"].startswith("ProfilerStep")]
        assert [each["cat"] for each in steps] == ["user_annotation"]


def test_a_kineto_file_holds_one_rank(run, tmp_path):
    with pytest.raises(
        InputError,
        match="^trace: expected a folder, because a kineto file holds one "
        "rank and this step has 2, one for each stage; found ",
    ):
        run.trace.save(tmp_path / "step.json", format="kineto")
    with pytest.raises(ValueError, match="^format: expected one of chrome, kineto, found 'x'$"):
        run.trace.save(tmp_path / "step.json", format="x")
