"""Base class of answers: the JSON, the report and the rows that a command of `orrery` gives."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from orrery import frames
from orrery.errors import Interrupted
from orrery.quantities import Text

if TYPE_CHECKING:
    import pandas


class Answer:
    """The answer of a command, as `orrery` gives it. Immutable."""

    _rows = "rows"  # the member of the JSON that a table shows

    def __init__(
        self,
        values: Mapping[str, Any],
        text: str,
        complete: bool = True,
        asked: Mapping[str, Any] | None = None,
    ):
        self._values = values
        self._text = text
        self._complete = complete
        self._asked = asked or {}  # the parts of a scenario that the question named
        self._head: Mapping[str, Any] = {}

    @property
    def json(self) -> dict[str, Any]:
        """Everything that the command prints with `--json`; the copy is yours.

        `inputs` are the arguments that were given, by name.
        """
        return copy.deepcopy({**self._head, **self._values})

    def _name(self, head: Mapping[str, Any]) -> None:
        self._head = head

    @property
    def report(self) -> Text:
        """The text report that the command prints; a str."""
        return Text(self._text)

    @property
    def complete(self) -> bool:
        """False if Ctrl-C ended it early: it holds the results so far (`Interrupted.partial`)."""
        return self._complete

    def __getitem__(self, key: str) -> Any:
        """A member of the JSON: `answer["fits"]`. Errors: KeyError."""
        return copy.deepcopy(self._values[key] if key in self._values else self._head[key])

    def to_frame(self) -> pandas.DataFrame:
        """The rows of the answer as a table; nested members become columns `outer.inner`."""
        return frames.frame([frames.flat(row) for row in self._values.get(self._rows) or []])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        stopped = "" if self._complete else ", interrupted"
        rows = self._values.get(self._rows) or []
        return f"{type(self).__name__}({len(rows)} {self._rows}{stopped})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values == getattr(other, "_values", None)

    __hash__ = None  # type: ignore[assignment]


A = TypeVar("A", bound="Answer")


def answered(
    kind: type[A],
    found: tuple[str, str, bool],
    what: str,
    *,
    partial: bool = False,
    asked: Mapping[str, Any] | None = None,
) -> A:
    """The answer. Errors: Interrupted if Ctrl-C ended it early, unless a partial one is wanted."""
    text, report, complete = found
    answer = kind(json.loads(text), report, complete, asked)
    if not complete and not partial:
        raise Interrupted(what, answer)
    return answer
