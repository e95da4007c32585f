"""What each single step call of a stretch took, from the logs of spans and batches, and rows that add up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import spans
from hotloop.core.record.profile import PYTHON, STEP, WALL, Spread
from hotloop.core.spans.python import LAP, OFF
from hotloop.core.time_tree import TimeTree, join
from hotloop.envs.foreign.inside import ENV_STEP
from hotloop.envs.subject import NATIVE, StepLog, Subject
from hotloop.lab.measure.sides import GC

Numbers = NDArray[np.int64]

LOOP = "loop"  # The span around one turn

# What the loop does beside the env and the policy: Python, and the counting of work.
OTHER = "everything else"

ELSE = f"{WALL}/{OTHER}"

OFF_CORE = "off its core"

HEAD = 4  # Columns of a batch's row before its phases


class Timeline:
    """From ticks to the nanoseconds of `now_ns`, by two moments as far apart as the run allows."""

    def __init__(self) -> None:
        self._first = self._last = spans.moment()

    def read_clock(self) -> None:
        """Take the present moment as the nearer one."""
        self._last = spans.moment()

    def ns(self, ticks: Numbers) -> Numbers:
        """When it was."""
        return self._last[1] + self.duration_ns(ticks - self._last[0])

    def duration_ns(self, ticks: Numbers) -> Numbers:
        """How long it took."""
        passed, ns = (late - early for late, early in zip(self._last, self._first, strict=True))
        rounded: Numbers = np.rint(ticks * (ns / passed if passed else 1.0)).astype(np.int64)
        return rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemptions:
    """Stretches in which another thread or process took the core of the loop's thread."""

    end: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    times: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Spans and marks one by one, in the order they ended; all times in ns."""

    paths: tuple[str, ...]  # Of each place, names from the outermost inwards, joined by `/`
    threads: Numbers  # Of each place: 0 is the first thread that was in a span
    place: Numbers
    begin: Numbers
    end: Numbers
    # The time charged to it: of a mark, less than from begin to end where other spans are inside.
    own: Numbers
    missed: int
    put_off: Preemptions = field(default_factory=Preemptions)

    def chosen(self, which: Any) -> "Events":
        """Some of them, as an index of an array says which."""
        return replace(
            self,
            **{name: getattr(self, name)[which] for name in ("place", "begin", "end", "own")},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Laps:
    """Turns of a loop, back to back."""

    begin: Numbers
    end: Numbers
    given: Numbers


def read_spans(timeline: Timeline) -> tuple[Events, Laps]:
    """Take what was logged since spans were enabled."""
    places, rows, missed = spans.take()
    place, begin, end, own = np.frombuffer(rows, np.int64).reshape(-1, 4).T
    paths: list[str] = []
    for _, parent, name in places:
        paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
    begin_ns, end_ns, lap, off = timeline.ns(begin), timeline.ns(end), place == LAP, place == OFF
    whole = end - begin == own
    own_ns = np.where(whole, end_ns - begin_ns, timeline.duration_ns(own))
    events = Events(
        paths=tuple(paths),
        threads=np.array([thread for thread, _, _ in places], np.int64),
        place=place,
        begin=begin_ns,
        end=end_ns,
        own=own_ns,
        missed=missed,
        put_off=Preemptions(end=end_ns[off], times=own[off]),
    )
    return events.chosen(place >= 0), Laps(begin=begin_ns[lap], end=end_ns[lap], given=own[lap])


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps of a batch one by one; all times in ns."""

    names: tuple[str, ...]
    whole: str = NATIVE  # The row of each, where they are more than their phases
    begin: Numbers
    end: Numbers
    ended: Numbers  # Episodes that ended in each
    first_env: Numbers  # Of those; -1 where none did
    phases: Numbers  # [steps, workers, phases]

    @property
    def workers(self) -> int:
        return int(self.phases.shape[1])

    @property
    def only_env(self) -> Numbers:
        """The one env whose episode ended in each; -1 where none or several did."""
        only: Numbers = np.where(self.ended == 1, self.first_env, -1)
        return only

    def chosen(self, which: Any) -> "Steps":
        fields = ("begin", "end", "ended", "first_env", "phases")
        return replace(self, **{name: getattr(self, name)[which] for name in fields})


