"""Sweeps in a file: the same bytes whatever was killed, on threads and on Dask."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import orrery as orr
import pytest

VARY = {
    "/plan/micro_batch": [1, 2, 3],
    "/plan/recompute": ["none", "full"],
    "/cluster/fabric/bandwidth": ["100 Gb/s", "200 Gb/s"],
    "/cluster/site": [{"clock": 0.9}, {"clock": 1}],
}


def test_a_stored_sweep_has_the_rows_of_the_sweep_in_memory(small, tmp_path):
    stored = orr.sweep(small, VARY, store=tmp_path / "f.jsonl", tokens="1T", progress=False)
    swept = orr.sweep(small, VARY, progress=False)
    rows = list(stored.rows())
    assert stored.complete and stored.variants == len(rows) == 24
    for row, point in zip(rows, swept.points):
        assert row["values"] == point.changes
        assert row["error"] == point.refused
        if point.run is not None:
            assert row["step_time_s"] == point.run.step_time
            assert row["peak_memory_bytes"] == point.run.peak_memory
            assert row["uncertainty"] == point.run.json["uncertainty"]
            assert row["days"] == pytest.approx(1e12 / row["tokens_per_s"] / 86400)
    assert stored.fastest()["tokens_per_s"] == swept.fits_memory().fastest().tokens_per_s
    assert stored.cheapest()["fits"]
    frame = stored.to_frame()
    assert list(frame["/plan/micro_batch"][:2]) == [1, 1]
    assert frame["uncertainty.p90"].notna().sum() == len(swept)


def test_a_store_of_any_format_is_the_same_lines_and_has_a_page(small, tmp_path):
    pytest.importorskip("pyarrow")
    lines = orr.sweep(small, VARY, store=tmp_path / "f.jsonl", progress=False)
    table = orr.sweep(small, VARY, store=tmp_path / "f.parquet", progress=False)
    assert [json.loads(each) for each in table.lines().splitlines()[1:]] == list(lines.rows())
    for stored, page in ((lines, tmp_path / "lines.html"), (table, tmp_path / "table.html")):
        orr.report(page, stored)
        assert "What each value leads to" in page.read_text(encoding="utf-8")


def test_the_command_and_the_package_write_the_same_bytes_and_shards_merge_to_them(small, tmp_path):
    whole = orr.sweep(small, VARY, store=tmp_path / "whole.jsonl", workers=1, progress=False)
    parts = [
        orr.sweep(small, VARY, store=tmp_path / f"{i}.jsonl", shard=(i, 3), progress=False).path
        for i in (3, 1, 2)
    ]
    merged = orr.merge(parts, tmp_path / "merged.jsonl")
    assert merged.variants == 24
    with open(whole.path, "rb") as one, open(merged.path, "rb") as other:
        assert one.read() == other.read()
    with pytest.raises(orr.InputError, match="^merge: of 3 shards these are missing: 2$"):
        orr.merge(parts[:2], tmp_path / "none.jsonl")


def test_a_store_of_other_questions_is_refused(small, tmp_path):
    store = tmp_path / "f.jsonl"
    orr.sweep(small, VARY, store=store, progress=False)
    with pytest.raises(orr.InputError, match="is the store of another sweep, of other values"):
        orr.sweep(small, {**VARY, "/plan/micro_batch": [4]}, store=store, progress=False)
    with pytest.raises(orr.InputError, match="^shard: is of a stored sweep; state a store, too$"):
        orr.sweep(small, VARY, shard="1/2")
    with pytest.raises(orr.InputError, match="^engine: expected 'threads', 'dask' or a scheduler"):
        pytest.importorskip("distributed")
        orr.sweep(small, VARY, store=tmp_path / "g.jsonl", engine="spark", progress=False)
    with pytest.raises(orr.InputError, match="have 24 combinations, more than 20"):
        orr.sweep(small, VARY, store=tmp_path / "h.jsonl", limit=20, progress=False)


@pytest.mark.parametrize(
    ("module", "store", "engine", "said"),
    [
        ("pyarrow", "f.parquet", "threads", r"pip install 'orrery-sim\[parquet\]'"),
        ("distributed", "f.jsonl", "dask", r"pip install 'orrery-sim\[dask\]'"),
    ],
)
def test_a_package_that_is_not_installed_is_named(
    small, tmp_path, monkeypatch, module, store, engine, said
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=said):
        orr.sweep(small, VARY, store=tmp_path / store, engine=engine, progress=False)


def test_an_interrupted_stored_sweep_continues(small, tmp_path):
    lengths = {"/plan/seq_len": [1024 + 8 * i for i in range(300)]}

    def interrupt(done: int, of: int) -> None:
        assert of == 300
        if done:
            raise KeyboardInterrupt

    store = tmp_path / "f.jsonl"
    kept = orr.sweep(small, lengths, store=store, workers=1, progress=interrupt, partial=True)
    assert not kept.complete
    with pytest.raises(orr.Interrupted):
        orr.sweep(small, lengths, store=store, workers=1, progress=interrupt)
    done = orr.sweep(small, lengths, store=store, progress=False)
    assert done.complete
    orr.sweep(small, lengths, store=tmp_path / "g.jsonl", progress=False)
    assert (tmp_path / "f.jsonl").read_bytes() == (tmp_path / "g.jsonl").read_bytes()


def killed_script(store: str) -> str:
    return textwrap.dedent(
        f"""
        import orrery as orr
        vary = {VARY!r}
        orr.sweep(orr.load("llama3-8b-8-h100"), vary, store={store!r}, rows_per_group=4,
                  progress=False, workers=1)
        """
    )


@pytest.mark.parametrize("name", ["f.jsonl", "f.parquet"])
def test_a_sweep_that_was_killed_ends_with_the_same_bytes(small, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    whole = tmp_path / f"whole-{name}"
    orr.sweep(small, VARY, store=whole, rows_per_group=4, progress=False)
    store = tmp_path / name
    chance = random.Random(3)
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", killed_script(str(store))])
        time.sleep(chance.uniform(0.1, 0.6))
        child.send_signal(signal.SIGKILL)
        child.wait()
    stored = orr.sweep(small, VARY, store=store, rows_per_group=4, progress=False)
    assert stored.complete
    assert store.read_bytes() == whole.read_bytes()
    assert not os.path.exists(f"{store}.parts")
    again = orr.sweep(small, VARY, store=store, rows_per_group=4, progress=False)
    assert list(again.rows()) == list(stored.rows())


def test_parquet_has_the_rows_of_the_lines_with_types(small, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    vary = {**VARY, "/plan/stage_layers": [None, [32]]}
    lines = orr.sweep(small, vary, store=tmp_path / "f.jsonl", progress=False)
    table = orr.sweep(small, vary, store=tmp_path / "f.parquet", rows_per_group=20, progress=False)
    assert parquet.ParquetFile(table.path).num_row_groups == 3  # 48 rows
    types = {field.name: str(field.type) for field in parquet.read_schema(table.path)}
    assert types["/plan/micro_batch"] == "int64"
    assert types["/plan/recompute"] == "string"
    assert types["mfu"] == "double"
    for one, other in zip(lines.rows(), table.rows(), strict=True):
        layers = one["values"]["/plan/stage_layers"]
        one["values"]["/plan/stage_layers"] = None if layers is None else json.dumps(layers)
        one["values"]["/cluster/site"] = json.dumps(one["values"]["/cluster/site"])
        assert one == other
    with pytest.raises(orr.InputError, match="is the store of another sweep"):
        orr.sweep(small, VARY, store=table.path, progress=False)


@pytest.mark.parametrize("name", ["f.jsonl", "f.parquet"])
def test_workers_of_dask_that_are_killed_cost_their_chunk_only(small, tmp_path, name):
    distributed = pytest.importorskip("distributed")
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    vary = {**VARY, "/plan/seq_len": [2048, 4096, 8192]}
    whole = tmp_path / f"whole-{name}"
    orr.sweep(small, vary, store=whole, rows_per_group=4, progress=False)
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill(done: int, of: int) -> None:
            assert of == 72
            if done >= 8 * (len(killed) + 1) and len(killed) < 2:
                workers = list(client.run(os.getpid).values())
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        stored = orr.sweep(
            small, vary, store=tmp_path / name, engine=client, rows_per_group=4, progress=kill
        )
    assert len(killed) == 2
    assert stored.complete
    assert (tmp_path / name).read_bytes() == whole.read_bytes()
