"""Times of a collective on a cluster, as nccl-tests would print them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import final

from orrery import _core
from orrery.answer import Answer, answered
from orrery.heading import named
from orrery.parts import Part, Paths, path_of, paths_of, required, words_of


@final
class Collectives(Answer):
    """One collective by size. Made by `orrery.collective`."""


@named("collective")
def collective(
    *,
    cluster: Part,
    op: str = "all_reduce",
    sizes: str | Iterable[str] = (),
    ranks: int | None = None,
    algo: str | None = None,
    proto: str | None = None,
    channels: int | None = None,
    counts: str | os.PathLike[str] | None = None,
    network: str = "static",
    choice: str | None = None,
    env: str | Iterable[str] = (),
    against: Paths = (),
    timing: bool = False,
) -> Collectives:
    """Times that nccl-tests would print on a cluster, with reasons: `orrery collective`.

    op       a name of `orrery show collectives`
    sizes    "1MiB", "8B:1GiB:2" (from, to, factor) or several of these, as nccl-tests counts them
    ranks    GPUs, which fill nodes in order; by default all of the cluster
    algo, proto, channels  as NCCL's environment chooses them
    counts   of all_to_all_v: a file of byte counts, a line per sender with a count per receiver
    network  "static" (cost model), "events" (flows that progress together share links) or "steps"
             (every message is a flow)
    choice   "fastest" by the cost models (the default without `env`); "nccl" (the default with it):
             the choice of NCCL's tuner, where nothing is measured
    env      variables that restrict NCCL's tuner: "NCCL_ALGO=Ring"
    against  measured logs to compare with; their sizes are taken where none are given
    Errors: InputError.
    """
    found = _core.collective(
        cluster=required(cluster),
        op=op,
        sizes=words_of(sizes),
        ranks=ranks,
        algo=algo or "",
        proto=proto or "",
        channels=channels,
        counts=path_of(counts) or "",
        network=network,
        choice=choice,
        env=words_of(env),
        against=paths_of(against),
        timing=timing,
    )
    return answered(Collectives, found, "the sizes")
