"""Runs as rows of tables; pandas is imported for the first one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from orrery.record import StepRecord

_FIGURES = (
    "fits",
    "fit",
    "fit_probability",
    "step_time_s",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "model_tflops_per_gpu",
    "mfu",
    "hfu",
    "peak_memory_bytes",
    "cost_usd_per_step",
    "energy_j_per_step",
    "bottleneck",
    "bubble_fraction",
    "ranks",
)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'orrery-sim[notebook]'") from error
    return pandas


def row(run: StepRecord) -> dict[str, Any]:
    """Scenario, changes, figures, then `breakdown.CLASS_s`, `busy.UNIT` and `memory.KIND_bytes`."""
    values = run._values
    cells: dict[str, Any] = {"scenario": run.asked.name, **run.asked.changes}
    cells |= {figure: values[figure] for figure in _FIGURES}
    cells |= {f"breakdown.{part}_s": time for part, time in values["breakdown"].items()}
    cells |= {f"busy.{unit}": share for unit, share in values["busy"].items()}
    cells |= {f"memory.{kind}_bytes": size for kind, size in values["memory"].items()}
    return cells


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested members to `outer.inner`; lists are unchanged."""
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            cells |= flat(value, f"{prefix}{key}.")
        else:
            cells[prefix + key] = value
    return cells


def series(run: StepRecord) -> pandas.Series[Any]:
    """One run as a series."""
    made: pandas.Series[Any] = _pandas().Series(row(run), dtype=object, name=run.asked.name)
    return made


def frame(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """Rows as a table, in the order given."""
    made: pandas.DataFrame = _pandas().DataFrame(list(rows))
    return made
