"""The trace of a predicted step: what ran on which queue, and when."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

if TYPE_CHECKING:
    from orrery import _core

_DETAILS = ("instructions", "operations")


class Event(NamedTuple):
    """One piece of work on one queue of one rank; times in seconds from the step's beginning."""

    rank: str
    queue: str
    name: str
    kind: str
    start: float
    duration: float


def _operations(detail: str) -> bool:
    if detail not in _DETAILS:
        raise ValueError(f"detail: expected one of {', '.join(_DETAILS)}, found {detail!r}")
    return detail == "operations"


@final
class Trace:
    """A predicted step, event by event: the first rank of each pipeline stage, all its queues."""

    __slots__ = ("_prediction",)

    def __init__(self, prediction: _core.Prediction):
        self._prediction = prediction

    def save(self, path: str | os.PathLike[str], *, detail: str = "instructions") -> None:
        """Writes a Chrome trace, which ui.perfetto.dev opens.

        detail  "instructions" of the schedule, or all "operations"
        Errors  OSError where the file cannot be written
        """
        self._prediction.save_trace(os.fspath(path), operations=_operations(detail))

    def events(self, *, detail: str = "instructions") -> list[Event]:
        """The same events as a list, by rank, queue and start."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            self.save(path, detail=detail)
            records = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        return _read(records)


def _read(records: list[dict[str, Any]]) -> list[Event]:
    ranks: dict[int, str] = {}
    queues: dict[tuple[int, int], str] = {}
    events = []
    for each in records:
        track = (each["pid"], each.get("tid", 0))
        if each["ph"] == "M" and each["name"] == "process_name":
            ranks[track[0]] = each["args"]["name"]
        elif each["ph"] == "M" and each["name"] == "thread_name":
            queues[track] = each["args"]["name"]
        elif each["ph"] == "X":
            kind = each["args"]["class"]
            begin, duration = each["ts"] * 1e-6, each["dur"] * 1e-6
            events.append(
                Event(ranks[track[0]], queues[track], each["name"], kind, begin, duration)
            )
    return events
