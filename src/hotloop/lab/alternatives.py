"""Other ways of doing a phase that a world has: measured in turns with the one that a record ran."""

from collections.abc import Iterator

import numpy as np

from hotloop.core import registry
from hotloop.core.clock import now_ns
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.core.world import Rival
from hotloop.judge.case import Alternative
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.compare.phases import compare_phases
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.settle import Plan

BUDGET_NS = 2_000_000_000
"""That both ways are measured for."""

COPIED = 1 << 26
"""Bytes of a copy: more than caches hold."""

COPIES = 5


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
    ratio = next(each.ratio for each in found if each.phase == rival.phase)
    return Alternative(phase=rival.phase, keys={rival.parameter: rival.candidate}, ratio=ratio)


def ways(rival: Rival) -> tuple[str, str]:
    return rival.reference, rival.candidate


def target_of(record: Record, rival: Rival) -> Target:
    """The record's target with all that its world was told, without what only a training knows."""
    known = {**record.target.params, **record.target.variant}
    keys = {key: value for key, value in known.items() if key in record.target.keys or key == "num_envs"}
    return Target(record.target.name, {key: value for key, value in keys.items() if key != rival.parameter})


def copy_bytes_per_s() -> float:
    """How fast memory is copied here and now: the best of a few copies."""
    source = np.ones(COPIED // 8)
    target = np.empty_like(source)
    took = []
    for _ in range(COPIES):
        begin = now_ns()
        np.copyto(target, source)
        took.append(now_ns() - begin)
    return COPIED * 1e9 / min(took)
