import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from hotloop.core.errors import ExitCode
from hotloop.core.registry import commands

COMMANDS = sorted(commands())


def test_help_lists_every_command_and_every_exit_code(hotloop: Callable[..., Any]) -> None:
    said = hotloop("--help")
    assert said.code == ExitCode.FINE
    for name in COMMANDS:
        assert f"\n  {name} " in said.out
    words = " ".join(said.out.split())
    for code in ExitCode:
        assert f" {code.value} {code.name.lower().replace('_', ' ')}" in words


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_example_and_has_json(hotloop: Callable[..., Any], name: str) -> None:
    said = hotloop(name, "--help")
    assert said.code == ExitCode.FINE
    examples = import_module(f"hotloop.cli.commands.{name}").EXAMPLES
    assert examples
    assert any(shlex.split(example)[:2] == ["hotloop", name] for example in examples)
    for part in (*examples, "--json"):
        assert part in said.out


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
from hotloop.cli.main import main
assert main(["--help"]) == 0
print(sorted({"numpy", "torch", "psutil"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
