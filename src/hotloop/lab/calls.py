"""Calls: what each single step call of a stretch took, phase by phase."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotloop.lab.collecting import GC
from hotloop.lab.logs import Events, Laps, Numbers, Steps
from hotloop.lab.phases import PYTHON, STEP, WALL
from hotloop.lab.tree import ELSE, LOOP, native_place


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
    resets: Numbers
    """Episodes that began in each."""
    env: Numbers
    """The one env that began one; -1 where none or several did."""
    samples: tuple[Sample, ...]
    """Times of the phases; one may come several times a call, or not at all."""
    gc: Sample

    @property
    def wall_ns(self) -> Numbers:
        return self.end - self.begin

    def __len__(self) -> int:
        return len(self.begin)

    def phases(self, call: int) -> dict[str, int]:
        """Path to ns in one call, what did not happen in it left out."""
        totals = {sample.path: int(sample.ns[sample.call == call].sum()) for sample in self.samples}
        return {path: ns for path, ns in totals.items() if ns}


def of_batch(steps: Steps, events: Events, end_ns: int) -> Calls:
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
        env=only_env(steps),
        samples=(
            *(Sample(path=path, ns=ns, call=every) for path, ns in fixed.items()),
            *phase_samples(steps, every, STEP),
        ),
        gc=collections(events, begin, end),
    )


def of_loop(laps: Laps, events: Events, steps: Steps | None, resets: Numbers) -> Calls:
    """Calls of a loop: its laps, the spans inside them, and the native steps inside those."""
    begin, end, every = laps.begin, laps.end, np.arange(len(laps.begin))
    env = np.full(len(begin), -1, np.int64)
    inner = list(spans_of(events, begin, end))
    rest = end - begin - sum(total_of(sample, len(begin)) for sample in inner if sample.path.count("/") == 1)
    samples = [
        Sample(path=WALL, ns=end - begin, call=every),
        *inner,
        Sample(path=ELSE, ns=rest, call=every),
    ]
    if steps is not None:
        inside = call_of(begin, end, steps.begin)
        place = native_place(sample.path for sample in samples)
        samples += [Sample(path=place, ns=steps.end - steps.begin, call=inside)]
        samples += phase_samples(steps, inside, place)
        known = inside >= 0
        env[inside[known]] = only_env(steps)[known]
    return Calls(
        begin=begin,
        end=end,
        resets=resets,
        env=env,
        samples=tuple(samples),
        gc=collections(events, begin, end),
    )


def total_of(sample: Sample, calls: int) -> Numbers:
    """What a phase took in each call."""
    total: Numbers = np.bincount(sample.call, weights=sample.ns, minlength=calls).astype(np.int64)
    return total


def only_env(steps: Steps) -> Numbers:
    only: Numbers = np.where(steps.ended == 1, steps.first_env, -1)
    return only


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


def collections(events: Events, begin: Numbers, end: Numbers) -> Sample:
    """Pauses of the garbage collector, wherever it was called."""
    places = [place for place, path in enumerate(events.paths) if path.rpartition("/")[2] == GC]
    here = np.isin(events.place, places)
    inside = call_of(begin, end, events.begin[here])
    return Sample(path=GC, ns=events.own[here], call=inside)


def call_of(begin: Numbers, end: Numbers, times: Numbers) -> NDArray[np.intp]:
    """The call that was running at each time; -1 where none was."""
    call = np.searchsorted(begin, times, side="right") - 1
    running = (call >= 0) & (times <= end[call]) if len(begin) else np.zeros(len(times), bool)
    found: NDArray[np.intp] = np.where(running, call, -1)
    return found
