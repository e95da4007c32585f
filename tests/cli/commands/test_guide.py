from collections.abc import Callable
from typing import Any

import pytest

from hotloop.core import machine
from hotloop.core.errors import ExitCode
from hotloop.mcp import guide

Command = Callable[..., Any]

LINES = 80
"""What is one page still."""


def test_the_guide_is_printed_as_it_stands(hotloop: Command) -> None:
    said = hotloop("guide")
    assert (said.code, said.out) == (ExitCode.FINE, guide())
    assert len(said.out.splitlines()) <= LINES


@pytest.mark.usefixtures("own_loop")
def test_mcp_lists_its_tools(hotloop: Command) -> None:
    pytest.importorskip("mcp")
    listed = hotloop("mcp", "--json").json
    assert {"bench", "profile", "compare", "validate"} < {each["name"] for each in listed}
    assert hotloop("guide", "--json").json == {"page": guide()}


def test_mcp_says_how_to_install_what_it_needs(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(machine.importlib, "import_module", missing)
    said = hotloop("mcp")
    assert said.code == ExitCode.USAGE
    assert "[mcp]" in said.err
