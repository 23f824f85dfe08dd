"""`orrery report` and `Run.report`: one page, which needs nothing else and runs nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import orrery as orr
import pytest
from executing import COMMAND, SECONDS
from orrery.palette import LOOKS

ROOT = Path(__file__).resolve().parents[2]
EVIL = "<script>alert(1)</script>'\"&"
VOID = {"meta", "line", "rect", "path", "circle", "br"}
needs_command = pytest.mark.skipif(COMMAND is None, reason="there is no orrery")


class Page(HTMLParser):
    """The tags, attributes and texts of a page; fails where a tag is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture(scope="module")
def piped() -> orr.Run:
    return orr.load("llama3-70b-64-h100").simulate()


@pytest.fixture(scope="module")
def results(piped):
    """A result of each kind."""
    plans = orr.plan(
        model="llama3-8b", cluster="dgx-h100 x 1", global_batch=64, seq_len=8192, progress=False
    )
    bought = orr.buy(
        model="llama3-8b", tokens="10B", nodes=["p5", "hgx-h100"], deadline="9d", progress=False
    )
    trained = orr.train(
        "llama3-70b-64-h100", tokens="1T", samples=40, deadline="90d", progress=False
    )
    judged = orr.check(ROOT / "scenarios/claims/articles.json")
    return {"run": piped, "plan": plans, "buy": bought, "train": trained, "check": judged}


def page_of(path: Path, *results) -> tuple[str, Page]:
    orr.report(path, *results)
    text = path.read_text()
    return text, Page(text)


