"""Runs that other processes can reach: which of them may join, and what the others can do."""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import socket
import stat
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from executing import (
    COMMAND,
    DONE,
    PEER_FAILED,
    PLAN,
    SECONDS,
    SOON,
    Running,
    free_port,
    line,
    needs_execute,
    outcome,
)

pytestmark = needs_execute

SECRET = "0123456789abcdef" * 4


@pytest.fixture
def runtime() -> Iterator[Path]:
    """As a session manager makes it: closed to others, with a path that leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
        yield Path(folder)


class ByHand:
    """Two ranks, each started by its own command."""

    def __init__(self, model: Path, runtime: Path):
        self.port = free_port()
        self.model = model
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
        self.environment.pop("ORRERY_SECRET", None)
        self.processes: list[subprocess.Popen] = []

    def start(self, rank: int, *flags: str, **variables: str) -> subprocess.Popen:
        where = ["--rank", str(rank), "--ranks", "2", "--address", f"127.0.0.1:{self.port}"]
        process = subprocess.Popen(
            line(self.model, *where, "--steps", "3", *flags, plan=PLAN),
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def reach(self) -> socket.socket:
        patience = time.monotonic() + SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=5)
            except ConnectionRefusedError:
                assert time.monotonic() < patience
                time.sleep(0.02)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def by_hand(model: Path, runtime: Path) -> Iterator[ByHand]:
    ranks = ByHand(model, runtime)
    yield ranks
    ranks.end()


def ended(process: subprocess.Popen) -> tuple[int, str]:
    _, error = process.communicate(timeout=SECONDS)
    return process.returncode, error


def answer(caller: socket.socket) -> bytes:
    """What a caller is sent before the end; a connection closed with bytes of his unread is reset."""
    try:
        return caller.recv(64)
    except ConnectionResetError:
        return b""


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def test_unauthenticated_callers_neither_end_nor_delay_a_run_on_the_loopback(by_hand, runtime):
    """What they send are a greeting of the protocol before, `set abort` to a verdict of `done`, a frame
    that never ends, a header of 2^32 bytes, and nothing."""
    zero = by_hand.start(0)
    abort = struct.pack("<BI", 0, 0) + text(b"abort") + text(struct.pack("<II", 0, 0) + text(b""))
    hello = text(b"ORRERYST") + struct.pack("<III", 1, 2, 1) + text(b"job") + text(b"") + text(b"")
    said = [text(hello) + text(abort), struct.pack("<I", 1 << 20) + b"x" * 1000, b"\xff" * 64, b""]
    callers = [by_hand.reach() for _ in range(32)]
    for i, caller in enumerate(callers):
        caller.sendall(said[i % len(said)])
    begin = time.monotonic()
    one = by_hand.start(1)
    code, error = ended(zero)
    assert (code, ended(one)[0]) == (DONE, DONE), error
    assert time.monotonic() - begin < SOON
    assert "can join" not in error  # the user's own secret keeps it
    secret = runtime / "orrery" / "secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert {answer(caller) for caller in callers[::4]} <= {bytes(32), b""}


def test_a_rank_with_another_secret_is_refused(by_hand):
    zero = by_hand.start(0, ORRERY_SECRET=SECRET)
    code, error = ended(by_hand.start(1, ORRERY_SECRET=SECRET[::-1]))
    assert code == PEER_FAILED
    assert "refuses this rank" in error
    assert "ORRERY_SECRET" in error
    one = by_hand.start(1, ORRERY_SECRET=SECRET)
    assert (ended(zero)[0], ended(one)[0]) == (DONE, DONE)


def test_a_short_secret_is_wrong_input(by_hand):
    code, error = ended(by_hand.start(0, ORRERY_SECRET="hunter2"))
    assert code == 2
    assert error.splitlines()[-1].startswith("ORRERY_SECRET: expected 32 characters or more")
    assert "hunter2" not in error


def test_rank_0_listens_on_the_address_given_alone(by_hand):
    by_hand.start(0)
    by_hand.reach().close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", by_hand.port), timeout=5)


class FakeRank:
    """Rank 1 of two, let in by the run's secret, and then whatever a test makes of it."""

    def __init__(self, by_hand: ByHand):
        self.key = hashlib.blake2b(SECRET.encode(), digest_size=32).digest()
        self.job = f"127.0.0.1:{by_hand.port}".encode()
        self.store = self.enter(by_hand.reach(), b"ORRERYST")

    def enter(self, socket_: socket.socket, magic: bytes) -> socket.socket:
        nonce = os.urandom(32)
        socket_.sendall(magic + struct.pack("<I", 2) + nonce)
        nonces = nonce + received(socket_, 32)
        claims = struct.pack("<IIB", 2, 1, 0) + text(self.job) + text(b"") + text(b"")
        proof = hmac.new(self.key, b"c" + magic + nonces + claims, "sha256").digest()
        socket_.sendall(text(claims) + proof)
        expected = hmac.new(self.key, b"s" + magic + nonces + claims, "sha256").digest()
        assert received(socket_, 32) == expected
        return socket_

    def ask(self, verb: int, key: bytes, value: bytes = b"") -> bytes:
        self.store.sendall(text(struct.pack("<BI", verb, 5000) + text(key) + text(value)))
        (size,) = struct.unpack("<I", received(self.store, 4))
        return received(self.store, size)[5:]

    def enter_wire(self) -> socket.socket:
        host, port = self.ask(GET, b"tcp/0").decode().rsplit(":", 1)
        return self.enter(socket.create_connection((host, int(port)), timeout=5), b"ORRERYTW")


