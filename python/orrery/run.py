"""The prediction of one training step."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, final

from orrery import _core, frames, show
from orrery.contention import Network
from orrery.explain import comparison
from orrery.quantities import Bytes, Seconds, Text
from orrery.trace import Trace

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

    from orrery.scenario import Scenario


class OutOfMemory(NamedTuple):
    """The first rank that does not fit, what it needs and what its GPU has."""

    rank: int
    needed: Bytes
    available: Bytes


class Range(NamedTuple):
    """How long a step would be measured: 8 of 10 cases are between `p10` and `p90`."""

    p10: Seconds
    p50: Seconds
    p90: Seconds


@final
class Run:
    """The prediction of one training step, with its scenario. Made by `Scenario.simulate`.

    The slowest rank's time is `step_time`; the fullest rank's memory is `peak_memory`.
    """

    def __init__(self, scenario: Scenario, values: Mapping[str, Any]):
        self._scenario = scenario
        self._values = values

    @property
    def scenario(self) -> Scenario:
        """The scenario that was simulated."""
        return self._scenario

    @property
    def json(self) -> dict[str, Any]:
        """Everything that `orrery simulate --json` prints; the copy is yours."""
        heading: dict[str, Any] = json.loads(self._scenario._core.heading())
        return heading | copy.deepcopy(dict(self._values))

    @property
    def step_time(self) -> Seconds:
        """One step, in seconds."""
        return Seconds(self._values["step_time_s"])

    @property
    def uncertainty(self) -> Range:
        """The range of the step time, by the errors of published runs that are alike."""
        found = self._values["uncertainty"]
        return Range(*(Seconds(found[key]) for key in Range._fields))

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of the whole cluster."""
        return float(self._values["tokens_per_s"])

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens per second and GPU."""
        return float(self._values["tokens_per_s_per_gpu"])

    @property
    def model_tflops_per_gpu(self) -> float:
        """Model FLOPs per second and GPU, in 10^12: no recomputation, causal attention at half."""
        return float(self._values["model_tflops_per_gpu"])

    @property
    def mfu(self) -> float:
        """Model FLOPs over the dense peak of the GEMM precision, 0 to 1."""
        return float(self._values["mfu"])

    @property
    def hfu(self) -> float:
        """Hardware FLOPs, with recomputation, over the same peak, 0 to 1."""
        return float(self._values["hfu"])

    @property
    def peak_memory(self) -> Bytes:
        """Peak memory of the fullest GPU, in bytes."""
        return Bytes(self._values["peak_memory_bytes"])

    @property
    def memory(self) -> Mapping[str, Bytes]:
        """Memory of the fullest GPU at its peak, by kind; adds up to `peak_memory`."""
        return MappingProxyType({k: Bytes(v) for k, v in self._values["memory"].items()})

    @property
    def peak_memory_range(self) -> tuple[Bytes, Bytes]:
        """Lower and upper bound of the peak memory of the fullest GPU."""
        found = self._values["peak_memory_range_bytes"]
        return Bytes(found["least"]), Bytes(found["most"])

    @property
    def fits(self) -> bool:
        """Whether every GPU has enough memory for the lower bound of `peak_memory_range`."""
        return bool(self._values["fits"])

    @property
    def fit(self) -> str:
        """ "yes"; "tight": with less to spare than `simulate(headroom=...)`; "doubtful": only with
        the lower bound of `peak_memory_range`, not as predicted; "no".
        """
        return str(self._values["fit"])

    @property
    def fit_probability(self) -> float:
        """Share of published runs whose error in predicted peak would let it fit; 0 to 1."""
        return float(self._values["fit_probability"])

    @property
    def out_of_memory(self) -> OutOfMemory | None:
        """The first rank that does not fit; None if all do."""
        found = self._values["out_of_memory"]
        if found is None:
            return None
        return OutOfMemory(
            found["rank"], Bytes(found["needed_bytes"]), Bytes(found["available_bytes"])
        )

    @property
    def breakdown(self) -> Mapping[str, Seconds]:
        """Where the slowest rank's step went, by class; adds up to `step_time`."""
        return MappingProxyType({k: Seconds(v) for k, v in self._values["breakdown"].items()})

    @property
    def data(self) -> dict[str, Any] | None:
        """The lane of the step's input: its stages, and what the step waits; None if not stated."""
        found = self._values.get("data")
        return None if found is None else copy.deepcopy(dict(found))

    @property
    def busy(self) -> Mapping[str, float]:
        """Share of its step in which the slowest rank's nic, nvlink and sm are busy, 0 to 1."""
        return MappingProxyType({k: float(v) for k, v in self._values["busy"].items()})

    @property
    def bottleneck(self) -> str:
        """The class of `breakdown` with the most time."""
        return str(self._values["bottleneck"])

    @property
    def bubble_fraction(self) -> float:
        """Share of the step in which the slowest rank waits for other stages, 0 to 1."""
        return float(self._values["bubble_fraction"])

    @property
    def waterfall(self) -> tuple[tuple[str, Seconds], ...]:
        """From the ideal machine's step to this one, part by part; adds up to `step_time`."""
        return tuple((part["name"], Seconds(part["time_s"])) for part in self._values["waterfall"])

    @property
    def lower_bound(self) -> Seconds:
        """The step if nothing shared a link; no step with traffic is shorter."""
        return Seconds(self._values["lower_bound_s"])

    @property
    def network(self) -> Network:
        """How traffic was evaluated, and what contention cost on which links to which traffic."""
        return Network(self._values["network"])

    @property
    def cost(self) -> float | None:
        """US dollars for one step; None where the cluster has no price."""
        found = self._values["cost_usd_per_step"]
        return None if found is None else float(found)

    @property
    def energy(self) -> float:
        """Joules for one step."""
        return float(self._values["energy_j_per_step"])

    @property
    def gpus(self) -> int:
        """Ranks, one GPU each."""
        return int(self._values["ranks"])

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Defaults, and curves used as a fallback or outside their range: confirm these first."""
        return tuple(self._values["assumptions"])

    def explain(self, *, versus: Run | None = None) -> Text:
        """Where each millisecond went; with `versus`, what differs from another run and by how much.

        The result is a str that a prompt shows as it is.
        """
        if versus is not None:
            return comparison(self, versus)
        return Text(self._prediction.report(explain=True, width=100))

    @property
    def trace(self) -> Trace:
        """The work on every queue, operation by operation."""
        return Trace(self._prediction)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one page of HTML: the answer with its range, waterfall, timeline, memory, load.

        It needs no network. `orrery.report` writes one page of several answers.
        Errors  OSError where the file cannot be written
        """
        from orrery.page import report

        report(path, self)

    def to_series(self) -> pandas.Series[Any]:
        """Every figure under its name in the JSON, units in the names ("step_time_s")."""
        return frames.series(self)

    def to_frame(self) -> pandas.DataFrame:
        """The same as a table of one row, for concatenation."""
        return frames.frame([frames.row(self)])

    def plot_timeline(
        self, *, stages: list[int] | None = None, host: bool = False, detail: str = "instructions"
    ) -> plotly.graph_objects.Figure:
        """A timeline of each queue of each pipeline stage: a bar per instruction or operation.

        stages  which pipeline stages to show; all by default
        host    whether to show the CPU's launches too
        detail  "instructions" of the schedule, or all "operations"
        """
        from orrery import timeline

        return timeline.plot(self, stages=stages, host=host, detail=detail)

    def plot_waterfall(self) -> plotly.graph_objects.Figure:
        """A waterfall from the ideal machine to this step: a bar per loss."""
        from orrery import waterfall

        return waterfall.plot(self)

    def plot_roofline(self) -> plotly.graph_objects.Figure:
        """FLOP/s of the step's kernels against their FLOPs per byte, below the GPU's peaks."""
        from orrery import plots

        return plots.roofline(self)

    @cached_property
    def _prediction(self) -> _core.Prediction:
        """Simulated again on demand, with identical times, so that runs of a sweep stay small."""
        return self._scenario._core.predict(headroom=self._values["headroom"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self._scenario, self._values)

    def __repr__(self) -> str:
        return show.line(self)

    def __str__(self) -> str:
        return show.text(self)

    def _repr_html_(self) -> str:
        return show.html(self)
