"""Progress lines of long calls."""

from __future__ import annotations

import sys
from collections.abc import Callable

Progress = Callable[[int, int], None]


def progress_callback(progress: bool | Progress | None, noun: str) -> Progress | None:
    """The progress callback. True: a line on stderr; False: none; None: a line if on a terminal."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        return None

    def line(done: int, of: int) -> None:
        end = "\n" if done == of else ""
        print(f"\r{done} of {of} {noun}", end=end, file=sys.stderr, flush=True)

    return line