SET, GET = 0, 3


def received(socket_: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = socket_.recv(size - len(found))
        assert more
        found += more
    return found


def end_as_done(rank: FakeRank) -> None:
    rank.ask(SET, b"abort", struct.pack("<II", 0, 1) + text(b"all is well"))


def beat_briefly(rank: FakeRank) -> None:
    rank.ask(SET, b"beat/1", b"x")


def send_large(rank: FakeRank) -> None:
    rank.wire = rank.enter_wire()
    rank.wire.sendall(struct.pack("<QQ", 0, 1 << 40))


@pytest.mark.parametrize(
    "misdeed, said",
    [
        (end_as_done, "ended the run with a reason that cannot be read"),
        (beat_briefly, "rank 1 wrote a heartbeat that cannot be read"),
        (send_large, "sent a message of 1099511627776 bytes, for which there is no memory"),
    ],
)
def test_a_rank_that_misbehaves_ends_the_run_as_a_failed_peer(by_hand, misdeed, said):
    zero = by_hand.start(0, ORRERY_SECRET=SECRET)
    rank = FakeRank(by_hand)
    misdeed(rank)
    code, error = ended(zero)
    assert code == PEER_FAILED, error
    assert said in error


def sockets_of(pid: int) -> set[str]:
    links = (os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir())
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def test_ranks_of_one_host_open_no_port(model, runtime, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    run = Running(model)
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    over_tcp = {row.split()[9] for table in tables for row in table}
    owned = [sockets_of(pid) for pid in run.pids]
    run.process.terminate()
    run.end()
    assert all(owned)
    assert not any(each & over_tcp for each in owned)
    assert list((runtime / "orrery").iterdir()) == []


TORCHRUN = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "none"}
SRUN = {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_NODEID": "0"}


def by_torchrun(rank: int, port: int, local_ranks: int) -> dict[str, str]:
    local = str(rank % local_ranks)
    ours = {"RANK": str(rank), "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": str(local_ranks)}
    return {**TORCHRUN, **ours, "MASTER_PORT": str(port)}


def by_srun(rank: int, _port: int) -> dict[str, str]:
    ours = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}
    return {**SRUN, **ours, "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NODELIST": "nowhere"}


LAUNCHERS = {
    "torchrun on one host": lambda rank, port: by_torchrun(rank, port, 2),
    "torchrun on two": lambda rank, port: by_torchrun(rank, port, 1),
    "srun on one host": by_srun,
}


@pytest.mark.parametrize("variables", LAUNCHERS.values(), ids=LAUNCHERS.keys())
def test_ranks_of_a_launcher_meet(model, runtime, variables):
    """By its variables alone, each rank with another parent: a wrapper's, say."""
    port = free_port()
    ranks = [
        subprocess.Popen(
            ["sh", "-c", '"$@"; exit $?', "sh", *line(model, "--steps", "2", "--ranks", "2")],
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), **variables(rank, port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ends = [ended(rank) for rank in ranks]
    assert [code for code, _ in ends] == [DONE, DONE], ends


def test_mpi_tells_ranks_of_several_hosts_the_secret(model):
    """Each rank is made to believe that it is alone on its host."""
    folder = Path(COMMAND).resolve().parent
    modules = [folder / "liborrery_mpi.so", folder.parent / "lib" / "orrery" / "liborrery_mpi.so"]
    if shutil.which("mpirun") is None or not any(each.exists() for each in modules):
        pytest.skip("there is no mpirun, or no liborrery_mpi.so")
    apart = ["sh", "-c", 'OMPI_COMM_WORLD_LOCAL_SIZE=1 exec "$@"', "sh"]
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *apart]
    ran = outcome([*mpirun, *line(model, "--steps", "2", "--ranks", "2")])
    assert ran.returncode == DONE, ran.stderr
    assert "can join" not in ran.stderr
