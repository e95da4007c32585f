"""Samples of the stack from inside: the hot functions below a step, without anything to install or allow."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hotloop.core.clock import now_ns
from hotloop.core.probe import Probe, Scene
from hotloop.core.record import Finding, Table, stacks
from hotloop.core.record.stacks import Stack
from hotloop.core.sampler import StackSampler

SHORTEST_NS = 1_000_000_000
"""Of a pass; a play that is over sooner is played again."""

ENOUGH = 20
"""Samples of a play; the first is taken a millisecond after it began."""

MOST_ROWS = 12

SMALLEST_SHARE = 0.005
"""Of the samples: a function with less in it, callees and all, says nothing."""

FILE = "samples.speedscope.json"

COLUMNS = ("function", "own_share", "total_share", "cpu_share")
"""The last is of its total: 100% works all the time, and what is far below it waits."""

OURS = str(Path(__file__).parents[1])

TITLE = "Hot functions, by samples"


@dataclass(slots=True)
class Seen:
    """Samples, added up."""

    ns: Counter[Stack] = field(default_factory=Counter)
    cpu_ns: Counter[Stack] = field(default_factory=Counter)
    samples: int = 0


def look(scene: Scene) -> Finding:
    """Play for at least a second while a timer has the stack looked at."""
    seen = sampled(scene)
    below = theirs(seen.ns, scene.marker)
    stacks.write(scene.folder / FILE, "samples", {each: ns / 1e9 for each, ns in below.items()})
    return describe(seen, scene.marker)


def sampled(scene: Scene) -> Seen:
    """Play until there are samples enough, longer where a play is over before the timer has gone off."""
    seen, begin, calls = Seen(), now_ns(), scene.calls
    while not seen.samples or now_ns() - begin < SHORTEST_NS:
        play = scene.draw(calls)
        with StackSampler() as sampler:
            play()
        calls *= 2 if sampler.samples < ENOUGH else 1
        seen.ns.update(sampler.ns)
        seen.cpu_ns.update(sampler.cpu_ns)
        seen.samples += sampler.samples
    return seen


def describe(seen: Seen, marker: str) -> Finding:
    """The functions by their own time, ours left out."""
    whole, below = sum(seen.ns.values()), theirs(seen.ns, marker)
    facts = {"samples": seen.samples, "below_share": sum(below.values()) / whole}
    rows = rows_of(below, whole, theirs(seen.cpu_ns, marker))
    table = Table(title=TITLE, columns=COLUMNS, rows=rows)
    return Finding(probe="samples", facts=facts, tables=(table,), files=(FILE,))


def theirs(found: Mapping[Stack, int], marker: str) -> Counter[Stack]:
    """The same below the function that plays, without what is Hotloop's own."""
    below: Counter[Stack] = Counter()
    for stack, ns in found.items():
        below[without_ours(stack, marker)] += ns
    below.pop((), None)
    return below


def without_ours(stack: Stack, marker: str) -> Stack:
    """From the first function below the player that is not Hotloop's on; empty where there is none."""
    begin = next((depth for depth, (name, _, _) in enumerate(stack) if name == marker), 0)
    inner = (depth for depth in range(begin, len(stack)) if not stack[depth][1].startswith(OURS))
    return stack[next(inner, len(stack)) :]


def rows_of(
    found: Mapping[Stack, int], whole: int, cpu: Mapping[Stack, int] | None = None
) -> tuple[tuple[object, ...], ...]:
    """One row a function, by its own time; what is hardly there, callees and all, has none."""
    hot = [each for each in stacks.functions(found, cpu) if each.total >= SMALLEST_SHARE * whole]
    return tuple((each.place, each.own / whole, each.total / whole, works(each)) for each in hot[:MOST_ROWS])


def works(function: stacks.Function) -> float | None:
    """The share of a function's time in which it had a core; None where nobody knows."""
    cpu = function.total_cpu
    return None if cpu is None or not function.total else min(1.0, cpu / function.total)


probe = Probe(
    name="samples",
    purpose="the hot functions below a step of somebody else's, always, unless cprofile or pyspy looks there",
    why_not=lambda: None,
    look=look,
)
