"""Equality: two subjects step through one tape, and everything they answer must be the same bytes."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, SetupError
from hotloop.core.validation import Difference
from hotloop.envs.subject import Subject
from hotloop.lab.closeness import EXACT, Closeness

STEPS = 500
LEAST_STEPS = 16
BOX_NS = 1_500_000_000
"""A slow side gets fewer steps: as many as fit, but for the least."""
NEEDED = ("observations", "rewards", "terminals", "truncations")
"""What every subject answers, in one field or several (`observations.left`); others where both have them."""

Answers = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How much of two sides was compared, and where they first differed."""

    steps: int
    envs: int
    comparisons: int
    """One is one agent's full output at one step."""
    fields: tuple[str, ...] = ()
    difference: Difference | str | None
    """Where they first differed; in words where only hashes were compared."""


def replay_both(a: Subject, b: Subject, *, steps: int = STEPS, box_ns: int = BOX_NS) -> Agreement:
    """Reset both and step them through the same random actions; a side of more envs is looked at in part."""
    with closing(a), closing(b):
        envs, agents = min(a.spec.num_envs, b.spec.num_envs), a.spec.agents
        if b.spec.agents != agents:
            raise InputError(f"{agents} agents against {b.spec.agents}: these cannot play one tape")
        wide = a if a.spec.num_envs >= b.spec.num_envs else b
        tape = wide.draw(np.random.default_rng(wide.spec.seed), steps)
        for subject in (a, b):
            subject.reset()
        fields = common_fields(a.answers(), b.answers())
        begin, played = now_ns(), 0
        difference = first_of(0, snapshot(a, fields, envs), snapshot(b, fields, envs))
        while difference is None and played < steps:
            actions = {wide.spec.num_envs: tape[played]}
            if a.spec.num_envs != b.spec.num_envs:
                actions[envs] = cut(tape[played], envs)
            played += 1
            ours, theirs = (stepped(each, actions[each.spec.num_envs], fields, envs) for each in (a, b))
            difference = first_of(played, ours, theirs)
            if played >= LEAST_STEPS and now_ns() - begin > box_ns:
                break
    comparisons = (played + 1) * envs * agents
    return Agreement(steps=played, envs=envs, comparisons=comparisons, fields=fields, difference=difference)


def stepped(subject: Subject, actions: Any, fields: Sequence[str], envs: int) -> Answers:
    """Step one side, and keep what it says before the other one moves."""
    subject.step(actions)
    return snapshot(subject, fields, envs)


def snapshot(subject: Subject, fields: Sequence[str], envs: int) -> Answers:
    answers = subject.answers()
    return {name: answers[name][:envs].copy() for name in fields}


def common_fields(a: Answers, b: Answers) -> tuple[str, ...]:
    """The fields to compare, none of which may be one buffer seen twice."""
    fields = tuple(name for name in a if name in b)
    answered = {name.partition(".")[0] for name in fields}
    missing = [name for name in NEEDED if name not in answered]
    if missing:
        raise InputError(f"the sides do not both answer with {', '.join(missing)}: they cannot be compared")
    shared = [name for name in fields if np.may_share_memory(a[name], b[name])]
    if shared:
        raise SetupError(f"both sides show the same memory as {', '.join(shared)}: that proves nothing")
    return fields


def cut(actions: Any, num_envs: int) -> Any:
    """The actions of the first envs, for a side that has fewer."""
    return np.ascontiguousarray(actions[:num_envs])


def first_of(step: int, a: Answers, b: Answers, closeness: Closeness = EXACT) -> Difference | None:
    """The first byte that differs, or number that is too far off, field by field."""
    for name, ours in a.items():
        theirs = b[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            one, other = (f"{array.dtype} {list(array.shape)}" for array in (ours, theirs))
            return Difference(step=step, field=name, index=(), a=one, b=other)
        at = closeness.first_place(ours, theirs)
        if at is not None:
            return Difference(step=step, field=name, index=at, a=str(ours[at]), b=str(theirs[at]))
    return None
