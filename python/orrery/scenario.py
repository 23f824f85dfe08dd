"""A question (which model, on which cluster, by which plan, with which software) and its answer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

from orrery import _core, frames, page, plots, pointer, show, timeline, waterfall
from orrery.answer import Answer, answered
from orrery.explain import comparison
from orrery.heading import heading
from orrery.network import Network
from orrery.parts import kind_of, mapping_of
from orrery.progress import Progress, progress_callback
from orrery.quantities import Text
from orrery.record import StepRecord

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects


class Sensitivities(Answer):
    """What an answer depends on, most first. Made by `Scenario.sensitivity`."""

    _rows = "numbers"


Part = str | os.PathLike[str] | Mapping[str, Any]


@final
class Scenario:
    """A complete question: every name is expanded, so that every number has a JSON pointer.

    Made by `orrery.load` and changed by `replace`, which leaves the original as it is.
    """

    __slots__ = ("_changes", "_core")

    def __init__(self, core: _core.Scenario, changes: Mapping[str, Any] = MappingProxyType({})):
        self._core = core
        self._changes = MappingProxyType(dict(changes))

    @property
    def name(self) -> str:
        """The scenario's own name, or else its file."""
        return self._core.name

    @property
    def changes(self) -> Mapping[str, Any]:
        """The values that `replace` has changed since loading, by pointer."""
        return self._changes

    @property
    def json(self) -> dict[str, Any]:
        """The expanded scenario as `orrery show scenario` prints it; the copy is yours."""
        document: dict[str, Any] = json.loads(self._core.json)
        return document

    def __getitem__(self, address: str) -> Any:
        """The value at a JSON pointer: `scenario["/plan/tensor"]`. Errors: KeyError."""
        if not isinstance(address, str):
            raise TypeError(f"expected a JSON pointer, found {kind_of(address)}")
        return pointer.get(self.json, address)

    def replace(self, changes: Mapping[str, Any]) -> Scenario:
        """A what-if: a copy with the values at some JSON pointers replaced.

        Quantities carry their unit ("800 Gb/s"); names ("/cluster": "dgx-h100 x 8") are expanded.
        An optional member of an existing object may be new. Errors: InputError for an unknown one;
        TypeError for what is no mapping.
        """
        changes = mapping_of(changes, "changes")
        texts = [(address, pointer.to_json(value)) for address, value in changes.items()]
        return Scenario(self._core.replace(texts), {**self._changes, **changes})

    def simulate(self, *, headroom: float | None = None) -> Run:
        """Predicts one training step. Other Python threads keep running.

        headroom  share of a GPU's memory to leave free; a plan that leaves less fits tightly
                  (`Run.fit`); by default the measured error of predicted peaks
        A plan that does not fit in memory is an answer, not an error (`Run.fits`).
        Errors: InputError with the pointer of what is wrong.
        """
        return Run(self, json.loads(self._core.predict(headroom=headroom).json()))

    def sensitivity(
        self,
        *,
        headroom: float | None = None,
        svg: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
        partial: bool = False,
    ) -> Sensitivities:
        """Which numbers move the answer: `orrery simulate --sensitivity`.

        Percent of step time, dollars, energy and peak memory per percent of each number, by what-ifs
        of one percent each way; for the first ones the step with 10 % less and more, too.

        svg  a file for the picture
        Errors: InputError; on Ctrl-C `orrery.Interrupted` with the numbers so far, or, with
        `partial`, these numbers.
        """
        found = _core.sensitivity(
            self._core,
            headroom=headroom,
            svg=None if svg is None else os.fspath(svg),
            threads=threads or 0,
            progress=progress_callback(progress, "numbers"),
        )
        answer = answered(Sensitivities, found, "the numbers", partial=partial)
        answer._name(heading("simulate", {"scenario": self.name, "sensitivity": True}, self.changes))
        return answer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the scenario as a file that `orrery simulate` and `orrery.load` take."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.json, file, indent=2, ensure_ascii=False)
            file.write("\n")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._core.json == other._core.json

    def __hash__(self) -> int:
        return hash(self._core.json)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._core.json, self._core.file, dict(self._changes))

    def __repr__(self) -> str:
        changes = f", {dict(self._changes)!r}" if self._changes else ""
        return f"Scenario({self.name!r}{changes})"


@final
class Run(StepRecord):
    """The prediction of one training step, with its scenario. Made by `Scenario.simulate`.

    The slowest rank's time is `step_time`; the fullest rank's memory is `peak_memory`.
    """

    def __init__(self, scenario: Scenario, values: Mapping[str, Any]):
        super().__init__(scenario, values)
        self._scenario = scenario

    @property
    def scenario(self) -> Scenario:
        """The scenario that was simulated."""
        return self._scenario

    @property
    def network(self) -> Network:
        """How traffic was evaluated, and what contention cost on which links to which traffic."""
        return Network(self._values["network"])

    def explain(self, *, versus: Run | None = None) -> Text:
        """Where each millisecond went; with `versus`, what differs from another run and by how much.

        The result is a str that a prompt shows as it is.
        """
        if versus is not None:
            return comparison(self, versus)
        return Text(self._prediction.report(explain=True, width=100))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one page of HTML: the answer with its range, waterfall, timeline, memory, load.

        It needs no network. `orrery.report` writes one page of several answers.
        Errors  OSError where the file cannot be written
        """
        page.report(path, self)

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
        return timeline.plot(self, stages=stages, host=host, detail=detail)

    def plot_waterfall(self) -> plotly.graph_objects.Figure:
        """A waterfall from the ideal machine to this step: a bar per loss."""
        return waterfall.plot(self)

    def plot_roofline(self) -> plotly.graph_objects.Figure:
        """FLOP/s of the step's kernels against their FLOPs per byte, below the GPU's peaks."""
        return plots.roofline(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self._scenario, self._values)

    def __repr__(self) -> str:
        return show.line(self)

    def __str__(self) -> str:
        return show.text(self)

    def _repr_html_(self) -> str:
        return show.html(self)


def _restore(text: str, file: str, changes: dict[str, Any]) -> Scenario:
    return Scenario(_core.parse(text, file), changes)


def load(
    scenario: Part | None = None,
    *,
    model: Part | None = None,
    cluster: Part | None = None,
    plan: Part | None = None,
    software: Part | None = None,
) -> Scenario:
    """A scenario by path, by name (`orrery.catalogue.scenarios()`) or from its parts.

    scenario   a path, a name, or the document itself; may be left out with model and cluster given
    model      a Hugging Face config.json, a name, or the document; so are the other parts
    cluster    also "dgx-h100 x 64"
    plan       also "tensor=8,pipeline=16"; what can be derived may be left out
    The parts given replace those of the scenario. Errors: InputError with file and pointer.
    """
    parts = {"model": model, "cluster": cluster, "plan": plan, "software": software}
    given = {key: part for key, part in parts.items() if part is not None}
    if scenario is None or isinstance(scenario, Mapping):
        return Scenario(_core.parse(pointer.to_json({**(scenario or {}), **given}), "scenario"))
    texts = {
        key: None if part is None or isinstance(part, Mapping) else os.fspath(part)
        for key, part in parts.items()
    }
    loaded = _core.load(
        os.fspath(scenario),
        model=texts["model"],
        cluster=texts["cluster"],
        plan=texts["plan"],
        software=texts["software"],
    )
    documents = [
        (f"/{key}", pointer.to_json(part)) for key, part in given.items() if texts[key] is None
    ]
    return Scenario(loaded.replace(documents) if documents else loaded)
