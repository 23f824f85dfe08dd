"""How a run's traffic was evaluated on links."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from orrery import frames
from orrery.quantities import Seconds

if TYPE_CHECKING:
    import pandas


@final
class Network:
    """How a run's traffic was evaluated, and what contention cost. `Run.network`."""

    def __init__(self, values: Mapping[str, Any]):
        self._values = values

    @property
    def evaluation(self) -> str:
        """ "static", or "events": collectives and transfers shared links."""
        return str(self._values["evaluation"])

    @property
    def why(self) -> str:
        """Why this evaluation was chosen."""
        return str(self._values["why"])

    @property
    def contention(self) -> Seconds:
        """The time that sharing links adds to the step; 0 if it was evaluated statically."""
        return Seconds(self._values["contention_s"])

    @property
    def jitter(self) -> Seconds:
        """The time that varying kernel durations add to the step."""
        return Seconds(self._values["jitter_s"])

    @property
    def from_jobs(self) -> Seconds:
        """The part of `contention` that other jobs on the fabric cause."""
        return Seconds(self._values["from_jobs_s"])

    @property
    def json(self) -> dict[str, Any]:
        """As in `Run.json["network"]`; the copy is yours."""
        return copy.deepcopy(dict(self._values))

    def links(self) -> pandas.DataFrame:
        """Overloaded links: name, how many links are alike, and for how long."""
        return frames.frame(self._values["links"])

    def losses(self) -> pandas.DataFrame:
        """Time lost by each collective or transfer; `to` has the causing traffic's shares of 1."""
        return frames.frame(self._values["losses"])

    def jobs(self) -> pandas.DataFrame:
        """The other jobs: their step alone and next to this job."""
        return frames.frame(self._values["jobs"])

    def __repr__(self) -> str:
        return f"Network({self.evaluation}, contention {self.contention})"
