"""Stages: where a run changes what it does, and each phase of a run as a record of its own."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hotloop.core.record.metadata import PathRan, Work
from hotloop.core.record.profile import Looks, Stage
from hotloop.core.record.record import ENV_STEPS_PER_S, Record
from hotloop.core.time_tree import TimeTree
from hotloop.stats.changepoints import FEWEST, SIDE, splits_by_distance
from hotloop.stats.summary import with_metrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Shares = NDArray[np.float64]

MOVED = 0.1  # Of the time, by which the share of a row must change at once
ABRUPT = 0.7  # What is left of the distance from a line if the change is a step, at most: a decay is no phase
SWITCHED = 0.9  # Of the looks on one side of a change that a row must be in, and be missing from on the other
MOST_STAGES = 6  # A run that changes more often goes to and fro, and is one population
UPDATES_PER_S, AGENT_STEPS_PER_S = "updates_per_s", "agent_steps_per_s"


def find_changes(looks: Sequence[TimeTree]) -> tuple[int, ...]:
    """Return the indices of looks from which on a loop spends its time on other rows, all of a sudden."""
    if len(looks) < FEWEST:
        return ()
    import numpy as np

    shares = shares_of(looks)
    distances = np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
    kept: list[int] = []
    found = sorted(index for index, _ in splits_by_distance(distances))
    for at, after in pairwise([*found, len(looks)]):
        before = kept[-1] if kept else 0
        switch = find_switch(shares[before:after])
        if switch or is_step(shares[before:after], at - before):
            kept.append(before + switch if switch else at)
    return tuple(kept) if len(kept) < MOST_STAGES else ()


def shares_of(looks: Sequence[TimeTree]) -> "Shares":
    """Return the share of each row in each look; of a row with parts, what it takes itself."""
    import numpy as np

    paths = dict.fromkeys(row.path for look in looks for row in look.rows)
    places = {path: place for place, path in enumerate(paths)}
    shares = np.zeros((len(looks), len(places)))
    for number, look in enumerate(looks):
        wall_ns = max(look.total_ns, 1)
        for row in look.rows:
            shares[number, places[row.path]] += row.total_ns / wall_ns
            if row.above:
                shares[number, places[row.above]] -= row.total_ns / wall_ns
    return shares


def find_switch(shares: "Shares") -> int | None:
    """Return the look from which on a row that matters is there, or is gone; None if there is no such row."""
    import numpy as np

    count = len(shares)
    seen = np.cumsum(shares > 0, axis=0)
    ends = np.arange(SIDE, count - SIDE + 1)
    if not ends.size:
        return None
    before, after = seen[ends - 1] / ends[:, None], (seen[-1] - seen[ends - 1]) / (count - ends)[:, None]
    moved = [np.abs(np.median(shares[:end], axis=0) - np.median(shares[end:], axis=0)) for end in ends]
    turned = np.where(np.array(moved) < MOVED / 2, 0.0, np.abs(after - before))
    place, row = divmod(int(turned.argmax()), turned.shape[1])
    return int(ends[place]) if turned[place, row] >= SWITCHED else None


def is_step(shares: "Shares", at: int) -> bool:
    """Return whether the row that changes most does so at once, and not little by little."""
    import numpy as np

    before, after = np.median(shares[:at], axis=0), np.median(shares[at:], axis=0)
    row = int(np.abs(after - before).argmax())
    if abs(after[row] - before[row]) < MOVED:
        return False
    values, number = shares[:, row], np.arange(len(shares))
    from_line = np.abs(values - np.polyval(np.polyfit(number, values, 1), number)).sum()
    levels = np.where(number < at, before[row], after[row])
    return bool(np.abs(values - levels).sum() < ABRUPT * from_line)


def views(record: Record) -> tuple[Record, ...]:
    """Return each phase of a run as a record of its own; nothing if the run is one population.

    A view has the rows, looks and work of its phase, and nothing that is only known of the whole run. Its
    phase is its only stage.
    """
    stages = record.stages if len(record.stages) > 1 else ()
    return tuple(view(record, number, stage) for number, stage in enumerate(stages))


def view(record: Record, number: int, stage: Stage) -> Record:
    looks = looks_of(record.looks or Looks(), number)
    agents = record.work.agent_steps / max(record.work.env_steps, 1)
    work = Work(
        env_steps=stage.env_steps,
        agent_steps=round(stage.env_steps * agents),
        updates=stage.updates,
    )
    made = replace(
        record,
        label=stage.name,
        work=work,
        values=speeds_of(looks, agents),
        phases=stage.phases,
        unaccounted_ns=stage.unaccounted_ns,
        looks=looks,
        stages=(stage,),
        path=PathRan(requested=record.path.requested, ran={}, counters={}),
        resources=None,
        overhead=None,
        findings=(),
    )
    return with_metrics(made)


def looks_of(looks: Looks, number: int) -> Looks:
    """Return the looks of one stage."""
    mine = [index for index, stage in enumerate(looks.stages) if stage == number]
    return Looks(
        wall_ns=tuple(looks.wall_ns[index] for index in mine),
        updates=tuple(looks.updates[index] for index in mine),
        env_steps=tuple(looks.env_steps[index] for index in mine),
        rss_bytes=tuple(looks.rss_bytes[index] for index in mine),
        queued_ns=tuple(looks.queued_ns[index] for index in mine if looks.queued_ns),
    )


def speeds_of(looks: Looks, agents: float = 1.0) -> dict[str, tuple[float, ...]]:
    """Return the speeds of the looks in which anything was counted, by what was counted."""
    found = {}
    for name, counts in ((ENV_STEPS_PER_S, looks.env_steps), (UPDATES_PER_S, looks.updates)):
        speeds = [n * 1e9 / ns for n, ns in zip(counts, looks.wall_ns, strict=True) if n and ns]
        found.update({name: tuple(speeds)} if speeds else {})
    if ENV_STEPS_PER_S in found and agents:
        found[AGENT_STEPS_PER_S] = tuple(speed * agents for speed in found[ENV_STEPS_PER_S])
    return found


def weight(record: Record, stage: Record) -> float:
    """Return which part of a run's time one of its phases takes."""
    whole, part = (each.phases[0].total_ns if each.phases else 0 for each in (record, stage))
    return part / whole if whole else 0.0


def where(record: Record, stage: Record) -> str:
    """Return in which phase of a run, in words."""
    is_declared = any(each.is_declared for each in record.stages)
    return f"in the phase {stage.label}" if is_declared else f"in {stage.label}"
