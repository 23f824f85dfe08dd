"""Grafana's dashboard: Prometheus itself reads the page of metrics and answers every query of it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from executing import INTERRUPTED, Running, free_port, needs_execute

DASHBOARD = Path(__file__).parents[2] / "executor" / "session" / "dashboard.json"
pytestmark = [
    needs_execute,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="there is no prometheus",
    ),
]


def queries() -> list[tuple[str, str]]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [(each["title"], one["expr"]) for each in panels for one in each.get("targets", [])]


def answered(port: int, expression: str) -> list:
    """The series of a query."""
    words = urllib.parse.urlencode({"query": expression})
    url = f"http://127.0.0.1:{port}/api/v1/query?{words}"
    answer = json.loads(urllib.request.urlopen(url, timeout=10).read())
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


@pytest.fixture
def server(model, tmp_path):
    """Prometheus, which reads a run once a second."""
    page, port = free_port(), free_port()
    run = Running(model, "--metrics-port", str(page))
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        f"  - {{job_name: orrery, static_configs: [{{targets: ['127.0.0.1:{page}']}}]}}\n"
    )
    prometheus = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield page, port
    prometheus.terminate()
    prometheus.wait(timeout=30)
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == INTERRUPTED


def test_prometheus_reads_the_page_and_answers_every_query(server):
    page, port = server
    text = urllib.request.urlopen(f"http://127.0.0.1:{page}/metrics", timeout=5).read()
    lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert lint.returncode == 0, lint.stdout + lint.stderr
    end = time.monotonic() + 60
    while time.monotonic() < end:  # two samples make a rate
        try:
            if answered(port, "rate(orrery_host_cpu_seconds_total[1m])"):
                break
        except OSError:
            pass
        time.sleep(1)
    empty = [(title, each) for title, each in queries() if not answered(port, each)]
    assert [title for title, each in empty if "_gpu_" not in each] == []  # no GPU here
    assert len(queries()) > 30
