"""A case: what a record says about where its time went, as rows whose shares have intervals."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hotloop.core.record import Record
from hotloop.core.record.codec import Interval
from hotloop.core.record.comparison import Ratio
from hotloop.core.record.profile import INSTRUMENT, STEP, WALL, Phase, Table
from hotloop.core.record.stacks import Frame, Stack, identity
from hotloop.stats.summary import sign_interval, wilson_interval

ELSE = "everything else"

SELF = "itself"  # What a row takes beside those below it
THREADS = "threads/"  # What the paths of rows begin with that lie beside the wall, in other threads
FUNCTIONS = "samples"  # The probe whose tables have functions

# What the title of the table begins with that has the user's own functions, the lever first.
YOURS = "Your functions"

LINE = "hottest_line"  # The fact of the line of the first of them that takes most of its time

# Share of the largest row from which on a function below it is named instead; that of a whole step.
LEVER, LEAST = 0.5, 0.05

LEAST_LEFT = 0.001

FEW = 2  # Rounds whose range is said where they are too few for an interval


def pattern(*words: str) -> "re.Pattern[str]":
    return re.compile("|".join(words))


ENV_STEP = pattern(r"^envs?([._ ]?step)?$", "^environment$", r"\.step$", "^step$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the time: its share of the wall, with an interval where several rounds were kept."""

    share: float
    interval: Interval | None = None

    @property
    def low(self) -> float:
        return self.interval[0] if self.interval else self.share

    @property
    def high(self) -> float:
        return self.interval[1] if self.interval else self.share

    def scaled(self, factor: float) -> "Part":
        ends = (self.low * factor, self.high * factor) if self.interval else None
        return Part(share=self.share * factor, interval=ends)


WHOLE = Part(share=1.0)


def timed_functions(phases: Sequence[Phase], functions: Iterable[str]) -> dict[str, Phase]:
    """Return the phase of each function that has a row of the tree, by the function's name.

    A row has its function's name, but for the two methods of a player, which are told by theirs alone.
    """
    by_name: dict[str, Phase] = {}
    rows = [each for each in phases if each.path.startswith(f"{WALL}/") and each.path != INSTRUMENT]
    for phase in rows:
        name = phase.path.rpartition("/")[2]
        if name not in by_name or phase.share > by_name[name].share:
            by_name[name] = phase
    known = set(functions)
    methods = Counter(name.rpartition(".")[2] for name in known)
    found = {}
    for name in known:
        method = name.rpartition(".")[2]
        timed = by_name.get(name)
        if timed is None and methods[method] == 1:
            timed = next((each for each in rows if each.path.endswith(f"/inference/{method}")), None)
        if timed is not None:
            found[name] = timed
    return found


