"""How the options of a command are declared, those that commands share, and which commands there are.

They are a dataclass. The command line, the tool of an assistant and the JSON of a cell are derived from its
fields; a function of Python takes the same names and defaults.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from hotloop.core.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionInfo:
    """What is known of one option beside its name, type and default."""

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()  # How it is spelled on a command line; empty for a word without a flag
    is_argument: bool = False
    min: float | None = None  # The least number that a command line takes, as its help says
    max: float | None = None
    # Less than any number that fits; these bounds hold wherever the options come from.
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    expected: str = ""  # The bounds and their unit in words
    choices: tuple[str, ...] = ()
    usual: tuple[Any, ...] = ()  # Values that mean the same as the default
    tool: str = ""  # What an assistant is told of it; empty if its tool does not have it
    tool_name: str = ""  # Its name there and in Python, if that is another

    def check(self, value: Any) -> None:
        """Refuse a value outside the bounds or the choices."""
        if self.choices and value not in self.choices:
            raise InputError(f"{self.flags[-1]} {value} does not fit: expected {' or '.join(self.choices)}")
        fits = (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )
        least, most = self.min, self.max
        if (least is not None and value < least) or (most is not None and value > most):
            bounds = f"at least {least}" if most is None else f"{least} to {most}"
            raise InputError(f"{self.flags[-1]} {value} does not fit: expected {bounds}")
        if not fits:
            shown = value if isinstance(value, int) else f"{value:g}"
            raise InputError(f"{self.flags[-1]} {shown} does not fit: expected {self.expected}")


def option(default: Any, help: str, metavar: str | None = None, **known: Any) -> Any:
    """Declare an option; its flag is the name of its field, if `flags` has no other."""
    return field(default=default, metadata={"option": OptionInfo(help=help, metavar=metavar, **known)})


def argument(help: str, metavar: str, default: Any = MISSING, **known: Any) -> Any:
    """Declare a word of the command line that has no flag; without a default it is needed."""
    about = OptionInfo(help=help, metavar=metavar, is_argument=True, **known)
    return field(default=default, metadata={"option": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRule:
    """What options have to do with each other."""

    # Names of options; the rule is about the first of them that is given, and always if there are none.
    given: tuple[str, ...]
    says: str  # The refusal; {flag} is the flag of that option, {name} the value of an option
    needs: tuple[str, ...] = ()  # One of these has to be given, too
    excludes: tuple[str, ...] = ()  # None of these may be given, too


def exclude(one: str, other: str) -> OptionRule:
    """Return the rule that two options exclude each other."""
    says = f"{flag_of(one)} and {flag_of(other)} exclude each other: give one of them"
    return OptionRule(given=(one,), excludes=(other,), says=says)


def flag_of(name: str) -> str:
    """Return how an option is spelled on a command line, if nothing else is declared."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class Options:
    """What the options of all commands have in common; the docstring of each is the help of its command."""

    examples: ClassVar[tuple[str, ...]] = ()
    rules: ClassVar[tuple[OptionRule, ...]] = ()
    # Whether user code runs in a process of its own, with the options of `ProcessOptions`.
    isolated: ClassVar[bool] = False
    guarded: ClassVar[bool] = False  # Whether the command starts processes that have to end with it
    # Seconds that the command may take to end once it is interrupted; None for the usual.
    stop_s: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        """Refuse values that do not fit, and options that do not go together."""
        known = describe(type(self))
        values = {name: getattr(self, name) for name in known}
        for name, about in known.items():
            if values[name] is not None:
                about.check(values[name])
        for rule in self.rules:
            given = [name for name in rule.given if self.has(name)]
            if bool(rule.given) > bool(given) or any(map(self.has, rule.needs)):
                continue
            if rule.needs or any(map(self.has, rule.excludes)):
                flag = known[given[0]].flags[-1] if given and known[given[0]].flags else ""
                raise InputError(rule.says.format(flag=flag, **values))

    def has(self, name: str) -> bool:
        """Return whether an option has a value that is not its default, nor nothing."""
        value, declared = getattr(self, name), type(self).__dataclass_fields__[name]
        if value is None or value is False or value == declared.default:
            return False
        return value != [] and value not in declared.metadata["option"].usual

    def to_plain(self) -> dict[str, Any]:
        """Return the values as JSON has them, for `from_plain` in another process."""
        values = {name: getattr(self, name) for name in describe(type(self))}
        plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return plain

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Self:
        """Return options from values of JSON, in which paths are texts."""
        hints = get_type_hints(cls)
        return cls(**{name: from_plain(value, hints[name]) for name, value in values.items()})


