"""Rows that add up: the tree of a watched loop, and the phases of a native step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hotloop.core.record.profile import PYTHON, STEP, WALL, Phase, Spread
from hotloop.core.time_tree import TimeTree
from hotloop.envs.foreign.spec import ENV_STEP
from hotloop.envs.subject import Subject

LOOP = "loop"
"""The span around one turn."""

ELSE = f"{WALL}/everything else"
"""What the loop does beside the env and the policy: Python, and the counting of work."""

PhaseTimes = Mapping[str, int]
"""Phase to ns, with `step` for the whole of it, as a batch reports them."""


def native_place(paths: Iterable[str], whole: str) -> str:
    """Where what an env times itself stands among the paths of a loop: below its step inside its wrappers.

    `whole` is the name of a row of its own, if it has one.
    """
    known, parent = list(paths), f"{WALL}/{ENV_STEP}"
    while inner := [path for path in known if is_step_of(parent, path)]:
        parent = inner[0]
    return f"{parent}/{whole}" if whole else parent


def is_step_of(parent: str, path: str) -> bool:
    """Whether a path is the step of what one wrapper has inside; that of a vector env has several inside."""
    above, _, name = path.rpartition("/")
    return above == parent and name.endswith(".step") and name != "envs.step"


class Tree:
    """Rows by path, from `wall` inwards; what other threads did side by side is not among them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._totals: dict[str, list[int]] = {}
        """Path to calls and ns."""
        self._rounds: list[Mapping[str, int]] = []
        """Path to ns at the end of each round, since the beginning."""
        self.wall_ns = self.loop_ns = self.else_ns = self.calls = 0

    def add(
        self, tops: Iterable[TimeTree], wall_ns: int, calls: int, native_before: Mapping[str, int]
    ) -> None:
        """Take in one turn: its spans, its wall time, and what native phases had taken before it."""
        self.wall_ns += wall_ns
        self.calls += calls
        for top in tops:
            if top.path == LOOP:
                self.loop_ns += top.total_ns
                self.else_ns += top.self_ns
                for row in (each for child in top.children for each in child.walk()):
                    self._count(WALL + row.path.removeprefix(LOOP), row.calls, row.total_ns)
        self._add_native(calls, native_before)

    def _add_native(self, calls: int, before: Mapping[str, int]) -> None:
        gained = {name: ns - before.get(name, 0) for name, ns in self._subject.phase_totals().items()}
        log = self._subject.step_log()
        if not gained or log is None:
            return
        place = native_place(self._totals, log.whole)
        if log.whole:
            self._count(place, calls, gained.pop("step"))
        for name, ns in gained.items():
            self._count(f"{place}/{name}", calls, ns // self._subject.spec.threads)

    def _count(self, path: str, calls: int, ns: int) -> None:
        row = self._totals.setdefault(path, [0, 0])
        row[0] += calls
        row[1] += ns

    def end_round(self) -> None:
        """A round is over: what was added since the last one is its own."""
        self._rounds.append({path: ns for path, (_, ns) in self._all().items()})

    def _all(self) -> dict[str, list[int]]:
        return {WALL: [self.calls, self.wall_ns], **self._totals, ELSE: [self.calls, self.else_ns]}

    @property
    def unaccounted_ns(self) -> int:
        """What the wall has beyond the loop: the instrument's own beginning and end."""
        return self.wall_ns - self.loop_ns

    def share(self, name: str) -> float:
        """Of the wall time, of all rows of a name."""
        ns = sum(ns for path, (_, ns) in self._totals.items() if path.rpartition("/")[2] == name)
        return ns / self.wall_ns if self.wall_ns else 0.0

    def has(self, name: str) -> bool:
        return any(path.rpartition("/")[2] == name for path in self._totals)

    def rows(self, spreads: Mapping[str, Spread]) -> tuple[Phase, ...]:
        """The whole first, then parents before their children."""
        return tuple(
            self._row(path, calls, ns, spreads.get(path, Spread(path=path, calls=0)))
            for path, (calls, ns) in self._all().items()
        )

    def _row(self, path: str, calls: int, ns: int, spread: Spread) -> Phase:
        return Phase(
            path=path,
            calls=calls,
            total_ns=ns,
            mean_ns=ns / calls if calls else 0.0,
            p50_ns=spread.p50_ns,
            p95_ns=spread.p95_ns,
            p99_ns=spread.p99_ns,
            max_ns=spread.max_ns,
            share=ns / self.wall_ns,
            rounds_ns=gained([each.get(path, 0) for each in self._rounds]),
        )


def gained(totals: Sequence[int]) -> tuple[int, ...]:
    """What was added from each total to the next, from zero on."""
    return tuple(after - before for before, after in pairwise([0, *totals]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What the instrumented passes measured."""

    wall_ns: int
    times: PhaseTimes
    env_steps: int
    threads: int
    """Threads work on a step side by side, so a phase's time is its mean over them."""
    spreads: Mapping[str, Spread]
    """Path to how single batch calls varied."""
    num_envs: int
    """Env-steps of one such call."""
    rounds: Sequence[tuple[int, PhaseTimes]] = ()
    """Wall ns and times at the end of each round, since the beginning."""
    beside: Sequence[str] = ()
    """Of the times, what a step does beside its engine, in the thread that steps: a log."""

    @property
    def phases(self) -> dict[str, int]:
        """Phase to ns, which the threads shared."""
        inside = {name: ns for name, ns in self.times.items() if name not in ("step", *self.beside)}
        return {name: ns // self.threads for name, ns in inside.items()}

    @property
    def unaccounted_ns(self) -> int:
        """What the step has beyond its phases; negative only where clocks disagree."""
        return self.times["step"] - sum(self.phases.values())

    def rows(self) -> tuple[Phase, ...]:
        """Draw up the account, the whole first."""
        step_ns = self.times["step"]
        walls, steps = [wall for wall, _ in self.rounds], self._series("step")
        others = [self._series(name) for name in self.beside]
        python = [wall - sum(known) for wall, *known in zip(walls, steps, *others, strict=True)]
        python_ns = self.wall_ns - step_ns - sum(self.times[name] for name in self.beside)
        inside = (
            self._row(f"{STEP}/{name}", ns, [each // self.threads for each in self._series(name)])
            for name, ns in self.phases.items()
        )
        return (
            self._row(WALL, self.wall_ns, walls),
            self._row(PYTHON, python_ns, python),
            *(self._row(f"{WALL}/{name}", self.times[name], self._series(name)) for name in self.beside),
            self._row(STEP, step_ns, steps),
            *inside,
        )

    def _series(self, name: str) -> list[int]:
        return [times.get(name, 0) for _, times in self.rounds]

    def _row(self, path: str, total_ns: int, totals: Sequence[int]) -> Phase:
        # Of single calls only the engine's part is known: what Python took has the others' in it.
        unknown = path == PYTHON and self.beside
        spread = Spread(path=path, calls=0) if unknown else self.spreads.get(path, Spread(path=path, calls=0))
        return Phase(
            path=path,
            calls=self.env_steps,
            total_ns=total_ns,
            mean_ns=total_ns / max(self.env_steps, 1),
            p50_ns=self._of_env_step(spread.p50_ns),
            p95_ns=self._of_env_step(spread.p95_ns),
            p99_ns=self._of_env_step(spread.p99_ns),
            max_ns=self._of_env_step(spread.max_ns),
            share=total_ns / self.wall_ns,
            rounds_ns=gained(totals),
        )

    def _of_env_step(self, call_ns: float | None) -> float | None:
        return None if call_ns is None else call_ns / self.num_envs