def read_steps(batch: StepLog, timeline: Timeline) -> Steps:
    """Take what a batch has logged; the twins' clock is Python's already."""
    rows, native = batch.take_log(), batch.is_native
    times = timeline.ns(rows[:, :2]) if native else rows[:, :2]
    phases = timeline.duration_ns(rows[:, HEAD:]) if native else rows[:, HEAD:]
    _, names = batch.log_columns
    return Steps(
        names=names,
        whole=batch.whole,
        begin=times[:, 0],
        end=times[:, 1],
        ended=rows[:, 2],
        first_env=rows[:, 3],
        phases=phases.reshape(len(rows), -1, len(names)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Times of one phase, and the call that each was in."""

    path: str
    ns: Numbers
    call: NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Step calls one after another; all times in ns."""

    begin: Numbers
    end: Numbers
    resets: Numbers  # Episodes that began in each
    env: Numbers  # The one env that began one; -1 where none or several did
    samples: tuple[Sample, ...]  # Times of the phases; one may come several times a call, or not at all
    gc: Sample
    put_off: Sample  # How often the thread was put off its core, instead of ns

    @property
    def wall_ns(self) -> Numbers:
        return self.end - self.begin

    def __len__(self) -> int:
        return len(self.begin)

    def phases(self, call: int) -> dict[str, int]:
        """Path to ns in one call, what did not happen in it left out."""
        totals = {sample.path: int(sample.ns[sample.call == call].sum()) for sample in self.samples}
        return {path: ns for path, ns in totals.items() if ns}


def calls_of_batch(steps: Steps, events: Events, end_ns: int) -> Calls:
    """Calls of a batch: each lasts until the next begins, so that what Python does is in it too."""
    begin = steps.begin
    end = np.append(begin[1:], max(end_ns, int(steps.end[-1]))) if len(begin) else begin
    inside = steps.end - steps.begin
    every = np.arange(len(begin))
    fixed = {WALL: end - begin, PYTHON: end - begin - inside, STEP: inside}
    return Calls(
        begin=begin,
        end=end,
        resets=steps.ended,
        env=steps.only_env,
        samples=(
            *(Sample(path=path, ns=ns, call=every) for path, ns in fixed.items()),
            *phase_samples(steps, every, STEP),
        ),
        **interruptions(events, begin, end),
    )


def calls_of_loop(laps: Laps, events: Events, steps: Steps | None, resets: Numbers) -> Calls:
    """Calls of a loop: its laps, the spans inside them, and the native steps inside those."""
    begin, end, every = laps.begin, laps.end, np.arange(len(laps.begin))
    env = np.full(len(begin), -1, np.int64)
    inner = list(spans_of(events, begin, end))
    tops = [sample for sample in inner if sample.path.count("/") == 1]
    totals = [np.bincount(each.call, weights=each.ns, minlength=len(begin)) for each in tops]
    rest = end - begin - sum(total.astype(np.int64) for total in totals)
    samples = [
        Sample(path=WALL, ns=end - begin, call=every),
        *inner,
        Sample(path=ELSE, ns=rest, call=every),
    ]
    if steps is not None:
        inside = call_of(begin, end, steps.begin)
        place = native_place((sample.path for sample in samples), steps.whole)
        if steps.whole:
            samples += [Sample(path=place, ns=steps.end - steps.begin, call=inside)]
        samples += phase_samples(steps, inside, place)
        known = inside >= 0
        env[inside[known]] = steps.only_env[known]
    return Calls(
        begin=begin,
        end=end,
        resets=resets,
        env=env,
        samples=tuple(samples),
        **interruptions(events, begin, end),
    )


def phase_samples(steps: Steps, call: NDArray[np.intp], place: str) -> list[Sample]:
    """Phases of native steps; threads work side by side, so a phase's time is its mean over them."""
    mean = steps.phases.sum(axis=1) // steps.workers
    return [
        Sample(path=f"{place}/{name}", ns=mean[:, column], call=call)
        for column, name in enumerate(steps.names)
    ]


def spans_of(events: Events, begin: Numbers, end: Numbers) -> Iterator[Sample]:
    """Spans and marks of the loop's own thread, by path."""
    inside = call_of(begin, end, events.begin)
    for place, path in enumerate(events.paths):
        if path.startswith(f"{LOOP}/"):
            here = (events.place == place) & (inside >= 0)
            yield Sample(path=WALL + path.removeprefix(LOOP), ns=events.own[here], call=inside[here])


def interruptions(events: Events, begin: Numbers, end: Numbers) -> dict[str, Sample]:
    """Return the pauses of the garbage collector, wherever it was called, and the losses of the core."""
    places = [place for place, path in enumerate(events.paths) if path.rpartition("/")[2] == GC]
    here = np.isin(events.place, places)
    in_call = call_of(begin, end, events.begin[here])
    lost = events.put_off
    return {
        "gc": Sample(path=GC, ns=events.own[here], call=in_call),
        # A stretch off the core ends where the loop looked, after its call.
        "put_off": Sample(path=OFF_CORE, ns=lost.times, call=call_of(begin, end, lost.end - 1)),
    }


def call_of(begin: Numbers, end: Numbers, times: Numbers) -> NDArray[np.intp]:
    """The call that was running at each time; -1 where none was."""
    call = np.searchsorted(begin, times, side="right") - 1
    running = (call >= 0) & (times <= end[call]) if len(begin) else np.zeros(len(times), bool)
    found: NDArray[np.intp] = np.where(running, call, -1)
    return found


PhaseTimes = Mapping[str, int]  # Phase to ns, with `step` for the whole of it, as a batch reports them


def native_place(paths: Iterable[str], whole: str) -> str:
    """Where what an env times itself stands among the paths of a loop: below its step inside its wrappers.

    `whole` is the name of a row of its own, if it has one.
    """
    known, parent = list(paths), f"{WALL}/{ENV_STEP}"

    def is_inner(path: str) -> bool:
        # What one wrapper has inside; a vector env has several.
        above, _, name = path.rpartition("/")
        return above == parent and name.endswith(".step") and name != "envs.step"

    while inner := list(filter(is_inner, known)):
        parent = inner[0]
    return f"{parent}/{whole}" if whole else parent


def loop_times(
    subject: Subject, tops: Iterable[TimeTree], wall_ns: int, calls: int, native_before: Mapping[str, int]
) -> TimeTree:
    """Return the rows of one turn of a loop: its spans, and below its step what an env times itself.

    `native_before` is what native phases had taken before the turn. Other threads are not in it.
    """
    loops = [top for top in tops if top.path == LOOP]
    rows = [
        row.renamed(lambda path: path.removeprefix(f"{LOOP}/")) for loop in loops for row in loop.children
    ]
    rest = TimeTree(path=OTHER, calls=calls, total_ns=sum(loop.self_ns for loop in loops))
    tree = TimeTree(calls=calls, total_ns=wall_ns, children=(*rows, rest))
    gained = {name: ns - native_before.get(name, 0) for name, ns in subject.phase_totals().items()}
    log = subject.step_log()
    if not gained or log is None:
        return tree
    step = native_place((f"{WALL}/{row.path}" for row in tree.rows), "").removeprefix(f"{WALL}/")
    place, threads = join(step, log.whole) if log.whole else step, subject.spec.threads
    whole_ns = gained.pop("step") if log.whole else 0
    parts = tuple(
        TimeTree(path=f"{place}/{name}", calls=calls, total_ns=ns // threads) for name, ns in gained.items()
    )
    if log.whole:
        parts = (TimeTree(path=place, calls=calls, total_ns=whole_ns, children=parts),)
    return tree.with_parts(step, parts)


def step_times(
    times: PhaseTimes, *, wall_ns: int, env_steps: int, threads: int, beside: Sequence[str] = ()
) -> TimeTree:
    """Return the rows of a batch's own steps: its phases, what is beside its engine, and Python.

    Threads work on a step side by side, so a phase's time is its mean over them. Of `times`, those named by
    `beside` are what a step does beside its engine, in the thread that steps: a log.
    """

    def row(path: str, ns: int, children: tuple[TimeTree, ...] = ()) -> TimeTree:
        return TimeTree(path=path, calls=env_steps, total_ns=ns, children=children)

    inside = {name: ns for name, ns in times.items() if name not in ("step", *beside)}
    phases = tuple(row(f"step/{name}", ns // threads) for name, ns in inside.items())
    step = row("step", times["step"], phases)
    others = tuple(row(name, times[name]) for name in beside)
    python = row("python", wall_ns - step.total_ns - sum(other.total_ns for other in others))
    return row("", wall_ns, (python, *others, step))


def of_env_step(spread: Spread, num_envs: int) -> Spread:
    """Return how calls of a batch varied, as times of one of its env-steps."""
    p50, p95, p99, largest = (None if ns is None else ns / num_envs for ns in spread.points)
    return Spread(path=spread.path, calls=spread.calls, p50_ns=p50, p95_ns=p95, p99_ns=p99, max_ns=largest)
