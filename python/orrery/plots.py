"""Pictures of many variants: what `Sweep`, `Plans` and `Purchases` have in common.

Each variant is a row of figures and of what was varied. Lengths begin at zero; where they do not,
they are differences, and the axis says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from orrery.figure import graph_objects, styled
from orrery.palette import FAINT, GOOD, INK, LOOKS, look

if TYPE_CHECKING:
    import plotly.graph_objects

    from orrery.record import StepRecord

Row = Mapping[str, Any]

# How a figure is written on an axis: its name, the factor to its unit, and whether less is better.
_FIGURES: dict[str, tuple[str, float, bool]] = {
    "step_time_s": ("step, s", 1.0, True),
    "tokens_per_s": ("tokens/s", 1.0, False),
    "mfu": ("MFU, %", 100.0, False),
    "peak_memory_bytes": ("peak memory, GiB", 2.0**-30, True),
    "cost_usd_per_step": ("dollars a step", 1.0, True),
    "energy_j_per_step": ("energy of a step, kJ", 1e-3, True),
    "days": ("days", 1.0, True),
    "cost_usd": ("cost, thousand dollars", 1e-3, True),
    "gpus": ("GPUs", 1.0, True),
}
_OTHER = "#9aa3ae"
_SCALE = ((0.0, "#e9f1fa"), (0.5, LOOKS["attention"].colour), (1.0, "#173d66"))


def _axis(figure: str) -> tuple[str, float, bool]:
    return _FIGURES.get(figure, (figure.rsplit("/", 1)[-1], 1.0, True))


class Plotted:
    """Adds pictures to an answer that has variants. All are figures of plotly."""

    __slots__ = ()

    def _plot_rows(self) -> list[dict[str, Any]]:
        """Figures and varied values of each variant, and its `label`."""
        raise NotImplementedError

    def _plot_factors(self) -> list[str]:
        """What was varied."""
        raise NotImplementedError

    def _plot_title(self) -> str:
        raise NotImplementedError

    def _plot_run(self) -> StepRecord:
        """The best variant, simulated."""
        raise NotImplementedError

    def _plot_figures(self) -> tuple[str, str]:
        """The two figures of plot_pareto."""
        return "step_time_s", "peak_memory_bytes"

    def plot_pareto(
        self, *, x: str | None = None, y: str | None = None
    ) -> plotly.graph_objects.Figure:
        """Two figures against each other; a line joins the variants that no other beats in both.

        x, y    figures such as "step_time_s", "cost_usd_per_step", "mfu", "days", "cost_usd"
        Errors  ValueError where no variant has both
        """
        usual = self._plot_figures()
        return _pareto(self._plot_rows(), x or usual[0], y or usual[1], self._plot_title())

    def plot_heat_map(
        self, *, x: str | None = None, y: str | None = None, value: str | None = None
    ) -> plotly.graph_objects.Figure:
        """A figure by two of the things that were varied: in each cell the best of all others.

        x, y    what was varied: pointers of a sweep, fields of a plan, "node" and "gpus" of a
                purchase; the first two by default
        value   a figure; the first of `plot_pareto` by default
        Errors  ValueError where fewer than two things were varied
        """
        factors = self._plot_factors()
        if not (x and y) and len(factors) < 2:
            raise ValueError(
                f"a heat map needs two things that vary; these do: {', '.join(factors) or 'none'}"
            )
        x = x or next(each for each in factors if each != y)
        y = y or next(each for each in factors if each != x)
        return _heat_map(
            self._plot_rows(), x, y, value or self._plot_figures()[0], self._plot_title()
        )

    def plot_scaling(self, *, by: str | None = None) -> plotly.graph_objects.Figure:
        """Tokens per second against GPUs, the best at each size, next to proportional growth.

        by      a line for each value of something that was varied
        Errors  ValueError where all variants have as many GPUs
        """
        return _scaling(self._plot_rows(), by, self._plot_title())

    def plot_tornado(self, *, value: str | None = None) -> plotly.graph_objects.Figure:
        """How far each thing that was varied moves a figure: medians by its values, as differences.

        value   a figure; the first of `plot_pareto` by default
        Errors  ValueError where nothing was varied
        """
        return _tornado(
            self._plot_rows(),
            self._plot_factors(),
            value or self._plot_figures()[0],
            self._plot_title(),
        )

    def plot_roofline(self) -> plotly.graph_objects.Figure:
        """The best variant's kernels under the roof of its GPU: `Run.plot_roofline`."""
        return roofline(self._plot_run())


