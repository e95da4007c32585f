"""Samples of the stack from inside: the hot functions below a step, without anything to install or allow."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from hotloop.core.clock import now_ns
from hotloop.core.probe import Probe, Scene
from hotloop.core.record import Finding, Table, stacks
from hotloop.core.record.stacks import Frame, Stack, place
from hotloop.core.sampler import StackSampler

SHORTEST_NS = 1_000_000_000
"""Of a pass; a play that is over sooner is played again."""

MOST_ROWS = 12

SMALLEST_SHARE = 0.005
"""Of the samples: a function with less in it, callees and all, says nothing."""

FILE = "samples.speedscope.json"

COLUMNS = ("function", "own_share", "total_share")

OURS = str(Path(__file__).parents[1])

TITLE = "Hot functions, by samples"


def look(scene: Scene) -> Finding:
    """Play for at least a second while a timer has the stack looked at."""
    begin, samples = now_ns(), 0
    found: Counter[Stack] = Counter()
    while not samples or now_ns() - begin < SHORTEST_NS:
        play = scene.draw(scene.calls)
        with StackSampler() as sampler:
            play()
        found.update(sampler.ns)
        samples += sampler.samples
    stacks.write(
        scene.folder / FILE, "samples", {each: ns / 1e9 for each, ns in theirs(found, scene.marker).items()}
    )
    return describe(found, scene.marker, samples)


def describe(found: Mapping[Stack, int], marker: str, samples: int) -> Finding:
    """The functions by their own time, ours left out; `found` is the ns of each stack."""
    whole, below = sum(found.values()), theirs(found, marker)
    facts = {"samples": samples, "below_share": sum(below.values()) / whole}
    table = Table(title=TITLE, columns=COLUMNS, rows=rows_of(below, whole))
    return Finding(probe="samples", facts=facts, tables=(table,), files=(FILE,))


def theirs(found: Mapping[Stack, int], marker: str) -> Counter[Stack]:
    """The same below the function that plays, without what is Hotloop's own."""
    below: Counter[Stack] = Counter()
    for stack, ns in found.items():
        below[without_ours(stack, marker)] += ns
    del below[()]
    return below


def without_ours(stack: Stack, marker: str) -> Stack:
    """From the first function below the player that is not Hotloop's on; empty where there is none."""
    begin = next((depth for depth, (name, _, _) in enumerate(stack) if name == marker), 0)
    inner = (depth for depth in range(begin, len(stack)) if not stack[depth][1].startswith(OURS))
    return stack[next(inner, len(stack)) :]


def rows_of(found: Mapping[Stack, int], whole: int) -> tuple[tuple[object, ...], ...]:
    """One row a function, where most of its samples were: the share of its own, and with all it called."""
    own: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], Counter[int]] = {}
    for stack, ns in found.items():
        own[stack[-1][:2]] += ns
        for name, file, line in {frame[:2]: frame for frame in stack}.values():
            total[name, file] += ns
            lines.setdefault((name, file), Counter())[line] += ns
    hot = [
        each
        for each in sorted(total, key=lambda each: (-own[each], -total[each]))
        if total[each] >= SMALLEST_SHARE * whole
    ]
    return tuple(
        (place(at_line(each, lines[each])), own[each] / whole, total[each] / whole)
        for each in hot[:MOST_ROWS]
    )


def at_line(function: tuple[str, str], lines: Counter[int]) -> Frame:
    """A function at its hottest line."""
    return (*function, lines.most_common(1)[0][0])


probe = Probe(
    name="samples",
    purpose="the hot functions below a step of somebody else's, always, unless cprofile or pyspy looks there",
    why_not=lambda: None,
    look=look,
)
