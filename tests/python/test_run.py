"""Answers: what they hold, how they add up, how they show."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import orrery as orr
import pytest
from conftest import unnamed


def command() -> str:
    """The command that was installed with the package."""
    installed = Path(sys.executable).parent / "orrery"
    found = str(installed) if installed.exists() else shutil.which("orrery")
    assert found, "pip install . gives the command orrery"
    return found


def test_a_run_is_what_the_command_prints(small, small_run, tmp_path):
    printed = subprocess.run(
        [command(), "simulate", small.name, "--json"], check=True, capture_output=True, cwd=tmp_path
    )
    assert unnamed(small_run.json) == unnamed(json.loads(printed.stdout))


def test_the_parts_of_a_run_add_up(small, small_run):
    # Times are doubles of seconds: sums may differ in the last digits.
    assert sum(small_run.breakdown.values()) == pytest.approx(small_run.step_time, rel=1e-12)
    assert sum(time for _, time in small_run.waterfall) == pytest.approx(
        small_run.step_time, rel=1e-12
    )
    assert sum(small_run.memory.values()) == small_run.peak_memory
    tokens = small["/plan/global_batch"] * small["/plan/seq_len"]
    assert small_run.tokens_per_s * small_run.step_time == pytest.approx(tokens, rel=1e-12)
    assert small_run.bottleneck == max(small_run.breakdown, key=small_run.breakdown.get)


def test_a_run_says_how_busy_its_links_and_gpus_are(small_run):
    assert set(small_run.busy) == {"nic", "nvlink", "sm"}
    assert dict(small_run.busy) == small_run.json["busy"]
    assert 0 < small_run.busy["sm"] < 1
    assert small_run.to_series()["busy.sm"] == small_run.busy["sm"]


def test_a_slower_network_slows_a_step_that_waits_for_it():
    base = orr.load("gpt3-175b-1024-a100")
    slow = base.replace({"/cluster/fabric/bandwidth": "10 Gb/s"}).simulate()
    assert slow.step_time > base.simulate().step_time


def test_a_plan_that_leaves_too_little_free_fits_tightly(small):
    wide, narrow = small.simulate(headroom=0.0), small.simulate(headroom=0.99)
    assert (wide.fit, narrow.fit) == ("yes", "tight")
    assert wide.fits and narrow.fits
    assert 0 <= wide.fit_probability == narrow.fit_probability <= 1
    assert "fits tightly" in repr(narrow) and "fits tightly" in narrow.explain()
    assert small.simulate().json["headroom"] == pytest.approx(0.04, abs=0.02)
    with pytest.raises(orr.InputError, match="^headroom: expected a share from 0 to below 1"):
        small.simulate(headroom=6)
    swept = orr.sweep(small, [{}], headroom=0.99, progress=False)
    assert len(swept.fits_memory()) == 1 and len(swept.fits_memory(tightly=False)) == 0


def test_a_plan_that_does_not_fit_is_an_answer(small):
    run = (
        small.replace({"/plan/micro_batch": small["/plan/global_batch"] // 8 or 1})
        .replace(
            {
                "/plan/seq_len": 8192,
                "/plan/recompute": "none",
                "/plan/tensor": 1,
                "/plan/data": None,
                "/plan/zero": 0,
                "/plan/sequence": False,
            }
        )
        .simulate()
    )
    assert not run.fits
    assert run.out_of_memory.needed == run.peak_memory
    assert run.out_of_memory.needed > run.out_of_memory.available
    assert "does not fit" in repr(run)


def test_quantities_print_with_their_unit_and_are_numbers():
    assert f"{orr.Seconds(31.4999)}" == "31.5 s"
    assert str(orr.Seconds(0.0842)) == "84.2 ms"
    assert f"{orr.Seconds(0.5):.3f}" == "0.500"
    assert orr.Seconds(2) * 3 == 6.0
    assert f"{orr.Bytes(54 * 2**30)}" == "54 GiB"
    assert f"{orr.Bytes(1000):,}" == "1,000"
    assert json.dumps([orr.Seconds(0.25), orr.Bytes(7)]) == "[0.25, 7]"


def test_a_run_explains_itself(small_run):
    assert "From the ideal machine to this step" in small_run.explain()
    assert repr(small_run.explain()) == str(small_run.explain())


def test_versus_another_run_tells_what_was_asked_and_where_the_time_went(small, small_run):
    other = small.replace({"/plan/recompute": "full"}).simulate()
    lines = other.explain(versus=small_run).splitlines()
    assert lines[0].split() == ["this", "versus", "difference"]
    percent = 100 * (other.step_time / small_run.step_time - 1)
    step = f"step time {other.step_time} {small_run.step_time} {percent:+.1f} %"
    assert lines[1].split() == step.split()
    assert lines[-1].split() == ["/plan/recompute", "full", small["/plan/recompute"]]


def test_a_run_versus_itself_differs_in_nothing(small_run):
    text = small_run.explain(versus=small_run)
    assert "what was asked" not in text
    assert "+0.0 %" in text


def test_a_run_becomes_a_row(small):
    changed = small.replace({"/plan/micro_batch": 2}).simulate()
    row = changed.to_series()
    assert row["/plan/micro_batch"] == 2
    assert row["step_time_s"] == changed.step_time
    frame = changed.to_frame()
    assert frame.shape[0] == 1
    assert frame["breakdown.gemm_s"][0] == changed.breakdown["gemm"]
    assert frame["memory.parameter_bytes"][0] == changed.memory["parameter"]


def test_a_run_shows_itself(small, small_run):
    assert repr(small_run).startswith(f"Run({small.name}: {small_run.step_time}, ")
    assert str(small_run.step_time) in str(small_run)
    html = small_run._repr_html_()
    assert small.name in html
    assert html.count("<div") == html.count("</div>")
    assert html.count("<span") == html.count("</span>")


def test_a_run_cannot_be_changed(small_run):
    with pytest.raises(AttributeError):
        small_run.step_time = 1.0
    with pytest.raises(TypeError):
        small_run.breakdown["gemm"] = 0
    small_run.json["memory"]["parameter"] = 0
    assert small_run.memory["parameter"] > 0


def test_a_pickled_run_is_the_same_answer(small_run):
    copy = pickle.loads(pickle.dumps(small_run))
    assert copy.json == small_run.json
    assert copy.explain() == small_run.explain()


def test_a_trace_is_chrome_json(small_run, tmp_path):
    path = tmp_path / "trace.json"
    small_run.trace.save(path)
    assert json.loads(path.read_text())["traceEvents"]
    whole = small_run.trace.events(detail="operations")
    events = small_run.trace.events()
    assert len(whole) > len(events)
    for each in events:
        assert each.start >= 0
        assert each.start + each.duration <= small_run.step_time * (1 + 1e-9)
    # After the last piece of work only the host ends the step.
    end = max(each.start + each.duration for each in events)
    assert small_run.step_time - end <= small_run.breakdown["host"] + 1e-9


def test_a_detail_that_is_none_is_refused(small_run):
    with pytest.raises(
        ValueError, match="^detail: expected one of instructions, operations, found"
    ):
        small_run.trace.events(detail="kernels")