def speed_up(share: float, factor: float) -> float:
    """Amdahl's law; what would leave nothing at all leaves a thousandth."""
    return 1 / max(1 - min(share, 1.0) * (1 - 1 / factor), LEAST_LEFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a profile's tree, or one function that samples met."""

    path: str
    name: str  # Its last word, as the code calls it
    part: Part
    calls: int
    mean_ns: float
    parent: str | None = None
    of_parent: float | None = None  # Its share of the row above, where that is not the wall itself
    worked: float | None = None  # Of its time, that it was on a core for; None if not measured
    is_leaf: bool = True
    sampled: bool = False  # Whether it is a function that samples met, and no row of the tree

    def matches(self, words: "re.Pattern[str]") -> bool:
        return bool(words.search(self.name.lower()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another way of doing a phase, measured beside the one that a record has."""

    phase: str
    keys: Mapping[str, object]  # What chooses it
    ratio: Ratio  # How many times as long the way of the record takes, of that phase alone
    # Of a whole step of the env, as it is without marks in it; None if that was not measured.
    whole: Ratio | None = None

    @property
    def words(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.keys.items())


@dataclass(frozen=True)
class Case:
    """A record, and what rules ask it."""

    record: Record
    alternatives: tuple[Alternative, ...] | None = ()  # None if not measured for any

    @cached_property
    def wall_ns(self) -> int:
        """Of all that the tree is about; 0 where there is none."""
        return next((phase.total_ns for phase in self.record.phases if phase.path == WALL), 0)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return the tree without its root, parents before their children."""
        phases = self.record.phases
        by_path = {phase.path: phase for phase in phases}
        rows = []
        for phase in phases:
            if not phase.path.startswith(f"{WALL}/") or phase.path == INSTRUMENT:
                continue
            above, _, name = phase.path.rpartition("/")
            parent = by_path.get(above)
            inner = parent is not None and above != WALL and parent.total_ns > 0
            row = Row(
                path=phase.path,
                name=name,
                part=self._part(phase.share, phase.rounds_ns),
                calls=phase.calls,
                mean_ns=phase.mean_ns,
                parent=above.rpartition("/")[2] if inner else None,
                of_parent=phase.total_ns / parent.total_ns if inner and parent else None,
                worked=phase.worked,
                is_leaf=not any(path.startswith(f"{phase.path}/") for path in by_path),
            )
            rows.append(row)
        return tuple(rows)

    def _part(self, share: float, rounds_ns: Sequence[int]) -> Part:
        """Return a share of the wall; the interval is that of its shares in each round."""
        walls = next((each.rounds_ns for each in self.record.phases if each.path == WALL), ())
        shares = [ns / wall for ns, wall in zip(rounds_ns, walls, strict=False) if wall > 0]
        around = sign_interval(shares) or ((min(shares), max(shares)) if len(shares) >= FEW else None)
        if around:
            around = min(around[0], share), max(around[1], share)
        return Part(share=share, interval=around)

    @cached_property
    def own(self) -> tuple[Row, ...]:
        """Return what rows take themselves, beside the rows below them."""
        by_path = {phase.path: phase for phase in self.record.phases}
        found = []
        for row in (row for row in self.rows if not row.is_leaf):
            phase = by_path[row.path]
            below = [each for path, each in by_path.items() if path.rpartition("/")[0] == row.path]
            share = max(0.0, phase.share - sum(each.share for each in below))
            parts = zip(*(each.rounds_ns for each in below), strict=False)
            rounds = [max(0, ns - sum(each)) for ns, each in zip(phase.rounds_ns, parts, strict=False)]
            own_ns = max(0, phase.total_ns - sum(each.total_ns for each in below))
            itself = replace(
                row,
                path=f"{row.path}/{SELF}",
                name=f"{row.name} {SELF}",
                part=self._part(share, rounds),
                mean_ns=own_ns / max(1, phase.calls),
                worked=None,
                is_leaf=True,
            )
            found.append(itself)
        return tuple(found)

    @cached_property
    def functions(self) -> tuple[Row, ...]:
        """Return every function that samples met, once."""
        return tuple({row.path: row for row in self._functions("")}.values())

    @cached_property
    def yours(self) -> tuple[Row, ...]:
        """Return the functions of the user's own code, the lever first and the others by their share.

        A function that has a row in the tree is told there: it has one share.
        """
        functions = tuple(self._functions(YOURS))
        timed = timed_functions(self.record.phases, (row.name for row in functions))
        return tuple(row for row in functions if row.name not in timed)

    @cached_property
    def libraries(self) -> tuple[Row, ...]:
        """Return the functions of others with most time of their own, by that time."""
        known = {row.path for row in self._functions(YOURS)}
        found = [row for row in self.functions if row.path not in known and row.is_leaf]
        return tuple(found) if known else ()

    def tables(self, probe: str) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
        """Yield the tables of a probe, each with its rows by the names of their columns."""
        for finding in self.record.findings:
            for table in finding.tables if finding.probe == probe else ():
                yield table, [dict(zip(table.columns, row, strict=False)) for row in table.rows]

    def _functions(self, title: str) -> Iterator[Row]:
        samples = int(self.fact(FUNCTIONS, "samples") or 0)
        for table, rows in self.tables(FUNCTIONS):
            if not table.title.startswith(title) or "function" not in table.columns:
                continue
            for row in rows:
                share = float(row["total_share"])
                yield Row(
                    path=str(row["function"]),
                    name=str(row["function"]).partition(" (")[0],
                    part=Part(
                        share=share, interval=wilson_interval(share * samples, samples) if samples else None
                    ),
                    calls=0,
                    mean_ns=0.0,
                    worked=row.get("cpu_share"),
                    is_leaf=float(row["own_share"]) > share / 2,
                    sampled=True,
                )

    def named(self, words: "re.Pattern[str]") -> tuple[Row, ...]:
        """Return the outermost rows whose names match; functions only where no row does."""
        found = [row for row in self.rows if row.matches(words)]
        outer = [row for row in found if not any(row.path.startswith(f"{each.path}/") for each in found)]
        return tuple(outer) or tuple(row for row in self.functions if row.matches(words))

    @property
    def leaves(self) -> tuple[Row, ...]:
        """Rows that have no rows below, and what the others take themselves, without Hotloop's own loop.

        Of a program without spans it is the user's functions, or all of them by their own time.
        """
        leaves = (*(row for row in self.rows if row.is_leaf and not self.is_harness(row)), *self.own)
        return leaves or self.yours or tuple(row for row in self.functions if row.is_leaf)

    def is_harness(self, row: Row) -> bool:
        """Return whether a row is Hotloop's own loop around the user's environment."""
        return self.record.kind == "profile" and not self.record.work.runs and row.path == f"{WALL}/{ELSE}"

    @property
    def lever(self) -> Row | None:
        """The row or function that one would open and change first; None if nothing takes any time."""
        largest = self.largest
        function = next(self._functions(YOURS), None)
        names = [row.name for row in self._functions(YOURS)]
        timed = timed_functions(self.record.phases, names).get(function.name) if function else None
        if timed:
            return next(row for row in self.rows if row.path == timed.path)
        if function is None or largest is None or largest.sampled:
            return function or largest
        # The call of an env's step says nothing of what is slow in it.
        is_step = ENV_STEP.search(largest.name.removesuffix(f" {SELF}").lower())
        says_more = function.part.share >= (LEAST if is_step else LEVER) * largest.part.share
        return function if says_more else largest

    @property
    def hottest_line(self) -> tuple[str, float] | None:
        """The line of the lever that takes most of its time with its code, and its share of that time."""
        function, row, line = next(self._functions(YOURS), None), self.lever, self.fact(FUNCTIONS, LINE)
        if function is None or row is None or line is None:
            return None
        if row.name not in (function.name, function.name.rpartition(".")[2]):  # another function's row
            return None
        return str(line), float(self.fact(FUNCTIONS, f"{LINE}_share"))

    @property
    def clocked(self) -> tuple[Row, ...]:
        """The innermost rows whose CPU time is known: marks below them have none."""
        known = [row for row in self.rows if row.worked is not None]
        return tuple(row for row in known if not any(each.path.startswith(f"{row.path}/") for each in known))

    @property
    def largest(self) -> Row | None:
        """The leaf that takes most."""
        return max(self.leaves, key=lambda row: row.part.share, default=None)

    def setting(self, *names: str) -> Any:
        """Return what was set under one of the names, with or without a prefix; None if nothing was."""
        for told in (self.record.target.variant, self.record.target.params):
            for key, value in told.items():
                if key in names or key.rpartition(".")[2] in names:
                    return value
        return None

    def fact(self, probe: str, name: str) -> Any:
        """Return what a probe found; None if it did not look."""
        found = (each.facts for each in self.record.findings if each.probe == probe)
        return next((facts[name] for facts in found if name in facts), None)

    def has_probed(self, probe: str) -> bool:
        return any(found.probe == probe for found in self.record.findings)

    @property
    def cores(self) -> int | None:
        """That the run could use."""
        machine = self.record.machine
        limit = machine["limits"]["cpus"]
        cores = machine.get("usable_cores") or machine["cores"]
        return cores if limit is None or cores is None else max(1, min(cores, int(limit)))

    @property
    def busy(self) -> float | None:
        """Return how many of its threads had something to do on average; None if not measured."""
        used = self.record.resources
        if used is None or used.cpu_share is None or used.ready_share is None:
            return None
        return used.cpu_share + used.ready_share

    @property
    def on_gpu(self) -> bool:
        device = str(self.setting("device") or "")
        return "cuda" in (self.record.target.device, device) or device.startswith("cuda")

    @property
    def is_loop(self) -> bool:
        """Return whether a whole loop was looked at, and not an env alone."""
        return self.record.kind in ("train", "run") or bool(self.record.work.runs)

    @property
    def is_step(self) -> bool:
        """Return whether native code told the phases of its step."""
        return any(row.path == STEP for row in self.rows)


COVERS = 0.5  # Share of the largest function that a more specific one must cover to be chosen instead of it

# Share of its own time that a function must spend outside the user's other functions to be chosen.
KEEPS = 0.1

LEAST_YOURS = 0.05  # Share of the time below which the user's own code is not what one would change
STANDARD = re.compile(r"[/\\]lib(64)?[/\\]python\d[^/\\]*[/\\](?!site-packages|dist-packages)")

INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")

# Files of libraries that environments are built on; users do not change them to make one faster.
GENERAL = re.compile(
    r"[/\\](site|dist)-packages[/\\]"
    r"(numpy|scipy|torch|jax|jaxlib|numba|pandas|sklearn|tensorflow|tensordict|PIL|cv2|networkx|shapely)[/\\]"
)


def is_installed(file: str) -> bool:
    """Return whether a file is Python code that no interpreter comes with: a package's or the user's."""
    return file.endswith(".py") and not STANDARD.search(file)


def is_yours(file: str) -> bool:
    """Return whether a file is neither of the standard library nor of an installed package."""
    return is_installed(file) and not INSTALLED.search(file)


def own_stacks(found: Mapping[Stack, float], ours: str) -> dict[Stack, float]:
    """Return the time by the user's own frames; those of packages if the user's are hardly there.

    An installed environment, such as one of Gymnasium's, is what its user asks about.
    """
    whole = sum(found.values())
    yours = reduced(found, is_yours, ours)
    if sum(yours.values()) >= LEAST_YOURS * whole:
        return yours
    # A package that is no general library may be an installed environment.
    environments = reduced(found, lambda file: is_installed(file) and not GENERAL.search(file), ours)
    return environments or reduced(found, is_installed, ours)


def reduced(found: Mapping[Stack, float], is_wanted: Callable[[str], bool], ours: str) -> dict[Stack, float]:
    """Return the time by the frames of wanted files outside the folder of Hotloop itself."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    wanted = {
        file: is_wanted(file) and not file.startswith(ours)
        for file in {frame[1] for stack in found for frame in stack}
    }
    for stack, weight in found.items():
        inner = tuple(frame for frame in stack if wanted[frame[1]])
        if inner and weight:
            kept[inner] += weight
    return dict(kept)


def find_lever(yours: Mapping[Stack, float]) -> Frame | None:
    """Return the most specific function that still covers most of the time, as its identity.

    A function that spends nearly all of its time in several of the user's functions gives way to the
    largest of them.
    """
    found: dict[Stack, float] = defaultdict(float)  # Without the lines inside functions
    for stack, weight in yours.items():
        found[tuple(identity(frame) for frame in stack)] += weight
    while True:
        totals, _ = measure(found)
        if not totals:
            return None
        largest = max(totals, key=totals.__getitem__)
        within = calls_of(found, largest)
        totals, depths = measure(within)
        covering = [each for each in totals if totals[each] >= COVERS * totals[largest]]
        chosen = min(covering, key=lambda each: (totals[each], -depths[each]))
        inner = below(within, chosen)
        if sum(inner.values()) <= (1 - KEEPS) * totals[chosen]:
            return chosen
        found = inner


def measure(found: Mapping[Stack, float]) -> tuple[dict[Frame, float], dict[Frame, int]]:
    """Return the time of each function with all that it calls, and how deep it lies."""
    totals: defaultdict[Frame, float] = defaultdict(float)
    depths: defaultdict[Frame, int] = defaultdict(int)
    for stack, weight in found.items():
        for depth, frame in enumerate(stack):
            depths[frame] = max(depths[frame], depth)
        for frame in set(stack):
            totals[frame] += weight
    return dict(totals), dict(depths)


def calls_of(found: Mapping[Stack, float], chosen: Frame) -> dict[Stack, float]:
    """Return what a function takes with all that it calls, from its outermost call on."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    for stack, weight in found.items():
        if chosen in stack:
            kept[stack[stack.index(chosen) :]] += weight
    return dict(kept)


def below(found: Mapping[Stack, float], chosen: Frame) -> dict[Stack, float]:
    """Return what lies below a function, from its innermost call on."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    for stack, weight in found.items():
        if chosen in stack:
            last = len(stack) - 1 - stack[::-1].index(chosen)
            if stack[last + 1 :]:
                kept[stack[last + 1 :]] += weight
    return dict(kept)
