"""Shadowing: a reference that is given every call its candidate is given, and compared with it at once.

A tape, or a policy that learns, may drive the environment that is shadowed:

    shadowing = Shadowing(reference, candidate)     # two subjects: batches, or anybody's environments
    shadowing.reset()
    while ...:
        shadowing.step(policy(candidate.observations))     # steps both; the candidate's arrays are its own
    shadowing.difference                            # None, or where they first differed
    shadowing.validation()                          # for a record: comparisons, mismatches, timing ratio
    bundle.write(replay.of(shadowing, tape="policy"), path)     # what `hotloop validate --replay` takes
    shadowing.close()                               # closes both

The reference may have fewer envs than the candidate: then the first envs are compared, and the
candidate alone pays for the others. After the first difference only the candidate is stepped.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.record.comparison import Difference, Validation
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import require_host
from hotloop.envs.open import make
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.lab.validate.equal import (
    EXACT,
    RANDOM,
    STATE,
    Closeness,
    GivenSettings,
    Offers,
    Shown,
    Streams,
    check_shown,
    cut,
    first_of,
    is_ignored,
    shown,
    snapshot,
)
from hotloop.lab.validate.match import check_alike, closeness_between

# After so many the tape begins anew from both sides' saved states, where they can be saved
KEPT_CALLS = 20_000

# The envs of the reference and of the candidate, as bytes
Saved = tuple[tuple[bytes, ...], tuple[bytes, ...]]

ENVS = 8  # Of the twin: as many of the batch's first envs are compared

# Comparisons after which the batch goes on alone, None is never; one is one agent's output at one step
LEVELS = {"true": None, "smoke": 10_000, "soak": 100_000}


@dataclass(slots=True, kw_only=True)
class ShadowedTape:
    """What both sides have been given since the tape began."""

    start: Saved | None = None  # The states it began in; None where that was the first reset
    steps_before: int = 0
    actions: list[Any] = field(default_factory=list)
    # (actions before it, env): what was begun anew in the middle, in order
    resets: list[tuple[int, int]] = field(default_factory=list)


class Shadowing:
    """A reference beside a candidate: both are given the same calls, and everything they show is compared."""

    def __init__(
        self,
        reference: Subject,
        candidate: Subject,
        *,
        closeness: Closeness = EXACT,
        ignore: Sequence[str] = (),
        kept_calls: int | None = KEPT_CALLS,
    ) -> None:
        """`ignore` names fields, or what their names begin with up to a dot, that are not compared.

        `kept_calls` is the length of the tape in memory; None keeps all of it.
        """
        check_alike(reference, candidate)
        self.reference, self.candidate = reference, candidate
        self.closeness = closeness_between(reference, candidate, closeness)
        self.streams = Streams((reference, candidate))
        self.envs = min(reference.spec.num_envs, candidate.spec.num_envs)  # How many are compared
        if reference.spec.num_envs > self.envs:
            raise InputError(
                f"the reference has {reference.spec.num_envs} envs, the candidate {self.envs}: "
                "the candidate must have at least as many"
            )
        self.ignore = (*ignore, *(() if closeness.compares_state else (STATE, RANDOM)))
        self.names: set[str] = set()  # Of all that was shown, where something is ignored
        self.fields: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.comparisons = self.steps = 0
        self.difference: Difference | None = None
        self.played = ShadowedTape()
        self.moment: Shown = {}  # What the reference showed last; its own copy
        self.answered: Shown = {}  # What the candidate showed last; a copy too
        self.reference_ns = self.candidate_ns = 0  # In the steps of each
        self.offers = Offers()
        self.given: GivenSettings | None = None
        self._kept_calls = kept_calls
        self._one: Any = None
        self._begun = False

    def reset(self) -> None:
        """Begin an episode in every env of both."""
        if self._begun:
            self.reset_many(range(self.candidate.spec.num_envs))
            return
        self._begun = True
        for side in (self.reference, self.candidate):
            with self.streams.of(side):
                side.reset()
        self.begin()

    def begin(self) -> None:
        """Look at both as they are now, for the first time."""
        ours, theirs = shown(self.reference), shown(self.candidate)
        ignored = {name for name in ours if is_ignored(name, self.ignore)}
        unseen = {*self.reference.unseen(), *self.candidate.unseen()}
        self.given = GivenSettings((self.reference, self.candidate), ours, theirs)
        one, other = (
            {n: rows for n, rows in side.items() if n not in self.given.names} for side in (ours, theirs)
        )
        unlike = {*check_shown(one, other, self.closeness), *self.given.names}
        self.left_out = tuple(sorted({*unlike, *ignored, *unseen}))
        self.fields = tuple(name for name in ours if name not in self.left_out)
        self._begun = True
        self._compare(after_reset=False)

    def reset_many(self, envs: Iterable[int]) -> None:
        """Begin an episode in some envs, or in all where a side knows only its whole reset."""
        chosen = list(envs)
        if chosen and (self.reference.resets_together or self.candidate.resets_together):
            chosen = list(range(self.candidate.spec.num_envs))
        self.played.resets += [(len(self.played.actions), env) for env in chosen]
        if self.difference is None:
            with self.streams.of(self.reference):
                self.reference.reset_some([env for env in chosen if env < self.envs])
        with self.streams.of(self.candidate):
            self.candidate.reset_some(chosen)
        if self.difference is None:
            self._compare(after_reset=True)

    def step(self, actions: Any) -> None:
        """Step both with the same actions, which have the candidate's shape, and compare everything."""
        if self.difference is not None:
            with self.streams.of(self.candidate):
                self.candidate.step(actions)
            return
        is_long = self._kept_calls is not None and len(self.played.actions) >= self._kept_calls
        if is_long and (saved := saved_of(self.reference, self.candidate)):
            self.played = ShadowedTape(start=saved, steps_before=self.steps)
        self.played.actions.append(deepcopy(actions))
        narrow = self.reference.spec.num_envs < self.candidate.spec.num_envs
        ours = deepcopy(cut(actions, self.envs) if narrow else actions)  # a side may change what it is given
        self.steps += 1
        self.reference_ns += self._timed(self.reference, ours)
        self._one = self._snapshot(self.reference)
        self.candidate_ns += self._timed(self.candidate, actions)
        self._compare(after_reset=False)

    def _timed(self, side: Subject, actions: Any) -> int:
        """Step one side; returns the ns of the step alone."""
        with self.streams.of(side):
            begin = now_ns()
            side.step(actions)
            return now_ns() - begin

    def validation(self) -> Validation:
        """What was compared so far, for a record."""
        return Validation(
            comparisons=self.comparisons,
            mismatches=int(self.difference is not None),
            timing_ratio=self.timing_ratio,
            mode=self.closeness.mode,
            against=self.reference.spec.name,
            fields=self.fields,
            left_out=tuple(sorted({*self.left_out, *self.offers.one_sided})),
            envs_not_compared=self.candidate.spec.num_envs - self.envs,
            difference=self.difference,
        )

    @property
    def timing_ratio(self) -> float | None:
        """How many times as long the reference's steps took, as many envs as they were."""
        if not self.candidate_ns or not self.reference_ns:
            return None
        wider = self.candidate.spec.num_envs / self.reference.spec.num_envs
        return self.reference_ns * wider / self.candidate_ns

    def close(self) -> None:
        self.reference.close()
        self.candidate.close()

    def _compare(self, *, after_reset: bool) -> None:
        ours = self._one or self._snapshot(self.reference)
        self._one = None
        self.answered = theirs = self._snapshot(self.candidate)
        self.comparisons += self.envs * self.reference.spec.agents
        found = self.offers.compare(self.steps, ours, theirs) or first_of(
            self.steps, ours, theirs, self.closeness
        )
        if not found and self.given and self.given.names:  # a setting that a step changes is a state
            found = self.given.compare(self.steps, shown(self.reference), shown(self.candidate))
        if found:
            agent = agent_of(found, ours, self.reference.spec)
            array, before = self.moment.get(found.field), None
            if array is not None and found.index and len(found.index) == array.ndim:
                inside = all(at < size for at, size in zip(found.index, array.shape, strict=True))
                before = str(array[found.index]) if inside else None
            self.difference = replace(found, agent=agent, before=before, after_reset=after_reset)
        else:
            self.moment = ours

    def _snapshot(self, side: Subject) -> Shown:
        """What a side shows of all that is compared; what is ignored may come and go."""
        if self.ignore:
            self.names |= shown(side).keys()
        return snapshot(side, (*self.left_out, *self.ignore), self.envs)


