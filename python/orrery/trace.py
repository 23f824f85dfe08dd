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
_FORMATS = ("chrome", "kineto")


class Event(NamedTuple):
    """One piece of work on one queue of one rank; times in seconds from the step's beginning.

    `flops` and `bytes` are 0 where they do not apply.
    """

    rank: str
    queue: str
    name: str
    kind: str
    start: float
    duration: float
    flops: float = 0.0
    bytes: float = 0.0


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

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        detail: str | None = None,
        format: str = "chrome",
    ) -> list[str]:
        """Writes the trace with arrows and counters; gives the names of the files.

        detail  "instructions" of the schedule (of a Chrome trace by default), or all "operations"
                (of a kineto trace by default)
        format  "chrome", which ui.perfetto.dev opens, packed if the name ends in .gz; or "kineto",
                a folder with a file for each rank as PyTorch's profiler writes them
        Errors  OSError where a file cannot be written; InputError
        """
        if format not in _FORMATS:
            raise ValueError(f"format: expected one of {', '.join(_FORMATS)}, found {format!r}")
        kineto = format == "kineto"
        detail = detail or ("operations" if kineto else "instructions")
        return self._prediction.save_trace(
            os.fspath(path), operations=_operations(detail), kineto=kineto
        )

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
            counts = (each["args"].get("flops", 0), each["args"].get("bytes", 0))
            events.append(
                Event(ranks[track[0]], queues[track], each["name"], kind, begin, duration, *counts)
            )
    return events
