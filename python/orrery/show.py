"""Displays of a run: a line at a prompt, several lines when printed, a card in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from orrery.palette import FAINT, FONT, INK, look

if TYPE_CHECKING:
    from orrery.record import StepRecord

_DOUBTS = {
    "yes": "",
    "tight": ", fits tightly",
    "doubtful": ", may not fit",
    "no": ", does not fit",
}
_SEEN = 0.0005  # share of the step from which a class is shown


def line(run: StepRecord) -> str:
    """The line for `repr`."""
    changes = "".join(f", {at}={value!r}" for at, value in run.asked.changes.items())
    doubt = _DOUBTS[run.fit]
    return f"Run({run.asked.name}{changes}: {run.step_time}, {run.mfu:.1%} MFU{doubt})"


def figures(run: StepRecord) -> list[tuple[str, str]]:
    """The main figures, as (label, text)."""
    rows = [
        ("step time", str(run.step_time)),
        ("tokens/s", f"{run.tokens_per_s:,.0f} on {run.gpus:,} GPUs"),
        ("MFU, HFU", f"{run.mfu:.1%}, {run.hfu:.1%}"),
        ("peak memory", f"{run.peak_memory}{_DOUBTS[run.fit]}"),
        ("waiting on", look(run.bottleneck).label),
    ]
    if run.cost is not None:
        rows.append(("cost of a step", _dollars(run.cost)))
    return rows


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.3g}"


def text(run: StepRecord) -> str:
    """The lines for `str`."""
    rows = figures(run)
    width = max(len(label) for label, _ in rows)
    head = run.asked.name + "".join(f"\n{at} = {v}" for at, v in run.asked.changes.items())
    return "\n".join([head, *(f"  {label:<{width}}  {figure}" for label, figure in rows)])


def html(run: StepRecord) -> str:
    """The card for a notebook: the figures above a bar of the breakdown."""
    changes = "".join(
        f"<div style='color:{FAINT};font-size:12px'><code>{escape(at)}</code> = "
        f"{escape(str(value))}</div>"
        for at, value in run.asked.changes.items()
    )
    cells = "".join(
        f"<div style='margin:10px 28px 0 0'><div style='color:{FAINT};font-size:11px'>"
        f"{escape(label)}</div><div style='font-size:15px'>{escape(figure)}</div></div>"
        for label, figure in figures(run)
    )
    return (
        f"<div style='font-family:{FONT};color:{INK};background:#fff;padding:12px 16px;"
        f"border:1px solid #e1e5ea;border-radius:6px;max-width:860px'>"
        f"<div style='font-weight:600;font-size:16px'>{escape(run.asked.name)}</div>{changes}"
        f"<div style='display:flex;flex-wrap:wrap'>{cells}</div>{_bar(run)}</div>"
    )


def _bar(run: StepRecord) -> str:
    """The step as one bar, a legend under it."""
    shown = [
        (look(kind), time) for kind, time in run.breakdown.items() if time >= _SEEN * run.step_time
    ]
    blocks = "".join(
        f"<div title='{escape(f'{each.label}: {time}')}' style='background:{each.colour};"
        f"width:{100 * time / run.step_time:.3f}%'></div>"
        for each, time in shown
    )
    legend = "".join(
        f"<span style='margin-right:16px;white-space:nowrap'><span style='display:inline-block;"
        f"width:10px;height:10px;border-radius:2px;background:{each.colour};margin-right:5px'>"
        f"</span>{escape(each.label)} {time / run.step_time:.1%}</span>"
        for each, time in shown
    )
    return (
        f"<div style='display:flex;height:20px;margin:12px 0 8px;border-radius:3px;"
        f"overflow:hidden'>{blocks}</div><div style='font-size:12px;line-height:1.7'>{legend}</div>"
    )
