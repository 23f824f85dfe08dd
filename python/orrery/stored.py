"""Sweeps that live in a file: written as they go, continued after a kill, on threads or on Dask."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

from orrery import _core, pointer
from orrery.errors import InputError, Interrupted
from orrery.parts import kind_of
from orrery.progress import Progress, progress_callback
from orrery.scenario import Scenario

if TYPE_CHECKING:
    import pandas

_FIGURES = (
    ("error", "string"),
    ("gpus", "int64"),
    ("step_time_s", "double"),
    ("tokens_per_s", "double"),
    ("mfu", "double"),
    ("peak_memory_bytes", "int64"),
    ("fits", "bool"),
    ("fit", "string"),
    ("uncertainty.p10", "double"),
    ("uncertainty.p50", "double"),
    ("uncertainty.p90", "double"),
    ("energy_j_per_step", "double"),
    ("cost_usd_per_step", "double"),
    ("days", "double"),
    ("cost_usd", "double"),
)
_DECILES = ("p10", "p50", "p90")
_HEADER = b"orrery_sweep"
_OTHER = "; state another store, or remove this one"


class _Questions(NamedTuple):
    """What a process needs to answer a sweep's variants; it travels to workers."""

    scenario: str
    file: str
    vary: tuple[tuple[str, tuple[str, ...]], ...]
    tokens: str | None
    headroom: float | None
    limit: int

    def ask(self) -> _core.StoredSweep:
        vary = [(address, list(values)) for address, values in self.vary]
        return _core.stored_sweep(
            _core.parse(self.scenario, self.file),
            vary,
            tokens=self.tokens,
            headroom=self.headroom,
            limit=self.limit,
        )


@functools.lru_cache(maxsize=2)
def _asked(questions: _Questions) -> _core.StoredSweep:
    """One for all chunks of a process: what their variants share is found once."""
    return questions.ask()


def _lines_of(questions: _Questions, begin: int, end: int) -> str:
    """The lines of a chunk, on one thread; a Dask worker calls it."""
    return _asked(questions).lines(begin, end, threads=1, progress=None)[0]


