"""What the tests of the package share: one small question and its answer."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import orrery as orr
import pytest
from executing import write_model

SMALL = "llama3-8b-8-h100"

# A shell starts what runs in its background with SIGINT ignored, and a child inherits that: a run
# that a test wants to interrupt would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)


def unnamed(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its head: what it was made with, and what was asked."""
    head = {"orrery", "command", "inputs", "changes"}
    return {key: value for key, value in document.items() if key not in head}


@pytest.fixture(scope="session")
def small() -> orr.Scenario:
    return orr.load(SMALL)


@pytest.fixture(scope="session")
def small_run(small: orr.Scenario) -> orr.Run:
    return small.simulate()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose step takes milliseconds, for runs of `orrery execute`."""
    return write_model(tmp_path / "tiny.json")
