"""What the tests of the package share: one small question and its answer."""

from __future__ import annotations

import orrery as orr
import pytest

SMALL = "llama3-8b-8-h100"


@pytest.fixture(scope="session")
def small() -> orr.Scenario:
    return orr.load(SMALL)


@pytest.fixture(scope="session")
def small_run(small: orr.Scenario) -> orr.Run:
    return small.simulate()