@final
class StoredSweep:
    """The rows of a sweep in its file, in the order of the grid. Made by `orrery.sweep`."""

    __slots__ = ("_complete", "_path", "_variants")

    def __init__(self, path: str, variants: int, *, complete: bool):
        self._path = path
        self._variants = variants
        self._complete = complete

    @property
    def path(self) -> str:
        """The file of rows: JSON lines after a first line that says what was asked, or Parquet."""
        return self._path

    @property
    def variants(self) -> int:
        """Number of variants that were asked for, of the shard if there is one."""
        return self._variants

    @property
    def complete(self) -> bool:
        """Whether all variants are in the file; the same call continues it if not."""
        return self._complete

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each variant: `index`, `values` by pointer, `error` or None, and its figures."""
        if _is_parquet(self._path):
            yield from _parquet_rows(self._path)
            return
        with open(self._path, encoding="utf-8") as file:
            next(file, None)
            for line in file:
                if line.endswith("\n"):
                    yield json.loads(line)

    def lines(self) -> str:
        """What was asked and the rows as lines of JSON, whatever the file's format."""
        if not _is_parquet(self._path):
            return pathlib.Path(self._path).read_text(encoding="utf-8")
        whole = pathlib.Path(self._path)
        if whole.exists():
            header = _header_of(whole)
        else:
            header = (pathlib.Path(self._path + ".parts") / "sweep.json").read_text("utf-8").strip()
        asked = json.loads(header or "{}")
        listed = {  # a column has one type: what is no text is JSON in it where types are mixed
            each["pointer"]: {
                json.dumps(value): value for value in each["values"] if not isinstance(value, str)
            }
            for each in asked.get("vary", [])
        }
        rows = []
        for row in self.rows():
            values = {
                at: listed.get(at, {}).get(value, value) if isinstance(value, str) else value
                for at, value in row["values"].items()
            }
            rows.append(json.dumps({**row, "values": values}))
        compact = json.dumps(asked, separators=(",", ":"))
        return "\n".join([compact, *rows]) + "\n"

    def fastest(self) -> dict[str, Any]:
        """The row that fits with the most tokens per second. Errors: ValueError without one."""
        return self._best(lambda row: -row["tokens_per_s"], lambda row: True)

    def cheapest(self) -> dict[str, Any]:
        """The row that fits with the fewest dollars per token. Errors: ValueError without one."""
        return self._best(
            lambda row: row["cost_usd_per_step"] / row["step_time_s"] / row["tokens_per_s"],
            lambda row: row["cost_usd_per_step"] is not None,
        )

    def _best(
        self, measure: Callable[[dict[str, Any]], float], keep: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        fitting = (row for row in self.rows() if row["fits"] and keep(row))
        best = min(fitting, key=measure, default=None)
        if best is None:
            raise ValueError("no variant to choose from: none fits and has this figure")
        return best

    def to_frame(self) -> pandas.DataFrame:
        """One row per variant: its values, then the figures; `uncertainty` as three columns."""
        from orrery import frames

        made = []
        for row in self.rows():
            values = row.pop("values")
            made.append({"index": row.pop("index"), **values, **_flat_figures(row)})
        return frames.frame(made).set_index("index") if made else frames.frame(made)

    def __repr__(self) -> str:
        partial = "" if self._complete else ", not complete"
        return f"StoredSweep({self._path!r}, {self._variants} variants{partial})"


def _flat_figures(row: Mapping[str, Any]) -> dict[str, Any]:
    uncertainty = row["uncertainty"] or {}
    cells = {name: row.get(name) for name, _ in _FIGURES}
    cells |= {f"uncertainty.{part}": uncertainty.get(part) for part in _DECILES}
    return cells


def stored_sweep(
    base: Scenario,
    vary: Mapping[str, Sequence[Any]],
    store: str | os.PathLike[str],
    *,
    engine: Any,
    shard: str | tuple[int, int] | None,
    tokens: str | float | None,
    headroom: float | None,
    limit: int,
    rows_per_group: int,
    workers: int | None,
    progress: bool | Progress | None,
    partial: bool,
) -> StoredSweep:
    """`orrery.sweep` with a store."""
    path = os.fspath(store)
    if not isinstance(vary, Mapping):
        raise TypeError(f"vary: a stored sweep takes {{pointer: values}}, found {kind_of(vary)}")
    if rows_per_group < 1:
        raise InputError(f"rows_per_group: expected 1 or more, found {rows_per_group}")
    questions = _questions(base, vary, tokens, headroom, limit)
    asked = _asked(questions)
    part = _shard_of(shard)
    begin, end = asked.range(*part)
    report = progress_callback(progress, "variants")
    writer: _Writer
    if _is_parquet(path):
        writer = _ParquetStore(path, asked, part, rows_per_group, questions)
    elif engine == "threads":
        _, _, complete = asked.run(
            path, number=part[0], of=part[1], threads=workers or 0, progress=report
        )
        return _ended(StoredSweep(path, end - begin, complete=complete), partial)
    else:
        writer = _LinesStore(path, asked, part, rows_per_group)
    with contextlib.closing(writer):
        try:
            if engine == "threads":
                _on_threads(asked, writer, workers, report, begin, end)
            else:
                _on_dask(engine, questions, writer, workers, report, begin, end)
            writer.finish()
        except KeyboardInterrupt:
            return _ended(StoredSweep(path, end - begin, complete=False), partial)
    return StoredSweep(path, end - begin, complete=True)


def _ended(swept: StoredSweep, partial: bool) -> StoredSweep:
    if not swept.complete and not partial:
        raise Interrupted(f"rows of {swept.variants} variants in {swept.path}", swept)
    return swept


def _questions(
    base: Scenario,
    vary: Mapping[str, Sequence[Any]],
    tokens: str | float | None,
    headroom: float | None,
    limit: int,
) -> _Questions:
    lists = []
    for address, values in vary.items():
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise InputError(f"{address}: expected a list of values, found {values!r}")
        lists.append((address, tuple(pointer.to_json(value) for value in values)))
    core = base._core
    return _Questions(
        core.json,
        core.file,
        tuple(lists),
        None if tokens is None else str(tokens),
        headroom,
        limit,
    )


def _shard_of(shard: str | tuple[int, int] | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    return _core.parse_shard(shard if isinstance(shard, str) else "/".join(map(str, shard)))


def _is_parquet(path: str) -> bool:
    return path.endswith(".parquet")


class _Writer(Protocol):
    """Where chunks of lines go. Chunks that are there already are not asked for again."""

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]: ...
    def put(self, begin: int, end: int, lines: str) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


def _chunks(begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(begin, end, size):
        yield first, min(first + size, end)


class _LinesStore:
    """JSON lines, whose chunks are appended in order; those that come early wait."""

    def __init__(self, path: str, asked: _core.StoredSweep, part: tuple[int, int], size: int):
        self._store = _core.line_store(path, asked, *part)
        self._size = size
        self._early: dict[int, str] = {}

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        return _chunks(self._store.next, end, self._size)

    def put(self, begin: int, end: int, lines: str) -> None:
        self._early[begin] = lines
        while self._store.next in self._early:
            self._store.append(self._early.pop(self._store.next))

    def finish(self) -> None:
        pass

    def close(self) -> None:
        self._store.close()


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "a store in Parquet needs pyarrow: pip install 'orrery-sim[parquet]'"
        ) from error
    return pyarrow


class _ParquetStore:
    """A file per row group in `PATH.parts` while the sweep runs; one file of all in the end."""

    def __init__(
        self,
        path: str,
        asked: _core.StoredSweep,
        part: tuple[int, int],
        size: int,
        questions: _Questions,
    ):
        self._pyarrow = _pyarrow()
        self._path = pathlib.Path(path)
        self._folder = pathlib.Path(path + ".parts")
        self._size = size
        self._begin, self._end = asked.range(*part)
        header = json.loads(asked.header(*part))
        self._header = json.dumps({**header, "rows_per_group": size})
        self._pointers = [address for address, _ in questions.vary]
        self._schema = _schema(self._pyarrow, questions, self._header)
        self._lock: Any = None
        self._done = self._path.exists()
        if self._done:
            self._require_own(_header_of(self._path), self._path)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self._folder / "sweep.json", "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise InputError(f"{path}: another sweep is writing it") from None
        self._lock.seek(0)
        found = self._lock.read()
        if not found.endswith("\n"):  # new, or killed while it was written
            self._lock.truncate(0)
            self._lock.write(self._header + "\n")
            self._lock.flush()
        else:
            self._require_own(found[:-1], self._folder)

    def _require_own(self, found: str | None, place: pathlib.Path) -> None:
        if found == self._header:
            return
        self.close()
        what = "is the store of another sweep" if found else "expected the store of a sweep"
        raise InputError(f"{place}: {what}{_OTHER}")

    def _part(self, begin: int) -> pathlib.Path:
        return self._folder / f"{begin:012}.parquet"

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        if self._done:
            return iter(())
        every = _chunks(begin, end, self._size)
        return (chunk for chunk in every if not self._part(chunk[0]).exists())

    def put(self, begin: int, end: int, lines: str) -> None:
        table = _table(self._pyarrow, self._schema, self._pointers, lines)
        if table.num_rows != end - begin:
            return  # interrupted: the group is asked for again
        place = self._part(begin)
        draft = place.with_suffix(".tmp")
        self._pyarrow.parquet.write_table(table, draft, row_group_size=self._size)
        os.replace(draft, place)

    def finish(self) -> None:
        if self._done:
            return
        draft = self._path.with_name(self._path.name + ".tmp")
        with self._pyarrow.parquet.ParquetWriter(draft, self._schema) as writer:
            for begin, _ in _chunks(self._begin, self._end, self._size):
                table = self._pyarrow.parquet.read_table(self._part(begin), schema=self._schema)
                writer.write_table(table, row_group_size=self._size)
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, self._path)
        shutil.rmtree(self._folder)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _schema(pyarrow: Any, questions: _Questions, header: str) -> Any:
    fields = [("index", pyarrow.int64())]
    for address, values in questions.vary:
        fields.append((address, _type_of(pyarrow, [json.loads(value) for value in values])))
    types = {"double": pyarrow.float64(), "int64": pyarrow.int64(), "bool": pyarrow.bool_()}
    fields += [(name, types.get(kind, pyarrow.string())) for name, kind in _FIGURES]
    return pyarrow.schema(fields, metadata={_HEADER: header.encode()})


