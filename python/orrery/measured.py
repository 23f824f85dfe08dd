"""Predicted against measured: published runs, real runs, and two traces of one step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, final, overload

from orrery import _core, frames
from orrery.answer import Answer, answered
from orrery.errors import InputError
from orrery.heading import named
from orrery.parts import Part, Paths, path_of, paths_of, required, words_of
from orrery.progress import Progress, progress_callback
from orrery.quantities import Seconds
from orrery.scenario import Scenario

if TYPE_CHECKING:
    import pandas


@final
class Validation(Answer):
    """Errors of predictions, and each run. Made by `orrery.validate`."""

    _rows = "runs"

    @property
    def median_error(self) -> float:
        """Median of |predicted / measured - 1| over the rows that count, a share."""
        return float(self._values["median_abs_error_pct"]) / 100


class _Compared(Answer):
    """A predicted and a measured step, by class."""

    _rows = "classes"

    @property
    def predicted(self) -> Seconds:
        """The predicted step."""
        return Seconds(self._values["predicted_s"])

    @property
    def measured(self) -> Seconds:
        """The measured step."""
        return Seconds(self._values["measured_s"])


@final
class Comparison(_Compared):
    """A predicted and a measured step, joined by operation. Made by `orrery.compare`."""


@named("validate")
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


@final
class RunComparison(_Compared):
    """A real run next to its prediction, by class. Made by `orrery.compare`."""

    def causes(self) -> pandas.DataFrame:
        """The few changes that would explain the difference, each with its effect and prior."""
        return frames.frame(self._values["causes"])

    def collectives(self) -> pandas.DataFrame:
        """Collectives of a step, measured and predicted."""
        return frames.frame([frames.flat(row) for row in self._values["collectives"]])

    def shapes(self) -> pandas.DataFrame:
        """GEMMs of a step by their sizes, measured and predicted."""
        return frames.frame([frames.flat(row) for row in self._values["shapes"]])


@final
class Diagnosis(Answer):
    """Which parts of a cluster are slow. Made by `orrery.diagnose`."""

    _rows = "slow"

    @property
    def anything_slow(self) -> bool:
        """False if no part stands out."""
        return bool(self._values["anything_slow"])


def _holds_trace(path: str) -> bool:
    """Whether a file is a trace, packed or not; a scenario is none, nor a name."""
    if not os.path.isfile(path):
        return os.path.exists(path) and not os.path.isdir(path)
    with open(path, "rb") as file:
        beginning = file.read(65536)
    return beginning.startswith(b"\x1f\x8b") or b'"traceEvents"' in beginning


@overload
def compare(
    predicted: Scenario | Mapping[str, Any],
    measured: Paths,
    *,
    step: str = "",
    skip: int | None = None,
    fit: str | os.PathLike[str] | None = None,
    run: str = "",
) -> RunComparison: ...
@overload
def compare(
    predicted: str | os.PathLike[str],
    measured: Paths,
    *,
    step: str = "",
    skip: int | None = None,
    fit: str | os.PathLike[str] | None = None,
    run: str = "",
) -> Comparison | RunComparison: ...
@named("compare")
def compare(
    predicted: Scenario | Part,
    measured: Paths,
    *,
    step: str = "",
    skip: int | None = None,
    fit: str | os.PathLike[str] | None = None,
    run: str = "",
) -> Comparison | RunComparison:
    """A real run next to its prediction, or two traces of a step: `orrery compare`.

    predicted  a scenario; or a trace that `Trace.save` or `orrery simulate --trace` wrote
    measured   of a scenario: traces of PyTorch's profiler, of one or several ranks, or logs of
               steps (Megatron-LM, torchtitan, :::MLLOG, MLflow, CSV); of a trace: one that
               `orrery.execute(trace=...)` wrote, joined by operation, ratio = predicted / measured
    step       traces: the annotation that begins each step, where there is no ProfilerStep#
    skip       steps to leave out at the beginning, as warm-up
    fit        a folder for software.json and cluster.json, the profile and site of this run
    run        of a store of MLflow with several runs: the name or id of one
    Errors     InputError; also logs of different runs. A batch that the logs state is used
    """
    files = paths_of(measured)
    if isinstance(predicted, (str, os.PathLike)) and len(files) == 1:
        path = os.fspath(predicted)
        if _holds_trace(path):
            if run:
                raise InputError("run: is for MLflow's stores, not for traces")
            return answered(Comparison, _core.compare(path, files[0]), "")
    found = _core.compare_run(
        required(predicted.json if isinstance(predicted, Scenario) else predicted),
        files=files,
        step=step,
        skip=skip,
        fit=path_of(fit),
        run=run,
    )
    return answered(RunComparison, found, "")


@named("diagnose")
def diagnose(logs: Paths, *, step: str = "", skip: int | None = None) -> Diagnosis:
    """Names the NIC, node, GPU, rank or link that is slow: `orrery diagnose`.

    logs        of parts that should be alike: perftest by NIC, nccl-tests by node or pair, step
                times by rank, traces of PyTorch's profiler by rank
    step, skip  as of `compare`, for traces
    Errors      InputError, also where nothing can be compared
    """
    found = _core.diagnose(files=paths_of(logs), step=step, skip=skip)
    return answered(Diagnosis, found, "")
