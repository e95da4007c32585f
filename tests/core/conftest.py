"""What several tests of core share."""

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator

import pytest

from hotloop.core.clock import now_ns


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


@pytest.fixture
def spin() -> Callable[[int], None]:
    """Keeps busy for a number of ns."""

    def spin(wanted_ns: int) -> None:
        begin = now_ns()
        while now_ns() - begin < wanted_ns:
            pass

    return spin


class Spans:
    """A copy of hotloop.core.spans, on the compiled spans or the Python ones, and questions to its tree."""

    def __init__(self, kind: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if kind == "python":
                patch.setitem(sys.modules, "hotloop.core._spans", None)
            spec = importlib.util.find_spec("hotloop.core.spans")
            self.module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.module)

    def __getattr__(self, name: str) -> object:
        return getattr(self.module, name)

    def rows(self) -> dict[str, object]:
        return {row.path: row for top in self.module.tree() for row in top.walk()}

    def calls(self) -> dict[str, int]:
        return {path: row.calls for path, row in self.rows().items()}

    def assert_adds_up(self) -> None:
        for row in self.rows().values():
            assert row.total_ns == row.self_ns + sum(child.total_ns for child in row.children)
            assert row.self_ns >= 0


@pytest.fixture(scope="session")
def copies() -> dict[str, Spans]:
    return {kind: Spans(kind) for kind in ("native", "python")}


@pytest.fixture(params=["native", "python"])
def spans(request, copies) -> Iterator[Spans]:
    copy = copies[request.param]
    if request.param == "native" and not copy.NATIVE:
        pytest.skip("the native module is not built")
    copy.enable()
    yield copy
    copy.start_anew()
    copy.disable()
