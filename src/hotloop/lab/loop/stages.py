"""From a loop's looks to the phases of its run: those it declared, or those between its change points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hotloop.core.record.profile import Looks, Stage, describe_times
from hotloop.core.time_tree import TimeTree, add
from hotloop.judge.course import find_changes
from hotloop.lab.loop.windows import MOST_ROUNDS, STEPS, UPDATES, LoopLook


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLooks:
    """One phase of a run, with its looks in order."""

    name: str
    is_declared: bool
    looks: tuple[LoopLook, ...]

    def counted(self, name: str) -> int:
        """Return how often something was counted in it."""
        return sum(look.counted.counts.get(name, 0) for look in self.looks)


def stages_of(looks: Sequence[LoopLook]) -> tuple[StageLooks, ...]:
    """Return the phases of a run; nothing if it is one population."""
    names = dict.fromkeys(look.stage for look in looks)
    if any(names):
        declared = [
            StageLooks(
                name=name or "no phase",
                is_declared=True,
                looks=tuple(look for look in looks if look.stage == name),
            )
            for name in names
        ]
        return tuple(each for each in declared if each.counted(UPDATES) or each.counted(STEPS))
    changes = find_changes([look.times for look in looks])
    if not changes:
        return ()
    ends = pairwise((0, *changes, len(looks)))
    return tuple(
        StageLooks(name=stretch_of(looks, first, last), is_declared=False, looks=tuple(looks[first:last]))
        for first, last in ends
    )


def stretch_of(looks: Sequence[LoopLook], first: int, last: int) -> str:
    """Return which updates a stretch of looks is, in words; of a loop that counts none, which looks."""
    before, through = (
        sum(look.counted.counts.get(UPDATES, 0) for look in looks[:end]) for end in (first, last)
    )
    if through == before:
        return f"looks {first + 1} to {last}"
    return f"updates {before + 1:,} to {through:,}"


def describe_looks(looks: Sequence[LoopLook], stages: Sequence[StageLooks]) -> Looks:
    """Return speed and memory from look to look, as a record keeps them."""
    numbers = {id(look): number for number, stage in enumerate(stages) for look in stage.looks}
    kept = [look for look in looks if id(look) in numbers] if stages else looks
    return Looks(
        wall_ns=tuple(max(look.times.total_ns, 0) for look in kept),
        updates=tuple(look.counted.counts.get(UPDATES, 0) for look in kept),
        env_steps=tuple(look.counted.counts.get(STEPS, 0) for look in kept),
        rss_bytes=tuple(look.rss_bytes for look in kept),
        queued_ns=tuple(look.queued_ns for look in kept),
        stages=tuple(numbers[id(look)] for look in kept) if stages else (),
    )


def describe_stages(stages: Sequence[StageLooks]) -> Iterator[Stage]:
    for stage in stages:
        rounds = [look.times for look in stage.looks]
        times = add(rounds)
        if times is not None:
            yield Stage(
                name=stage.name,
                is_declared=stage.is_declared,
                env_steps=stage.counted(STEPS),
                updates=stage.counted(UPDATES),
                phases=describe_times(replace(times, calls=1), few(rounds)),
                unaccounted_ns=times.unaccounted_ns,
            )


def few(rounds: Sequence[TimeTree]) -> list[TimeTree]:
    """Return neighbours put together until there are few enough to keep apart."""
    kept = list(rounds)
    while len(kept) > MOST_ROUNDS:
        kept = [each for at in range(0, len(kept), 2) if (each := add(kept[at : at + 2]))]
    return kept
