"""The user's mistakes."""

from __future__ import annotations

import re

_POINTER = re.compile(r"(?:^|:)(/[^\s:]*): ")


class InputError(ValueError):
    """What was given cannot be meant: one line with the place, what is accepted, what was found."""

    @property
    def pointer(self) -> str | None:
        """JSON pointer of the value at fault, as `Scenario.replace` takes it; None if none is told.

        Where a part of the scenario came from a file of its own, it points into that file.
        """
        found = _POINTER.search(str(self))
        return found.group(1) if found else None
