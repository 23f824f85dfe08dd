"""Measures this machine, or imports logs, into a cluster profile."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import final

from orrery import _core
from orrery.answer import Answer, answered
from orrery.errors import RunFailure
from orrery.heading import named
from orrery.parts import Paths, path_of, paths_of
from orrery.progress import Progress, progress_callback

_MACHINE_FAILED = 72


@final
class Calibration(Answer):
    """Measured curves of this machine, or of logs. Made by `orrery.calibrate`."""

    _rows = "curves"


@named("calibrate")
def calibrate(
    *,
    logs: Paths = (),
    cluster: str | os.PathLike[str] | None = None,
    backend: str = "cpu",
    budget: str = "60 s",
    ranks: int | Iterable[int] = (1, 2),
    fabric: str = "tcp",
    storage: str | os.PathLike[str] | None = None,
    widest: int = 16384,
    out: str | os.PathLike[str] | None = None,
    seed: int = 1,
    progress: bool | Progress | None = None,
    partial: bool = False,
) -> Calibration:
    """Measures this machine, or imports others' logs, into a cluster profile: `orrery calibrate`.

    logs            of nccl-tests, NCCL, OSU, perftest, fio, BabelStream, STREAM, Kineto: imported,
                    and nothing is measured; `cluster` names the measured cluster
    backend         "cpu" or "cuda"
    budget          the time that measuring takes
    ranks, fabric   on the CPU: numbers of concurrent ranks, and "tcp" or "threads" between them;
                    all ranks are threads of this process
    storage         folder on the storage to measure, such as that of the data set; with `cluster`
                    nothing but it and decoding is measured, and the profile is that cluster with
                    their rates (seconds instead of minutes)
    widest          on GPUs: the hidden size of the widest model measured
    out             the profile to write, as `orrery.load(cluster=...)` takes it; its samples go
                    next to it
    progress        as `orrery.sweep` takes it, in points
    Other Python threads keep running and may disturb the measurement. On Ctrl-C the profile of the
    points so far is written.
    Errors          InputError; RunFailure where nothing could be measured; on Ctrl-C
                    `orrery.Interrupted` with that profile (with `partial` it is returned), and
                    KeyboardInterrupt before the first point
    """
    files = paths_of(logs)
    if files:
        found = _core.import_logs(logs=files, cluster=path_of(cluster), out=path_of(out))
        return answered(Calibration, found, "")
    found = _core.calibrate(
        backend=backend,
        budget=budget,
        ranks=[ranks] if isinstance(ranks, int) else list(ranks),
        fabric=fabric,
        storage=path_of(storage),
        cluster=path_of(cluster),
        widest=widest,
        out=path_of(out),
        seed=seed,
        progress=progress_callback(progress, "points"),
    )
    if found[0] == "null":
        if not found[2]:
            raise KeyboardInterrupt
        missing = "no GEMM" if cluster is None else "no storage"
        raise RunFailure(f"{missing} was measured, so there is no profile", _MACHINE_FAILED)
    return answered(Calibration, found, "the profile of the points", partial=partial)
