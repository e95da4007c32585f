"""What several tests of core share."""

import os
import warnings
from collections.abc import Callable

import pytest


def run_in_child(function: Callable[[], None]) -> int:
    """Run a function in a forked child: 0 where it returned, 1 where it raised, else its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter to these children
        child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException:  # noqa: BLE001 - nothing may return into the parent's test run
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def exit_code_of() -> Callable[[Callable[[], None]], int]:
    return run_in_child