def _type_of(pyarrow: Any, values: list[Any]) -> Any:
    """Of a column of values; those of no common type are JSON texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pyarrow.bool_()
    if kinds == {int} and all(abs(value) < 2**63 for value in values if value is not None):
        return pyarrow.int64()
    if kinds and kinds <= {int, float}:
        return pyarrow.float64()
    return pyarrow.string()


def _table(pyarrow: Any, schema: Any, pointers: list[str], lines: str) -> Any:
    rows = [json.loads(line) for line in lines.splitlines()]
    columns: dict[str, list[Any]] = {"index": [row["index"] for row in rows]}
    for address in pointers:
        column = [row["values"][address] for row in rows]
        if schema.field(address).type == pyarrow.string():
            column = [
                value if value is None or isinstance(value, str) else json.dumps(value)
                for value in column
            ]
        columns[address] = column
    figures = [_flat_figures(row) for row in rows]
    columns |= {name: [row[name] for row in figures] for name, _ in _FIGURES}
    return pyarrow.table(columns, schema=schema)


def _header_of(path: pathlib.Path) -> str | None:
    pyarrow = _pyarrow()
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except (pyarrow.ArrowInvalid, OSError):
        return None
    header = metadata.get(_HEADER)
    return None if header is None else str(header.decode())


def _parquet_rows(path: str) -> Iterator[dict[str, Any]]:
    pyarrow = _pyarrow()
    names = [name for name, _ in _FIGURES]
    parts = [path] if os.path.exists(path) else sorted(map(str, _parts_of(path)))
    for part in parts:
        with pyarrow.parquet.ParquetFile(part) as file:
            for batch in file.iter_batches():
                for cells in batch.to_pylist():
                    row = {"index": cells.pop("index")}
                    figures = {name: cells.pop(name) for name in names}
                    row["values"] = cells
                    parts_of = {key: figures.pop(f"uncertainty.{key}") for key in _DECILES}
                    row |= figures
                    row["uncertainty"] = parts_of if row["error"] is None else None
                    yield row


def _parts_of(path: str) -> Iterator[pathlib.Path]:
    return pathlib.Path(path + ".parts").glob("*.parquet")


def _on_threads(
    asked: _core.StoredSweep,
    writer: _Writer,
    workers: int | None,
    report: Progress | None,
    begin: int,
    end: int,
) -> None:
    missing = list(writer.missing(begin, end))
    before = end - begin - sum(last - first for first, last in missing)
    for first, last in missing:
        inner = None if report is None else _shifted(report, before, end - begin)
        lines, _, complete = asked.lines(first, last, threads=workers or 0, progress=inner)
        if not complete:
            raise KeyboardInterrupt
        writer.put(first, last, lines)
        before += last - first
    if report is not None and not missing:
        report(end - begin, end - begin)


def _shifted(report: Progress, before: int, of: int) -> Progress:
    return lambda done, _: report(before + done, of)


def _on_dask(
    engine: Any,
    questions: _Questions,
    writer: _Writer,
    workers: int | None,
    report: Progress | None,
    begin: int,
    end: int,
) -> None:
    """Chunks as tasks of a Dask cluster. A worker that dies costs those that it has begun."""
    distributed = _distributed()
    with _client(distributed, engine, workers) as client:
        threads = sum(client.nthreads().values()) or 1
        missing = writer.missing(begin, end)
        waiting: dict[Any, tuple[int, int]] = {}
        finished = distributed.as_completed()
        tries: dict[tuple[int, int], int] = {}

        def submit(chunk: tuple[int, int]) -> None:
            tries[chunk] = tries.get(chunk, 0) + 1
            future = client.submit(_lines_of, questions, *chunk, pure=False, retries=10)
            waiting[future] = chunk
            finished.add(future)

        done = 0
        left = list(missing)
        of = end - begin
        before = of - sum(last - first for first, last in left)
        queue = iter(left)
        for chunk in _first(queue, 2 * threads + 2):
            submit(chunk)
        for future in finished:
            chunk = waiting.pop(future)
            try:
                lines = future.result()
            except (distributed.KilledWorker, distributed.CancelledError):
                if tries[chunk] > _MOST_TRIES:
                    raise
                submit(chunk)
                continue
            writer.put(*chunk, lines)
            done += chunk[1] - chunk[0]
            if report is not None:
                report(before + done, of)
            for following in _first(queue, 1):
                submit(following)


_MOST_TRIES = 10  # of a chunk whose workers die


def _first(chunks: Iterator[tuple[int, int]], count: int) -> Iterator[tuple[int, int]]:
    for _ in range(count):
        chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "a sweep on Dask needs distributed: pip install 'orrery-sim[dask]'"
        ) from error
    return distributed


def _current_client(distributed: Any) -> Any:
    try:
        return distributed.get_client()
    except ValueError:  # there is none
        return None


@contextlib.contextmanager
def _client(distributed: Any, engine: Any, workers: int | None) -> Iterator[Any]:
    """The client that `engine` is, or one for its address; "dask": the current one, or one of a
    cluster of processes on this machine, which ends with the sweep."""
    if isinstance(engine, distributed.Client):
        yield engine
        return
    if not isinstance(engine, str):
        raise TypeError(
            f"engine: expected 'threads', 'dask', a scheduler's address or a Client, "
            f"found {kind_of(engine)}"
        )
    if engine == "dask":
        current = _current_client(distributed)
        if current is not None:
            yield current
            return
        count = workers or os.cpu_count() or 1
        with (
            distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    if "://" not in engine:
        raise InputError(
            f"engine: expected 'threads', 'dask' or a scheduler's address such as "
            f"'tcp://head:8786', found {engine!r}"
        )
    with distributed.Client(engine) as client:
        yield client


def merge(files: Sequence[str | os.PathLike[str]], store: str | os.PathLike[str]) -> StoredSweep:
    """Joins the JSON lines of all shards of a sweep: the bytes of the same sweep in one store.

    Parquet needs no joining: `pyarrow.dataset.dataset(files)` reads shards as one table.
    Errors: InputError names shards that are missing, twice or not complete.
    """
    for each in files:
        if _is_parquet(os.fspath(each)):
            raise InputError(
                f"{os.fspath(each)}: expected JSON lines; pyarrow.dataset.dataset(files) reads "
                "shards in Parquet as one table"
            )
    found = json.loads(_core.merge([os.fspath(each) for each in files], os.fspath(store)))
    return StoredSweep(os.fspath(store), found["variants"], complete=True)
