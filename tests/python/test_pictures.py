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
