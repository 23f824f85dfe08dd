"""Predicted against measured: published runs, and two traces of one step."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import final

from orrery import _core
from orrery.answer import Answer, answered
from orrery.parts import Paths, path_of, paths_of, words_of
from orrery.progress import Progress, progress_callback
from orrery.quantities import Seconds


@final
class Validation(Answer):
    """Errors of predictions, and each run. Made by `orrery.validate`."""

    _rows = "runs"

    @property
    def median_error(self) -> float:
        """Median of |predicted / measured - 1| over the rows that count, a share."""
        return float(self._values["median_abs_error_pct"]) / 100


@final
class Comparison(Answer):
    """A predicted and a measured step, joined by operation. Made by `orrery.compare`."""

    _rows = "classes"

    @property
    def predicted(self) -> Seconds:
        """The predicted step."""
        return Seconds(self._values["predicted_s"])

    @property
    def measured(self) -> Seconds:
        """The measured step."""
        return Seconds(self._values["measured_s"])


def validate(
    file: str | os.PathLike[str],
    *,
    by: str | Iterable[str] = (),
    software: Paths = (),
    worst: int | None = None,
    page: str | os.PathLike[str] | None = None,
    record: str | os.PathLike[str] | None = None,
    leave_out: str | None = None,
    own: int = 0,
    in_sample: bool = False,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> Validation:
    """Predicted against measured on training runs, kernels or collectives: `orrery validate`.

    file       a CSV whose header says what it holds
    by         columns by which errors are grouped; "software" by default
    software   profiles that replace the shipped ones of the stacks that they name
    worst      how many of the worst runs the report lists; 10 by default
    page       a folder for accuracy.md and accuracy.svg
    record     a file for the record of prediction errors
    leave_out  training runs: a column, such as "software", whose cells are left out in turn, or
               several together ("model,gpu")
    own        with leave_out: fit to that many runs of each group, as to a user's own
    in_sample  kernels and collectives: score fits to all rows
    Errors     InputError; KeyboardInterrupt, which writes nothing
    """
    found = _core.validate(
        os.fspath(file),
        by=words_of(by),
        software=paths_of(software),
        worst=worst,
        page=path_of(page),
        record=path_of(record),
        leave_out=leave_out,
        own=own,
        in_sample=in_sample,
        threads=threads or 0,
        progress=progress_callback(progress, "runs"),
    )
    if not found[2]:
        raise KeyboardInterrupt
    return answered(Validation, found, "the runs")


def compare(
    predicted: str | os.PathLike[str], measured: str | os.PathLike[str]
) -> Comparison:
    """Joins two traces of one step by operation; ratio = predicted / measured: `orrery compare`.

    predicted  a trace that `Trace.save` or `orrery simulate --trace` wrote
    measured   one that `orrery.execute(trace=...)` wrote, of the same detail
    Errors     InputError
    """
    return answered(Comparison, _core.compare(os.fspath(predicted), os.fspath(measured)), "")
