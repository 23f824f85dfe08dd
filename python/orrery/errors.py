"""Errors: the user's mistakes, and runs that end early."""

from __future__ import annotations

import re

_POINTER = re.compile(r"(?:^|:)(/[^\s:]*): ")


class InputError(ValueError):
    """A wrong input: one line with the place, what is accepted and what was found."""

    @property
    def pointer(self) -> str | None:
        """JSON pointer of the value at fault, as `Scenario.replace` takes it; None without one.

        If a part of the scenario came from a file of its own, it points into that file.
        """
        found = _POINTER.search(str(self))
        return found.group(1) if found else None


class RunFailure(RuntimeError):
    """An executed run ended before its last step; the message is one sentence with the reason."""

    def __init__(self, why: str, code: int):
        super().__init__(why)
        self._code = code

    @property
    def code(self) -> int:
        """What `orrery execute` exits with: 70 operation unknown to the device, 71 lost peer,
        72 this machine failed, 74 output, 75 preempted, 124 deadline."""
        return self._code

    def __reduce__(self) -> tuple[type[RunFailure], tuple[str, int]]:
        return RunFailure, (str(self), self._code)
