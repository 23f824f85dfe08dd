"""Errors: the user's mistakes, calls that Ctrl-C ends, and runs that end early."""

from __future__ import annotations

import re
from typing import Any

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


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a call that has an answer so far: `partial`.

    A `KeyboardInterrupt`, so a script or a loop ends as at any Ctrl-C. Who wants the rest catches
    it, or calls with `partial=True` and gets that answer returned.
    """

    def __init__(self, so_far: str, partial: Any):
        super().__init__(f"interrupted: {so_far} so far")
        self._so_far = so_far
        self._partial = partial

    @property
    def partial(self) -> Any:
        """The answer so far, of the type that the call returns; its `complete` is False."""
        return self._partial

    def __reduce__(self) -> tuple[type[Interrupted], tuple[str, Any]]:
        return Interrupted, (self._so_far, self._partial)


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
