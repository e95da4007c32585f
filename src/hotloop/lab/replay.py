"""Replay: a bundle played again, from its beginning and from both sides' last good state."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.code import version
from hotloop.core.errors import InputError
from hotloop.core.settings import by_role
from hotloop.core.validation import Difference, Facts, Recipe
from hotloop.envs.batch import Batch
from hotloop.envs.subject import Subject
from hotloop.envs.targets import open_target
from hotloop.lab.bundle import Bundle
from hotloop.lab.closeness import closeness_of
from hotloop.lab.progress import Progress, silent
from hotloop.lab.shadowing import Played, Saved, Shadowing, load_both, saved_of
from hotloop.lab.taping import flat, unfold


def of(
    shadowing: Shadowing, *, tape: str, reference: Recipe | None = None, candidate: Recipe | None = None
) -> Bundle:
    """The bundle of a difference that was found; the recipes of our own batches need not be given."""
    assert shadowing.difference is not None
    played = shadowing.played
    facts = Facts(
        version=version(),
        reference=reference or recipe_of(shadowing.reference),
        candidate=candidate or recipe_of(shadowing.candidate),
        tape=tape,
        mode=shadowing.closeness.mode,
        ignore=shadowing.ignore,
        difference=shadowing.difference,
        steps_before=played.steps_before,
        resets=tuple(played.resets),
    )
    actions = as_array(shadowing.candidate, played.actions)
    return with_last_good(Bundle(facts=facts, actions=actions, start=played.start))


def recipe_of(subject: Subject) -> Recipe:
    """How a batch of ours was made."""
    if not isinstance(subject, Batch) or subject.spec.origin:
        raise InputError(f"how {subject.spec.name} was made is not known: give its recipe")
    spec = subject.spec
    given: dict[str, Any] = {}
    for part in (spec.parameters, spec.settings):
        given |= by_role(part, "workload") | by_role(part, "variant")
    return Recipe(target=spec.target, given={**given, "impl": spec.impl})


def as_array(subject: Subject, actions: Sequence[Any]) -> NDArray[Any]:
    """Actions as [steps, num_envs, ...]; InputError where they do not make an array of numbers."""
    spec = subject.spec
    if not actions:
        return np.zeros((0, spec.num_envs), np.int32)
    try:
        rows = np.array([flat(each) for each in actions])
    except ValueError:
        rows = np.array(None)
    if rows.dtype.kind not in "iufb":
        raise InputError(f"the actions of {spec.name} do not make one array of numbers: they cannot be kept")
    vector = spec.num_envs > 1 or isinstance(subject, Batch) or "vector" in getattr(spec, "kind", "")
    return rows if vector else rows[:, None]


def play(bundle: Bundle, steps: int | None = None, progress: Progress = silent) -> Shadowing:
    """Play a bundle's tape on two new sides, or its first steps; the caller closes them."""
    facts = bundle.facts
    shadowing = open_both(facts)
    if bundle.start:
        load_both(shadowing.reference, shadowing.candidate, bundle.start)
        shadowing.played = Played(start=bundle.start, steps_before=facts.steps_before)
        shadowing.steps = facts.steps_before
        shadowing.begin()
    else:
        shadowing.reset()
    follow(shadowing, bundle.actions, facts.resets, steps, progress)
    return shadowing


def follow(
    shadowing: Shadowing,
    actions: NDArray[Any],
    resets: Sequence[tuple[int, int]],
    steps: int | None = None,
    progress: Progress = silent,
) -> None:
    """Step both sides through a tape until they differ."""
    begun: dict[int, list[int]] = {}
    for before, env in resets:
        begun.setdefault(before, []).append(env)
    last = len(actions) if steps is None else steps
    for number in range(last + 1):
        if number in begun and (steps is None or number < last):
            shadowing.reset_many(begun[number])
        if shadowing.difference or number == last:
            return
        shadowing.step(unfold(shadowing.candidate, actions[number]))
        progress(number, last)


def open_both(facts: Facts) -> Shadowing:
    reference = open_target(facts.reference.target, facts.reference.given)
    candidate = open_target(facts.candidate.target, facts.candidate.given)
    return Shadowing(reference, candidate, closeness=closeness_of(facts.mode), ignore=facts.ignore)


def with_last_good(bundle: Bundle) -> Bundle:
    """Add both sides' states before the last step or reset, where they can be saved and still agree there."""
    after_reset = bundle.facts.difference.after_reset
    before = max(len(bundle.actions) - (0 if after_reset else 1), 0)
    with closing(play(bundle, before)) as shadowing:
        saved = None if shadowing.difference else saved_of(shadowing.reference, shadowing.candidate)
    return replace(bundle, last_good=saved)


def from_last_good(bundle: Bundle) -> Difference | None:
    """What one step or reset from the last good state shows; None where both agree or were not saved."""
    saved: Saved | None = bundle.last_good
    found, last = bundle.facts.difference, len(bundle.actions)
    if saved is None or not last:
        return None
    with closing(open_both(bundle.facts)) as shadowing:
        load_both(shadowing.reference, shadowing.candidate, saved)
        shadowing.steps = found.step - (0 if found.after_reset else 1)
        shadowing.begin()
        if shadowing.difference is None and found.after_reset:
            shadowing.reset_many([env for before, env in bundle.facts.resets if before == last])
        elif shadowing.difference is None:
            shadowing.step(unfold(shadowing.candidate, bundle.actions[-1]))
        return shadowing.difference
