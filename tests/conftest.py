"""What all tests share."""

import asyncio
import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import hotloop.train  # noqa: F401 - how OpenMP's threads wait is decided before the first test imports torch

# How quickly examples are drawn is the machine's business: no test asserts on the time of day.
settings.register_profile("any machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("any machine")

# A target of somebody else's has a process of its own, whose start would cost every test a second: tests of
# what a command does stay in this process, and those of the processes take this out of their environment.
os.environ["HOTLOOP_IN_PROCESS"] = "1"


@pytest.fixture(autouse=True, scope="module")
def _earlier_objects_are_left_alone() -> None:
    """A measurement collects garbage first: let it not look through all that thousands of tests hold."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def own_loop() -> Iterator[None]:
    """Let a test run a loop of its own: the browser of other tests keeps one running in this thread."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(before)