def needs_nothing(text: str, page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in {"script", "iframe", "link", "object", "embed", "img", "base", "form"}
        assert not any(name.startswith("on") for name in attributes)
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in text and "@import" not in text


def test_the_page_of_a_run_says_what_the_run_says(piped, tmp_path):
    piped.report(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    page = Page(text)
    needs_nothing(text, page)
    assert "llama3.1-70b on dgx-h100 x 8" in page.text
    assert f"{piped.step_time:.2f} s" in page.text
    assert f"{piped.mfu * 100:.1f} %" in page.text
    low, high = piped.uncertainty.p10, piped.uncertainty.p90
    assert f"{low:.3f} s to {high:.2f} s in 8 of 10 cases" in page.text
    for name, time in piped.waterfall:
        if time > 0.001 * piped.step_time:
            assert name in page.text
    assert all(each in page.text for each in piped.assumptions)
    assert "rank 0 (stage 0)" in page.text and "rank 56 (stage 7)" in page.text
    assert "no timeline" not in page.text


def test_bars_begin_at_zero_and_add_up(piped, tmp_path):
    text, _ = page_of(tmp_path / "run.html", piped)
    # The waterfall: its bars follow one another, and the last is the whole step.
    chart = text[text.index("From the ideal machine to this step</title>") :]
    chart = chart[: chart.index("</svg>")]
    bars = [
        (float(left), float(width), hint)
        for left, width, hint in re.findall(
            r"<rect x='([\d.]+)'[^>]* width='([\d.]+)'[^>]*><title>([^<]*)</title>", chart
        )
    ]
    assert bars[-1][2].startswith("predicted step: ")
    begin, whole = bars[-1][0], bars[-1][1]
    assert bars[0][0] == pytest.approx(begin, abs=0.1)
    for name, time in piped.waterfall:
        drawn = [each for each in bars if each[2].startswith(f"{name}: ")]
        if time > 0.005 * piped.step_time:
            assert drawn[0][1] / whole == pytest.approx(time / piped.step_time, abs=0.002)


def test_a_training_has_a_colour_for_each_cause_and_words_for_large_figures(tmp_path):
    trained = orr.train(
        "llama3-405b-whole-run-16384-h100", samples=40, progress=False
    )
    text, page = page_of(tmp_path / "train.html", trained)
    chart = text[text.index("Where the time goes") :]
    chart = chart[: chart.index("</svg>")]
    drawn = {
        re.sub(r" [\d.]+ %$", "", hint): colour
        for colour, hint in re.findall(r"style='fill:([^']+)'[^>]*><title>([^<]*)</title>", chart)
    }
    assert len(drawn) > 4
    assert len(set(drawn.values())) == len(drawn), drawn
    assert "GWh" in page.text and "e+0" not in page.text
    assert "may not fit" in page.text


def test_every_kind_of_result_has_a_page(results, tmp_path):
    for kind, result in results.items():
        text, page = page_of(tmp_path / f"{kind}.html", result)
        needs_nothing(text, page)
        assert "nan" not in page.text.split() and "inf" not in page.text.split(), kind
    best = results["plan"]["plans"][0]
    page = page_of(tmp_path / "plan.html", results["plan"])[1]
    assert best["flag"] in page.text and "What was tried" in page.text
    assert "deadline" in page_of(tmp_path / "train.html", results["train"])[1].text
    assert "p5 x" in page_of(tmp_path / "buy.html", results["buy"])[1].text
    assert "impossible" in page_of(tmp_path / "check.html", results["check"])[1].text


def test_several_results_are_compared_on_one_page(results, piped, tmp_path):
    slow = piped.scenario.replace({"/cluster/fabric/bandwidth": "100 Gb/s"}).simulate()
    text, page = page_of(tmp_path / "all.html", *results.values(), slow)
    needs_nothing(text, page)
    assert "6 results of Orrery" in page.text and "Compared" in page.text
    assert sum(tag == "section" for tag, _ in page.tags) == 6
    targets = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert targets == {f"#{attributes['id']}" for tag, attributes in page.tags if tag == "section"}


def test_what_a_user_typed_is_shown_and_never_read_as_markup(piped, results, tmp_path):
    def poisoned(value):
        if isinstance(value, dict):
            return {f"{key}": poisoned(each) for key, each in value.items()}
        if isinstance(value, list):
            return [poisoned(each) for each in value]
        return value + EVIL if isinstance(value, str) else value

    named = {**piped.json, "model": EVIL}
    text, page = page_of(tmp_path / "evil.html", named)
    needs_nothing(text, page)
    assert EVIL in page.text
    for kind, result in results.items():
        document = poisoned(result.json)
        text, page = page_of(tmp_path / "evil.html", document, document)
        needs_nothing(text, page)
        assert EVIL in page.text, kind


def test_a_document_without_a_timeline_says_how_to_get_one(piped, tmp_path):
    page = page_of(tmp_path / "run.html", piped.json)[1]
    assert "orrery simulate ... --timeline --json adds it" in page.text


def test_what_is_no_result_is_refused(piped, tmp_path):
    with pytest.raises(TypeError, match="at least one result"):
        orr.report(tmp_path / "no.html")
    with pytest.raises(orr.InputError, match="^result 1: is no answer that a page shows; expected"):
        orr.report(tmp_path / "no.html", {"hello": 1})
    less = piped.json
    del less["uncertainty"]
    with pytest.raises(orr.InputError, match="^result 1:/uncertainty: missing$"):
        orr.report(tmp_path / "no.html", less)
    with pytest.raises(orr.InputError, match="is an error, not an answer"):
        orr.report(tmp_path / "no.html", {"error": {"code": 2}})
    assert not (tmp_path / "no.html").exists()


def test_a_file_is_read_as_the_command_reads_it(tmp_path):
    stored = tmp_path / "f.parquet"
    stored.write_bytes(b"PAR1\x15\x04\x9c\xff\xfePAR1")
    with pytest.raises(orr.InputError) as refused:
        orr.report(tmp_path / "no.html", stored)
    assert str(refused.value) == (
        f"{stored}: is a Parquet store, which Python alone writes and reads: "
        "orrery.report(PAGE, orrery.sweep(..., store=PATH)) makes its page"
    )
    missing = tmp_path / "missing.json"
    with pytest.raises(orr.InputError, match=re.escape(str(missing))):
        orr.report(tmp_path / "no.html", str(missing))
    assert not (tmp_path / "no.html").exists()


@needs_command
def test_the_page_of_a_parquet_store_is_made_as_its_refusal_says(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "grid.parquet"
    grid = {"/plan/micro_batch": [1, 2]}
    orr.sweep(orr.load("llama3-8b-8-h100"), grid, store=path, progress=False)
    ran = subprocess.run(
        [COMMAND, "report", str(path), "--out", str(tmp_path / "no.html")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 2
    assert "orrery.report(PAGE, orrery.sweep(..., store=PATH)) makes its page" in ran.stderr
    again = orr.sweep(orr.load("llama3-8b-8-h100"), grid, store=path, progress=False)
    page = page_of(tmp_path / "sweep.html", again)[1]
    assert "Sweep of llama3-8b-8-h100" in page.text


def test_classes_have_the_colours_of_the_other_pictures(piped, tmp_path):
    text = page_of(tmp_path / "run.html", piped)[0]
    light = re.search(r":root\{(--gemm:[^}]*)\}", text)
    assert light
    colours = dict(re.findall(r"--(\w+):(#\w+);", light.group(1)))
    for name in ("gemm", "attention", "tp", "dp", "pp", "optimizer", "forward", "backward"):
        assert colours[name] == LOOKS[name].colour


def test_a_measured_run_and_a_sweep_have_a_page(tmp_path):
    small = orr.load("gpt-dp2")
    written = small.simulate().trace.save(tmp_path / "own.json", format="kineto")
    compared = orr.compare(small, written[0])
    text, page = page_of(tmp_path / "run.html", compared)
    needs_nothing(text, page)
    assert "A run of gpt-dp2" in page.text and "Where the step goes" in page.text
    stored = orr.sweep(
        orr.load("llama3-8b-8-h100"),
        {"/plan/micro_batch": [1, 2], "/plan/recompute": ["none", "full"]},
        store=tmp_path / "grid.jsonl",
        progress=False,
    )
    text, page = page_of(tmp_path / "sweep.html", stored)
    needs_nothing(text, page)
    assert "Sweep of llama3-8b-8-h100" in page.text and "What each value leads to" in page.text
    assert "fastest step" in page.text


def test_plainer_choices_that_are_not_slower_are_listed(piped, tmp_path):
    document = {
        **piped.json,
        "plainer_choices": [
            {
                "choice": "precision=bf16",
                "step_time_s": 1.5,
                "parts": [{"name": "memory-bound kernels", "time_s": 0.076}],
                "reason": "",
            }
        ],
    }
    page = page_of(tmp_path / "run.html", document)[1]
    assert "Plainer choices that are not slower" in page.text
    assert (
        "precision=bf16 takes 1.500 s; this plan takes 76 ms more for memory-bound kernels"
        in page.text
    )


@needs_command
def test_the_command_writes_the_same_page(tmp_path):
    def ask(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [COMMAND, *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=tmp_path,
            check=False,
        )

    asked = ask("simulate", "llama3-8b-8-h100", "--timeline", "--json")
    document = json.loads(asked.stdout)
    document["inputs"].pop("timeline")  # a flag, which a Run's document does not have
    (tmp_path / "llama3-8b-8-h100").write_text(json.dumps(document))
    ran = ask("report", "llama3-8b-8-h100", "--out", "page.html")
    assert ran.returncode == 0 and ran.stdout == ""
    assert re.fullmatch(r"wrote page\.html, [\d.]+ kB\n", ran.stderr)
    orr.load("llama3-8b-8-h100").simulate().report(tmp_path / "again.html")
    assert (tmp_path / "page.html").read_text() == (tmp_path / "again.html").read_text()
    wrong = ask("report", "missing.json", "--out", "page.html")
    assert wrong.returncode == 2 and "missing.json" in wrong.stderr


@pytest.mark.skipif(not os.environ.get("ORRERY_NIGHTLY"), reason="a browser starts at night only")
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_a_browser_draws_the_page_within_its_width(results, tmp_path):
    """Nothing is wider than the window, in both themes and in print."""
    page = tmp_path / "all.html"
    orr.report(page, *results.values())
    probe = (
        "<script>document.title=JSON.stringify([document.documentElement.scrollWidth,innerWidth,"
        "[...document.querySelectorAll('svg text')].filter(t=>{const b=t.getBBox();"
        "return b.x<-1||b.x+b.width>962}).map(t=>t.textContent)])</script>"
    )
    measured = tmp_path / "measured.html"
    measured.write_text(page.read_text().replace("</body>", probe + "</body>"))
    base = [
        "chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1100,2000",
    ]
    ran = subprocess.run(
        [*base, "--dump-dom", f"file://{measured}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    title = re.search(r"<title>(\[.*?\])</title>", ran.stdout)
    assert title, ran.stderr
    wide, window, clipped = json.loads(title.group(1).replace("&amp;", "&"))
    assert wide <= window
    assert clipped == []
    for theme in ([], ["--blink-settings=preferredColorScheme=0"]):
        picture = tmp_path / "page.png"
        subprocess.run(
            [*base, *theme, f"--screenshot={picture}", f"file://{page}"],
            check=True,
            capture_output=True,
            timeout=120,
        )
        assert picture.stat().st_size > 20_000
    printed = tmp_path / "page.pdf"
    subprocess.run(
        [*base, f"--print-to-pdf={printed}", f"file://{page}"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert printed.read_bytes().startswith(b"%PDF")
