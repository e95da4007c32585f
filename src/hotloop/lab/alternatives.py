"""Other ways of doing a phase that a world has: measured in turns with the one that a record ran."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from statistics import fmean
from time import thread_time_ns

import numpy as np

from hotloop.core import registry
from hotloop.core.record import Record
from hotloop.core.record.comparison import A, B, Ratio
from hotloop.core.settings import Target
from hotloop.core.world import Rival
from hotloop.judge.case import Alternative
from hotloop.lab.compare.compare import compare_phases
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure import loop
from hotloop.lab.measure.loop import WARMUP_SHARE, Length, Plan, grain_of, length_of, warm_up, whole
from hotloop.lab.measure.policy import RANDOM, REPLAYED
from hotloop.lab.measure.settle import PairedSamples
from hotloop.stats.summary import FEWEST, ratio

BUDGET_NS = 4_000_000_000  # That both ways are measured for, a quarter of it phase by phase
PAIRS = FEWEST  # Of instances, each pair made anew: so many that the lowest and the highest are an interval
TURNS = 12  # That each instance of a pair takes at least

# Of a turn of the quicker side: what a turn of the other has done to caches must weigh little in it
QUICKER_NS = 3_000_000

COPIED = 1 << 26  # Bytes of a copy: more than caches hold

COPIES = 8


def alternatives(record: Record, budget_ns: int = BUDGET_NS) -> tuple[Alternative, ...]:
    """Return every other way that the record's world has of what it ran; none of user code."""
    if not is_native(record):
        return ()
    target = record.target
    rivals = registry.find(target.name).world.rivals.values()
    return tuple(
        measure_rival(record, rival, budget_ns)
        for rival in rivals
        if target.variant.get(rival.parameter) == rival.reference
    )


def is_native(record: Record) -> bool:
    """Whether it is of a built-in world on this machine's cores."""
    return (
        record.target.world is not None and record.target.impl == "native" and record.target.device == "cpu"
    )


def measure_rival(record: Record, rival: Rival, budget_ns: int) -> Alternative:
    """Measure both ways of a phase, and how many times as long the old one takes: of it, and in all."""
    target = target_again(record)
    old, new = (
        Target(target.name, {**target.keys, rival.parameter: way})
        for way in (rival.reference, rival.candidate)
    )
    policy = policy_of(record)
    with ExitStack() as stack:
        sides = [stack.enter_context(closing(TargetContender(each))) for each in (old, new)]
        found = compare_phases(sides[0], sides[1], policy or RANDOM, None, Plan(budget_ns=budget_ns // 4))
    return Alternative(
        phase=rival.phase,
        keys={rival.parameter: rival.candidate},
        ratio=next(each.ratio for each in found if each.phase == rival.phase),
        whole=side_by_side(old, new, policy, budget_ns - budget_ns // 4) if policy else None,
    )


def policy_of(record: Record) -> str | None:
    """Return the policy that can play again what was played; None unless it is random or a world's player.

    Of a training the policy is gone, and what an env costs is told by random play.
    """
    if record.kind == "train":
        return RANDOM
    name = record.method.policy.removesuffix(REPLAYED)
    players = registry.find(record.target.name).world.players
    return name if name == RANDOM or name in players else None


def target_again(record: Record) -> Target:
    """The record's target with what its world was told, without what only a training knows."""
    known = {**record.target.params, **record.target.variant}
    keys = {key: value for key, value in known.items() if key in record.target.keys or key == "num_envs"}
    return Target(record.target.name, keys)


def in_turns(before: Record, after: Record, budget_ns: int = BUDGET_NS) -> Ratio | None:
    """How many times as fast the settings of the later of two profiles are, measured side by side now.

    None unless only settings differ, of a built-in world.
    """
    same_code = before.code["commit"] == after.code["commit"]
    other_settings = before.target.variant != after.target.variant
    comparable = all(is_native(each) and each.kind == "profile" for each in (before, after))
    if not same_code or not other_settings or not comparable:
        return None
    policy = policy_of(before)
    if policy is None or policy != policy_of(after):
        return None
    return side_by_side(target_again(before), target_again(after), policy, budget_ns)


def side_by_side(before: Target, after: Target, policy: str, budget_ns: int) -> Ratio:
    """How many times as fast the later of two targets is, over pairs of instances that are each made anew.

    The rounds of one pair are alike in where its memory came to lie and in what else ran meanwhile: their
    interval says how sure one is of this pair, and the next one may well be outside it. So the pair is the
    sample here, and another measurement, of other instances at another time, is foretold by their spread.
    """
    times = [one_pair(before, after, policy, budget_ns // PAIRS) for _ in range(PAIRS)]
    return ratio(times, [1.0] * PAIRS)


def one_pair(before: Target, after: Target, policy: str, budget_ns: int) -> float:
    """Return the ratio of two instances that take turns, by the turns that no other process disturbed."""
    with ExitStack() as stack:
        sides = {}
        for name, target in ((A, before), (B, after)):
            contender = stack.enter_context(closing(TargetContender(target)))
            sides[name] = stack.enter_context(closing(contender.side(policy)))
        short = warm_up(sides, budget_ns // WARMUP_SHARE).length
        taken = [side.turn(*short).ns_per_env_step for side in sides.values()]
        plan = Plan(
            budget_ns=budget_ns,
            length=length_for(taken, grain_of(sides), budget_ns),
            min_rounds=TURNS,
            patient=True,
            block=1,
        )
        found = PairedSamples(sides)
        loop.measure(sides, plan, samples=found)
    whole = found.ratio()
    assert whole is not None, "there are more rounds than an interval needs"
    return whole.estimate


def length_for(taken: Sequence[float], grain: int, budget_ns: int) -> Length:
    """Long enough for the quicker side, by what an env-step took on each, as far as the time allows."""
    env_steps = min(QUICKER_NS / min(taken), budget_ns / TURNS / sum(taken))
    return length_of(whole(env_steps, grain), fmean(taken), grain)


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
