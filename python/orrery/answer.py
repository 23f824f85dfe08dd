"""What every answer of a command is in Python: its JSON, its report, and its rows as a table."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from orrery import frames
from orrery.quantities import Text

if TYPE_CHECKING:
    import pandas


class Answer:
    """An answer as the command of the same name gives it. None of them changes."""

    _rows = "rows"  # the member of the JSON that a table shows

    def __init__(self, values: Mapping[str, Any], text: str, complete: bool = True):
        self._values = values
        self._text = text
        self._complete = complete

    @property
    def json(self) -> dict[str, Any]:
        """Everything that the command prints with `--json`; the copy is yours."""
        return copy.deepcopy(dict(self._values))

    @property
    def report(self) -> Text:
        """What the command prints for people. Prints as it is, and is a str."""
        return Text(self._text)

    @property
    def complete(self) -> bool:
        """False: Ctrl-C ended it with what there was by then."""
        return self._complete

    def __getitem__(self, key: str) -> Any:
        """A member of the JSON: `answer["fits"]`. Errors: KeyError."""
        return copy.deepcopy(self._values[key])

    def to_frame(self) -> pandas.DataFrame:
        """The rows of the answer as a table; members of members are `outer.inner`."""
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


def answered(found: tuple[str, str, bool], what: str) -> tuple[Any, str, bool]:
    """Values, text and completeness; warns of an answer that Ctrl-C ended early."""
    text, report, complete = found
    if not complete:
        warnings.warn(f"interrupted: {what} so far", stacklevel=3)
    return json.loads(text), report, complete
