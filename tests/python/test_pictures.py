"""Pictures: what is drawn is what was predicted."""

from __future__ import annotations

from html.parser import HTMLParser

import orrery as orr
import pytest

pytest.importorskip("plotly")

VOID = {"meta", "link", "br", "img", "input"}


class Balance(HTMLParser):
    """Fails where a tag is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_html(figure) -> None:
    text = figure.to_html(include_plotlyjs=False)
    parser = Balance()
    parser.feed(text)
    assert not parser.open
    assert "plotly" in text


@pytest.fixture(scope="module")
def piped() -> orr.Run:
    return orr.load("llama3-70b-64-h100").simulate()


def test_the_waterfall_goes_from_ideal_to_predicted(piped):
    figure = piped.plot_waterfall()
    bars = figure.data[0]
    # Each bar begins where the last one ended; the last but one ends at the predicted step.
    assert bars.x[0] == pytest.approx(piped.waterfall[0][1])
    for i in range(len(bars.x) - 2):
        assert bars.base[i] + bars.x[i] == pytest.approx(bars.base[i + 1])
    assert bars.base[-1] == 0
    assert bars.base[-2] + bars.x[-2] == pytest.approx(bars.x[-1])
    check_html(figure)


def test_the_timeline_draws_every_event_that_takes_time(piped):
    figure = piped.plot_timeline(host=True)
    events = [each for each in piped.trace.events() if each.duration > 0]
    assert sum(len(bars.x) for bars in figure.data) == len(events)
    drawn = sum(sum(bars.x) for bars in figure.data)
    assert drawn == pytest.approx(sum(each.duration for each in events))
    check_html(figure)


def test_the_timeline_of_some_stages_shows_those_only(piped):
    figure = piped.plot_timeline(stages=[0, 7])
    ranks = {each[1] for bars in figure.data for each in bars.customdata}
    assert {rank.split("stage ")[1] for rank in ranks} == {"0)", "7)"}


def test_a_row_is_one_queue_of_one_stage(piped):
    queues: dict[float, set[tuple[str, str]]] = {}
    for bars in piped.plot_timeline(host=True).data:
        for row, (_, rank, queue, _) in zip(bars.y, bars.customdata):
            queues.setdefault(row, set()).add((rank, queue))
    assert all(len(each) == 1 for each in queues.values())
    assert len(queues) == len({(each.rank, each.queue) for each in piped.trace.events()})


def test_a_stage_that_is_none_is_refused(piped):
    with pytest.raises(ValueError, match="^stages: none of \\[99\\] is a stage of this run$"):
        piped.plot_timeline(stages=[99])


# ---- Many variants.


@pytest.fixture(scope="module")
def variants() -> dict[str, object]:
    base = orr.load("llama3-8b-8-h100").replace({"/plan/data": None})
    grid = {"/cluster/nodes": [1, 2, 4], "/plan/zero": [1, 2], "/plan/tensor": [2, 4]}
    searched = {"model": "llama3-8b", "global_batch": 64, "seq_len": 8192}
    return {
        "sweep": orr.sweep(base, grid, progress=False),
        "plans": orr.plan(**searched, cluster="dgx-h100 x 1", progress=False),
        "purchases": orr.buy(
            model="llama3-8b", tokens="10B", nodes=["p5", "hgx-h100"], gpus="8:64:x2",
            progress=False,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["sweep", "plans", "purchases"])
def test_what_has_variants_has_pictures(variants, name):
    answer = variants[name]
    figures = [answer.plot_pareto(), answer.plot_heat_map(), answer.plot_tornado()]
    figures.append(answer.plot_roofline())
    if name != "plans":
        figures.append(answer.plot_scaling())
    for figure in figures:
        check_html(figure)
        assert any(len(trace.x) for trace in figure.data)


def test_the_frontier_has_those_that_no_other_beats_in_both():
    from orrery.plots import frontier

    points = [(1.0, 9.0), (2.0, 5.0), (3.0, 5.0), (4.0, 1.0), (4.0, 2.0)]
    assert frontier(points, (True, True)) == [0, 1, 3]
    assert frontier(points, (True, False)) == [0]
    assert frontier([(1.0, 1.0), (1.0, 1.0)], (True, True)) == [0, 1]


def test_a_cell_of_the_heat_map_is_the_best_of_all_others(variants):
    sweep = variants["sweep"]
    figure = sweep.plot_heat_map(x="/cluster/nodes", y="/plan/tensor", value="mfu")
    heat = figure.data[0]
    assert list(heat.x) == ["1", "2", "4"] and list(heat.y) == ["2", "4"]
    best = max(
        point.run.mfu
        for point in sweep.points
        if point.run and point.changes["/cluster/nodes"] == 2 and point.changes["/plan/tensor"] == 2
    )
    assert heat.z[0][1] == pytest.approx(100 * best)


def test_scaling_begins_at_zero_and_shows_proportional_growth(variants):
    figure = variants["sweep"].plot_scaling()
    predicted, ideal = figure.data
    assert list(predicted.x) == [8, 16, 32]
    assert ideal.y[-1] == pytest.approx(predicted.y[0] * 4)
    assert figure.layout.xaxis.rangemode == figure.layout.yaxis.rangemode == "tozero"
    with pytest.raises(ValueError, match="different numbers of GPUs"):
        orr.sweep(
            orr.load("llama3-8b-8-h100"), {"/plan/zero": [1, 2]}, progress=False
        ).plot_scaling()


def test_a_tornado_shows_differences_from_the_median(variants):
    sweep = variants["sweep"]
    bars = sweep.plot_tornado(value="step_time_s").data[0]
    assert set(bars.y) == {"/cluster/nodes", "/plan/zero", "/plan/tensor"}
    widths = list(bars.x)
    assert widths == sorted(widths) and widths[-1] > 0


def test_a_roofline_has_every_kernel_below_its_roof(piped):
    figure = piped.plot_roofline()
    roofs = [trace for trace in figure.data if trace.mode == "lines"]
    gpu = piped.scenario.json["cluster"]["node"]["gpu"]
    peak = max(max(trace.y) for trace in roofs)
    assert peak == pytest.approx(float(gpu["dense_peak"]["fp8"].split()[0]) * 1e12)
    for trace in figure.data:
        if trace.mode == "markers":
            assert max(trace.y) <= peak
    check_html(figure)
