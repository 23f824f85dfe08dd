"""Compares two runs: the changes between their scenarios, and where the time goes in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orrery.pointer import differences, to_json
from orrery.quantities import Seconds, Text

if TYPE_CHECKING:
    from orrery.record import StepRecord

Row = tuple[str, str, str, str]  # label, this run, the other, the difference
_SECTIONS = ("model", "cluster", "plan", "software")
_MOST_CHANGES = 16
_WIDEST = 22


def comparison(run: StepRecord, versus: StepRecord) -> Text:
    """What differs between two runs, as a table; the largest differences come first."""
    rows = [("", "this", "versus", "difference"), *_totals(run, versus)]
    rows += [("", "", "", ""), ("where the step went", "", "", ""), *_parts(run, versus)]
    changes = _changes(run, versus)
    if changes:
        rows += [("", "", "", ""), ("what was asked", "", "", ""), *changes]
    return Text("\n".join(_aligned(rows)))


def _relative(value: float, other: float) -> str:
    return f"{100 * (value / other - 1):+.1f} %" if other else ""


def _totals(run: StepRecord, versus: StepRecord) -> list[Row]:
    def row(label: str, value: Any, other: Any, form: str = "") -> Row:
        return label, format(value, form), format(other, form), _relative(value, other)

    rows = [
        row("step time", run.step_time, versus.step_time),
        row("tokens/s", run.tokens_per_s, versus.tokens_per_s, ",.0f"),
        (
            "MFU",
            f"{run.mfu:.1%}",
            f"{versus.mfu:.1%}",
            f"{100 * (run.mfu - versus.mfu):+.1f} points",
        ),
        row("peak memory", run.peak_memory, versus.peak_memory),
        ("fits", run.fit, versus.fit, ""),
    ]
    if run.cost is not None and versus.cost is not None:
        rows.append(row("cost of a step, $", run.cost, versus.cost, ",.2f"))
    return rows


def _parts(run: StepRecord, versus: StepRecord) -> list[Row]:
    """Times by class, largest difference first; classes without time in both runs are left out."""
    none = dict.fromkeys((*run.breakdown, *versus.breakdown), Seconds(0))  # data: only if stated
    mine, others = {**none, **run.breakdown}, {**none, **versus.breakdown}
    differing = sorted(mine, key=lambda part: (-abs(mine[part] - others[part]), part))
    return [
        (f"  {part}", str(mine[part]), str(others[part]), _signed(mine[part] - others[part]))
        for part in differing
        if mine[part] or others[part]
    ]


def _signed(difference: float) -> str:
    if abs(difference) < 0.5e-12:  # times are whole picoseconds
        return "0 s"
    return ("-" if difference < 0 else "+") + str(Seconds(abs(difference)))


def _changes(run: StepRecord, versus: StepRecord) -> list[Row]:
    left, right = run.asked.json, versus.asked.json
    found: list[tuple[str, Any, Any]] = []
    for section in _SECTIONS:
        found += differences(left.get(section), right.get(section), f"/{section}")
    rows = [(f"  {at}", _short(mine), _short(other), "") for at, mine, other in found]
    if len(rows) > _MOST_CHANGES:
        left_out = len(rows) - _MOST_CHANGES
        rows = rows[:_MOST_CHANGES] + [(f"  and {left_out} more", "", "", "")]
    return rows


def _short(value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else to_json(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _aligned(rows: list[Row]) -> list[str]:
    """Labels to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for label, *figures in rows:
        cells = [f"{text:>{width}}" for text, width in zip(figures, widths[1:])]
        lines.append("  ".join([f"{label:<{widths[0]}}", *cells]).rstrip())
    return lines