def saved_of(reference: Subject, candidate: Subject) -> Saved | None:
    """Return every env of both sides as bytes; None if one of them cannot be saved."""
    if not (reference.can_save and candidate.can_save):
        return None
    ours, theirs = (
        tuple(side.save(env) for env in range(side.spec.num_envs)) for side in (reference, candidate)
    )
    return ours, theirs


def load_both(reference: Subject, candidate: Subject, saved: Saved) -> None:
    """Put both sides into the states they were saved in."""
    for side, states in zip((reference, candidate), saved, strict=True):
        for env, state in enumerate(states):
            side.load(env, state)


def agent_of(found: Difference, moment: Shown, spec: Spec) -> str | None:
    """Return the agent whose output a place belongs to, by its second axis or its field; else None."""
    owner = found.field.partition(".")[2]
    if spec.agent_names and owner:
        return owner.partition(".")[0]
    if found.field == STATE or found.field.startswith(RANDOM) or not found.index:
        return None
    shape = moment[found.field].shape
    if len(shape) > 1 and shape[1] == spec.agents and len(found.index) > 1:
        return str(found.index[1])
    return "0" if spec.agents == 1 else None


def comparisons_of(word: str) -> int | None:
    """Return how many comparisons `true`, `smoke`, `soak` or a number stands for; None has no limit."""
    if word in LEVELS:
        return LEVELS[word]
    if word.isdecimal() and int(word) > 0:
        return int(word)
    raise InputError(f"validate={word} does not fit: expected true, smoke, soak or a number of comparisons")


