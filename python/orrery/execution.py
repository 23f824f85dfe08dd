"""Executes a plan on this machine and reports what was measured."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from orrery import _core, pointer
from orrery.answer import Answer
from orrery.errors import Interrupted
from orrery.heading import named
from orrery.measured import Comparison
from orrery.parts import Part, Paths, mapping_of, path_of, paths_of, text_of
from orrery.progress import Progress
from orrery.quantities import Bytes, Seconds
from orrery.record import OutOfMemory
from orrery.scenario import Scenario

_INTERRUPTED = 130  # what the command exits with
_BETWEEN_LINES = 0.5  # seconds


class Step(NamedTuple):
    """One training step, as measured on rank 0."""

    step: int  # from 1
    step_time: Seconds
    loss: float
    gradient_norm: float
    skipped_updates: int  # so far, because gradients were not finite
    tokens: float  # that it trained on


@final
class Execution(Answer):
    """An executed run: measured and predicted figures. Made by `orrery.execute`.

    Unknown values are None: memory and times without a step; after Ctrl-C all but the steps.
    """

    _rows = "steps"

    def __init__(
        self,
        values: Mapping[str, Any],
        comparison: str = "",
        complete: bool = True,
    ):
        super().__init__(values, _report(values, comparison), complete)
        self._comparison = comparison

    @property
    def fits(self) -> bool:
        """Whether the run fits in memory; if False, nothing was executed."""
        return bool(self._values.get("fits", True))

    @property
    def out_of_memory(self) -> OutOfMemory | None:
        """The rank that lacks memory; None if the run fits."""
        found = self._values.get("out_of_memory")
        if found is None:
            return None
        return OutOfMemory(
            found["rank"], Bytes(found["needed_bytes"]), Bytes(found["available_bytes"])
        )

    @property
    def losses(self) -> tuple[float, ...]:
        """The mean loss of each step."""
        return tuple(step["loss"] for step in self._values.get("steps", ()))

    @property
    def step_time(self) -> Seconds | None:
        """Median over the steps after the first, on the slowest rank."""
        return _seconds(self._values.get("median_step_time_s"))

    @property
    def predicted_step_time(self) -> Seconds | None:
        """The step time that `simulate` predicts."""
        return _seconds(self._values.get("predicted_step_time_s"))

    @property
    def peak_memory(self) -> Bytes | None:
        """Peak memory of the buffers of the fullest rank."""
        found = self._values.get("peak_memory_bytes")
        return None if found is None else Bytes(found)

    @property
    def comparison(self) -> Comparison | None:
        """A further step compared with its prediction by operation; None unless `explain=True`."""
        found = self._values.get("comparison")
        return None if found is None else Comparison(found, self._comparison)


@named("execute")
def execute(
    scenario: Scenario | Part | None = None,
    *,
    model: Part | None = None,
    cluster: Part | None = None,
    plan: Part | None = None,
    software: Part | None = None,
    changes: Mapping[str, Any] | None = None,
    backend: str = "cpu",
    ranks: int | None = None,
    steps: int = 10,
    seed: int = 1,
    data: Paths = (),
    init: str | os.PathLike[str] | None = None,
    export: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: str | int | None = None,
    resume: str = "same",
    fabric: str | None = None,
    deadline: float | None = None,
    stall: float = 60,
    trace: str | os.PathLike[str] | None = None,
    trace_detail: str = "instructions",
    explain: bool = False,
    log: str | os.PathLike[str] | None = None,
    metrics_port: int | None = None,
    metrics_address: str | None = None,
    mlflow: str | os.PathLike[str] | None = None,
    progress: bool | Progress | None = None,
    on_step: Callable[[Step], None] | None = None,
    partial: bool = False,
) -> Execution:
    """Executes the plan on this machine: `orrery execute`.

    All ranks are threads of this process and no process is started: a rank computes on a core, or
    on the GPU with its number. Ranks on several machines need the command and a launcher (torchrun,
    srun, mpirun).

    scenario          a `Scenario`, a path, a name or a document; the parts replace its own
    changes           as `Scenario.replace` takes them; applied before ranks are counted
    backend           "cpu" or "cuda"
    ranks             sets the plan's data degree
    steps             in total, including those before a resumed checkpoint
    data              text files to train on, byte by byte; synthetic tokens by default
    init              parameters to begin with: a file of safetensors, its index, or the folder of a
                      checkpoint of the transformers library
    export            a file of safetensors for the parameters after the last step
    checkpoint        a folder to resume from and write to
    checkpoint_every  steps or time between checkpoints: 100, "5 min"
    resume            "same", or "changed": also with another batch, length, precision or data
    fabric            "threads", or "nccl" between GPUs; by default what the GPUs can do
    deadline, stall   seconds that the run, and a single instruction, may take
    trace             a file for the Chrome trace of one more step
    explain           compare one more step with its prediction (`Execution.comparison`)
    log               a file to which a line of JSON is appended for each step
    metrics_port      serves Prometheus metrics there, on the loopback interface by default
    mlflow            a folder (or file:///folder) of MLflow's file store, to which the run is added
    progress          called with (done, of); True or False: lines on stderr or silence; by default
                      the lines where stderr is a terminal
    on_step           called with each `Step`
    Other Python threads keep running. On Ctrl-C the run ends; if it writes checkpoints, after its
    step and with a checkpoint (a second Ctrl-C does not wait); the log and the checkpoints stay.
    A run that does not fit in memory is an answer, not an error (`Execution.fits`).
    Errors    InputError; RunFailure with the code that the command would exit with; on Ctrl-C
              `orrery.Interrupted` with the steps so far, or, with `partial`, these steps
    """
    if isinstance(scenario, Scenario):
        scenario = scenario.json
    text, comparison, code = _core.execute(
        scenario=text_of(scenario),
        model=text_of(model),
        cluster=text_of(cluster),
        plan=text_of(plan),
        software=text_of(software),
        set=[
            (address, pointer.to_json(value))
            for address, value in mapping_of(changes or {}, "changes").items()
        ],
        backend=backend,
        ranks=ranks,
        steps=steps,
        seed=seed,
        data=paths_of(data),
        init=path_of(init),
        export=path_of(export),
        checkpoint=path_of(checkpoint),
        checkpoint_every=None if checkpoint_every is None else str(checkpoint_every),
        resume=resume,
        fabric=fabric,
        deadline=deadline,
        stall=stall,
        trace=path_of(trace),
        trace_detail=trace_detail,
        explain=explain,
        log=path_of(log),
        metrics_port=metrics_port,
        metrics_address=metrics_address,
        mlflow=path_of(mlflow),
        watch=_Watch(steps, progress, on_step),
    )
    values = json.loads(text)
    measured = Execution(values, comparison, complete=code != _INTERRUPTED)
    if not measured.complete and not partial:
        raise Interrupted(f"{len(values['steps'])} steps", measured)
    return measured


class _Watch:
    """Receives the reports of a run in progress."""

    def __init__(
        self,
        steps: int,
        progress: bool | Progress | None,
        on_step: Callable[[Step], None] | None,
    ):
        self._of = steps
        self._call = progress if callable(progress) else None
        self._lines = sys.stderr.isatty() if progress is None else progress is True
        self._on_step = on_step
        self._next_line = 0.0

    def __call__(self, kind: str, text: str) -> None:
        if kind == "note":
            if self._lines:
                print(text, file=sys.stderr, flush=True)
            return
        values = json.loads(text)
        tokens = values.pop("tokens")
        done = values["step"]
        if self._lines:
            self._line(done, values["loss"], tokens / values["step_time_s"])
        if self._call is not None:
            self._call(done, self._of)
        if self._on_step is not None:
            self._on_step(
                Step(
                    values["step"],
                    Seconds(values["step_time_s"]),
                    values["loss"],
                    values["gradient_norm"],
                    values["skipped_updates"],
                    tokens,
                )
            )

    def _line(self, done: int, loss: float, rate: float) -> None:
        now = time.monotonic()
        if now < self._next_line and done < self._of:
            return
        self._next_line = now + _BETWEEN_LINES
        text = f"step {done} of {self._of}  loss {loss:.4f}  {rate:.4g} tokens/s"
        print(text, file=sys.stderr, flush=True)


def _seconds(value: float | None) -> Seconds | None:
    return None if value is None else Seconds(value)


def _report(values: Mapping[str, Any], comparison: str) -> str:
    """The text report, as the command prints it."""
    if not values.get("fits", True):
        found = values["out_of_memory"]
        needed, there = Bytes(found["needed_bytes"]), Bytes(found["available_bytes"])
        return f"does not fit: {needed} needed, {there} available\n"
    steps = values.get("steps", ())
    lines = []
    if "ranks" in values:
        lines.append(f"{values['ranks']} ranks over {values['fabric']}: {values['device']}")
    if not steps:
        seen = values.get("resumed_from_step", 0)
        lines.append(f"  nothing left to do: the checkpoint is from step {seen}")
        return "\n".join(lines) + "\n"
    first, last = steps[0], steps[-1]
    rows = [
        ("steps", str(len(steps)), f"from {first['step']} to {last['step']}"),
        ("loss", f"{last['loss']:.4f}", f"first {first['loss']:.4f}"),
    ]
    if last["skipped_updates"]:
        rows.append(
            ("updates skipped", str(last["skipped_updates"]), "where gradients were not finite")
        )
    if "median_step_time_s" in values:
        predicted = Seconds(values["predicted_step_time_s"])
        rows.append(
            ("step, median", str(Seconds(values["median_step_time_s"])), f"predicted {predicted}")
        )
        planned = Bytes(values["predicted_peak_memory_bytes"])
        rows.append(
            ("peak memory", str(Bytes(values["peak_memory_bytes"])), f"predicted {planned}")
        )
    lines += [f"  {label:<18} {figure:>12}   {rest}" for label, figure, rest in rows]
    if comparison:
        lines.append(f"\nOne more step, recorded\n{comparison}")
    return "\n".join(lines) + "\n"
