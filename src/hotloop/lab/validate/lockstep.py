"""Lockstep: a course played by both sides at once, and then by the candidate in other ways by its hashes."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.record.comparison import Difference, PlayedTape
from hotloop.core.target import Target
from hotloop.envs.env_by_env import EnvByEnv
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.validate.bundle import Bundle, bundle_of, follow, resets_by_step
from hotloop.lab.validate.equal import Closeness, is_ignored, row_hashes, snapshot
from hotloop.lab.validate.match import (
    Course,
    Match,
    actions_of,
    is_aligned,
    open_aligned,
    resets_before,
    takes,
)
from hotloop.lab.validate.shadow import Played, Shadowing

SIZES = (1, 3, 64)  # Of the batches that the candidate plays a tape again in

# The field of a difference that was seen in hashes and did not come again in lockstep
EVERYTHING = "everything"

Moved = Callable[[int], None]  # Told how many calls have been made since it was last told


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a course is over."""

    calls: int | None = None
    box_ns: int | None = None

    def are_reached(self, calls: int, begin_ns: int) -> bool:
        if self.calls is not None and calls >= self.calls:
            return True
        return self.box_ns is not None and now_ns() - begin_ns >= self.box_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How strictly two sides are compared."""

    closeness: Closeness
    ignore: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class CourseResult:
    """What a course showed."""

    part: PlayedTape
    difference: Difference | None = None
    bundle: Bundle | None = None
    unkept: str = ""  # Why there is no bundle of the difference
    interrupted: bool = False
    timing: tuple[int, int] = (0, 0)  # ns in the steps of the reference and of the candidate
    # Of everything, an env each, at every moment of the play
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    played: Played = field(default_factory=Played)
    # `fields` that were compared, those `left_out`, with the `settings`, and those of one side only
    seen: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)  # The candidate's own account
    # The convention in which the candidate was shown env by env; empty where it was shown as it is
    autoreset: str = ""
    envs_not_compared: int = 0

    def keep(self, shadowing: Shadowing, reference: Target, candidate: Target) -> None:
        """Make the bundle of a difference, if there is one; that it cannot be made does not unmake it."""
        if shadowing.difference is None:
            return
        try:
            self.bundle = bundle_of(shadowing, tape=self.part.tape, reference=reference, candidate=candidate)
        except InputError as error:
            self.unkept = str(error)

    def first_calls(self, calls: int) -> "CourseResult":
        """The same play, as far as so many calls; the hashes beyond are never asked for."""
        resets = [each for each in self.played.resets if each[0] < calls]
        return replace(self, played=replace(self.played, actions=self.played.actions[:calls], resets=resets))


def play_course(
    match: Match, course: Course, way: Way, limits: Limits, moved: Moved, *, bundled: bool = True
) -> CourseResult:
    """Play a course on both sides, until its limits or until they differ."""
    targets = [with_keys(side, course) for side in (match.reference, match.candidate)]
    sides = open_aligned(*targets)
    shadowing = Shadowing(*sides, closeness=way.closeness, ignore=way.ignore, kept_calls=None)
    hashes: list[NDArray[np.uint64]] = []
    with closing(shadowing):
        with until_interrupted() as state:
            shadowing.reset()
            begin = now_ns()
            hashes.append(row_hashes(shadowing.answered))
            actions = actions_of(course.tape, shadowing.candidate)
            for calls in count():
                if shadowing.difference or limits.are_reached(calls, begin):
                    break
                if envs := resets_before(course.tape, calls, shadowing.candidate.spec.num_envs):
                    shadowing.reset_many(envs)
                    hashes.append(row_hashes(shadowing.answered))
                if shadowing.difference:
                    break
                shadowing.step(next(actions))
                hashes.append(row_hashes(shadowing.answered))
                moved(1)
        found = course_result(shadowing, course.tape, hashes)
        found.interrupted = state.partial
        if bundled:
            found.keep(shadowing, *targets)
        return found


def course_result(shadowing: Shadowing, tape: str, hashes: list[NDArray[np.uint64]]) -> CourseResult:
    """Return what two sides have shown since their reset."""
    spec = shadowing.candidate.spec
    sides = (shadowing.reference, shadowing.candidate)
    by_env = is_aligned(*sides)
    # fields that were ignored, or shown in unlike forms, and first shown after the reset
    ignored = {name for name in shadowing.names if is_ignored(name, shadowing.ignore)}
    unseen = {name for side in sides if by_env for name in side.unseen()}
    return CourseResult(
        part=PlayedTape(
            tape=tape,
            num_envs=spec.num_envs,
            threads=spec.threads,
            steps=shadowing.steps,
            comparisons=shadowing.comparisons,
        ),
        difference=shadowing.difference,
        timing=(shadowing.reference_ns, shadowing.candidate_ns),
        hashes=hashes,
        played=shadowing.played,
        seen={
            "fields": shadowing.fields,
            "left_out": tuple(sorted({*shadowing.left_out, *ignored, *unseen})),
            "settings": tuple(shadowing.given.names if shadowing.given else ()),
            "one_sided": tuple(sorted(shadowing.offers.one_sided)),
            "ignore": shadowing.ignore,
            "names": tuple(shadowing.names),
        },
        counters=dict(shadowing.candidate.counters),
        autoreset=shadowing.candidate.autoreset if by_env else "",
        envs_not_compared=spec.num_envs - shadowing.envs,
    )


def with_keys(target: Target, course: Course, **more: object) -> Target:
    """Return a target with the keys of a course."""
    return target.with_keys({**course.keys, **more})


def other_ways(match: Match, threads: int) -> list[dict[str, object]]:
    """Return the batch sizes and threads that must change nothing, as far as the candidate takes them."""
    wanted = [*((size, 1) for size in SIZES), (SIZES[-1], threads)]
    able = {key: takes(match.candidate, key) for key in ("num_envs", "threads")}
    named: list[dict[str, object]] = [{"num_envs": envs, "threads": count} for envs, count in wanted]
    ways = [{key: value for key, value in way.items() if able[key]} for way in named]
    return [way for i, way in enumerate(ways) if way and way not in ways[:i]]


def play_otherwise(
    match: Match, course: Course, first: CourseResult, keys: dict[str, object], way: Way, moved: Moved
) -> CourseResult:
    """Play a course's tape by the candidate made in another way, and compare hashes of everything.

    Where they differ, the reference plays as much of it again, so that the place can be named.
    """
    left_out = (*first.seen["left_out"], *first.seen["ignore"])
    candidate = open_target(with_keys(match.candidate, course, **keys))
    with closing(EnvByEnv([candidate], first.autoreset) if first.autoreset else candidate) as subject:
        spec, compared = subject.spec, first.part.num_envs - first.envs_not_compared
        envs = min(spec.num_envs, compared)
        at = first_apart(subject, first, left_out, envs, moved)
        steps = len(first.played.actions) if at is None else at[0]
        found = CourseResult(
            part=PlayedTape(
                tape=course.tape,
                num_envs=spec.num_envs,
                threads=spec.threads,
                steps=steps,
                comparisons=(steps + 1) * envs * spec.agents,
                by_digest=True,
            )
        )
    if at is not None:
        locate_difference(found, match, course, first, keys, way, at)
    return found


def first_apart(
    subject: Subject, first: CourseResult, left_out: tuple[str, ...], envs: int, moved: Moved
) -> tuple[int, int] | None:
    """Return the step and env at which a subject's hashes leave those of a play; None if they never do."""
    expected = iter(first.hashes)

    def apart() -> int | None:
        wrong = next(expected)[:envs] != row_hashes(snapshot(subject, left_out, envs))
        return int(np.argmax(wrong)) if wrong.any() else None

    subject.reset()
    env, begun = apart(), resets_by_step(first.played.resets)
    for step, actions in enumerate(first.played.actions):
        if env is None and step in begun:
            subject.reset_some(widened(begun[step], subject.spec.num_envs, first.part.num_envs))
            env = apart()
        if env is not None:
            return step, env
        subject.step(fitted(actions, subject.spec.num_envs))
        env = apart()
        moved(1)
    return None if env is None else (len(first.played.actions), env)