def from_plain(value: Any, hint: Any) -> Any:
    """Return a value of JSON as a field of this type has it: a text may be a path, and one in a list, too."""
    kinds = (hint, *get_args(hint))
    if isinstance(value, str) and Path in kinds:
        return Path(value)
    return [*map(Path, value)] if isinstance(value, list) and list[Path] in kinds else value


def describe(cls: type[Options]) -> dict[str, OptionInfo]:
    """Return what is declared of each option, with its flags and the choices of its type.

    Words come first, then the flags of the command itself, then those that it shares with others.
    """
    hints, known = get_type_hints(cls), {each.name: each for each in fields(cls)}
    declared = (name for kind in cls.__mro__ for name in inspect.get_annotations(kind) if name in known)
    words = [name for name, each in known.items() if each.metadata["option"].is_argument]
    found: dict[str, OptionInfo] = {}
    for name in dict.fromkeys((*words, *declared)):
        about = known[name].metadata["option"]
        if not (about.is_argument or about.flags):
            about = replace(about, flags=(flag_of(name),))
        if get_origin(hints[name]) is Literal:
            about = replace(about, choices=get_args(hints[name]))
        found[name] = about
    return found


def needs(one: str, other: str) -> OptionRule:
    """Return the rule that an option says something of another."""
    return OptionRule(
        given=(one,), needs=(other,), says=f"{flag_of(one)} goes with {flag_of(other)}: leave it out"
    )


def spell(options: Options) -> list[str]:
    """Return options as the words of a command line; those that are as by default are left out."""
    words: list[str] = []
    for name, about in describe(type(options)).items():
        value = getattr(options, name)
        if not options.has(name):
            continue
        each = value if isinstance(value, list) else [value]
        if about.is_argument:
            words += map(str, each)
        elif value is True:
            words.append(about.flags[-1])
        else:
            words += [f"{about.flags[-1]}={one}" for one in each]
    return words


def tool_help(kind: type[Options], name: str) -> str:
    """Return what an assistant is told of an option."""
    return describe(kind)[name].tool


RECORDS = Path("artifacts/throughput")  # Where records go by default
PROFILES = Path(".design")  # Where profiles and diagnoses go

Garbage = Literal["between", "life"]

STEP_S = 60.0  # Seconds without a step after which user code counts as hung

TARGETS = (
    "A preset such as grid/toy (grid means all of its presets), gym:ID, pettingzoo:MODULE, puffer:NAME, "
    "path.py:callable or module:callable."
)

target_argument = partial(
    argument,
    TARGETS,
    "TARGET",
    tool="A preset (grid/toy), a registered id (gym:CartPole-v1), or path.py:callable.",
)

policy_option = partial(
    option,
    "random",
    "Who plays: random, one of the world's players (live:PLAYER chooses in the loop), run:NAME, "
    "tape:FILE or module:callable.",
    "NAME",
    tool="random, a player of the world's, tape:FILE, run:NAME or path.py:callable.",
)

functions_option = partial(
    option,
    None,
    "A function to look at, as module.Class.method; may be repeated.",
    "NAME",
    tool="Shown as rows of their own, such as my_env.Env._get_obs.",
    tool_name="functions",
)

seed_option = partial(option, None, "Short for seed=N.", "N")

reports_option = partial(
    option,
    None,
    "A function that takes your env and returns what has its phase_totals, step_timing or counters.",
    "my.py:function",
)

label_option = partial(option, None, "What to call this run in its record.", "LABEL")

baselines_option = partial(
    option,
    None,
    "Commits, saved baselines or records to compare with; a commit is built and takes turns.",
    "F...",
)

save_baseline_option = partial(
    option, None, "Keep the record as this machine's baseline of that name.", "NAME"
)

