"""The commands as one typer application."""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from hotloop.cli.isolated import guarded, isolated
from hotloop.core.code import version as installed_version
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.registry import modules

CODES = ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode)

HELP = f"""Hotloop finds, fixes and proves the speed of reinforcement-learning simulation.

key=value says what to measure (agents=24 num_envs=64); --flags say how to measure it.

Exit codes: {CODES}.
"""

COMMANDS = "hotloop.cli.commands"
"""Every module of it has a function of its own name, which is the command."""

PROGRAMS = "hotloop.cli.programs"
"""The same for commands that a program can be given to, after the dashes."""

DASHES = "--"

COMPLETION = "_HOTLOOP_COMPLETE"
"""What a shell sets to have words completed."""

COMPLETION_FLAGS = ("--show-completion", "--install-completion")

USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
"""The base of typer's usage errors, which comes from click or from typer's own copy of it."""


def run(argv: Sequence[str]) -> int:
    """Hand the words to their command, which returns its own exit code."""
    application = typer.Typer(
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback(invoke_without_command=True, help=HELP)(teach)
    functions = chosen(argv)
    for name, function in functions.items():
        application.command(name, help=help_of(function))(function)
    words, program = parted(argv)
    if program is None and DASHES in words and runs_theirs(functions.get(words[0], run)):
        raise InputError(f"{words[0]} takes no program after {DASHES}: {', '.join(programs())} do")
    if program is not None:
        function = programs()[words[0]]
        application.command(f"{words[0]} {DASHES}", help=help_of(function), hidden=True)(function)
        words = [f"{words[0]} {DASHES}", *words[1:]]
    try:
        code: int | None = application(words, prog_name="hotloop", standalone_mode=False, obj=program)
    except USAGE_ERROR as error:
        print(usage_line(error), file=sys.stderr)
        return ExitCode.USAGE
    except SystemExit as ended:
        if not is_completing(argv):
            raise
        return ExitCode.USAGE if ended.code else ExitCode.FINE
    except typer.Abort as abort:  # what some versions make of Ctrl-C
        raise abort.__cause__ or abort from None
    return code or ExitCode.FINE


def is_completing(argv: Sequence[str]) -> bool:
    """Whether a shell asks to complete words, or somebody for the lines that have it do so."""
    asked = any(word.partition("=")[0] in COMPLETION_FLAGS for word in argv)
    return COMPLETION in os.environ or asked


def parted(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """The words of a command, and those of the program after the dashes, where a command takes one."""
    words = list(argv)
    if DASHES not in words or words[0] not in modules(PROGRAMS, packages=False):
        return words, None
    at = words.index(DASHES)
    return words[:at], tuple(words[at + 1 :])


def chosen(argv: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """The command that was typed, or all of them where it is none: to load those takes long."""
    names = [name for name in modules(COMMANDS, packages=False) if name in argv[:1]]
    return named(COMMANDS, names) if names else commands()


def commands(package: str = "") -> dict[str, Callable[..., Any]]:
    """Every command by its name."""
    return named(package or COMMANDS, modules(package or COMMANDS, packages=False))


def named(package: str, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """Commands of a package by their names; a file without a function of its name is none."""
    found = {name: import_module(f"{package}.{name}") for name in names}
    functions = {name: getattr(module, name) for name, module in found.items() if hasattr(module, name)}
    return {name: apart(function) for name, function in functions.items()}


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The command, apart where its module says that it runs what is not ours, or processes that do."""
    if runs_theirs(function):
        return isolated(function)
    return guarded(function) if getattr(sys.modules[function.__module__], "GUARDED", False) else function


def runs_theirs(function: Callable[..., Any]) -> bool:
    """Whether a command's module says that it runs targets of somebody else's, apart from ours."""
    return getattr(sys.modules[function.__module__], "ISOLATED", False)


def programs() -> dict[str, Callable[..., Any]]:
    """Every command as it is for a program, by its name."""
    return commands(PROGRAMS)


def help_of(function: Callable[..., Any]) -> str:
    """A command's docstring, and under it the examples of its module."""
    examples: Sequence[str] = getattr(sys.modules[function.__module__], "EXAMPLES", ())
    lines = "\n".join(f"  {example}" for example in examples)
    return f"{inspect.cleandoc(function.__doc__ or '')}\n\n\b\nExamples:\n{lines}"


def teach(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
) -> int:
    """Show the help where no command was named."""
    if version:
        print(f"hotloop {installed_version()}")
        return ExitCode.FINE
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
    return ExitCode.USAGE


def usage_line(error: Any) -> str:
    """Put what was wrong and the way to the help in one line."""
    command = error.ctx.command_path if getattr(error, "ctx", None) else "hotloop"
    message = " ".join(error.format_message().split()).rstrip(".")
    help_words = f"{command} --help" if not command.endswith(DASHES) else f"{command[:-2]}--help {DASHES}"
    return f"{command}: {message}; {help_words} says how"
