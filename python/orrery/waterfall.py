"""The figure of `Run.waterfall`: from the ideal machine's step to the predicted one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orrery.figure import graph_objects, styled, time_axis, with_unit
from orrery.palette import FAINT, GOOD, INK, LOOKS

if TYPE_CHECKING:
    from orrery.record import StepRecord

_COLOURS = {
    "recomputation": "#5d7fb0",
    "FLOPs outside the model's count": "#7390bd",
    "more work than the average rank": "#8ea9cc",
    "less work than the average rank": "#8ea9cc",
    "GEMMs below peak": LOOKS["gemm"].colour,
    "attention below peak": LOOKS["attention"].colour,
    "memory-bound kernels": LOOKS["memory_bound"].colour,
    "optimizer": LOOKS["optimizer"].colour,
    "tensor-parallel communication": LOOKS["tp"].colour,
    "context-parallel communication": LOOKS["cp"].colour,
    "expert-parallel communication": LOOKS["ep"].colour,
    "data-parallel communication": LOOKS["dp"].colour,
    "pipeline transfers": LOOKS["pp"].colour,
    "other communication": LOOKS["other_comm"].colour,
    "pipeline bubble": "#a9b3bf",
    "host": LOOKS["host"].colour,
}
_ROW_HEIGHT = 34
_BAR = 0.62
_SMALLEST = 0.0005  # share of the step that has a row of its own


def plot(run: StepRecord) -> Any:
    """Bars from left to right, top to bottom; a negative part goes to the left."""
    go = graph_objects()
    factor, unit = time_axis(run.step_time)
    parts = _worth_a_row(run)
    names = [name for name, _ in parts] + ["predicted step"]
    lengths = [time * factor for _, time in parts] + [run.step_time * factor]
    bases = [sum(lengths[:i]) for i in range(len(parts))] + [0.0]
    colours = [GOOD, *(_COLOURS.get(name, LOOKS["other"].colour) for name in names[1:-1]), INK]
    shares = [length / (run.step_time * factor) for length in lengths]
    rows = list(range(len(names)))

    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=rows,
            x=lengths,
            base=bases,
            width=_BAR,
            marker={"color": colours, "line": {"width": 0}, "cornerradius": 2},
            customdata=list(zip(names, shares)),
            hovertemplate="<b>%{customdata[0]}</b><br>%{x:.4g} "
            + f"{unit}, %{{customdata[1]:.1%}} of the step<extra></extra>",
        )
    )
    for row, (base, length, share) in enumerate(zip(bases, lengths, shares)):
        figure.add_annotation(
            x=max(base, base + length),
            y=row,
            xanchor="left",
            xshift=6,
            showarrow=False,
            text=f"{with_unit(length, lengths[-1], unit)} <span style='color:{FAINT}'>{share:.1%}</span>",
        )
        if row:
            end = bases[row - 1] + lengths[row - 1]
            figure.add_shape(
                type="line",
                x0=end,
                x1=end,
                y0=row - 1 + _BAR / 2,
                y1=row - _BAR / 2,
                line={"color": "#b5bdc8", "width": 1},
            )
    furthest = max(max(base, base + length) for base, length in zip(bases, lengths))
    figure.update_xaxes(range=[0, furthest * 1.16], ticksuffix=f" {unit}")
    figure.update_yaxes(
        tickvals=rows,
        ticktext=[
            f"<b>{name}</b>" if row in (0, rows[-1]) else name for row, name in enumerate(names)
        ],
        range=[rows[-1] + 0.6, -0.6],
        showgrid=False,
        ticklabelstandoff=8,
    )
    figure.update_layout(showlegend=False, margin={"l": 220, "r": 24, "t": 84, "b": 48})
    subtitle = f"Ideal machine to predicted step on {run.gpus:,} GPUs · MFU {run.mfu:.1%}"
    height = 140 + _ROW_HEIGHT * len(names)
    return styled(figure, title=run.asked.name, subtitle=subtitle, height=height)


def _worth_a_row(run: StepRecord) -> list[tuple[str, float]]:
    """The parts; those too small to see are summed up in a last one."""
    seen = [part for part in run.waterfall if abs(part[1]) >= _SMALLEST * run.step_time]
    rest = run.step_time - sum(time for _, time in seen)
    small = [part for part in run.waterfall if part[1] and part not in seen]
    return [*seen, ("all smaller parts", rest)] if small else list(seen)
