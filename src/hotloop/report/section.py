"""Sections: what a report says, as data that every format draws in its own way, and the lines all share.

Nothing here knows a format: a span says what it means, a column what it holds, a branch how much it is
of the whole. Colours, bars, alignment and escapes belong to `terminal`, `markdown` and `html`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from hotloop.core import registry
from hotloop.core.errors import Code, Notice, notice
from hotloop.core.record import CPU_SHARE, EPISODES_PER_S, Record, SpeedTarget
from hotloop.core.record.metadata import LOG_BYTES, LOG_WAITS, LOG_WRITTEN, Machine
from hotloop.core.record.metadata import CodeInfo as CodeFacts
from hotloop.stats.summary import deviation, label, mean_interval, summarise

Tone = Literal["plain", "good", "warn", "bad", "dim"]  # What words mean to a reader in a hurry
# What a column holds: numbers are flush right and never broken, code is shown as it stands.
Kind = Literal["text", "number", "code"]


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one meaning."""

    text: str
    tone: Tone = "plain"
    strong: bool = False
    code: bool = False  # Whether it is part of a program, or would be typed


Words = str | Span | tuple[str | Span, ...]  # A line of text; plain strings mean nothing beyond what they say


def spans_of(words: Words) -> tuple[Span, ...]:
    """Return a line as the spans it consists of."""
    parts = words if isinstance(words, tuple) else (words,)
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def text_of(words: Words) -> str:
    """Return a line without its meanings."""
    return "".join(span.text for span in spans_of(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What the sections after it are about."""

    words: Words
    level: int = 3  # Of a page; 1 is its title
    apart: bool = False  # Whether something else ends before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line, or a paragraph of it."""

    words: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines that are one list."""

    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A series of values from the first to the last."""

    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names, and what is so of each; a name may come more than once."""

    rows: tuple[tuple[str, Words | Curve], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind = "text"
    whole: bool = False  # Whether its cells are never broken into lines; numbers never are
    width: int | None = None  # Characters that are shown where there is little room
    # Whether it can be done without on a narrow screen; the first of such columns goes first.
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells; a row may be shorter than the columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Words, ...], ...]
    ends: tuple[int, ...] = ()  # Rows, by their index, after which a part of the table ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of a tree."""

    name: str
    values: tuple[str, ...]
    depth: int = 0
    # Of the whole, to be seen at a glance; None if a bar would say nothing: of sums, and of the whole.
    share: float | None = None
    strong: bool = False  # Whether it adds up others
    end: bool = False  # Whether a part of the tree ends after it
    mark: Words = ""  # What a reader must not overlook in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Parts of a whole, each below what it is part of."""

    title: str
    columns: tuple[str, ...]  # Of the values, which are numbers
    branches: tuple[Branch, ...]

    @property
    def has_bars(self) -> bool:
        return any(branch.share is not None for branch in self.branches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Lines of characters that are one picture: each of them has its place."""

    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG that stands by itself."""

    svg: str
    instead: "Sections" = ()  # What formats without pictures show


Section = Heading | Note | Lines | Facts | Table | Tree | Curve | Drawing | Picture
Sections = tuple[Section, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A part of a page, under a heading of its own."""

    title: str
    sections: Sections
    summary: bool = False  # Whether it is read at one glance with the others that are


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report to be kept in a file."""

    title: str
    when: str
    chapters: tuple[Chapter, ...]


def facts(*rows: tuple[str, Words | Curve]) -> Facts:
    """Return the facts that there are: what is empty is left out."""
    return Facts(rows=tuple((name, value) for name, value in rows if value))


def text_columns(*names: str, whole: bool = False) -> tuple[Column, ...]:
    return tuple(Column(name=name, whole=whole) for name in names)


def number_columns(*names: str, wide: bool = False) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="number", whole=True, wide=wide) for name in names)


def table(columns: Sequence[Column], rows: "Sequence[tuple[Words, ...]]") -> Table:
    return Table(columns=tuple(columns), rows=tuple(rows))


Interval = tuple[float, float]
SPARKS = "▁▂▃▄▅▆▇█"
TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
CPU = "on a core"  # The column of how much of its own time a row worked for
LARGE = 1_000  # A number from there on is drawn without a fraction


def speed(per_second: float) -> str:
    """Return three digits and a letter: 8.02 M, 401 k, 73.1."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if per_second >= size * 0.9995:
            return three_digits(per_second / size) + letter
    return three_digits(per_second)


def three_digits(value: float) -> str:
    """Return three digits where there is a point, whole numbers above."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def speed_interval(interval: Interval | None) -> str:
    return "no interval" if interval is None else f"[{speed(interval[0])}, {speed(interval[1])}]"


def ratio_interval(ratio: float, interval: Interval | None) -> str:
    return f"{ratio:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def percent(share: float) -> str:
    return f"{share:.1%}"


def on_core(worked: float | None) -> str:
    """Return how much of its own time a row was on a core for; empty if not measured."""
    return "" if worked is None else f"{worked:.0%}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def plain(value: float) -> str:
    """Return a number of any size to three places, without idle zeros: 1,000, 0.438."""
    return f"{value:z,.3f}".rstrip("0").rstrip(".")


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Return the last values as a line of blocks, lowest to highest."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)


def curve_words(values: Sequence[float], width: int = 40) -> str:
    """Return a series in words: where it ended, where it began, and the line between."""
    ends = f"{plain(values[-1])} at the end, {plain(values[0])} at the beginning"
    return f"{ends}  {sparkline(values, width)}" if width else ends


def plain_float(value: float) -> str:
    """Return four digits, or whole thousands."""
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.4g}"


def scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """Return three digits and the largest unit that leaves something before the point."""
    size, unit = next((each for each in units if abs(value) >= each[0]), units[-1])
    shown = value / size
    return f"{'-' if shown < 0 else ''}{three_digits(abs(shown))} {unit}" if value else f"0 {unit}"


def took(ns: float) -> str:
    """Return a duration as people read it."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.{1 if ns >= 100 * size else 2}f} {unit}"
    return f"{ns:.0f} ns"


def times(ratio: float) -> str:
    """Return how many times: one place, and none of what is large."""
    return f"{ratio:,.{0 if ratio >= 100 else 1}f}"


def digits(ratio: float) -> str:
    """Return three places around one, three digits of what is far from it, whole numbers of thousands."""
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.3f}" if 0.1 <= ratio < 100 else f"{ratio:.3g}"


Rows = Iterator[tuple[str, Words]]  # Names, and what is so of each
FOREIGN = "foreign"  # The implementation of what is not ours
WAITS = 0.1  # Of a round's time without a core, from which on it is said
SPREADS: dict[str, Tone] = {"excellent": "good", "good": "good", "fair": "warn", "unstable": "bad"}


def title(record: Record) -> Heading:
    """Name the target, what ran it, and how large the batch was."""
    name = Span(record.target.words, strong=True)
    return Heading(words=(name, "  ", ran_as(record), "  ", size_line(record)))


def ran_as(record: Record) -> Span:
    """Return the implementation; as something bad where another was hoped for."""
    fell_back = record.path.requested == "auto" and record.target.impl == "reference"
    return bad(f"{record.target.impl} (fell back)") if fell_back else Span(record.target.impl)


def bad(text: str) -> Span:
    return Span(text, "bad", strong=True)


def is_alone(record: Record) -> bool:
    """Return whether an env has one agent, so that its steps are the env's."""
    return record.work.agent_steps == record.work.env_steps


def by_spread(text: str, word: str) -> Span:
    """Return words about how much something varied, as good or bad as that is."""
    tone = SPREADS[word]
    return Span(text, tone, strong=tone == "bad")


def spread(record: Record) -> Span:
    """Return how much the rounds varied, by standard deviation and, robustly, by the median deviation."""
    values = record.values["env_steps_per_s"]
    rounds = summarise(values)
    if rounds.cv is None:
        return Span("one round")
    word = label(rounds.cv)
    return by_spread(f"{percent(rounds.cv)} {word}, MAD {percent(deviation(values) / rounds.median)}", word)


def origin(record: Record) -> Rows:
    """Yield where a number comes from: machine and code."""
    yield "machine", machine_line(record.machine)
    yield "commit", code_line(record.code)


def measured(records: Sequence[Record]) -> Rows:
    """Yield what holds for all of them, as the last one has it, and what is so of each."""
    yield from origin(records[-1])
    yield "method", method_line(records[-1])
    for record in records:
        target = f"{record.target.name}: " if len(records) > 1 else ""
        yield "path", target + path_line(record)
        if record.goal:
            yield "target", goal_words(record, record.goal, target)
        if shares := record.values.get(CPU_SHARE, ()):
            share = median(shares)
            waited = f"; {percent(1 - share)} of the time it waited, or had none" if share < 1 - WAITS else ""
            yield "CPU", f"{target}{percent(share)} of one core{waited}"
        metric, begun = record.metrics.get(EPISODES_PER_S), record.work.resets
        if metric is not None and begun:
            length = f"{record.work.env_steps / begun:,.1f} env-steps each"
            yield "episodes", f"{target}{speed(metric.median)} a second, of {length}"
        if counted := instructions_line(record):
            yield "instructions", target + counted
        if compared := shadow_line(record):
            yield "shadow", target + compared


def goal_words(record: Record, goal: SpeedTarget, target: str) -> Span:
    """Say how far the speed is from what was asked for, and what this machine can be relied on for."""
    distance = record.metrics["env_steps_per_s"].median / goal.env_steps_per_s - 1
    floor = f"floor {speed(goal.floor)}" if goal.floor is not None else "too few rounds for a floor"
    where = f"{abs(distance):.1%} {'above' if goal.met else 'below'}"
    text = f"{target}{speed(goal.env_steps_per_s)} env-steps/s: the median is {where}; {floor}"
    return Span(text) if goal.met else bad(text)


def cost_line(record: Record) -> str:
    """Return what the instrument cost; empty if there were too few pairs to say."""
    if record.overhead is None:
        return ""
    cost = ratio_interval(record.overhead.ratio, record.overhead.ci95)
    return f"takes {cost} times as long as the clean passes"


def machine_line(machine: Machine) -> str:
    """Name the machine, its size and how busy it was."""
    gpu = machine.get("gpu")
    words = [
        machine["cpu"],
        f"{machine['cores']} cores",
        f"load {machine['load']:.1f}" if machine.get("load") is not None else "load unknown",
        *([gpu["name"]] if gpu else []),
        machine["fingerprint"],
    ]
    return ", ".join(words)


def code_line(code: CodeFacts) -> str:
    """Name the commit, the target's own first, and, where native code ran, its compiler."""
    built = [part for part in (code["compiler"], code["flags"]) if part]
    ours = commit_words(code["commit"], dirty=code["dirty"])
    if "project" not in code:
        return ", ".join([ours, *built])
    theirs = code["project"]
    named = f"{commit_words(theirs['commit'], dirty=theirs['dirty'])} of {theirs['root']}"
    hotloop = code["version"] if code["commit"] == "unknown" else ours
    return ", ".join([named, f"Hotloop {hotloop}", *built])


def commit_words(commit: str, *, dirty: bool) -> str:
    return commit[:12] + (" (dirty)" if dirty else "")


def path_line(record: Record) -> str:
    """Say what ran, as the code that ran counted it, and what was asked for where there was a choice."""
    if record.path.requested == FOREIGN:
        said = f"your own code, {record.work.env_steps:,} env-steps"
        own = paths_line(record.path.counters)
        return f"{said}, counted by it: {own}" if own else said
    ran = ", ".join(f"{impl} {percent(share)}" for impl, share in record.path.ran.items()) or "nothing"
    return f"{ran} of {record.work.env_steps:,} env-steps (asked for {record.path.requested})"


# Counters that a record shows elsewhere.
KNOWN_COUNTERS = frozenset(
    "env_steps agent_steps resets foreign_steps native_steps reference_steps batch_calls "
    "updates tokens rows log.bytes log.lost_steps log.pages log.waits".split()
)

MOST_COUNTERS = 6  # Counters of an env that a line names


def paths_line(counters: Mapping[str, int]) -> str:
    """Return what an env counted by names of its own, which attests the path that ran; empty if nothing."""
    own = [(name, n) for name, n in counters.items() if name not in KNOWN_COUNTERS and "." not in name]
    told = ", ".join(f"{name} {n:,}" for name, n in own[:MOST_COUNTERS])
    return f"{told}, ..." if len(own) > MOST_COUNTERS else told


def method_line(record: Record) -> str:
    """Say how it was measured."""
    method = record.method
    what = "pairs of passes" if method.order == "ABBA" else "rounds"
    return (
        f"{method.rounds} {what} of {method.iterations:,} env-steps after {method.warmup:,} of warm-up, "
        f"{play_words(record)}, {count(method.threads, 'thread')}"
    )


WITHOUT_ACTIONS = "step alone"  # The interface of a target that is stepped without actions


def takes_no_actions(record: Record) -> bool:
    """Return whether a target is stepped without actions, and so plays itself."""
    return record.target.variant.get("interface") == WITHOUT_ACTIONS


def play_words(record: Record) -> str:
    """Return who chose the actions, two players in a game of two seats, or that the target takes none."""
    policy, keys = record.method.policy, {**record.target.params, **record.target.keys}
    if takes_no_actions(record):
        return "stepped without actions"
    if " against " in policy:
        return policy
    if "hero" in keys:
        return f"{keys['hero']} against {keys.get('villain', 'random')}"
    return f"{policy} play"


def shadow_line(record: Record) -> str:
    """Say what a variant and the one it shadows answered while the run went on; empty where none did."""
    checked = record.validation
    if checked is None or checked.against is not None:
        return ""
    ratio = checked.timing_ratio
    took = f"; the reference takes {ratio:.3g} times as long" if ratio else ""
    # The way that it was compared with, as it would be typed, if that is known.
    known = registry.find(record.target.name).world.rivals.values() if record.target.world else ()
    shadowed = [rival for rival in known if rival.shadow is not None]
    against = f" against {shadowed[0].parameter}={shadowed[0].reference}" if len(shadowed) == 1 else ""
    return f"{checked.comparisons:,} comparisons{against}, {checked.mismatches:,} mismatches{took}"


def instructions_line(record: Record) -> str:
    """Say how many instructions a step takes; empty if not measured."""
    counted = record.instructions
    if counted is None:
        return ""
    agents = max(record.work.agent_steps / max(record.work.env_steps, 1), 1)
    few, many = (steps for steps, _ in counted.runs)
    return (
        f"{counted.per_env_step:,.0f} an env-step, {counted.per_env_step / agents:,.0f} an agent-step "
        f"(callgrind, {counted.isa}, {many - few:,} env-steps)"
    )


def size_line(record: Record) -> str:
    """Say how large the batch was; of a program how often it ran."""
    if record.work.runs:
        return count(record.work.runs, "run")
    agents = record.work.agent_steps // max(record.work.env_steps, 1)
    envs: int = record.target.variant.get("num_envs", 1)
    return f"{count(envs, 'env')} of {count(agents, 'agent')}"


def mean_line(record: Record, name: str, unit: str = "") -> str:
    """Return the mean of a metric over the rounds, with its interval and its extremes."""
    values = record.values.get(name, ())
    if not values:
        return "nothing ended"
    low, high, unit = min(values), max(values), f" {unit}" if unit else ""
    if low == high:
        return f"{plain(low)}{unit}" + (", always" if len(values) > 1 else "")
    interval = mean_interval(values)
    around = f"[{plain(interval[0])}, {plain(interval[1])}]" if interval else "(too few for an interval)"
    return f"{plain(fmean(values))} {around}{unit}, from {plain(low)} to {plain(high)}"


def work_line(record: Record) -> str:
    """Say how much was done, and in what time."""
    seconds = record.values["wall_ns"][0] / 1e9
    work = record.work
    return f"{work.env_steps:,} env-steps, {work.agent_steps:,} agent-steps in {seconds:.2f} s"


def log_lines(record: Record) -> list[tuple[str, str]]:
    """Return what was written down, where anything was."""
    counted, rows = record.path.counters, record.work.rows
    if LOG_BYTES not in counted or not rows:
        return []
    each = counted[LOG_BYTES] / rows
    how = f"{counted[LOG_WRITTEN]:,} pages written, the run waited {counted[LOG_WAITS]:,} times"
    return [("log", f"{rows:,} rows of {each:.1f} bytes, {how}")]


def pace_line(record: Record) -> str:
    """Return the speed of a run that was timed once."""
    env, agent = (record.values.get(f"{what}_steps_per_s", (0.0,))[0] for what in ("env", "agent"))
    return f"{speed(env)} env-steps/s, {speed(agent)} agent-steps/s"


def notices(records: Sequence[Record]) -> Sections:
    """Return each notice once, with the targets it holds for where it does not hold for all."""
    holds: dict[Notice, list[str]] = {}
    for record in records:
        for each in record.notices:
            holds.setdefault(each, []).append(record.target.name)
    lines = [
        line(each, "" if len(targets) == len(records) else f"{', '.join(targets)}: ")
        for each, targets in holds.items()
    ]
    return (Lines(lines=tuple(lines)),)


def left_out(reasons: Sequence[str]) -> Sections:
    """Return one notice a file that is no record."""
    return (Lines(lines=tuple(line(notice(Code.LEFT_OUT, why=why)) for why in reasons)),)


def line(each: Notice, who: str = "") -> Words:
    return Span("! ", "warn"), who, each.text, Span(f"; {each.remedy}", "dim")
