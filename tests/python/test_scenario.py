"""Questions: read, changed, written, sent elsewhere."""

from __future__ import annotations

import json
import pickle

import orrery as orr
import pytest


def test_names_are_expanded_so_every_number_has_an_address(small):
    assert small["/cluster/fabric/bandwidth"].endswith("b/s")
    assert small["/plan/tensor"] == small.json["plan"]["tensor"]


def test_an_address_that_leads_nowhere_is_a_key_error(small):
    with pytest.raises(KeyError, match="/plan/tensr"):
        small["/plan/tensr"]


def test_replace_leaves_the_original_as_it_is(small):
    before = small.json
    changed = small.replace({"/cluster/fabric/bandwidth": "50 Gb/s"})
    assert changed["/cluster/fabric/bandwidth"] == "50 Gb/s"
    assert small.json == before
    assert changed.changes == {"/cluster/fabric/bandwidth": "50 Gb/s"}
    assert not small.changes


def test_changes_add_up(small):
    changed = small.replace({"/plan/micro_batch": 2}).replace({"/plan/seq_len": 4096})
    assert changed.changes == {"/plan/micro_batch": 2, "/plan/seq_len": 4096}


def test_a_scenario_cannot_be_changed_in_place(small):
    with pytest.raises(AttributeError):
        small.name = "other"
    with pytest.raises(TypeError):
        small.changes["/plan/tensor"] = 1
    small.json["plan"]["tensor"] = 1000
    assert small["/plan/tensor"] != 1000


def test_a_name_among_the_values_is_expanded(small):
    assert small.replace({"/cluster": "dgx-a100-80gb x 2"})["/cluster/node/gpu/name"].startswith(
        "a100"
    )


def test_numpy_scalars_are_numbers(small):
    numpy = pytest.importorskip("numpy")
    changed = small.replace({"/plan/seq_len": numpy.int64(4096)})
    assert changed["/plan/seq_len"] == 4096


def test_parts_stand_for_a_scenario():
    parts = {"model": "llama3-8b", "cluster": "dgx-h100 x 1"}
    by_text = orr.load(**parts, plan="tensor=2,global_batch=64,seq_len=4096")
    plan = {"tensor": 2, "global_batch": 64, "seq_len": 4096}
    by_document = orr.load(**parts, plan=plan)
    assert by_text.simulate().step_time == by_document.simulate().step_time


def test_parts_stand_before_those_of_the_scenario(small):
    assert orr.load(small.name, cluster="dgx-a100-80gb x 1")["/cluster/node/gpu/name"].startswith(
        "a100"
    )
    plan = {**small["/plan"], "micro_batch": 2}
    assert orr.load(small.name, plan=plan)["/plan/micro_batch"] == 2


def test_a_saved_scenario_asks_the_same(small, tmp_path):
    path = tmp_path / "mine.json"
    small.save(path)
    assert orr.load(path).simulate().step_time == small.simulate().step_time
    assert json.loads(path.read_text()) == small.json


def test_a_pickled_scenario_is_equal(small):
    changed = small.replace({"/plan/micro_batch": 2})
    copy = pickle.loads(pickle.dumps(changed))
    assert copy == changed
    assert hash(copy) == hash(changed)
    assert copy.changes == changed.changes
    assert copy != small


def test_a_scenario_shows_its_name_and_changes(small):
    assert repr(small) == "Scenario('llama3-8b-8-h100')"
    changed = small.replace({"/plan/micro_batch": 2})
    assert repr(changed) == "Scenario('llama3-8b-8-h100', {'/plan/micro_batch': 2})"


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("gpus", "h100-sxm-80gb"),
        ("nodes", "dgx-h100"),
        ("clusters", "selene"),
        ("models", "gpt3-175b"),
        ("software", "megatron-lm"),
        ("scenarios", "gpt3-175b-1024-a100"),
    ],
)
def test_the_catalogue_travels_inside_the_package(kind, known):
    assert known in getattr(orr.catalogue, kind)()


def test_sensitivity_is_what_the_command_prints(small, tmp_path):
    found = small.sensitivity(svg=tmp_path / "tornado.svg", progress=False)
    frame = found.to_frame()
    assert frame["step"].abs().is_monotonic_decreasing
    price = frame.set_index("pointer").loc["/cluster/price_per_gpu_hour"]
    assert price["step"] == 0
    assert price["cost"] == pytest.approx(1)
    assert (tmp_path / "tornado.svg").read_text().startswith("<svg")