def _with(rows: Sequence[Row], *keys: str) -> list[Row]:
    """The rows that have these figures."""
    found = [row for row in rows if all(row.get(key) is not None for key in keys)]
    if not found:
        raise ValueError(f"no variant has {' and '.join(keys)}")
    return found


def _better(a: float, b: float, less: bool) -> bool:
    return a <= b if less else a >= b


def frontier(points: Sequence[tuple[float, float]], less: tuple[bool, bool]) -> list[int]:
    """Which points no other beats in one figure without being worse in the other, by the first."""
    found = []
    for i, own in enumerate(points):
        beaten = any(
            all(_better(other[k], own[k], less[k]) for k in (0, 1)) and other != own
            for other in points
        )
        if not beaten:
            found.append(i)
    return sorted(found, key=lambda i: points[i])


def _pareto(rows: Sequence[Row], x: str, y: str, title: str) -> Any:
    go = graph_objects()
    rows = _with(rows, x, y)
    (x_title, x_factor, x_less), (y_title, y_factor, y_less) = _axis(x), _axis(y)
    points = [(row[x] * x_factor, row[y] * y_factor) for row in rows]
    best = frontier(points, (x_less, y_less))
    rest = [i for i in range(len(points)) if i not in best]
    hover = f"<b>%{{text}}</b><br>{x_title} %{{x:.4g}}<br>{y_title} %{{y:.4g}}<extra></extra>"
    figure = go.Figure()
    for name, indices, mode, colour in (
        ("others", rest, "markers", _OTHER),
        ("none is better in both", best, "lines+markers", GOOD),
    ):
        figure.add_scatter(
            name=name,
            x=[points[i][0] for i in indices],
            y=[points[i][1] for i in indices],
            text=[rows[i]["label"] for i in indices],
            mode=mode,
            marker={"color": colour, "size": 9 if colour == GOOD else 7},
            line={"color": colour, "width": 1.5, "shape": "hv"},
            hovertemplate=hover,
        )
    figure.update_xaxes(title=x_title, rangemode="tozero")
    figure.update_yaxes(title=y_title, rangemode="tozero")
    figure.update_layout(legend=_LEGEND, margin=_MARGIN)
    subtitle = f"{len(rows)} variants, {len(best)} of them on the frontier"
    return styled(figure, title=title, subtitle=subtitle, height=520)


def _best_of(rows: Sequence[Row], value: str) -> Row:
    less = _axis(value)[2]
    return min(rows, key=lambda row: row[value] if less else -row[value])


def _ordered(values: set[Any]) -> list[Any]:
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return sorted(values) if numbers else sorted(values, key=str)


def _heat_map(rows: Sequence[Row], x: str, y: str, value: str, title: str) -> Any:
    go = graph_objects()
    rows = _with(rows, x, y, value)
    name, factor, less = _axis(value)
    columns, lines = _ordered({row[x] for row in rows}), _ordered({row[y] for row in rows})
    cells: list[list[float | None]] = []
    hints = []
    for line in lines:
        inside = [[row for row in rows if row[x] == each and row[y] == line] for each in columns]
        chosen = [_best_of(each, value) if each else None for each in inside]
        cells.append([each[value] * factor if each else None for each in chosen])
        hints.append([each["label"] if each else "" for each in chosen])
    figure = go.Figure(
        go.Heatmap(
            x=[str(each) for each in columns],
            y=[str(each) for each in lines],
            z=cells,
            text=[["" if cell is None else f"{cell:.4g}" for cell in line] for line in cells],
            texttemplate="%{text}",
            customdata=hints,
            colorscale=_SCALE,
            reversescale=less,
            xgap=2,
            ygap=2,
            colorbar={"title": name, "outlinewidth": 0, "thickness": 12},
            hovertemplate=f"<b>%{{customdata}}</b><br>{name} %{{z:.4g}}<extra></extra>",
        )
    )
    figure.update_xaxes(title=_axis(x)[0], type="category", showgrid=False)
    figure.update_yaxes(title=_axis(y)[0], type="category", showgrid=False)
    figure.update_layout(margin=_MARGIN)
    subtitle = f"{name}, the best in each cell; darker is better; empty: no variant"
    return styled(figure, title=title, subtitle=subtitle, height=160 + 46 * max(len(lines), 4))


