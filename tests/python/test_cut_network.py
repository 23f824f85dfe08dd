"""Two machines whose network is cut: two network namespaces of this one, joined by one wire."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from executing import (
    DONE,
    PEER_FAILED,
    PLAN,
    SECONDS,
    execute,
    line,
    losses,
    needs_execute,
    newest_checkpoint,
    write_model,
)

pytestmark = needs_execute

ADDRESS = "10.213.7.{}/24"
PORT = 29517


def ip(*words: str) -> bool:
    """Whether iproute2 did it."""
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


class Wire:
    """Host i is a namespace with `lo` and one end of the wire, `w<i>`."""

    def __init__(self) -> None:
        self.hosts = [f"orrery-{os.getpid()}-{i}" for i in range(2)]

    def lay(self) -> bool:
        one, other = self.hosts
        ends = ["name", "w0", "netns", one, "type", "veth", "peer", "name", "w1", "netns", other]
        laid = all(ip("netns", "add", host) for host in self.hosts) and ip("link", "add", *ends)
        for i, host in enumerate(self.hosts):
            laid = laid and ip("-n", host, "address", "add", ADDRESS.format(i + 1), "dev", f"w{i}")
            laid = laid and ip("-n", host, "link", "set", "lo", "up")
        return laid and self.switch(0, "up") and self.switch(1, "up")

    def switch(self, i: int, state: str) -> bool:
        return ip("-n", self.hosts[i], "link", "set", f"w{i}", state)

    def remove(self) -> None:
        for host in self.hosts:
            ip("netns", "delete", host)


@pytest.fixture
def wire() -> Iterator[Wire]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    wire = Wire()
    try:
        if not wire.lay():
            pytest.skip("this system lets nobody make network namespaces")
        yield wire
    finally:
        wire.remove()


def command(wire: Wire, rank: int, model: Path, *flags: str) -> list[str]:
    where = ["--rank", str(rank), "--ranks", "2", "--address", f"10.213.7.1:{PORT}"]
    return ["ip", "netns", "exec", wire.hosts[rank], *line(model, *where, *flags, plan=PLAN)]


class Ranks:
    """Both, each where it belongs; `ip netns exec` becomes what it runs."""

    def __init__(self, wire: Wire, model: Path, *flags: str):
        self.processes = [
            subprocess.Popen(
                command(wire, rank, model, *flags),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]

    def end(self) -> list[subprocess.CompletedProcess]:
        """How each ended. Nothing of a rank is left: its pipes are closed, its exit code is here."""
        ended = []
        try:
            for each in self.processes:
                said = each.communicate(timeout=SECONDS)
                ended.append(subprocess.CompletedProcess(each.args, each.returncode, *said))
        finally:
            for each in self.processes:
                each.kill()
        return ended


@pytest.mark.parametrize("cut_at", [0, 1])
def test_a_cut_wire_ends_both_ranks_and_a_mended_one_lets_them_go_on(wire, tmp_path, cut_at):
    model, folder = write_model(tmp_path / "tiny.json"), tmp_path / "checkpoint"
    kept = ["--checkpoint", str(folder), "--checkpoint-every", "2"]
    ranks = Ranks(wire, model, "--steps", "100000000", *kept)
    patience = time.monotonic() + SECONDS
    while not (folder / "latest").exists():
        assert time.monotonic() < patience, ranks.end()
        time.sleep(0.02)
    assert wire.switch(cut_at, "down")
    cut = time.monotonic()
    ended = ranks.end()
    assert time.monotonic() - cut < 10 + 2
    assert [each.returncode for each in ended] == [PEER_FAILED, PEER_FAILED], ended
    assert "rank 1 has been silent for 7 s (a peer failed" in ended[0].stderr
    assert "rank 0 is lost: rank 0's store at 10.213.7.1" in ended[1].stderr

    assert wire.switch(cut_at, "up")
    newest = newest_checkpoint(folder)
    steps = ["--steps", str(newest + 2)]
    again = Ranks(wire, model, *steps, *kept, "--json").end()
    assert [each.returncode for each in again] == [DONE, DONE], again
    answer = json.loads(again[0].stdout)
    assert answer["resumed_from_step"] == newest
    whole = losses(execute(model, *steps, "--ranks", "2"))
    assert losses(answer) == whole[newest:]
