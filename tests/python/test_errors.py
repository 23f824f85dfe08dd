"""A mistake is a ValueError, one line, with the pointer that `replace` takes."""

from __future__ import annotations

import orrery as orr
import pytest


def test_an_input_error_is_a_value_error():
    assert issubclass(orr.InputError, ValueError)


def test_an_unknown_scenario_is_answered_with_what_exists():
    with pytest.raises(ValueError, match="^unknown scenario 'gpt5'; known: ") as caught:
        orr.load("gpt5")
    for name in orr.catalogue.scenarios():
        assert f" {name}" in str(caught.value)


def test_a_wrong_pointer_says_what_is_there(small):
    with pytest.raises(orr.InputError) as caught:
        small.replace({"/plans/tensor": 4})
    assert str(caught.value) == (
        "/plans/tensor: no such value; the scenario has: " + " ".join(small.json)
    )
    assert caught.value.pointer == "/plans/tensor"


def test_a_pointer_that_is_none_is_refused(small):
    with pytest.raises(orr.InputError) as caught:
        small.replace({"plan.tensor": 4})
    assert str(caught.value) == "plan.tensor: expected a JSON pointer such as /plan/tensor"


def test_the_pointer_of_an_error_is_the_address_of_the_what_if_that_mends_it(small):
    broken = small.replace({"/plan/micro_batch": 0})
    with pytest.raises(orr.InputError) as caught:
        broken.simulate()
    assert caught.value.pointer == "/plan/micro_batch"
    mended = broken.replace({caught.value.pointer: small["/plan/micro_batch"]})
    assert mended.simulate().step_time == small.simulate().step_time


def test_a_file_that_is_no_json_is_told_by_its_name(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text('{"model": ')
    with pytest.raises(orr.InputError, match="^" + str(path)):
        orr.load(path)


def test_a_value_that_json_cannot_say_is_a_type_error(small):
    with pytest.raises(TypeError, match="expected a JSON value"):
        small.replace({"/plan/tensor": object()})


def test_an_error_without_a_pointer_has_none():
    assert orr.InputError("unknown scenario 'x'; known: a b").pointer is None


def test_a_trace_that_cannot_be_written_is_an_os_error(small_run, tmp_path):
    with pytest.raises(OSError, match="cannot be written: No such file or directory$"):
        small_run.trace.save(tmp_path / "missing" / "trace.json")
