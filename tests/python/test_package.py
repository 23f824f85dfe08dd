"""First contact: versions, `python -m orrery`, the manual page, completions, examples in --help."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import orrery as orr
import pytest
from executing import COMMAND, SECONDS

ROOT = Path(__file__).resolve().parents[2]
needs_command = pytest.mark.skipif(COMMAND is None, reason="there is no orrery")


def ask(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        **options,
    )


def commands() -> list[str]:
    """Every command, and those below another: "simulate", "fit software"."""
    found = []
    for name in below(ask("--help").stdout):
        found.append(name)
        found += [f"{name} {each}" for each in below(ask(name, "--help").stdout)]
    return found


def below(text: str) -> list[str]:
    _, _, part = text.partition("Subcommands:\n")
    return re.findall(r"^  ([a-z]+) ", part.partition("\n\n")[0], re.MULTILINE)


def test_the_versions_agree():
    project = re.search(r"project\(orrery VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert project and orr.__version__ == project.group(1)


@needs_command
def test_the_command_has_the_packages_version():
    assert ask("--version").stdout == f"orrery {orr.__version__}\n"


@needs_command
def test_python_m_orrery_is_the_command():
    for arguments in (["--version"], ["simulate", "no-such-scenario"], ["show", "models", "gpt2"]):
        module = subprocess.run(
            [sys.executable, "-m", "orrery", *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        direct = ask(*arguments)
        assert (module.returncode, module.stdout, module.stderr) == (
            direct.returncode,
            direct.stdout,
            direct.stderr,
        )


@needs_command
def test_every_help_ends_with_examples_of_itself():
    named = commands()
    assert {"simulate", "report", "schema", "man", "fit software", "fit curves"} <= set(named)
    for name in named:
        text = ask(*name.split(), "--help").stdout
        _, _, examples = text.partition("Examples:\n")
        lines = [line.strip() for line in examples.splitlines() if line.strip()]
        assert lines, name
        assert any(f"orrery {name}" in line for line in lines), name
        for line in lines:
            for asked in re.findall(r"(?:^|[|(] ?)orrery ([a-z]+)", line):
                assert asked in named, line


@needs_command
def test_the_examples_of_simulate_and_show_run():
    for name in ("simulate", "show"):
        _, _, examples = ask(name, "--help").stdout.partition("Examples:\n")
        for line in examples.splitlines():
            if "train.sh" not in line and line.strip():
                assert ask(*shlex.split(line.strip())[1:]).returncode == 0, line


@needs_command
def test_the_manual_page_has_every_command_and_flag():
    page = ask("man").stdout
    assert page.startswith(".TH ORRERY 1\n")
    plain = page.replace("\\-", "-")
    for name in commands():
        assert f"\n.SS orrery {name}\n" in plain, name
        for flag in re.findall(
            r"^  (?:-\w,)?(--[a-z-]+)", ask(*name.split(), "--help").stdout, re.MULTILINE
        ):
            if flag != "--help":
                assert re.search(rf"^\.B {flag}\b", plain, re.MULTILINE), f"{name} {flag}"
    if man := shutil.which("man"):
        shown = subprocess.run(
            [man, "--warnings", "-l", "-"],
            input=page,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert shown.stderr == "" and "orrery simulate" in shown.stdout


@needs_command
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_commands_flags_and_names(shell):
    script = ask("completion", shell).stdout
    for word in ("simulate", "report", "trace-format", "llama3-8b", "dgx-h100", "megatron-core"):
        assert word in script, word
    if found := shutil.which(shell):
        ran = subprocess.run(
            [found, "-n"], input=script, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr


@needs_command
def test_plan_writes_the_best_plans_launch_files(tmp_path):
    asked = ["plan", "--model", "llama3.1-8b", "--cluster", "dgx-h100 x 2", "--global-batch", "128"]
    asked += [
        "--seq-len",
        "8192",
        "--software",
        "megatron-core",
        "--top",
        "2",
        "--network",
        "static",
    ]
    ran = ask(*asked, "--export", "megatron,slurm", "--out", "files", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert sorted(answer["exported"]) == ["files/job.sbatch", "files/megatron.sh"]
    assert answer["export_refused"] == []
    exported = ask(
        "export",
        "--model",
        "llama3.1-8b",
        "--cluster",
        "dgx-h100 x 2",
        "--software",
        "megatron-core",
        "--plan",
        answer["plans"][0]["flag"],
        "--to",
        "megatron,slurm",
        "--out",
        "same",
        cwd=tmp_path,
    )
    assert exported.returncode == 0, exported.stderr
    for name in ("job.sbatch", "megatron.sh"):
        assert (tmp_path / "files" / name).read_text() == (tmp_path / "same" / name).read_text()
    missing = ask(*asked, "--export", "megatron")
    assert missing.returncode == 2
    assert missing.stderr == "--out: missing; --export writes the launch files into that folder\n"


def test_a_run_has_its_range(small_run):
    low, middle, high = small_run.uncertainty
    assert low < middle < high
    assert small_run.uncertainty.p90 == small_run.json["uncertainty"]["p90"]
    assert str(low) == str(orr.Seconds(low))