def _scaling(rows: Sequence[Row], by: str | None, title: str) -> Any:
    go = graph_objects()
    rows = _with(rows, "gpus", "tokens_per_s", *([by] if by else []))
    if len({row["gpus"] for row in rows}) < 2:
        raise ValueError("scaling needs variants with different numbers of GPUs")
    figure = go.Figure()
    colours = [LOOKS[each].colour for each in ("gemm", "tp", "dp", "optimizer", "ep", "pp", "cp")]
    groups = _ordered({row[by] for row in rows}) if by else [None]
    for i, group in enumerate(groups):
        own = [row for row in rows if by is None or row[by] == group]
        sizes = sorted({row["gpus"] for row in own})
        best = [_best_of([row for row in own if row["gpus"] == n], "tokens_per_s") for n in sizes]
        rates = [row["tokens_per_s"] for row in best]
        colour = colours[i % len(colours)]
        share = [rate / n / (rates[0] / sizes[0]) for rate, n in zip(rates, sizes)]
        figure.add_scatter(
            name=f"{by.rsplit('/', 1)[-1]} {group}" if by else "predicted",
            x=sizes,
            y=rates,
            text=[row["label"] for row in best],
            customdata=share,
            mode="lines+markers",
            marker={"color": colour, "size": 8},
            line={"color": colour, "width": 2},
            hovertemplate="<b>%{text}</b><br>%{x:,} GPUs<br>%{y:,.0f} tokens/s<br>"
            "%{customdata:.1%} of proportional<extra></extra>",
        )
        figure.add_scatter(
            name="proportional" if i == 0 else None,
            x=[sizes[0], sizes[-1]],
            y=[rates[0], rates[0] * sizes[-1] / sizes[0]],
            mode="lines",
            line={"color": colour if by else FAINT, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            showlegend=i == 0,
        )
    figure.update_xaxes(title="GPUs", rangemode="tozero")
    figure.update_yaxes(title="tokens/s", rangemode="tozero")
    figure.update_layout(legend=_LEGEND, margin=_MARGIN)
    subtitle = "The best at each size; dotted: tokens of a second and GPU as at the smallest"
    return styled(figure, title=title, subtitle=subtitle, height=520)


def _tornado(rows: Sequence[Row], factors: Sequence[str], value: str, title: str) -> Any:
    go = graph_objects()
    rows = _with(rows, value)
    name, factor, _ = _axis(value)
    middle = median(row[value] for row in rows) * factor
    bars = []
    for each in factors:
        own = _with(rows, each)
        by_level = {
            str(level): median(row[value] for row in own if row[each] == level) * factor
            for level in {row[each] for row in own}
        }
        low, high = min(by_level, key=by_level.__getitem__), max(by_level, key=by_level.__getitem__)
        if len(by_level) > 1:
            bars.append((each, low, by_level[low] - middle, high, by_level[high] - middle))
    if not bars:
        raise ValueError("a tornado needs something that varies")
    bars.sort(key=lambda bar: bar[4] - bar[2])
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=[bar[0] for bar in bars],
            base=[bar[2] for bar in bars],
            x=[bar[4] - bar[2] for bar in bars],
            width=0.6,
            marker={"color": LOOKS["attention"].colour, "line": {"width": 0}},
            customdata=[(bar[1], bar[2], bar[3], bar[4]) for bar in bars],
            hovertemplate="<b>%{y}</b><br>%{customdata[0]}: %{customdata[1]:+.4g}<br>"
            "%{customdata[2]}: %{customdata[3]:+.4g}<extra></extra>",
        )
    )
    for bar in bars:
        for level, at, anchor, shift in (
            (bar[1], bar[2], "right", -5),
            (bar[3], bar[4], "left", 5),
        ):
            figure.add_annotation(
                x=at, y=bar[0], text=level, showarrow=False, xanchor=anchor, xshift=shift,
                font={"color": FAINT, "size": 11},
            )  # fmt: skip
    span = max(bar[4] for bar in bars) - min(bar[2] for bar in bars) or 1
    figure.update_xaxes(
        title=f"difference from the median of {middle:.4g}: {name}",
        range=[
            min(bar[2] for bar in bars) - 0.22 * span,
            max(bar[4] for bar in bars) + 0.22 * span,
        ],
    )
    figure.add_vline(x=0, line={"color": INK, "width": 1})
    figure.update_yaxes(automargin=True, showgrid=False)
    figure.update_layout(showlegend=False, margin=_MARGIN)
    subtitle = "Medians of all variants with a value; the widest moves it most"
    return styled(figure, title=title, subtitle=subtitle, height=170 + 38 * len(bars))


