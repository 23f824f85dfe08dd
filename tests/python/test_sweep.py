"""Many what-ifs: in order, in parallel, and whatever happens to one of them."""

from __future__ import annotations

import itertools
import pickle
import sys
import threading

import orrery as orr
import pytest


@pytest.fixture(scope="module")
def grid(small):
    free = small.replace({"/plan/data": None})
    return orr.sweep(
        free, {"/plan/tensor": [2, 4], "/plan/micro_batch": [1, 2, 4]}, workers=3, progress=False
    )


def test_a_grid_is_every_combination_with_the_last_pointer_fastest(grid):
    varied = [tuple(point.changes.values()) for point in grid.points]
    assert varied == [(2, 1), (2, 2), (2, 4), (4, 1), (4, 2), (4, 4)]
    assert grid.complete


def test_a_sweep_is_what_its_scenarios_answer_one_by_one(small, grid):
    free = small.replace({"/plan/data": None})
    for point in grid.points:
        alone = free.replace(point.changes).simulate().json
        swept = point.run.json
        assert swept == alone


def test_the_fastest_has_the_most_tokens_per_second(grid):
    assert grid.fastest().tokens_per_s == max(run.tokens_per_s for run in grid)


def test_only_what_fits_is_left(grid):
    assert [run for run in grid if run.fit in ("yes", "tight")] == list(grid.fits_memory())
    assert all(run.fits for run in grid.fits_memory())
    nothing = grid.where(lambda run: False)
    assert len(nothing) == 0
    with pytest.raises(ValueError, match="^no run to choose from"):
        nothing.fastest()


def test_a_variant_that_contradicts_itself_is_listed_and_the_rest_goes_on(small):
    swept = orr.sweep(small.replace({"/plan/data": None}), {"/plan/tensor": [2, 3]}, progress=False)
    assert len(swept) == 1
    assert swept.refused[0].changes == {"/plan/tensor": 3}
    assert "/plan" in swept.refused[0].refused
    frame = swept.to_frame()
    assert list(frame["/plan/tensor"]) == [2, 3]
    assert frame["refused"].isna().tolist() == [True, False]
    assert frame["step_time_s"].isna().tolist() == [False, True]


def test_a_sweep_in_which_nothing_can_run_is_an_error(small):
    with pytest.raises(orr.InputError, match="^/plan_/tensor: no such value"):
        orr.sweep(small, {"/plan_/tensor": [1, 2]}, progress=False)


def test_variants_may_be_listed(small):
    variants = [{"/plan/micro_batch": 1}, {"/plan/micro_batch": 2, "/plan/recompute": "full"}]
    swept = orr.sweep(small, variants, progress=False)
    assert [dict(point.changes) for point in swept.points] == variants


def test_a_single_value_is_no_list_of_values(small):
    with pytest.raises(
        orr.InputError, match="^/plan/schedule: expected a list of values, found '1f1b'"
    ):
        orr.sweep(small, {"/plan/schedule": "1f1b"})


def test_an_interrupted_sweep_keeps_what_was_done(small):
    def interrupt(done: int, of: int) -> None:
        assert of == 40
        if done == 3:
            raise KeyboardInterrupt

    vary = {"/plan/seq_len": [1024 + 8 * i for i in range(40)]}
    with pytest.raises(
        orr.Interrupted, match="^interrupted: [0-9]+ of 40 variants so far$"
    ) as stop:
        orr.sweep(small, vary, workers=1, progress=interrupt)
    swept = stop.value.partial
    assert isinstance(stop.value, KeyboardInterrupt)  # ends a script and a loop as Ctrl-C does
    assert not swept.complete
    kept = orr.sweep(small, vary, workers=1, progress=interrupt, partial=True)
    assert not kept.complete
    assert 3 <= len(swept) < 40
    lengths = [point.changes["/plan/seq_len"] for point in swept.points]
    assert lengths == sorted(lengths)


def test_a_sweep_without_bound_is_refused_before_it_is_made(small):
    refused = "^/plan/global_batch: expected at most 1,000,000 variants of a sweep, found more than"
    with pytest.raises(orr.InputError, match=refused):
        orr.sweep(small, {"/plan/global_batch": range(128, 10**9)})
    with pytest.raises(orr.InputError, match="^/plan/seq_len: expected at most"):
        orr.sweep(small, {"/plan/seq_len": itertools.count(1024)})
    with pytest.raises(orr.InputError, match="^expected at most .* found 1,002,001 variants$"):
        orr.sweep(small, {"/plan/tensor": range(1001), "/plan/pipeline": range(1001)})
    with pytest.raises(orr.InputError, match="^expected at most"):
        orr.sweep(small, ({"/plan/seq_len": 1024 + each} for each in itertools.count()))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda base: base.replace(3), "^changes: expected {pointer: value}, found int$"),
        (lambda base: base.replace(None), "^changes: expected {pointer: value}, found None$"),
        (lambda base: base.replace({3: 1}), "^changes: expected JSON pointers, found 3$"),
        (lambda base: base[3], "^expected a JSON pointer, found int$"),
        (lambda base: orr.sweep(None, {}), "^base: expected a Scenario, found None$"),
        (lambda base: orr.sweep("gpt2", {}), "^base: expected a Scenario, found str$"),
        (
            lambda base: orr.sweep(base, 3),
            "^vary: expected {pointer: values} or variants, found int",
        ),
        (lambda base: orr.sweep(base, [3]), "^vary: expected {pointer: value}, found int$"),
    ],
)
def test_what_is_of_another_type_is_a_type_error_that_says_so(small, call, said):
    with pytest.raises(TypeError, match=said):
        call(small)


def test_progress_counts_every_variant(small):
    seen: list[tuple[int, int]] = []
    orr.sweep(
        small, {"/plan/micro_batch": [1, 2]}, progress=lambda done, of: seen.append((done, of))
    )
    assert seen == [(1, 2), (2, 2)]


def test_progress_is_one_line_on_stderr(small, capsys):
    orr.sweep(small, {"/plan/micro_batch": [1]}, progress=True)
    assert capsys.readouterr().err == "\r1 of 1 variants\n"


def test_a_sweep_shows_itself(grid):
    assert repr(grid) == "Sweep(6 runs)"
    html = grid._repr_html_()
    assert html.count("<tr") == html.count("</tr>") == 1 + 6
    assert "/plan/micro_batch" in html


def test_a_pickled_sweep_is_the_same_table(grid):
    copy = pickle.loads(pickle.dumps(grid))
    assert copy.to_frame().equals(grid.to_frame())
    assert copy.complete


def test_python_goes_on_while_a_step_is_simulated(small):
    # With a switch interval of an hour a thread runs only when another gives up the lock, so the
    # main thread gets its turn before the last simulation has ended only if simulating gives it up.
    before = sys.getswitchinterval()
    order: list[str] = []

    def simulate() -> None:
        for _ in range(20):
            small.simulate()
        order.append("simulated")

    thread = threading.Thread(target=simulate)
    try:
        sys.setswitchinterval(3600)
        thread.start()
        order.append("main")
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert order == ["main", "simulated"]
