"""Grafana's dashboard: its JSON model, and that Prometheus answers every query of it."""

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
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="there is no prometheus",
)
# Units and panels of Grafana 10 (packages/grafana-data/src/valueFormats/categories.ts; kinds of
# panels that come with it) that the dashboard uses.
UNITS = {
    "Bps", "bytes", "celsius", "hertz", "none", "percentunit", "s", "short", "si:FLOP/s", "watt",
}  # fmt: skip
PANELS = {"stat", "timeseries"}


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


def test_the_dashboard_is_of_grafanas_json_model():
    """Grafana, Dashboard JSON model: members, a grid of 24 columns, a data source by a variable."""
    board = json.loads(DASHBOARD.read_text())
    assert board["schemaVersion"] >= 36  # from 36 on a data source is an object with its type
    assert board["title"] and board["uid"] and len(board["uid"]) <= 40
    assert set(board["time"]) == {"from", "to"}
    variables = {each["name"]: each for each in board["templating"]["list"]}
    assert variables["source"]["type"] == "datasource"
    ids = [each["id"] for each in board["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] in PANELS and panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        letters = [each["refId"] for each in panel["targets"]]
        assert letters and len(letters) == len(set(letters))
        for each in panel["targets"]:
            assert each["expr"]
            assert each.get("datasource", panel["datasource"]) == {
                "type": "prometheus",
                "uid": "${source}",
            }


@needs_execute
@needs_prometheus
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
