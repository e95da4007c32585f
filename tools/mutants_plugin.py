"""A plugin of pytest that writes down how long each test takes and which functions of Hotloop it runs.

HOTLOOP_TRACED names the package, HOTLOOP_TRACE the file. Functions in other processes are not seen.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

PACKAGE, OUT = os.environ["HOTLOOP_TRACED"] + os.sep, os.environ["HOTLOOP_TRACE"]

functions: set[str] = set()


def note(frame: Any, event: str, _: object) -> None:
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(PACKAGE):
        functions.add(f"{code.co_filename[len(PACKAGE) :]} {code.co_name}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Trace a test with its fixtures, and add a line to the file."""
    functions.clear()
    begin = time.monotonic()
    sys.setprofile(note)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        entry = {"test": item.nodeid, "s": time.monotonic() - begin, "functions": sorted(functions)}
        with open(OUT, "a", encoding="utf-8") as file:  # noqa: PTH123 - a line at a time
            file.write(json.dumps(entry) + "\n")
