"""Soak: does it slow down or leak? One instance is stepped for minutes, and looked at again and again.

At every look memory, files and threads are read, and an instance just made is stepped in turns with the old
one: a slow machine slows both, so that only what is the old one's own is in their ratio. What is held is read
before and after the old one steps by itself, too, so that what new instances leave behind is not taken for
its leak.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from math import inf, log
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from statistics import median
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.experiments import (
    GPU_BYTES,
    HEAP_BYTES,
    OPEN_FILES,
    OWN,
    RSS_BYTES,
    RUNNING,
    SLOWER,
    SLOWER_IN,
    SPEED,
    Soak,
)
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.judge.checks import conclude_soak
from hotloop.judge.judge import judge
from hotloop.lab.measure import resources
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.measure.policy import LEARNING
from hotloop.lab.measure.record import Recorder, describe_method, kept_so_far
from hotloop.lab.measure.sides import Side, SubjectSide
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.lab.training.settings import is_training
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import TrainSide, spec_of, untimed
from hotloop.options.sweeps import SoakOptions

KIND = "soak"

LOOKS = 240  # In a run whose length is known
SHORTEST_S = 0.5  # Between two looks

# From there on every second one is dropped, of those to come, too: curves are of the whole run
MOST_LOOKS = 480

# Of the time between two looks: what the old one is stepped by itself, and in turns with a new one
AGEING, COMPARING = 0.6, 0.3

TURN_NS = 1_500_000  # What a turn takes about; one call where that is longer
FEWEST_TURNS = 5  # Pairs of turns of a look
RUN_IN = 3  # Turns of a new instance before it is compared
MAKING = 0.1  # Of the time, at most, that goes into making instances anew

# Of the memory that was free and the files that could be opened at the beginning: a target that takes more
# is stopped while there is some left to say so with
MOST = 0.5

WHOLE = "step"

OLD, NEW = "old", "new"

ORDER = "in turns with an instance just made"

ResourceReader = Callable[[], Mapping[str, float]]  # Reads what the process holds


def look_s(seconds: float | None) -> float:
    """Return the seconds between two looks of a soak that lasts so long; None if it counts env-steps."""
    return SHORTEST_S if seconds is None else max(SHORTEST_S, seconds / LOOKS)


@dataclass(slots=True, kw_only=True)
class SoakState:
    """What is known so far, one row per look."""

    # Seconds since the beginning, and the values then
    rows: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    every: int = 1  # Of the looks, one in so many is kept
    noted: int = 0
    fresh: int = 0
    env_steps: int = 0
    seconds: float = 0.0
    ended: str = ""
    partial: bool = True

    def note(self, at: float, values: Mapping[str, float]) -> None:
        """Add a look; of a long run every second one is dropped."""
        if self.noted % self.every == 0:
            self.rows.append((at, dict(values)))
        self.noted += 1
        if len(self.rows) > MOST_LOOKS:
            self.rows, self.every = self.rows[::2], 2 * self.every

    def soak(self) -> Soak:
        """Return what a record says of it, judged by the curves of everything that was read."""
        names = dict.fromkeys(name for _, values in self.rows for name in values)
        curves = {name: [(at, values[name]) for at, values in self.rows if name in values] for name in names}
        found = Soak(
            seconds=self.seconds,
            env_steps=self.env_steps,
            looks=len(self.rows),
            cut=0,
            fresh=self.fresh,
            trends=(),
            ended=self.ended,
        )
        return conclude_soak(found, curves)


def soak(target: Target, options: SoakOptions, progress: Progress = silent) -> Record:
    """Soak a target, or a training of it update by update; Ctrl-C leaves a record of what was seen."""
    if is_training(target):
        settings = untimed(read_training(target))
        spec, order = spec_of(settings), "in turns with a training just begun"

        def make() -> Side:
            return TrainSide(target.words, settings)

        side = make()
        how: dict[str, Any] = {"iterations": side.grain, "policy": LEARNING, "order": order}
    else:

        def make() -> Side:
            subject = open_subject(target, profile=True)
            check_player(subject, options.policy)
            return SubjectSide(target.words, subject, options.policy)

        side = make()
        assert isinstance(side, SubjectSide)
        spec, how = side.subject.spec, {"iterations": 0, "policy": side.script.policy, "order": ORDER}
    recorder, found = Recorder(KIND, spec), SoakState()

    def so_far() -> Record:
        return recorder.record(
            method=describe_method(spec, rounds=len(found.rows), garbage="life", **how),
            counters=dict(side.counters()),
            values={},
            soak=found.soak(),
            partial=found.partial,
        )

    kept = kept_so_far(lambda: so_far() if found.rows else None, progress)
    with closing(side):
        SoakRun(make=make, options=options, progress=kept).run(side, found)
        return judge(so_far())


def resource_reader() -> ResourceReader:
    """Return what reads what this process holds, once garbage is collected and free memory given back."""
    from hotloop.probes.resources import gpu_reader

    heap, gpus = resources.heap_reader(), gpu_reader()

    def read() -> Mapping[str, float]:
        resources.release_memory()
        told: dict[str, float] = {
            RSS_BYTES: resources.resident_bytes(),
            OPEN_FILES: resources.open_files(),
            RUNNING: resources.running_threads(),
        }
        if heap is not None:
            told[HEAP_BYTES] = heap()
        used = [memory for _, memory in gpus()]
        return told | ({GPU_BYTES: sum(used)} if used else {})

    return read


TAKEN = {
    RSS_BYTES: "it took half of the memory that was free",
    OPEN_FILES: "it took half of the files that it could open",
}


def available_resources() -> dict[str, float]:
    """Return the memory that is free, in bytes, and how many more files this process may open."""
    import psutil

    free = float(psutil.virtual_memory().available)
    limit, _ = getrlimit(RLIMIT_NOFILE)
    most = inf if limit == RLIM_INFINITY else limit
    return {RSS_BYTES: free, OPEN_FILES: most - resources.open_files()}


class AgeingSide(Side):
    """The old instance, stepped by itself for its part of the time between two looks."""

    def __init__(self, side: Side, time_ns: int, clock: Callable[[], int]) -> None:
        self.name, self._side, self._time_ns, self._clock = side.name, side, time_ns, clock

    @property
    def grain(self) -> int:
        return self._side.grain

    def counters(self) -> Mapping[str, int]:
        return self._side.counters()

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        """Step in stretches of `env_steps`, which are as long as a Ctrl-C may wait."""
        until = self._clock() + self._time_ns
        ns = made = 0
        while not made or self._clock() < until:
            turn = self._side.turn(env_steps, 0)
            ns, made = ns + turn.ns, made + turn.env_steps
        return Turn(ns, made)


@dataclass(slots=True, kw_only=True)
class SoakRun:
    """The course of a soak."""

    make: Callable[[], Side]
    options: SoakOptions
    progress: Progress = silent
    read: ResourceReader = field(default_factory=resource_reader)
    clock: Callable[[], int] = now_ns
    # What could be taken of each thing that is read
    room: Mapping[str, float] = field(default_factory=available_resources)
    fresh: Side | None = None
    due: int = 0  # Looks until an instance is made anew

    def run(self, side: Side, found: SoakState) -> None:
        """Look again and again until the time is over, the memory is, or Ctrl-C; a round is a look."""
        with until_interrupted(found):
            begin = self.clock()
            # env-steps of a turn: about a millisecond, or one call
            one_ns = min(side.turn(side.grain, 0).ns for _ in range(3))
            turn = side.grain * max(1, round(TURN_NS / max(one_ns, 1)))
            before = first = self.read()
            own = dict.fromkeys(first, 0.0)

            def look(samples: Samples) -> None:
                nonlocal before
                aged = samples.turns[OLD][-1]
                del samples.turns[OLD][:-1]  # a soak is long, and takes no memory itself
                values = dict(self.read())
                for name in own.keys() & values.keys() & before.keys():
                    own[name] += values[name] - before[name]
                values |= {f"{OWN}{name}": grown for name, grown in own.items()}
                values[SPEED] = aged.env_steps * 1e9 / max(aged.ns, 1)
                values |= self.compare(side, turn, found)
                found.seconds = (self.clock() - begin) / 1e9
                found.env_steps = side.counters().get("env_steps", 0)
                found.note(found.seconds, values)
                if self.options.steps is not None:
                    self.progress(found.env_steps, self.options.steps)
                else:
                    ms = round(1_000 * (self.options.seconds or 0.0))
                    self.progress(round(1_000 * found.seconds), ms)
                for name, words in TAKEN.items():
                    if values.get(name, 0.0) - first.get(name, 0.0) > MOST * self.room.get(name, inf):
                        found.ended = found.ended or words
                before = self.read()

            ageing = AgeingSide(side, round(AGEING * look_s(self.options.seconds) * 1e9), self.clock)
            plan = Plan(
                budget_ns=NO_LIMIT, length=Length(turn), clock=self.clock, stop=lambda _: self.is_over(found)
            )
            measure({OLD: ageing}, plan, on_round=look)
        if self.fresh is not None:
            self.fresh.close()

    def is_over(self, found: SoakState) -> bool:
        """Return whether the time is over, or the steps are, or a resource is."""
        if found.ended:
            return True
        if self.options.steps is not None:
            return found.env_steps >= self.options.steps
        return found.seconds >= (self.options.seconds or 0.0)

    def compare(self, side: Side, turn: int, found: SoakState) -> dict[str, float]:
        """Return the log of how many times as long the old one takes as a new one, also by phase."""
        fresh = self.open_fresh(turn, found)
        plan = Plan(
            budget_ns=round(COMPARING * look_s(self.options.seconds) * 1e9),
            min_rounds=FEWEST_TURNS,
            patient=True,
            block=1,
            order="alternating",
            length=Length(turn),
            clock=self.clock,
        )
        turns = measure({OLD: side, NEW: fresh}, plan).turns
        if self.due == 0:
            fresh.close()
            self.fresh = None
        return ratios(list(zip(turns[OLD], turns[NEW], strict=True)))

    def open_fresh(self, turn: int, found: SoakState) -> Side:
        """Return an instance just made; one whose making takes long serves for several looks."""
        if self.fresh is not None and self.due > 0:
            self.due -= 1
            return self.fresh
        begin = self.clock()
        self.fresh = self.make()
        found.fresh += 1
        making_s = (self.clock() - begin) / 1e9
        self.due = int(making_s / (MAKING * look_s(self.options.seconds)))
        for _ in range(RUN_IN):
            self.fresh.turn(turn, 0)
        return self.fresh


def ratios(pairs: list[tuple[Turn, Turn]]) -> dict[str, float]:
    """Return the median over the pairs, of the whole and of each phase that both have."""
    whole = [log(old.ns_per_env_step / new.ns_per_env_step) for old, new in pairs]
    found = {SLOWER: median(whole)}
    for name in pairs[0][0].phases:
        each = [(old.phases.get(name, 0), new.phases.get(name, 0)) for old, new in pairs]
        worth = sum(old for old, _ in each) > 0.05 * sum(old.ns for old, _ in pairs)
        if name != WHOLE and worth and all(old > 0 and new > 0 for old, new in each):
            found[f"{SLOWER_IN}{name}"] = median(log(old / new) for old, new in each)
    return found