build_option = partial(option, None, "What builds a commit in its checkout.  [default: pip install .]", "CMD")

garbage_option = partial(
    option,
    "between",
    "When garbage is collected: between (rounds, untimed), or life (as Python does).",
    "WHEN",
)

ignore_option = partial(option, None, "A field not to compare, such as infos.time; may be repeated.", "FIELD")

instructions_option = partial(option, False, "Also count the instructions of an env-step (valgrind).")

trust_option = partial(
    option,
    None,
    "Let FILE, when replayed or resumed, call code outside this project; it is named first.",
    "FILE",
)

on_option = partial(
    option,
    None,
    "Where cells run: ray (started on this machine for it) or ray://HOST:PORT; else here.",
    "RAY",
)

resume_option = partial(option, False, "Go on with the last sweep of the same cells where it was stopped.")

metric_option = partial(
    option,
    None,
    "Judge a number that the program prints, such as 'sps=SPS: (\\d+)'; the group is the number.",
    "NAME=REGEX",
)

less_is_better_option = partial(option, False, "The metric is a time rather than a speed.")

METRIC_RULE = OptionRule(
    given=("less_is_better",),
    needs=("metric",),
    says="--less-is-better says it of a metric: give --metric NAME=REGEX",
)


@dataclass(frozen=True, kw_only=True)
class TargetOptions(Options):
    """The words of commands on a target."""

    target: str | None = target_argument(default=None)
    words: list[str] | None = argument(
        "Parameters; `hotloop worlds WORLD` lists them. Of your env: arguments, seed, num_envs, vector.",
        "KEY=VALUE",
        None,
    )


@dataclass(frozen=True, kw_only=True)
class RequiredTargetOptions(TargetOptions):
    """The words of commands that do nothing without a target."""

    target: str = target_argument()


@dataclass(frozen=True, kw_only=True)
class JsonOptions(Options):
    """The flag of every command that prints what it found."""

    json: bool = option(False, "Print JSON, and nothing else, to stdout.")


@dataclass(frozen=True, kw_only=True)
class OutputOptions(JsonOptions):
    """The flags of commands that keep a record."""

    output: Path = option(RECORDS, "Where the record goes: a file if it ends in .json, else a folder.", "F")


@dataclass(frozen=True, kw_only=True)
class CellsOptions(OutputOptions):
    """The flags of commands whose work can be done in cells."""

    on: str | None = on_option()
    resume: bool = resume_option()


@dataclass(frozen=True, kw_only=True)
class MetricOptions(OutputOptions):
    """The flags of commands on programs, which are judged by what they print, or as whole runs."""

    metric: str | None = metric_option()
    less_is_better: bool = less_is_better_option()


@dataclass(frozen=True, kw_only=True)
class ProcessOptions(Options):
    """How user code is kept in a process of its own; every isolated command has these."""

    in_process: bool = option(
        False, "Open your target in this process, for a debugger; if it crashes, so does this."
    )
    step_timeout: float = option(
        STEP_S,
        "Seconds without a step after which your target counts as hung; ten times as long to make it, "
        "to reset it and for its first step.",
        "S",
        above=0,
        below=float("inf"),
        expected="seconds, above 0",
    )


# Command to the module that has its options, and to that of the same name in cli/commands, which runs it.
HOMES = {
    "bench": "bench",
    "compare": "compare",
    "diagnose": "diagnose",
    "doctor": "misc",
    "gate": "gate",
    "guide": "misc",
    "mcp": "misc",
    "new": "misc",
    "profile": "profile",
    "report": "report",
    "scale": "sweeps",
    "sim": "sim",
    "soak": "sweeps",
    "top": "misc",
    "train": "train",
    "tune": "sweeps",
    "validate": "validate",
    "worlds": "misc",
}

# Commands that can be given a program, after the dashes.
PROGRAMS = ("bench", "compare", "diagnose", "profile", "soak", "tune")


def options_of(command: str, *, program: bool = False) -> type[Options]:
    """Return the options of a command, or those it has for a program."""
    module = import_module(f"hotloop.options.{HOMES[command]}")
    name = f"{command.capitalize()}{'Program' if program else ''}Options"
    found: type[Options] = getattr(module, name)
    return found
