"""The figure of a trace: a row per queue of each pipeline stage, a bar per event."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from orrery.figure import graph_objects, styled, time_axis
from orrery.palette import LOOKS, look

if TYPE_CHECKING:
    from orrery.record import StepRecord
    from orrery.trace import Event

_STAGE = re.compile(r"stage (\d+)")
_MICRO_BATCH = re.compile(r"mb (\d+)$")
_COMPUTE_ROW, _OTHER_ROW, _GAP = 1.0, 0.55, 0.4  # heights of rows, and between stages
_PIXELS = 26  # per unit of height
_OUTLINED = 0.002  # shortest bar with an outline; a shorter one would be all outline
_LABELLED = 0.007  # shortest bar with its micro-batch written in it; shares of the step


class _Rows:
    """Vertical positions of the queues of each stage, from the top down."""

    def __init__(self, events: list[Event]):
        self.place: dict[tuple[int, str], tuple[float, float]] = {}  # centre, height
        self.bands: list[tuple[float, float]] = []  # top, bottom of each stage
        self.ticks: list[tuple[float, str]] = []
        queues: dict[int, list[str]] = {}
        for each in events:
            known = queues.setdefault(_stage(each), [])
            if each.queue not in known:
                known.append(each.queue)
        top = 0.0
        for stage in sorted(queues):
            begin = top
            for queue in sorted(queues[stage], key=_rank_of_queue):
                height = _COMPUTE_ROW if queue == "compute" else _OTHER_ROW
                self.place[stage, queue] = (top + height / 2, height)
                label = queue.removeprefix("comm:")
                if queue == "compute":
                    label = f"<b>stage {stage}</b>"
                self.ticks.append((top + height / 2, label))
                top += height
            self.bands.append((begin, top))
            top += _GAP
        self.bottom = top - _GAP


def _stage(event: Event) -> int:
    found = _STAGE.search(event.rank)
    return int(found.group(1)) if found else 0


def _rank_of_queue(queue: str) -> tuple[int, str]:
    return ({"host": 0, "compute": 1}.get(queue, 2), queue)


def plot(run: StepRecord, *, stages: list[int] | None, host: bool, detail: str) -> Any:
    """See `Run.plot_timeline`."""
    go = graph_objects()
    events = [
        each
        for each in run.trace.events(detail=detail)
        if each.duration > 0
        and (host or each.queue != "host")
        and (stages is None or _stage(each) in stages)
    ]
    if not events:
        raise ValueError(f"stages: none of {stages} is a stage of this run")
    factor, unit = time_axis(run.step_time)
    rows = _Rows(events)
    figure = go.Figure()
    for kind in sorted({each.kind for each in events}, key=_legend_order):
        of_kind = [each for each in events if each.kind == kind]
        figure.add_trace(_bars(go, kind, of_kind, rows, run.step_time, factor, unit))
    for top, bottom in rows.bands:
        figure.add_shape(
            type="rect",
            xref="paper",
            x0=0,
            x1=1,
            y0=top,
            y1=bottom,
            fillcolor="#f3f5f8",
            line={"width": 0},
            layer="below",
        )
    figure.update_layout(
        barmode="overlay",
        bargap=0.1,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemsizing": "constant"},
        margin={"l": 84, "r": 24, "t": 86, "b": 44},
        dragmode="zoom",
        uniformtext={"minsize": 8, "mode": "hide"},
    )
    figure.update_yaxes(
        tickvals=[at for at, _ in rows.ticks],
        ticktext=[label for _, label in rows.ticks],
        tickfont={"size": 10.5},
        range=[rows.bottom + 0.1, -0.1],
        showgrid=False,
        fixedrange=True,
    )
    figure.update_xaxes(
        ticksuffix=f" {unit}", range=[0, run.step_time * factor], layer="above traces"
    )
    subtitle = f"One step of {run.step_time} · {run.gpus:,} GPUs · one rank of each stage"
    height = max(260, int(170 + _PIXELS * rows.bottom))
    return styled(figure, title=run.asked.name, subtitle=subtitle, height=height)


def _legend_order(kind: str) -> tuple[int, str]:
    order = [*LOOKS]
    compute_first = {"forward": -2, "backward": -1}
    place = order.index(kind) if kind in order else len(order)
    return compute_first.get(kind, place), kind


def _bars(
    go: Any, kind: str, events: list[Event], rows: _Rows, step: float, factor: float, unit: str
) -> Any:
    """All bars of one class."""
    places = [rows.place[_stage(each), each.queue] for each in events]
    label, colour = look(kind)
    return go.Bar(
        name=label,
        orientation="h",
        y=[centre for centre, _ in places],
        width=[height * 0.9 for _, height in places],
        base=[each.start * factor for each in events],
        x=[each.duration * factor for each in events],
        text=_labels(events, step),
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": "white", "size": 9},
        marker={
            "color": _exact(colour),
            "line": {
                "color": "white",
                "width": [0.5 if each.duration > _OUTLINED * step else 0 for each in events],
            },
        },
        customdata=[(each.name, each.rank, each.queue, each.start * factor) for each in events],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}, %{customdata[2]}<br>"
        + f"%{{x:.4g}} {unit} from %{{customdata[3]:.6g}} {unit}<extra></extra>",
    )


def _exact(colour: str) -> str:
    """The colour, almost opaque: plotly widens opaque bars to at least a pixel.

    Thousands of thinner bars would then hide each other.
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.99)"


def _labels(events: list[Event], step: float) -> list[str]:
    """The micro-batch number for bars that are long enough, else empty texts."""
    labels = []
    for each in events:
        found = _MICRO_BATCH.search(each.name)
        roomy = each.queue == "compute" and each.duration > _LABELLED * step
        labels.append(found.group(1) if found and roomy else "")
    return labels
