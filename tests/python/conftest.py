"""What the tests of the package share: one small question and its answer."""

from __future__ import annotations

from pathlib import Path

import orrery as orr
import pytest
from executing import write_model

SMALL = "llama3-8b-8-h100"


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
