"""Two machines whose network is cut: two network namespaces of this one, joined by one wire."""

from __future__ import annotations

import json
import os
import shutil
import signal
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
    SOON,
    execute,
    line,
    losses,
    needs_execute,
    newest_checkpoint,
    outcome,
    write_model,
)

pytestmark = needs_execute

ADDRESS = "10.213.7.{}/24"
PORT = 29517
NAMESPACES = Path("/run/netns")  # that `ip netns` mounts on itself


def ip(*words: str) -> bool:
    """Whether iproute2 did it."""
    return outcome(["ip", *words]).returncode == 0


class Wire:
    """Host i is a namespace with `lo` and one end of the wire, `w<i>`. Another wire's hosts have the
    same addresses and do not meet these."""

    def __init__(self, name: str) -> None:
        self.hosts = [f"orrery-{os.getpid()}-{name}-{i}" for i in range(2)]

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

    def processes(self) -> list[int]:
        asked = [["ip", "netns", "pids", host] for host in self.hosts]
        return [int(pid) for each in asked for pid in outcome(each).stdout.split()]

    def remove(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for host in self.hosts:
            ip("netns", "delete", host)


def is_mounted(folder: Path) -> bool:
    """Also where it is the same file system as its parent, which `os.path.ismount` does not see."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return str(folder) in (each.split()[4] for each in mounts)


@pytest.fixture
def wires() -> Iterator[list[Wire]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    wires = [Wire("a"), Wire("b")]
    was_mounted = is_mounted(NAMESPACES)
    try:
        if not all(wire.lay() for wire in wires):
            pytest.skip("this system refuses to make network namespaces")
        yield wires
    finally:
        for wire in wires:
            wire.remove()
        if not was_mounted and is_mounted(NAMESPACES):
            outcome(["umount", "--lazy", str(NAMESPACES)])


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
        ended = []
        for each in self.processes:
            said = each.communicate(timeout=SECONDS)
            ended.append(subprocess.CompletedProcess(each.args, each.returncode, *said))
        return ended


class Job:
    """Two ranks that write a checkpoint every two steps, and the wire between them."""

    def __init__(self, wire: Wire, model: Path, folder: Path):
        self.wire, self.model, self.folder = wire, model, folder
        self.ranks = self.start("100000000")

    def start(self, steps: str) -> Ranks:
        kept = ["--checkpoint", str(self.folder), "--checkpoint-every", "2", "--json"]
        return Ranks(self.wire, self.model, "--steps", steps, *kept)

    def await_checkpoint(self) -> None:
        patience = time.monotonic() + SECONDS
        while not (self.folder / "latest").exists():
            assert time.monotonic() < patience, self.ranks.end()
            time.sleep(0.02)

    def go_on(self, more: int) -> None:
        """The command once more, and its losses against those of a run without a cut network."""
        newest = newest_checkpoint(self.folder)
        ended = self.start(str(newest + more)).end()
        assert [each.returncode for each in ended] == [DONE, DONE], ended
        answer = json.loads(ended[0].stdout)
        assert answer["resumed_from_step"] == newest
        whole = execute(self.model, "--steps", str(newest + more), "--ranks", "2")
        assert losses(answer) == losses(whole)[newest:]


def test_a_cut_wire_ends_both_ranks_and_a_mended_one_lets_them_go_on(wires, tmp_path):
    """One job's wire is cut at rank 0, the other's at rank 1: the end that is switched off loses its
    routes, the other only what it sends."""
    model = write_model(tmp_path / "tiny.json")
    jobs = [Job(wire, model, tmp_path / f"kept-{i}") for i, wire in enumerate(wires)]
    for job in jobs:
        job.await_checkpoint()
    for end, job in enumerate(jobs):
        assert job.wire.switch(end, "down")
    cut = time.monotonic()
    ended = [job.ranks.end() for job in jobs]
    assert time.monotonic() - cut < SOON  # 7 s of silence, and what else there is to do
    for first, second in ended:
        assert [first.returncode, second.returncode] == [PEER_FAILED, PEER_FAILED], ended
        assert "rank 1 has been silent for 7 s (a peer failed" in first.stderr
        assert "rank 0 is lost: rank 0's store at 10.213.7.1" in second.stderr
    for end, job in enumerate(jobs):
        assert job.wire.processes() == []
        assert job.wire.switch(end, "up")
        job.go_on(2)