def fitted(actions: Any, num_envs: int) -> Any:
    """Return the actions of a call for another number of envs: the first ones, or all again and again."""
    rows = np.resize(actions, (num_envs, *actions.shape[1:])) if num_envs > len(actions) else actions
    return np.ascontiguousarray(rows[:num_envs])


def widened(envs: list[int], num_envs: int, before: int) -> list[int]:
    """Return the envs begun anew, as `fitted` spreads them."""
    return [env for env in range(num_envs) if env % before in envs]


def locate_difference(
    found: CourseResult,
    match: Match,
    course: Course,
    first: CourseResult,
    keys: dict[str, object],
    way: Way,
    at: tuple[int, int],
) -> None:
    """Let the reference play beside the candidate made in this way, to say where they differ.

    A reference that cannot be made as small, or a difference that does not come again, leaves the hashes.
    """
    step, env = at
    found.difference = Difference(
        step=step, field=EVERYTHING, index=(env,), a="one hash", b="another, which was not seen again"
    )
    wide, narrow = found.part.num_envs, found.part.num_envs < first.part.num_envs
    if narrow and not takes(match.reference, "num_envs"):
        return
    candidate = with_keys(match.candidate, course, **keys)
    reference = with_keys(match.reference, course, **({"num_envs": wide} if narrow else {}))
    sides = open_aligned(reference, candidate)
    shadowing = Shadowing(*sides, closeness=way.closeness, ignore=way.ignore, kept_calls=None)
    with closing(shadowing):
        shadowing.reset()
        rows = np.array([fitted(each, wide) for each in first.played.actions])
        resets = [
            (before, env)
            for before, envs in resets_by_step(first.played.resets).items()
            for env in widened(envs, wide, first.part.num_envs)
        ]
        follow(shadowing, rows, resets)
        if shadowing.difference:
            found.difference = shadowing.difference
            found.keep(shadowing, reference, candidate)
