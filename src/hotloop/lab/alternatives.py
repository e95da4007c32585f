"""Other ways of doing a phase that a world has: measured in turns with the one that a record ran."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from time import thread_time_ns

import numpy as np

from hotloop.core import registry
from hotloop.core.clock import now_ns
from hotloop.core.record import A, B, Ratio, Record
from hotloop.core.target import Target
from hotloop.core.world import Rival
from hotloop.judge.case import Alternative
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.compare.phases import FEWEST_ROUNDS, compare_phases
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.settle import Plan
from hotloop.lab.measure.turns import rounds_of, turns_of, warm_up
from hotloop.stats.ratio import ratio

BUDGET_NS = 2_000_000_000
"""That both ways are measured for."""

COPIED = 1 << 26
"""Bytes of a copy: more than caches hold."""

COPIES = 8


def alternatives(record: Record, budget_ns: int = BUDGET_NS) -> tuple[Alternative, ...]:
    """Every other way that the record's world has of what it ran; none of anybody else's code."""
    return tuple(measure(record, rival, budget_ns) for rival in rivals(record))


def rivals(record: Record) -> Iterator[Rival]:
    """The worlds' own pairs, of which the record ran the old way."""
    if record.target.world is None or record.target.impl != "native" or record.target.device != "cpu":
        return
    for rival in registry.find(record.target.name).world.rivals.values():
        if record.target.variant.get(rival.parameter) == rival.reference:
            yield rival


def measure(record: Record, rival: Rival, budget_ns: int) -> Alternative:
    """Both ways of a phase, side by side, and how many times as long the old one takes."""
    old = target_of(record, rival)
    sides = [TargetContender(Target(old.name, {**old.keys, rival.parameter: way})) for way in ways(rival)]
    try:
        found = compare_phases(sides[0], sides[1], RANDOM, None, Plan(budget_ns=budget_ns))
    finally:
        for side in sides:
            side.close()
    gained = next(each.ratio for each in found if each.phase == rival.phase)
    return Alternative(phase=rival.phase, keys={rival.parameter: rival.candidate}, ratio=gained)


def ways(rival: Rival) -> tuple[str, str]:
    return rival.reference, rival.candidate


def target_of(record: Record, rival: Rival) -> Target:
    """The record's target without what chooses between the two."""
    asked = target_again(record)
    return Target(asked.name, {key: value for key, value in asked.keys.items() if key != rival.parameter})


def target_again(record: Record) -> Target:
    """The record's target with what its world was told, without what only a training knows."""
    known = {**record.target.params, **record.target.variant}
    keys = {key: value for key, value in known.items() if key in record.target.keys or key == "num_envs"}
    return Target(record.target.name, keys)


def in_turns(before: Record, after: Record, budget_ns: int = BUDGET_NS) -> Ratio | None:
    """How many times as fast the settings of the later of two profiles are, measured side by side now.

    None where it is not settings that differ, where the commit does, or where they are of somebody else's.
    """
    same_code = before.code["commit"] == after.code["commit"]
    other_settings = before.target.variant != after.target.variant
    if not same_code or not other_settings or not all(map(is_ours, (before, after))):
        return None
    with ExitStack() as stack:
        sides = {}
        for name, record in ((A, before), (B, after)):
            contender = stack.enter_context(closing(TargetContender(target_again(record))))
            sides[name] = stack.enter_context(closing(contender.side(RANDOM)))
        length, times = warm_up(sides, budget_ns // 4), dict[str, list[float]]({A: [], B: []})
        begin = now_ns()
        for round_ in rounds_of(turns_of(sides, length)):
            for name, turn in round_.items():
                times[name].append(turn.ns_per_env_step)
            if len(times[A]) >= FEWEST_ROUNDS and now_ns() - begin > budget_ns:
                break
    return ratio(times[A], times[B])


def is_ours(record: Record) -> bool:
    """Whether it is a profile of a world, played at random on this machine's cores."""
    target = record.target
    ours = target.world is not None and target.impl == "native" and target.device == "cpu"
    return ours and record.kind == "profile" and record.method.policy == RANDOM


def copy_bytes_per_s() -> float:
    """How fast one core copies memory: the best of a few copies, by the core's own time."""
    source = np.ones(COPIED // 8)
    target = np.empty_like(source)
    took = []
    for _ in range(COPIES):
        begin = thread_time_ns()
        np.copyto(target, source)
        took.append(max(thread_time_ns() - begin, 1))
    return COPIED * 1e9 / min(took)
