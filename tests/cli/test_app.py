import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hotloop import options
from hotloop.cli.app import commands
from hotloop.core.errors import ExitCode
from hotloop.core.machine import version
from hotloop.options.option import HOMES, PROGRAMS, Options, options_of

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
    examples = options_of(name).examples
    assert examples
    assert any(shlex.split(example)[:2] == ["hotloop", name] for example in examples)
    for part in (*examples, "--json"):
        assert part in said.out


def test_no_line_of_the_help_is_cut_off(hotloop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = hotloop("--help").out.partition("Commands:")[2]
    assert listed.count("\n") > len(COMMANDS)
    assert "..." not in listed


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
from hotloop.cli.main import main
assert main(["--help"]) == 0
print(sorted({"numpy", "torch", "psutil"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_options_and_a_function_of_its_name(name: str) -> None:
    assert callable(getattr(import_module(f"hotloop.cli.commands.{HOMES[name]}"), name))
    assert issubclass(options_of(name), Options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_command_for_programs_has_options_and_a_function_of_its_name(name: str) -> None:
    assert callable(getattr(import_module(f"hotloop.cli.commands.{HOMES[name]}"), f"{name}_program"))
    assert issubclass(options_of(name, program=True), Options)


def test_no_options_and_no_commands_are_forgotten() -> None:
    folder = Path(options.__file__).parent
    assert {*HOMES.values()} | {"__init__", "option"} == {each.stem for each in folder.glob("*.py")}


def test_the_help_of_all_commands_imports_options_and_core_alone() -> None:
    code = """
import sys
import hotloop
before = set(sys.modules)
from hotloop.cli.main import main
assert main(["--help"]) == 0
ours = [name for name in set(sys.modules) - before if name.startswith("hotloop.")]
print(sorted({name.split(".")[1] for name in ours} - {"cli", "core", "options", "probes"}), file=sys.stderr)
print(len(ours) <= 70, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\nTrue\n"


def test_help_imports_no_probe() -> None:
    code = """
import sys
from hotloop.cli.main import main
assert main(["profile", "--help"]) == 0
print([name for name in sys.modules if name.startswith("hotloop.probes.")], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_the_version_and_the_short_help_are_there(hotloop: Callable[..., Any]) -> None:
    said = hotloop("--version")
    assert (said.code, said.out) == (ExitCode.FINE, f"hotloop {version()}\n")
    assert hotloop("-h").out == hotloop("--help").out
    assert hotloop("bench", "-h").code == ExitCode.FINE


@pytest.mark.parametrize(("module", "words"), [("hotloop", ["bench", "--help"]), ("hotloop.sim", ["--help"])])
def test_python_runs_the_package_and_its_sim_as_modules(module: str, words: list[str]) -> None:
    said = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True, check=False)
    name = words[0] if module == "hotloop" else "sim"
    assert (said.returncode, f"hotloop {name}" in said.stdout) == (ExitCode.FINE, True)


@pytest.mark.parametrize(
    ("target", "proposed"),
    [("CartPole-v1", "write gym:CartPole-v1"), ("my_env.py", "as my_env.py:make")],
)
def test_what_is_nearly_a_target_is_answered_with_the_target(
    hotloop: Callable[..., Any], target: str, proposed: str
) -> None:
    said = hotloop("bench", target)
    assert said.code == ExitCode.USAGE
    assert proposed in said.err


@pytest.mark.parametrize(
    ("words", "place", "completed"), [("hotloop be", 1, "bench"), ("hotloop bench --ro", 2, "--rounds")]
)
def test_a_shell_has_words_completed(
    hotloop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: str, place: int, completed: str
) -> None:
    monkeypatch.setenv("_HOTLOOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(place))
    said = hotloop()
    assert (said.code, said.out.split()) == (ExitCode.FINE, [completed])


def test_the_lines_for_a_shell_are_shown_and_nonsense_is_refused(
    hotloop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_HOTLOOP_COMPLETE", "source_bash")
    said = hotloop()
    assert said.code == ExitCode.FINE
    assert "_HOTLOOP_COMPLETE=complete_bash" in said.out
    monkeypatch.setenv("_HOTLOOP_COMPLETE", "nonsense")
    assert hotloop().code == ExitCode.USAGE


def test_what_exits_without_a_shell_asking_is_no_success(
    hotloop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotloop.cli.commands.misc.doctor", lambda _: sys.exit(0))
    assert hotloop("doctor").code == ExitCode.FAULT
