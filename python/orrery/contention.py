"""The cost of sharing links: in one step, and by placement and neighbouring jobs."""

from __future__ import annotations

import os
from typing import final

from orrery import _core
from orrery.answer import Answer, answered
from orrery.heading import named
from orrery.parts import Part, path_of, required
from orrery.progress import Progress, progress_callback
from orrery.scenario import Scenario


@final
class Contention(Answer):
    """One step by overlap, placement, neighbours and a slow NIC. Made by `orrery.contention`."""

    _rows = "cases"

    @property
    def sentence(self) -> str:
        """The findings in a sentence."""
        return str(self._values["sentence"])


@named("contention")
def contention(
    scenario: Scenario | Part,
    *,
    page: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    partial: bool = False,
) -> Contention:
    """The cost of contention to a step: `orrery contention`.

    Its traffic on links, with gradients reduced next to backward and after it; on
    neighbouring and scattered nodes, next to a second job, and with one NIC at half rate.

    page  a folder for contention.md and its picture
    A case that cannot be predicted says why (`refused`). Errors: InputError; on Ctrl-C
    `orrery.Interrupted` with the cases so far, or, with `partial`, these cases.
    """
    found = _core.contention(
        required(scenario.json if isinstance(scenario, Scenario) else scenario),
        page=path_of(page),
        threads=threads or 0,
        progress=progress_callback(progress, "cases"),
    )
    return answered(Contention, found, "the cases", partial=partial)