def roofline(run: StepRecord) -> Any:
    """FLOP/s of kernels against their FLOPs per byte, below the GPU's peaks."""
    go = graph_objects()
    gpu = run.asked.json["cluster"]["node"]["gpu"]
    kernels: dict[tuple[str, str], list[float]] = {}
    for event in run.trace.events(detail="operations"):
        if event.queue == "compute" and event.flops > 0 and event.bytes > 0 and event.duration > 0:
            sums = kernels.setdefault((event.kind, event.name), [0.0, 0.0, 0.0])
            sums[0] += event.flops
            sums[1] += event.bytes
            sums[2] += event.duration
    figure = go.Figure()
    points = [
        (kind, name, flops / size, flops / time, time) for (kind, name), (flops, size, time) in
        kernels.items()
    ]  # fmt: skip
    if not points:
        raise ValueError("the run has no kernel with FLOPs and bytes")
    bandwidth = _quantity(gpu["memory_bandwidth"])
    peaks = {name: _quantity(text) for name, text in gpu["dense_peak"].items()}
    used = run.asked.json["plan"].get("precision", "bf16").split("-")[0]
    listed = [each for each in dict.fromkeys(("bf16", used)) if each in peaks]
    formats: dict[float, list[str]] = {}  # by peak: formats with the same roof are one line
    for each in listed or [next(iter(peaks))]:
        formats.setdefault(peaks[each], []).append(each)
    knees = [peak / bandwidth for peak in formats]
    low = min(min(point[2] for point in points), min(knees)) / 10
    high = max(max(point[2] for point in points), max(knees)) * 3
    for peak, names in formats.items():
        figure.add_scatter(
            name=f"{' and '.join(names)} peak and memory", mode="lines",
            x=[low, peak / bandwidth, high], y=[low * bandwidth, peak, peak],
            line={"color": INK if names == [*formats.values()][-1] else FAINT, "width": 1.5},
            hoverinfo="skip",
        )  # fmt: skip
    longest = max(point[4] for point in points)
    for kind in dict.fromkeys(point[0] for point in points):
        own = [point for point in points if point[0] == kind]
        figure.add_scatter(
            name=look(kind).label, mode="markers",
            x=[point[2] for point in own], y=[point[3] for point in own],
            text=[point[1] for point in own],
            customdata=[point[4] / run.step_time for point in own],
            marker={
                "color": look(kind).colour, "opacity": 0.85,
                "size": [6 + 24 * math.sqrt(point[4] / longest) for point in own],
            },
            hovertemplate="<b>%{text}</b><br>%{y:.3s}FLOP/s at %{x:.3g} FLOP/byte<br>"
            "%{customdata:.1%} of the step<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title="FLOPs of a byte moved", type="log", tickformat="~s", dtick="D2")
    figure.update_yaxes(title="FLOP/s of one GPU", type="log", tickformat="~s", dtick="D2")
    figure.update_layout(legend=_LEGEND, margin=_MARGIN)
    subtitle = f"Kernels of the first rank of each stage on {gpu['name']}; area: time; both axes are logarithmic"
    return styled(figure, title=run.asked.name, subtitle=subtitle, height=560)


def _quantity(text: str) -> float:
    """A rate as the catalogue writes it, in units of one per second."""
    number, unit = text.split()
    return float(number) * {"G": 1e9, "T": 1e12, "P": 1e15}[unit[0]]


_LEGEND = {"orientation": "h", "x": 0, "y": -0.16, "yanchor": "top"}
_MARGIN = {"l": 84, "r": 24, "t": 84, "b": 64}
