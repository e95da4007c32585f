"""How the options of a command are declared, and the checks that follow from that.

They are a dataclass. The command line, the tool of an assistant and the JSON of a cell are derived from its
fields; a function of Python takes the same names and defaults.
"""

import dataclasses
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from hotloop.core.errors import InputError


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option:
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
    return dataclasses.field(
        default=default, metadata={"option": Option(help=help, metavar=metavar, **known)}
    )


def argument(help: str, metavar: str, default: Any = dataclasses.MISSING, **known: Any) -> Any:
    """Declare a word of the command line that has no flag; without a default it is needed."""
    about = Option(help=help, metavar=metavar, is_argument=True, **known)
    return dataclasses.field(default=default, metadata={"option": about})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What options have to do with each other."""

    # Names of options; the rule is about the first of them that is given, and always if there are none.
    given: tuple[str, ...]
    says: str  # The refusal; {flag} is the flag of that option, {name} the value of an option
    needs: tuple[str, ...] = ()  # One of these has to be given, too
    excludes: tuple[str, ...] = ()  # None of these may be given, too


def exclude(one: str, other: str) -> Rule:
    """Return the rule that two options exclude each other."""
    says = f"{flag_of(one)} and {flag_of(other)} exclude each other: give one of them"
    return Rule(given=(one,), excludes=(other,), says=says)


def flag_of(name: str) -> str:
    """Return how an option is spelled on a command line, if nothing else is declared."""
    return f"--{name.replace('_', '-')}"


@dataclasses.dataclass(frozen=True)
class Options:
    """What the options of all commands have in common; the docstring of each is the help of its command."""

    examples: ClassVar[tuple[str, ...]] = ()
    rules: ClassVar[tuple[Rule, ...]] = ()
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


def describe(cls: type[Options]) -> dict[str, Option]:
    """Return what is declared of each option, with its flags and the choices of its type.

    Words come first, then the flags of the command itself, then those that it shares with others.
    """
    hints, fields = get_type_hints(cls), {each.name: each for each in dataclasses.fields(cls)}
    declared = (name for kind in cls.__mro__ for name in inspect.get_annotations(kind) if name in fields)
    words = [name for name, each in fields.items() if each.metadata["option"].is_argument]
    found: dict[str, Option] = {}
    for name in dict.fromkeys((*words, *declared)):
        about = fields[name].metadata["option"]
        if not (about.is_argument or about.flags):
            about = dataclasses.replace(about, flags=(flag_of(name),))
        if get_origin(hints[name]) is Literal:
            about = dataclasses.replace(about, choices=get_args(hints[name]))
        found[name] = about
    return found


def needs(one: str, other: str) -> Rule:
    """Return the rule that an option says something of another."""
    return Rule(given=(one,), needs=(other,), says=f"{flag_of(one)} goes with {flag_of(other)}: leave it out")


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
