"""Many what-ifs at once, on all cores."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, final, overload

from orrery import frames
from orrery.errors import InputError, Interrupted
from orrery.parts import kind_of, mapping_of
from orrery.plots import Plotted
from orrery.progress import Progress, progress_callback
from orrery.scenario import Run, Scenario
from orrery.stored import StoredSweep, stored_sweep

if TYPE_CHECKING:
    import pandas


MOST_VARIANTS: Final = 1_000_000  # of one sweep; each takes some 100 kB


class Point(NamedTuple):
    """One variant: its changes, and the run or the reason why there is none."""

    changes: Mapping[str, Any]
    run: Run | None
    refused: str | None


@final
class Sweep(Plotted, Sequence[Run]):
    """The runs of a sweep, in the order of its grid. Made by `orrery.sweep`."""

    __slots__ = ("_complete", "_points", "_runs")

    def __init__(self, points: Iterable[Point], *, complete: bool = True):
        self._points = tuple(points)
        self._runs = tuple(point.run for point in self._points if point.run is not None)
        self._complete = complete

    @property
    def points(self) -> tuple[Point, ...]:
        """All variants, including those that were refused."""
        return self._points

    @property
    def refused(self) -> tuple[Point, ...]:
        """Variants that contradict themselves (more ranks than GPUs): their `refused` says why."""
        return tuple(point for point in self._points if point.run is None)

    @property
    def complete(self) -> bool:
        """Whether all variants were simulated; an interrupted sweep keeps those that were."""
        return self._complete

    def where(self, keep: Callable[[Run], bool]) -> Sweep:
        """The runs for which `keep` is true."""
        kept = [point for point in self._points if point.run is not None and keep(point.run)]
        return Sweep(kept, complete=self._complete)

    def fits_memory(self, *, tightly: bool = True) -> Sweep:
        """The runs that fit as predicted, without doubtful ones.

        tightly  False: also without those that fit tightly
        """
        return self.where(lambda run: run.fit == "yes" or (tightly and run.fit == "tight"))

    def fastest(self) -> Run:
        """The run with the most tokens per second. Errors: ValueError when there is none."""
        return self._best(lambda run: -run.tokens_per_s)

    def cheapest(self) -> Run:
        """The run with the fewest dollars per token. Errors: ValueError when none has a price."""
        priced = self.where(lambda run: run.cost is not None)
        return priced._best(lambda run: (run.cost or 0) / (run.tokens_per_s * run.step_time))

    def _best(self, measure: Callable[[Run], float]) -> Run:
        if not self._runs:
            raise ValueError(f"no run to choose from{_first_reason(self.refused)}")
        return min(self._runs, key=measure)

    def to_frame(self) -> pandas.DataFrame:
        """One row per variant in the order of the grid: what was changed, then the figures.

        A refused variant has its reason in column "refused" and no figures.
        """
        rows = []
        for point in self._points:
            cells = frames.row(point.run) if point.run else dict(point.changes)
            rows.append({**point.changes, **cells, "refused": point.refused})
        return frames.frame(rows)

    def _plot_rows(self) -> list[dict[str, Any]]:
        rows = []
        for point in self._points:
            if point.run is None:
                continue
            label = ", ".join(f"{at.rsplit('/', 1)[-1]} {v}" for at, v in point.changes.items())
            figures = {key: value for key, value in frames.row(point.run).items() if key != "fits"}
            rows.append({**figures, **point.changes, "gpus": point.run.gpus, "label": label})
        return rows

    def _plot_factors(self) -> list[str]:
        """Pointers with several values among the runs."""
        found: dict[str, set[str]] = {}
        for point in self._points:
            for at, value in point.changes.items():
                found.setdefault(at, set()).add(str(value))
        return [at for at, values in found.items() if len(values) > 1]

    def _plot_title(self) -> str:
        return self._runs[0].scenario.name if self._runs else "no run"

    def _plot_run(self) -> Run:
        return self.fastest()

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __reduce__(self) -> tuple[Any, ...]:
        points = [(dict(point.changes), point.run, point.refused) for point in self._points]
        return _restore, (points, self._complete)

    def __repr__(self) -> str:
        refused = f", {len(self.refused)} refused" if self.refused else ""
        partial = "" if self._complete else ", interrupted"
        return f"Sweep({len(self._runs)} runs{refused}{partial})"

    def _repr_html_(self) -> str:
        varying = list(dict.fromkeys(at for point in self._points for at in point.changes))
        shown = ["fit", "step_time_s", "tokens_per_s", "mfu", "peak_memory_bytes", "bottleneck"]
        frame = self.to_frame().reindex(columns=[*varying, *shown, "refused"])
        table: str = frame.dropna(axis="columns", how="all").to_html(max_rows=40)
        return table


def _restore(points: list[tuple[dict[str, Any], Run | None, str | None]], complete: bool) -> Sweep:
    made = [Point(MappingProxyType(changes), run, refused) for changes, run, refused in points]
    return Sweep(made, complete=complete)


MOST_STORED: Final = 10_000_000  # unless `limit` allows more


@overload
def sweep(
    base: Scenario,
    vary: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    *,
    workers: int | None = None,
    progress: bool | Progress | None = None,
    headroom: float | None = None,
    partial: bool = False,
) -> Sweep: ...
@overload
def sweep(
    base: Scenario,
    vary: Mapping[str, Sequence[Any]],
    *,
    store: str | os.PathLike[str],
    engine: Any = "threads",
    shard: str | tuple[int, int] | None = None,
    tokens: str | float | None = None,
    limit: int = MOST_STORED,
    rows_per_group: int = 4096,
    workers: int | None = None,
    progress: bool | Progress | None = None,
    headroom: float | None = None,
    partial: bool = False,
) -> StoredSweep: ...
def sweep(
    base: Scenario,
    vary: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    *,
    store: str | os.PathLike[str] | None = None,
    engine: Any = "threads",
    shard: str | tuple[int, int] | None = None,
    tokens: str | float | None = None,
    limit: int = MOST_STORED,
    rows_per_group: int = 4096,
    workers: int | None = None,
    progress: bool | Progress | None = None,
    headroom: float | None = None,
    partial: bool = False,
) -> Sweep | StoredSweep:
    """Simulates many variants of a scenario, on threads or on a Dask cluster.

    vary      {pointer: values}: every combination, the last pointer varying fastest; or, without a
              store, the variants themselves, each as `Scenario.replace` takes it
    store     a file that gets the rows as they come, and nothing but them stays in memory: JSON
              lines as `orrery sweep` writes them, or Parquet for a name that ends so. The same
              call continues the file where it ends, and its bytes are the same in the end
    engine    of a stored sweep: "threads"; "dask", the current Dask client or, without one,
              processes on this machine; a scheduler's address; a `distributed.Client`
    shard     "2/8" or (2, 8): the second of eight equal parts, for job arrays (`orrery.merge`)
    tokens    of a stored sweep, such as "300B": adds days and dollars to each row
    limit     the most variants of a stored sweep
    rows_per_group  rows of a row group, and of a task on Dask: what a kill may cost
    workers   threads or processes; as many as there are cores by default
    progress  called with (done, of); True or False: a line on stderr or silence; by default
              the line where stderr is a terminal
    headroom  as `Scenario.simulate` takes it
    A variant that contradicts itself is listed in `Sweep.refused`, and one that does not fit in
    memory is a run.
    Errors    InputError if every variant is refused: the first one's; more than a million
              variants; a store of another sweep; ImportError without pyarrow or distributed, where
              they are needed; on Ctrl-C `orrery.Interrupted` with the variants done so far, or, with
              `partial`, these variants; TypeError
    """
    if not isinstance(base, Scenario):
        raise TypeError(f"base: expected a Scenario, found {kind_of(base)}")
    if store is not None:
        return stored_sweep(
            base,
            vary,  # type: ignore[arg-type]  # checked there
            store,
            engine=engine,
            shard=shard,
            tokens=tokens,
            headroom=headroom,
            limit=limit,
            rows_per_group=rows_per_group,
            workers=workers,
            progress=progress,
            partial=partial,
        )
    for name, given in (("engine", engine != "threads"), ("shard", shard), ("tokens", tokens)):
        if given:
            raise InputError(f"{name}: is of a stored sweep; state a store, too")
    variants = _variants(vary)
    report = progress_callback(progress, "variants") or (lambda done, of: None)
    points: dict[int, Point] = {}
    complete = True
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count()) as pool:
        futures = {
            pool.submit(_answer, base, changes, headroom): i for i, changes in enumerate(variants)
        }
        try:
            for future in as_completed(futures):
                points[futures[future]] = future.result()
                report(len(points), len(variants))
        except KeyboardInterrupt:
            complete = False
            pool.shutdown(wait=True, cancel_futures=True)
            points |= {i: future.result() for future, i in futures.items() if _is_done(future)}
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    done = Sweep((points[i] for i in sorted(points)), complete=complete)
    if not complete and not partial:
        raise Interrupted(f"{len(points)} of {len(variants)} variants", done)
    if complete and done.points and not len(done):
        raise InputError(done.points[0].refused)
    return done


def _variants(vary: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]) -> list[Any]:
    """The variants, counted before they are made: a grid of billions is refused, not built."""
    if not isinstance(vary, Mapping):
        if isinstance(vary, str) or not isinstance(vary, Iterable):
            raise TypeError(
                f"vary: expected {{pointer: values}} or variants, found {kind_of(vary)}"
            )
        listed = _at_most(vary)
        return [MappingProxyType(dict(mapping_of(each, "vary"))) for each in listed]
    grid: dict[str, list[Any]] = {}
    for address, values in vary.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"{address}: expected a list of values, found {values!r}")
        grid[address] = _at_most(values, f"{address}: ")
    count = math.prod(len(values) for values in grid.values())
    if count > MOST_VARIANTS:
        _refuse(f"{count:,} variants", "")
    combinations = itertools.product(*grid.values())
    return [MappingProxyType(dict(zip(grid, values))) for values in combinations]


def _at_most(values: Iterable[Any], place: str = "") -> list[Any]:
    """The values as a list; of more than there may be variants only so many are ever made."""
    listed = list(itertools.islice(values, MOST_VARIANTS + 1))
    if len(listed) > MOST_VARIANTS:
        _refuse(f"more than {MOST_VARIANTS:,}", place)
    return listed


def _refuse(found: str, place: str) -> NoReturn:
    raise InputError(
        f"{place}expected at most {MOST_VARIANTS:,} variants of a sweep, found {found}"
    )


def _answer(base: Scenario, changes: Mapping[str, Any], headroom: float | None) -> Point:
    try:
        return Point(changes, base.replace(changes).simulate(headroom=headroom), None)
    except InputError as error:
        return Point(changes, None, str(error))


def _is_done(future: Future[Point]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _first_reason(refused: Sequence[Point]) -> str:
    return f"; the first refusal: {refused[0].refused}" if refused else ""
