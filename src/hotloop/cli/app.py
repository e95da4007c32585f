"""The commands as one typer application, derived from the options of each."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

import typer

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.machine import version as installed_version
from hotloop.options.option import HOMES, PROGRAMS, Options, ProcessOptions, describe, options_of

CODES = ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode)

HELP = f"""Hotloop finds, fixes and proves the speed of reinforcement-learning simulation.

key=value says what to measure (agents=24 num_envs=64); --flags say how to measure it.

Exit codes: {CODES}.
"""

DASHES = "--"

COMPLETION = "_HOTLOOP_COMPLETE"  # What a shell sets to have words completed

# What a user asks for the lines with that make a shell do so.
COMPLETION_FLAGS = ("--show-completion", "--install-completion")

# The base of typer's usage errors, which comes from click or from typer's own copy of it.
USAGE_ERROR: Any = typer.BadParameter.__mro__[2]

Command = Callable[..., int]


def run(argv: Sequence[str]) -> int:
    """Hand the words to their command, which returns its own exit code."""
    application = typer.Typer(
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback(invoke_without_command=True, help=HELP)(show_help)
    words, program = split_program(argv)
    functions = {words[0]: make_command(words[0])} if words and words[0] in HOMES else commands()
    for name, function in functions.items():
        application.command(name, help=function.__doc__)(function)
    if program is None and DASHES in words and words[0] in HOMES and options_of(words[0]).isolated:
        raise InputError(f"{words[0]} takes no program after {DASHES}: {', '.join(PROGRAMS)} do")
    if program is not None:
        function = make_command(words[0], program)
        application.command(f"{words[0]} {DASHES}", help=function.__doc__, hidden=True)(function)
        words = [f"{words[0]} {DASHES}", *words[1:]]
    try:
        code: int | None = application(words, prog_name="hotloop", standalone_mode=False)
    except USAGE_ERROR as error:
        command = error.ctx.command_path if getattr(error, "ctx", None) else "hotloop"
        message = " ".join(error.format_message().split()).rstrip(".")
        way = f"{command[:-2]}--help {DASHES}" if command.endswith(DASHES) else f"{command} --help"
        print(f"{command}: {message}; {way} says how", file=sys.stderr)
        return ExitCode.USAGE
    except SystemExit as ended:
        completes = any(word.partition("=")[0] in COMPLETION_FLAGS for word in argv)
        if not (completes or COMPLETION in os.environ):
            raise
        return ExitCode.USAGE if ended.code else ExitCode.FINE
    except typer.Abort as abort:  # what some versions make of Ctrl-C
        raise abort.__cause__ or abort from None
    return code or ExitCode.FINE


def split_program(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Return the words of a command, and those of the program after the dashes, if the command takes one."""
    words = list(argv)
    if DASHES not in words or words[0] not in PROGRAMS:
        return words, None
    at = words.index(DASHES)
    return words[:at], tuple(words[at + 1 :])


def commands() -> dict[str, Command]:
    """Return every command by its name."""
    return {name: make_command(name) for name in HOMES}


def make_command(name: str, program: tuple[str, ...] | None = None) -> Command:
    """Return a function of a command's flags, whose signature typer reads; None runs no program."""
    kind = options_of(name, program=program is not None)
    added = describe(ProcessOptions) if kind.isolated else {}

    def command(**values: Any) -> int:
        process = ProcessOptions(**{each: values.pop(each) for each in added})
        kind(**values)  # refused here, what does not fit needs no process
        from hotloop.cli.isolated import execute, run_isolated

        if kind.isolated or kind.guarded:
            return run_isolated(name, values, kind, process)
        return execute(name, program, **values)

    examples = "\n".join(f"  {example}" for example in kind.examples)
    command.__name__ = name
    command.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\n\b\nExamples:\n{examples}"
    parameters = [*parameters_of(kind), *(parameters_of(ProcessOptions) if added else ())]
    command.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": int}
    return command


def parameters_of(kind: type[Options]) -> list[inspect.Parameter]:
    """Return options as typer wants the parameters of a function."""
    hints, defaults = get_type_hints(kind), {each.name: each.default for each in fields(kind)}
    parameters = []
    for name, about in describe(kind).items():
        limits: Any = {"metavar": about.metavar, "help": about.help, "min": about.min, "max": about.max}
        typed = typer.Argument(**limits) if about.is_argument else typer.Option(*about.flags, **limits)
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD
                if about.is_argument
                else inspect.Parameter.KEYWORD_ONLY,
                annotation=Annotated[str if about.choices else hints[name], typed],
                default=inspect.Parameter.empty if defaults[name] is MISSING else defaults[name],
            )
        )
    return parameters


def show_help(
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
