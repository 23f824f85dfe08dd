"""Sources that the READMEs name are there, so that a reader finds what they speak of."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["sim", "hardware", "models", "scenarios", "executor", "calibrate", "python", "tests"]
NAMED = re.compile(r"`([\w./-]+\.(?:cpp|hpp|cu|py|csv|svg))`|\]\(([\w./-]+\.\w+)\)")
PLACEHOLDER = re.compile(r"[A-Z]{4,}")  # a file to be added: NAME_entry.cpp


def missing(text: str, files: list[str]) -> list[str]:
    """Names of files that end no path of `files`."""
    named = [code or link for code, link in NAMED.findall(text)]
    ends = [os.path.normpath(each).replace("../", "") for each in named]
    return [
        end
        for end in ends
        if not PLACEHOLDER.search(end) and not any(f"/{path}".endswith(f"/{end}") for path in files)
    ]


def test_what_readmes_name_is_in_the_tree():
    files = ["README.md", "LICENSE"]
    for folder in FOLDERS:
        files += [str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.*")]
    readmes = [each for each in files if each.endswith("README.md") and "/corpus/" not in each]
    assert len(readmes) > 10
    found = {each: missing((ROOT / each).read_text(encoding="utf-8"), files) for each in readmes}
    assert {each: names for each, names in found.items() if names} == {}


def test_a_file_that_moved_is_missed():
    text = "`run/a.hpp` and `a.hpp`, [b](../x/b.md), `NAME_entry.cpp`, `step.json`"
    assert missing(text, ["executor/run/a.hpp", "x/b.md"]) == []
    assert missing(text, ["executor/run/blocks/a.hpp"]) == ["run/a.hpp", "x/b.md"]