class Shadowed(Batch):
    """A batch on the engine of another, whose twin gets the same steps and resets."""

    def __init__(self, batch: Batch, most: int | None, *, reference: Batch | None = None) -> None:
        if batch.spec.impl == "reference":
            raise InputError("validate= compares native code with its twin: leave out impl=reference")
        super().__init__(batch.engine, batch.spec)
        if reference is None:
            envs = min(ENVS, batch.spec.num_envs)
            twin = batch.spec.same_work.with_keys({"num_envs": envs, "impl": "reference"})
            reference = make(twin.name, **twin.keys)
        self._batch = batch
        self._most = most
        self.shadowing = Shadowing(reference, batch)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to compare."""
        enough = self._most is not None and self.shadowing.comparisons >= self._most
        return enough or self.shadowing.difference is not None

    def reset(self, seeds: Sequence[int] | NDArray[np.uint64] | None = None) -> None:
        if seeds is not None:
            raise InputError("a batch that is shadowed begins with its own seeds: leave the seeds out")
        self.shadowing.reset()

    def reset_many(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        seeds: Sequence[int] | NDArray[np.uint64] | None = None,
    ) -> None:
        if seeds is not None:
            raise InputError("a batch that is shadowed goes on with its own seeds: leave the seeds out")
        if self.done:
            self._batch.reset_many(indices)
        else:
            self.shadowing.reset_many(int(env) for env in indices)

    def step(self, actions: NDArray[np.int32]) -> None:
        if self.done:
            self._batch.step(actions)
        else:
            self.shadowing.step(actions)

    def validation(self) -> Validation:
        return self.shadowing.validation()

    @property
    def counters(self) -> dict[str, int]:
        """Those of the batch that is stepped."""
        return self._batch.counters

    def close(self) -> None:
        self.shadowing.close()
        super().close()


def shadow(batch: Batch, word: str | None) -> tuple[Batch, Shadowed | None]:
    """Return the batch for a trainer, and the same if its steps are compared; else None."""
    if word is None:
        return batch, None
    require_host(batch, "validate=")
    shadowed = Shadowed(batch, comparisons_of(word))
    return shadowed, shadowed
