"""The figures of one predicted step, without a picture or a word about them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from orrery.heading import heading
from orrery.quantities import Bytes, Seconds
from orrery.trace import Trace

if TYPE_CHECKING:
    from orrery import _core as extension


class Asked(Protocol):
    """What a step was predicted for: a `Scenario`."""

    @property
    def name(self) -> str: ...
    @property
    def changes(self) -> Mapping[str, Any]: ...
    @property
    def json(self) -> dict[str, Any]: ...
    @property
    def _core(self) -> extension.Scenario: ...


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


class StepRecord:
    """The figures of one predicted step: what pictures, tables and comparisons are made from."""

    def __init__(self, asked: Asked, values: Mapping[str, Any]):
        self._asked = asked
        self._values = values

    @property
    def asked(self) -> Asked:
        """The scenario that was simulated."""
        return self._asked

    @property
    def json(self) -> dict[str, Any]:
        """Everything that `orrery simulate --json` prints; the copy is yours."""
        given = {"scenario": self._asked.name}
        head = heading("simulate", given, self._asked.changes)
        names: dict[str, Any] = json.loads(self._asked._core.heading())
        return head | names | copy.deepcopy(dict(self._values))

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

    @property
    def trace(self) -> Trace:
        """The work on every queue, operation by operation."""
        return Trace(self._prediction)

    @cached_property
    def _prediction(self) -> extension.Prediction:
        """Simulated again on demand, with identical times, so that runs of a sweep stay small."""
        return self._asked._core.predict(headroom=self._values["headroom"])
