"""hotloop.toml: the suites and budgets of a project, read and checked, and written in place.

    [suite.nightly]
    items = [{ target = "grid/arena", keys = { agents = 100 }, do = "bench" }]

    [budget.arena-speed]
    target = "grid/arena"
    metric = "env_steps_per_s"
    max_change = "5%"
    against = "main"
    reason = "rollouts are most of a training's time"
    owner = "the simulator"

    [expect.cpu]
    ppo = [2000, 3000]

It is the nearest one upward from the current folder. What does not fit is refused with its line and key.
"""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from hotloop.core.errors import InputError, WriteError, show_value, unknown
from hotloop.core.settings import Target, names_callable

T = TypeVar("T")

NAME = "hotloop.toml"

DO = ("bench", "profile", "scale", "compare", "instructions")  # What a suite may do with a target
PROGRAM = "-- "  # What the target of a budget begins with where it is a program

# What a suite or a budget may be called: it is typed, and is part of file names.
SAYABLE = re.compile(r"\w[\w.-]*")


Keys = tuple[str, ...]  # The keys from the outermost inwards; an item of a list is its number

# What may be missing at the end of a line inside a list of several lines.
CLOSINGS = ("", *("]" + "".join(rest) for count in range(4) for rest in product("]}", repeat=count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """A kind of metric that a budget can be about."""

    more_is_better: bool
    unit: str
    part: str | None = None  # What is named after the colon, where something is
    help: str


# Every metric there is, by the word before its colon.
METRICS = {
    "env_steps_per_s": MetricKind(more_is_better=True, unit="env-steps/s", help="the speed"),
    "agent_steps_per_s": MetricKind(
        more_is_better=True, unit="agent-steps/s", help="the speed times the agents"
    ),
    "instructions_per_env_step": MetricKind(
        more_is_better=False, unit="instructions", help="counted by valgrind: a busy machine cannot move it"
    ),
    "phase": MetricKind(
        more_is_better=False, unit="ns/env-step", part="PATH", help="the time of a phase, or of a span"
    ),
    "share": MetricKind(
        more_is_better=False, unit="of the wall time", part="PATH", help="the part it is of all"
    ),
    "unaccounted_share": MetricKind(
        more_is_better=False, unit="of the step", help="the time that is in no phase"
    ),
    "overhead_ratio": MetricKind(
        more_is_better=False, unit="times as long", help="what it costs to be profiled"
    ),
    "rss_peak_bytes": MetricKind(
        more_is_better=False, unit="bytes", help="the memory of a process of its own"
    ),
    "runs_per_s": MetricKind(more_is_better=True, unit="runs/s", help="how often a program runs to its end"),
    "printed": MetricKind(
        more_is_better=True, unit="", part="NAME", help="what a program prints as name=number"
    ),
    "printed_less": MetricKind(
        more_is_better=False, unit="", part="NAME", help="the same, where less of it is better"
    ),
}

OF_PROGRAMS = ("runs_per_s", "rss_peak_bytes", "printed", "printed_less")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteItem:
    """One thing that a suite does."""

    target: Target
    do: str = "bench"
    against: Target | None = None  # What it is compared with, by `compare`
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A list of things to measure, by one name."""

    name: str
    items: tuple[SuiteItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a metric of a target may be, why, and who is to be asked."""

    name: str
    target: str  # As it would be typed, without its keys; a program begins with `-- `
    keys: dict[str, Any] = field(default_factory=dict)
    metric: str
    limit: float | None = None  # In the metric's unit: the least of what more is better of, else the most
    max_change: float | None = None  # For the worse, as a share of what it is compared with
    against: str | None = None  # A commit, or a baseline's name or file
    # What finds the number in what a program prints; by default the metric's name, `=` or `:`, a number.
    pattern: str = ""
    # The function that finds what reports the phases of its target, as `--phases` names it.
    phases: str | None = None
    # Functions of its target to time: the parts that `phase:` and `share:` may name.
    time: tuple[str, ...] = ()
    reason: str = ""
    owner: str = ""
    expires: date | None = None  # The last day on which it holds
    enforce: bool = True  # False is a target to be reached: its distance is told and is no failure
    line: int = 0

    @property
    def kind(self) -> MetricKind:
        return METRICS[self.metric.partition(":")[0]]

    @property
    def part(self) -> str:
        """What the metric names after its colon; empty where it names nothing."""
        return self.metric.partition(":")[2]

    @property
    def program(self) -> str | None:
        """The command line of a program; None of any other target."""
        return self.target.removeprefix(PROGRAM) if self.target.startswith(PROGRAM) else None

    @property
    def measured(self) -> Target:
        """What it is about, where that is no program."""
        return Target(self.target, self.keys, self.phases, self.time)

    @property
    def words(self) -> str:
        """The target as it would be typed."""
        return self.target if self.program is not None else self.measured.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a hotloop.toml says."""

    path: Path
    suites: dict[str, Suite]
    budgets: dict[str, Budget]
    # Device to phase to the steps per second that its owner expects, from the least to the most.
    expect: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its targets are opened from."""
        return self.path.parent

    def suite(self, name: str) -> Suite:
        """Return the suite of that name; InputError with the nearest if there is none."""
        return self._named("suite", name, self.suites, "write [suite.NAME] with items")

    def budget(self, name: str) -> Budget:
        """Return the budget of that name; InputError with the nearest if there is none."""
        return self._named("budget", name, self.budgets, "hotloop gate --init writes the first")

    def _named(self, kind: str, name: str, known: Mapping[str, T], first: str) -> T:
        if name in known:
            return known[name]
        raise unknown(kind, name, known, f"{self.path} has {', '.join(known) or f'none: {first}'}")


def find_file(folder: Path | None = None) -> Path | None:
    """The nearest hotloop.toml upward from a folder, by default the current one; None where there is none."""
    start = (folder or Path.cwd()).resolve()
    return next((path for place in (start, *start.parents) if (path := place / NAME).is_file()), None)


def find(folder: Path | None = None) -> Project:
    """The project around a folder, by default the current one; InputError where there is none."""
    path = find_file(folder)
    if path is None:
        raise InputError(f"there is no {NAME} here or above: hotloop gate --init writes a first one")
    return read(path)


def read(path: Path) -> Project:
    """Read and check a hotloop.toml; InputError with line and key where something does not fit."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected text in UTF-8") from None
    return parse(text, path)


def parse(text: str, path: Path = Path(NAME)) -> Project:
    """A project from the text of its file; `path` is what errors call it."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}: mend the TOML there") from None
    source = Source(path, places(text))
    source.known((), plain, ("suite", "budget", "expect"))
    suites = source.tables("suite", plain)
    budgets = source.tables("budget", plain)
    return Project(
        path=path,
        suites={name: suite_of(source, name, table) for name, table in suites.items()},
        budgets={name: budget_of(source, name, table) for name, table in budgets.items()},
        expect={
            device: {
                phase: range_of(source, ("expect", device, phase), ends) for phase, ends in table.items()
            }
            for device, table in source.tables("expect", plain).items()
        },
    )


def range_of(source: "Source", where: Keys, value: Any) -> tuple[float, float]:
    """Return the two ends of an expected speed."""
    ends = [each for each in value if is_number(each)] if isinstance(value, list) else []
    if len(ends) != 2 or value != ends or not 0 < ends[0] <= ends[1]:
        raise source.refuse(where, f"expected [least, most] in steps per second, got {show_value(value)}")
    return float(ends[0]), float(ends[1])


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and where its keys stand."""

    path: Path
    lines: Mapping[Keys, int]

    def line(self, where: Keys) -> int:
        """The line of a key, or of the nearest around it that has one."""
        around = (where[:length] for length in range(len(where), 0, -1))
        return next((self.lines[key] for key in around if key in self.lines), 1)

    def refuse(self, where: Keys, what: str) -> InputError:
        return InputError(f"{self.path}: line {self.line(where)}: {'.'.join(where)}: {what}")

    def known(
        self, where: Keys, table: Mapping[str, Any], keys: "tuple[str, ...] | Mapping[str, Any]"
    ) -> None:
        """Raise on unknown keys."""
        for key in table:
            if key not in keys:
                error = unknown("key", key, keys, f"the keys are {', '.join(keys)}")
                raise self.refuse((*where, key), str(error))

    def tables(self, kind: str, plain: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The tables of one kind by their names."""
        tables = self.table((kind,), plain.get(kind, {}))
        for name, each in tables.items():
            if not SAYABLE.fullmatch(name):
                raise self.refuse((kind, name), "a name has letters, digits, '-', '_' and '.'")
            self.table((kind, name), each)
        return tables

    def table(self, where: Keys, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refuse(where, f"expected a table, got {show_value(value)}")
        return value

    def text(self, where: Keys, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.refuse(where, f"expected text, got {show_value(value)}")
        return value

    def pattern(self, where: Keys, value: Any) -> str:
        """A regular expression with one group at most."""
        text = self.text(where, value)
        try:
            groups = re.compile(text).groups
        except re.error as error:
            raise self.refuse(where, f"{text!r} is no regular expression: {error}") from None
        if groups > 1:
            raise self.refuse(where, f"{groups} groups: put one around the number alone")
        return text

    def flag(self, where: Keys, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.refuse(where, f"expected true or false, got {show_value(value)}")
        return value

    def number(self, where: Keys, value: Any) -> float:
        if not is_number(value) or not 0 <= value <= sys.float_info.max:
            raise self.refuse(where, f"expected a number of at least 0, got {show_value(value)}")
        return float(value)

    def share(self, where: Keys, value: Any) -> float:
        """A change as `"5%"`, or as a part of one."""
        part = value
        if isinstance(value, str):
            refusal = self.refuse(where, f'expected a change such as "5%", got {show_value(value)}')
            if not value.strip().endswith("%"):
                raise refusal
            try:
                part = float(value.strip()[:-1]) / 100
            except ValueError:
                raise refusal from None
        share = self.number(where, part)
        if not 0 < share < 1:
            expected = 'expected a change above 0% and below 100%, as "5%"'
            raise self.refuse(where, f"{expected}, got {show_value(part)}")
        return share

    def day(self, where: Keys, value: Any) -> date:
        try:
            day = date.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            day = None
        if type(day) is not date:
            raise self.refuse(where, f"expected a day such as 2027-01-31, got {show_value(value)}")
        return day

    def keys(self, where: Keys, value: Any) -> dict[str, Any]:
        """Keys of a target: single values."""
        for key, each in self.table(where, value).items():
            if not isinstance(each, str | int | float | bool):
                raise self.refuse((*where, key), f"expected one value, got {show_value(each)}")
        return dict(value)

    def names(self, where: Keys, value: Any) -> tuple[str, ...]:
        """Names of functions: a list of texts, or one."""
        return tuple(self.text(where, each) for each in (value if isinstance(value, list) else [value]))

    def metric(self, where: Keys, value: Any) -> str:
        word = self.text(where, value)
        name, colon, part = word.partition(":")
        if name not in METRICS:
            names = [key if kind.part is None else f"{key}:{kind.part}" for key, kind in METRICS.items()]
            raise self.refuse(where, str(unknown("metric", word, METRICS, f"there are {', '.join(names)}")))
        kind = METRICS[name]
        if kind.part and not part:
            raise self.refuse(where, f"{name} needs a name: write {name}:{kind.part}")
        if colon and not kind.part:
            raise self.refuse(where, f"{name} takes no name after a colon")
        return word


# The keys that name parts of a user's env, and how each is read.
PARTS: Mapping[str, Callable[[Source, Keys, Any], Any]] = {"phases": Source.text, "time": Source.names}

# The keys of a budget, and how each is read.
BUDGET: Mapping[str, Callable[[Source, Keys, Any], Any]] = {
    "target": Source.text,
    "keys": Source.keys,
    "metric": Source.metric,
    "limit": Source.number,
    "max_change": Source.share,
    "against": Source.text,
    "pattern": Source.pattern,
    **PARTS,
    "reason": Source.text,
    "owner": Source.text,
    "expires": Source.day,
    "enforce": Source.flag,
}

ITEM = ("target", "keys", "phases", "time", "do", "against")


def budget_of(source: Source, name: str, table: Mapping[str, Any]) -> Budget:
    """A budget; one that says too little or too much is refused."""
    where = ("budget", name)
    source.known(where, table, BUDGET)
    for key in ("target", "metric"):
        if key not in table:
            raise source.refuse(where, f"lacks {key}")
    read = {key: BUDGET[key](source, (*where, key), value) for key, value in table.items()}
    budget = Budget(name=name, line=source.line(where), **read)
    if (budget.limit is None) == (budget.max_change is None):
        raise source.refuse(where, "give either limit or max_change with against")
    if (budget.max_change is None) != (budget.against is None):
        raise source.refuse(where, "max_change and against belong together: a change is from something")
    of_programs = budget.metric.partition(":")[0] in OF_PROGRAMS
    if budget.program is not None and not of_programs:
        raise source.refuse((*where, "metric"), f"{budget.metric} is not known of a program: {OF_PROGRAMS}")
    if budget.program is None and of_programs and budget.metric != "rss_peak_bytes":
        raise source.refuse((*where, "metric"), f'{budget.metric} is of programs: target = "-- COMMAND"')
    if budget.pattern and not budget.part:
        raise source.refuse((*where, "pattern"), 'it is for what a program prints: metric = "printed:NAME"')
    if budget.program is not None and budget.keys:
        raise source.refuse((*where, "keys"), "a program has its arguments in its command line")
    check_parts(source, where, table, budget.target)
    return budget


def check_parts(source: Source, where: Keys, table: Mapping[str, Any], target: str) -> None:
    """Parts by name are for others' code: a preset has phases of its own, a program none."""
    for key in PARTS:
        if key in table and (target.startswith(PROGRAM) or not names_callable(target)):
            raise source.refuse((*where, key), f"{key} is for code of yours, as my_env.py:make: leave it out")


def suite_of(source: Source, name: str, table: Mapping[str, Any]) -> Suite:
    where = ("suite", name)
    source.known(where, table, ("items",))
    items = table.get("items")
    if not isinstance(items, list) or not items:
        given = show_value(items)
        raise source.refuse((*where, "items"), f"expected a list of at least one item, got {given}")
    read = tuple(item_of(source, (*where, "items", str(i)), item) for i, item in enumerate(items))
    return Suite(name=name, items=read)


def item_of(source: Source, where: Keys, item: Any) -> SuiteItem:
    """One thing that a suite does."""
    source.known(where, source.table(where, item), ITEM)
    if "target" not in item:
        raise source.refuse(where, "lacks target")
    name = source.text((*where, "target"), item["target"])
    do = source.text((*where, "do"), item.get("do", "bench"))
    if do not in DO:
        raise source.refuse((*where, "do"), str(unknown("word", do, DO, f"there are {', '.join(DO)}")))
    against = source.text((*where, "against"), item["against"]) if "against" in item else None
    if (do == "compare") != (against is not None):
        raise source.refuse(where, 'do = "compare" and against, the other target, belong together')
    check_parts(source, where, item, name)
    parts = {key: read(source, (*where, key), item[key]) for key, read in PARTS.items() if key in item}
    return SuiteItem(
        target=Target(name, source.keys((*where, "keys"), item.get("keys", {})), **parts),
        do=do,
        against=None if against is None else Target.parse(against),
        line=source.line(where),
    )


def put_budget(path: Path, budget: Budget) -> None:
    """Write a budget into a hotloop.toml, which need not exist; comments and all else stay as they are.

    One of that name keeps the keys that the new one does not say, except for the other kind of limit.
    """
    import tomlkit

    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parse(text, path)
    document = tomlkit.parse(text)
    if "budget" not in document:
        document["budget"] = tomlkit.table(is_super_table=True)
    budgets = document["budget"]
    assert isinstance(budgets, tomlkit.items.Table | tomlkit.container.OutOfOrderTableProxy)
    if budget.name not in budgets:
        budgets[budget.name] = tomlkit.table()
    table = budgets[budget.name]
    assert isinstance(table, tomlkit.items.Table | tomlkit.items.InlineTable)
    said = budget_to_toml(budget)
    for key in ("keys", "limit", "max_change", "against", "pattern"):
        if key in table and key not in said:
            table.remove(key)
    for key, value in said.items():
        table[key] = value
    written = tomlkit.dumps(document)
    parse(written, path)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        temporary.write_text(written, encoding="utf-8")
        temporary.replace(path)  # a reader meanwhile sees the old text or the new one
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def budget_to_toml(budget: Budget) -> dict[str, Any]:
    """The keys of a budget as its table has them, without those that are as usual."""
    whole = budget.limit is not None and budget.limit == int(budget.limit)
    said: dict[str, Any] = {
        "target": budget.target,
        "keys": budget.keys or None,
        "metric": budget.metric,
        "limit": int(budget.limit or 0) if whole else budget.limit,
        "max_change": None if budget.max_change is None else f"{budget.max_change * 100:g}%",
        "against": budget.against,
        "pattern": budget.pattern or None,
        "phases": budget.phases,
        "time": list(budget.time) or None,
        "reason": budget.reason or None,
        "owner": budget.owner or None,
        "expires": budget.expires,
        "enforce": None if budget.enforce else False,
    }
    return {key: value for key, value in said.items() if value is not None}


def places(text: str) -> dict[Keys, int]:
    """Return the line of every table, key and list item of a file that `tomllib` can read, counted from 1.

    Each statement is read by itself, line by line with what is missing to close it: a key that comes with a
    line stands there.
    """
    lines: dict[Keys, int] = {}
    tables: Counter[Keys] = Counter()
    table: Keys = ()
    statement, begin = "", 1
    for number, row in enumerate(text.split("\n"), 1):
        statement += f"{row}\n"
        plain, closing = read_unclosed(statement)
        if plain is None:  # inside a text of several lines
            continue
        header = statement.strip()
        if header.startswith("["):
            *_, table = keys_below(plain)
            if header.startswith("[["):
                name = table[:-1]
                lines.setdefault(name, begin)
                table = (*name, str(tables[name]))
                tables[name] += 1
            lines.setdefault(table, begin)
        else:
            for keys in keys_below(plain):
                lines.setdefault((*table, *keys), begin)
        statement, begin = statement if closing else "", number + 1
    return lines


def read_unclosed(statement: str) -> tuple[dict[str, Any] | None, str]:
    """Return what a statement says as far as it goes, and what closes it; None inside a text."""
    for closing in CLOSINGS:
        try:
            return tomllib.loads(statement + closing), closing
        except tomllib.TOMLDecodeError:
            continue
    return None, ""


def keys_below(plain: Any) -> Iterator[Keys]:
    """Yield the keys of a table and the numbers of a list, each before those below it."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, value in items:
        yield (str(key),)
        yield from ((str(key), *below) for below in keys_below(value))
