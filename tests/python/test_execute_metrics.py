"""The page of metrics: who may read it, and that no reader holds up the run."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from executing import INTERRUPTED, SOON, Running, free_port, line, needs_execute, outcome

pytestmark = needs_execute


def page_at(host: str, port: int) -> str:
    return urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=5).read().decode()


def test_metrics_are_served_on_the_loopback_alone(model):
    port = free_port()
    run = Running(model, "--metrics-port", str(port))
    page = page_at("127.0.0.1", port)
    with pytest.raises(OSError):  # another address of this machine
        socket.create_connection(("127.0.0.2", port), timeout=1)
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == INTERRUPTED
    assert "# TYPE orrery_loss gauge" in page
    assert "orrery_ranks 2" in page
    lines = [each for each in page.splitlines() if not each.startswith("#")]
    assert len(lines) >= 30
    assert all(each.startswith("orrery_") for each in lines)
    assert page.count("# TYPE orrery_host_cpu_seconds_total counter") == 1


def test_only_the_page_of_metrics_is_served(model):
    port = free_port()
    run = Running(model, "--metrics-port", str(port))
    for path in ("/", "/metric", "/metrics/x", "/%2e%2e/etc/passwd", "/favicon.ico"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5)
        assert refused.value.code == 404
        assert refused.value.read() == b"the page is /metrics\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", data=b"x", timeout=5)
    assert refused.value.code == 405
    page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?debug=1", timeout=5)
    assert b"orrery_loss" in page.read()
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == INTERRUPTED


def test_metrics_are_served_where_they_are_asked_for(model):
    port = free_port()
    run = Running(model, "--metrics-port", str(port), "--metrics-address", "127.0.0.2")
    assert "orrery_step" in page_at("127.0.0.2", port)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    run.process.send_signal(signal.SIGINT)
    run.end()


def test_silent_and_slow_readers_hang_nothing(model):
    port = free_port()
    run = Running(model, "--metrics-port", str(port))
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    dripping = socket.create_connection(("127.0.0.1", port))
    begin = time.monotonic()
    assert "orrery_loss" in page_at("127.0.0.1", port)
    assert time.monotonic() - begin < 5  # the silent ones have a second each
    # A reader has one second in all: a byte now and then buys no more.
    closed = False
    dripping.settimeout(0.2)
    while not closed and time.monotonic() - begin < SOON:
        try:
            dripping.sendall(b"G")
            closed = dripping.recv(100) == b""
        except TimeoutError:
            continue
        except OSError:
            closed = True
    assert closed
    late = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    run.process.send_signal(signal.SIGINT)
    code, _, seconds = run.end()
    assert code == INTERRUPTED
    assert seconds < SOON
    for each in [*silent, dripping, *late]:
        each.close()


def test_a_finished_run_waits_for_no_reader(model):
    port, readers = free_port(), []
    run = subprocess.Popen(
        line(model, "--steps", "300", "--metrics-port", str(port)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while run.poll() is None:
        try:
            readers.append(socket.create_connection(("127.0.0.1", port), timeout=1))
        except OSError:
            time.sleep(0.02)
            continue
        break
    assert run.wait(timeout=SOON) == 0
    assert readers


@pytest.mark.parametrize("port", ["-1", "0", "65536", "80000"])
def test_a_port_beyond_the_range_is_refused(model, port):
    ran = outcome(line(model, "--metrics-port", port))
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert port in ran.stderr


def test_a_wrong_address_or_a_taken_port_is_refused(model):
    ran = outcome(line(model, "--metrics-port", "9400", "--metrics-address", "here"))
    assert ran.returncode == 2
    assert "--metrics-address: expected an IP address" in ran.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = outcome(line(model, "--metrics-port", str(port)))
    assert ran.returncode == 2
    assert f"--metrics-port: cannot listen on 127.0.0.1:{port}: Address already in use" in ran.stderr
