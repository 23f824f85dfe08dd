"""One page of HTML of answers, and the JSON Schemas of documents."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from orrery import _core
from orrery.answer import Answer
from orrery.parts import kind_of
from orrery.record import StepRecord


@runtime_checkable
class Stored(Protocol):
    """A sweep in its file: what `orrery.StoredSweep` is, which this module cannot import."""

    @property
    def path(self) -> str:
        """The file."""

    def lines(self) -> str:
        """Its text as JSON lines."""


Result = StepRecord | Answer | Stored | Mapping[str, Any] | str | os.PathLike[str]


def report(path: str | os.PathLike[str], *results: Result) -> None:
    """Writes one self-contained page of HTML of these results; of several, compared: `orrery report`.

    results  runs, answers of `plan`, `buy`, `train`, `compare` and `check`, stored sweeps, or
             documents and files of what the commands print with --json
    Errors   InputError for another document or a file that cannot be read; TypeError; OSError
             where the page cannot be written
    """
    if not results:
        raise TypeError("report: expected at least one result")
    page = _core.page([_document(each, number) for number, each in enumerate(results, start=1)])
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def _document(result: Result, number: int) -> tuple[str, str | None]:
    """Name and JSON text; of a file its path alone."""
    if isinstance(result, StepRecord):
        values = result.json
        values["timeline"] = json.loads(result._prediction.timeline())
        return result.asked.name, json.dumps(values)
    if isinstance(result, Answer):
        return f"result {number}", json.dumps(result.json)
    if isinstance(result, Stored):
        return result.path, result.lines()
    if isinstance(result, Mapping):
        return f"result {number}", json.dumps(dict(result))
    if isinstance(result, (str, os.PathLike)):
        return os.fspath(result), None
    raise TypeError(
        "report: expected a Run, an Answer, a stored sweep, a document or a file, found "
        f"{kind_of(result)}"
    )


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document: `orrery schema NAME`; `orrery schema` lists the names.

    Errors  InputError for an unknown name
    """
    found: dict[str, Any] = json.loads(_core.schema(name))
    return found
