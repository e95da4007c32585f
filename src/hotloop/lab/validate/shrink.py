"""Shrinking: from a tape that two sides answer differently to the shortest, with the fewest agents."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.target import Target
from hotloop.lab.validate.bundle import Bundle, play_bundle, with_last_good
from hotloop.lab.validate.match import takes

BUDGET_NS = 15_000_000_000
"""What shrinking may take."""


@dataclass(slots=True, kw_only=True)
class Search:
    """The smallest bundle so far, and how much time is left."""

    best: Bundle
    end_ns: int
    budget_ns: int
    progress: Progress

    @property
    def has_time(self) -> bool:
        left = max(self.end_ns - now_ns(), 0)
        self.progress(self.budget_ns - left, self.budget_ns)
        return left > 0

    def attempt(self, smaller: Bundle) -> bool:
        """Keep a bundle if its sides still differ, cut off where they do."""
        seen = differing(smaller)
        if seen is None:
            return False
        self.best = seen
        return True


def shrink(bundle: Bundle, budget_ns: int | None = None, progress: Progress = silent) -> Bundle:
    """The smallest bundle that is found in the time: fewest envs and agents first, then steps.

    A difference that does not come again by itself is kept as it is.
    """
    budget_ns = BUDGET_NS if budget_ns is None else budget_ns
    search = Search(best=bundle, end_ns=now_ns() + budget_ns, budget_ns=budget_ns, progress=progress)
    if bundle.start is not None or not search.attempt(bundle):
        return bundle
    for reduce in (fewer_envs, fewer_agents, fewer_steps, fewer_resets):
        reduce(search)
    best = search.best
    return with_last_good(replace(best, facts=replace(best.facts, story=story(bundle, best))))


def differing(bundle: Bundle) -> Bundle | None:
    """The bundle cut off at its first difference; None where there is none, or it cannot be played."""
    try:
        with closing(play_bundle(bundle)) as shadowing:
            found, played = shadowing.difference, len(shadowing.played.actions)
    except refusals(bundle):
        return None
    if found is None:
        return None
    resets = tuple(each for each in bundle.facts.resets if each[0] <= played)
    facts = replace(bundle.facts, difference=found, resets=resets)
    return replace(bundle, facts=facts, actions=bundle.actions[:played], last_good=None)


def refusals(bundle: Bundle) -> tuple[type[Exception], ...]:
    """What sides raise that cannot be made so small: ours say so, somebody else's code may fail anyhow."""
    sides = (bundle.facts.reference, bundle.facts.candidate)
    return (Exception,) if any(side.is_foreign for side in sides) else (InputError,)


def fewer_envs(search: Search) -> None:
    """Only the env that differs; or it and those before it, whose number decides its seed."""
    found, envs = search.best.facts.difference, search.best.actions.shape[1]
    if envs == 1 or found.env is None or not both_take(search.best, "num_envs"):
        return
    for first in (found.env, 0):
        if search.has_time and search.attempt(with_envs(search.best, first, found.env + 1)):
            return


def with_envs(bundle: Bundle, first: int, last: int) -> Bundle:
    resets = tuple((at, env - first) for at, env in bundle.facts.resets if first <= env < last)
    facts = replace(with_key(bundle, "num_envs", last - first).facts, resets=resets)
    return replace(bundle, facts=facts, actions=bundle.actions[:, first:last], start=None)


def fewer_agents(search: Search) -> None:
    """As few agents as still differ, the smallest numbers first."""
    if search.best.actions.ndim < 3 or not both_take(search.best, "agents"):
        return
    now = search.best.actions.shape[2]
    for agents in (count for count in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128) if count < now):
        fewer = with_key(search.best, "agents", agents)
        if search.has_time and search.attempt(replace(fewer, actions=fewer.actions[:, :, :agents])):
            return


def fewer_steps(search: Search) -> None:
    """Leave out stretches of the tape, large ones first, as long as the rest still differs."""
    size = max(len(search.best.actions) // 2, 1)
    while size >= 1:
        for first in stretches(search, size):
            without(search, first, size)
        size //= 2


def stretches(search: Search, size: int) -> Iterator[int]:
    """Where stretches of a size begin, of a tape that becomes shorter meanwhile."""
    first = 0
    while first + size < len(search.best.actions) and search.has_time:
        before = len(search.best.actions)
        yield first
        if len(search.best.actions) == before:
            first += size


def without(search: Search, first: int, size: int) -> None:
    """Try the tape without a stretch; resets in it come where it was."""
    bundle = search.best
    moved = tuple((at - min(max(at - first, 0), size), env) for at, env in bundle.facts.resets)
    actions = np.concatenate([bundle.actions[:first], bundle.actions[first + size :]])
    search.attempt(replace(bundle, facts=replace(bundle.facts, resets=moved), actions=actions))


def fewer_resets(search: Search) -> None:
    """Leave out every reset in the middle that is not needed."""
    for each in search.best.facts.resets:
        kept = tuple(other for other in search.best.facts.resets if other != each)
        if search.has_time:
            search.attempt(replace(search.best, facts=replace(search.best.facts, resets=kept)))


def both_take(bundle: Bundle, key: str) -> bool:
    return takes(bundle.facts.reference, key) and takes(bundle.facts.candidate, key)


def with_key(bundle: Bundle, key: str, value: object) -> Bundle:
    """A bundle whose sides are made with another value of a key."""

    def change(side: Target) -> Target:
        return side.with_keys({key: value})

    facts = bundle.facts
    return replace(
        bundle,
        facts=replace(facts, reference=change(facts.reference), candidate=change(facts.candidate)),
    )


def story(before: Bundle, after: Bundle) -> tuple[str, ...]:
    """What became smaller, in words."""
    names = ("steps", "envs", "agents")
    sizes = zip(names, before.actions.shape, after.actions.shape, strict=False)
    return tuple(f"{was:,} {name} to {now:,}" for name, was, now in sizes if now < was)
