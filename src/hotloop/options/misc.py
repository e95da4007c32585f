"""The options of commands that measure nothing."""

from dataclasses import dataclass
from enum import StrEnum

from hotloop.options.option import JsonOptions, OptionRule, Options, argument, option


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(JsonOptions):
    """Check this machine: is it fit to measure, and what is missing?

    Every line is ok, warn or bad, with what to do about it. A bad line means that numbers measured now would
    mean little: the machine is called unfit, and the exit code is 4, cannot tell.
    """

    examples = ("hotloop doctor", "hotloop doctor --json")


@dataclass(frozen=True, kw_only=True)
class GuideOptions(JsonOptions):
    """Print a page for coding agents: faster, without fooling oneself."""

    examples = ("hotloop guide", "hotloop guide --json")


@dataclass(frozen=True, kw_only=True)
class McpOptions(Options):
    """Offer the commands to a coding agent (Model Context Protocol).

    It talks over stdin and stdout. The agent gets worlds, bench, profile, compare, validate, diagnose, report
    and guide as tools with typed arguments and short answers; long ones report progress and can be cancelled.
    Everything happens in the folder it is started in: a path outside it is refused, and nothing but records
    is written. Needs the package mcp: pip install 'hotloop[mcp]'.
    """

    examples = ("hotloop mcp", "hotloop mcp --json")

    json: bool = option(False, "Print the tools and their schemas instead of serving.")


class TemplateKind(StrEnum):
    """What there are templates for."""

    WORLD = "world"


@dataclass(frozen=True, kw_only=True)
class NewOptions(JsonOptions):
    """Create the folder of a small but complete world.

    It has native code and a Python twin. Writes src/hotloop/worlds/NAME in the checkout around the current
    folder, where it is found automatically: ./hotloop builds it, and the contract tests in tests/worlds
    include it.
    """

    examples = ("hotloop new world orchard", "./hotloop bench orchard")

    kind: TemplateKind = argument("What to make.", "world")
    name: str = argument("Lower-case letters, digits and _.", "NAME")


@dataclass(frozen=True, kw_only=True)
class TopOptions(JsonOptions):
    """Show live what a running Python process does.

    Its functions by the time they take, like top. py-spy looks from outside; the process needs no special
    start and hardly notices. Ctrl-C ends the view, not the process. hotloop profile --pid PID saves what it
    sees instead; --json prints one second of it.
    """

    examples = (
        "hotloop top 12345",
        "hotloop top --pid 12345",
        "hotloop top --pid 12345 --json",
    )
    rules = (
        OptionRule(
            given=(),
            needs=("process", "pid"),
            says="top needs the number of a process: hotloop top PID",
        ),
    )

    process: int | None = argument("The Python process to look at.", "PID", None, min=1)
    pid: int | None = option(None, "The same, as a flag.", "PID", min=1)


@dataclass(frozen=True, kw_only=True)
class WorldsOptions(JsonOptions):
    """List what there is to measure: worlds, presets, parameters.

    A workload parameter changes results. A variant must not: variants are what you compare.
    """

    examples = ("hotloop worlds", "hotloop worlds grid")

    name: str | None = argument("Show one world in detail.", "WORLD", None)
