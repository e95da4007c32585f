"""Validate: a reference against a candidate over tapes, until all of it is seen to be the same or is not.

First the reference is played against itself: what differs from itself cannot judge anybody. Then both
play the courses in lockstep, everything compared at every step; and the candidate plays them again in
other batch sizes and with more threads, held against the same play by hashes.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, HotloopError, InputError, Notice, SetupError, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.comparison import Difference, PlayedTape, Validation
from hotloop.core.settings import Target
from hotloop.envs.env_by_env import EnvByEnv
from hotloop.envs.open import open_target
from hotloop.envs.projects import open_separately
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.judge.compare import REPEATABLE
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.policy import RANDOM, draw_timing_seed
from hotloop.lab.measure.record import COVERAGE, Recorder, describe_method, kept_so_far, play_digest
from hotloop.lab.measure.target import check_player
from hotloop.lab.validate.bundle import (
    SOAK_COMPARISONS,
    SOAK_RIVALS,
    Bundle,
    bundle_of,
    follow,
    from_last_good,
    play_bundle,
    resets_by_step,
    shrink,
)
from hotloop.lab.validate.equal import (
    Closeness,
    check_ignored,
    closeness_of,
    is_ignored,
    notices_of,
    row_hashes,
    snapshot,
)
from hotloop.lab.validate.match import (
    ADVERSARIAL,
    Course,
    Match,
    actions_of,
    courses_for,
    is_aligned,
    more_threads,
    open_aligned,
    resets_before,
    rivals,
    takes,
)
from hotloop.lab.validate.shadow import ShadowedTape, Shadowing
from hotloop.options.validate import SMOKE, SOAK, ValidateOptions

# For both sides together; playing the tapes in other ways takes the rest of a minute
SMOKE_NS = 45_000_000_000

ITSELF_CALLS = 300

ITSELF_NS = 1_500_000_000  # How far the reference is played against itself, a course
AGAIN_CALLS = 2_000  # Of a smoke test are played in other ways
AGAIN_SHARE = 4 / 3  # What all of a smoke test takes about, beside what the first plays take

# That both sides must have stepped for: of less, another process's turn on the core decides the ratio
TIMED_NS = 50_000_000

SIZES = (1, 3, 64)  # Of the batches that the candidate plays a tape again in

# The field of a difference that was seen in hashes and did not come again in lockstep
EVERYTHING = "everything"

Moved = Callable[[int], None]  # Told how many calls have been made since it was last told


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseLimits:
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
    played: ShadowedTape = field(default_factory=ShadowedTape)
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
    match: Match, course: Course, way: Way, limits: CourseLimits, moved: Moved, *, bundled: bool = True
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

    def first_difference() -> int | None:
        wrong = next(expected)[:envs] != row_hashes(snapshot(subject, left_out, envs))
        return int(np.argmax(wrong)) if wrong.any() else None

    subject.reset()
    env, begun = first_difference(), resets_by_step(first.played.resets)
    for step, actions in enumerate(first.played.actions):
        if env is None and step in begun:
            subject.reset_some(widened(begun[step], subject.spec.num_envs, first.part.num_envs))
            env = first_difference()
        if env is not None:
            return step, env
        subject.step(fitted(actions, subject.spec.num_envs))
        env = first_difference()
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


@dataclass(slots=True, kw_only=True)
class ValidationState:
    """What is known so far."""

    plays: list[CourseResult] = field(default_factory=list)
    bundle: Bundle | None = None
    faults: tuple[Notice, ...] = ()  # Of the candidate
    digest: Mapping[str, str] | None = None  # What the candidate showed in a short play
    # Of all courses, where it is not that of the targets; a bundle's targets have it as a key
    timing_seed: int | None = None
    partial: bool = True

    @property
    def failed(self) -> CourseResult | None:
        return next((each for each in self.plays if each.difference), None)


def way_of(options: ValidateOptions) -> Way:
    """Return what has to be equal, and how equal."""
    return Way(closeness=closeness_of(options.mode), ignore=tuple(options.ignore or ()))


def limits_of(options: ValidateOptions, match: Match, spec: Spec, presets: int) -> CourseLimits:
    """Return the calls of all courses in lockstep, or their time, which the presets of a world share."""
    if options.amount == SMOKE:
        return CourseLimits(box_ns=SMOKE_NS // presets)
    if options.amount != SOAK:
        return CourseLimits(calls=-(-int(options.amount) // spec.num_envs))
    comparisons = SOAK_RIVALS if match.against in rivals() else SOAK_COMPARISONS
    return CourseLimits(calls=-(-comparisons // (spec.num_envs * spec.agents)))


def validate(
    match: Match,
    options: ValidateOptions,
    progress: Progress = silent,
    keep: Callable[[Record, Bundle], Path] | None = None,
    say: Callable[[float], None] = lambda _: None,
    *,
    presets: int = 1,
) -> tuple[Record, Bundle | None]:
    """Validate a match; Ctrl-C leaves a record of what was compared.

    `keep` is given a difference to write down, and the record then says where it is. `say` is told the
    seconds that it takes, about, once a few calls were played. A smoke test takes its share of a minute if
    it is of one of several `presets`.
    """
    way = way_of(options)
    with open_separately(match.reference, match.candidate):
        with closing(open_target(match.candidate)) as subject:
            if options.policy is not None:
                check_player(subject, options.policy)
            courses = courses_for(subject, match.candidate, options.policy)
            digest = play_digest(subject) if options.policy is None else None
            spec, faults = subject.spec, subject.faults()
        seed = None  # of foreign envs, where no tape, key or maker decides it
        if all(
            side.is_foreign and "seed" not in side.keys and not takes(side, "seed")
            for side in (match.reference, match.candidate)
        ):
            seed = draw_timing_seed(options.policy or RANDOM)
        if seed is not None:
            courses = [replace(each, keys={**each.keys, "seed": seed}) for each in courses]
        recorder = Recorder("validate", spec)
        limits = limits_of(options, match, spec, presets)
        found = ValidationState(faults=faults, digest=digest, timing_seed=seed)

        def so_far() -> Record | None:
            return record(match, way, found, recorder, spec) if found.plays else None

        progress = kept_so_far(so_far, progress)
        meter = CourseMeter(progress, limits)
        names = check_itself(match, courses, way, limits.calls, meter)
        meter.ways = len(other_ways(match, more_threads()))
        say(meter.expected_s)
        with until_interrupted(found):
            play_all(match, courses, way, limits, found, meter)
            names = names.union(*(each.seen.get("names", ()) for each in found.plays))
            check_ignored(way.ignore, names)
            failed = found.failed
            if failed and failed.bundle:
                found.bundle = failed.bundle
                with suppress(HotloopError):  # user code may raise again; the difference stays
                    found.bundle = shrink(failed.bundle, progress=progress)
        made = record(match, way, found, recorder, spec)
        if keep and found.bundle and made.validation:
            try:
                path = keep(made, found.bundle)
                made = replace(made, validation=replace(made.validation, bundle=str(path)))
            except (OSError, SetupError) as error:  # a full disk does not undo the difference
                made = replace(made, notices=(*made.notices, notice(Code.NO_BUNDLE, why=str(error))))
        return judge(made), found.bundle


def check_itself(
    match: Match, courses: list[Course], way: Way, calls: int | None, meter: "CourseMeter"
) -> set[str]:
    """Refuse a reference that does not repeat its own answers; returns the fields it shows."""
    alone = replace(match, candidate=match.reference)
    limits = CourseLimits(calls=min(ITSELF_CALLS, calls or ITSELF_CALLS), box_ns=ITSELF_NS)
    names: set[str] = set()
    for course in (each for each in courses if each.tape in (RANDOM, ADVERSARIAL)):
        found = play_course(alone, course, way, limits, moved=meter.wait, bundled=False)
        names |= set(found.seen.get("names", ()))
        if found.interrupted:
            raise KeyboardInterrupt
        if found.difference:
            raise InputError(
                f"the reference {match.reference.words} differs from itself ({found.difference}): "
                f"{REPEATABLE}, or leave that field out with --ignore"
            )
    return names


class CourseMeter:
    """Turns calls, or the time where that decides, into progress; the other ways count as the first does."""

    def __init__(self, progress: Progress, limits: CourseLimits) -> None:
        self._progress = progress
        self.calls = limits.calls  # Of all courses in lockstep; None where the clock decides
        self._box_ns = round((limits.box_ns or 0) * AGAIN_SHARE)
        self._begin, self._done = now_ns(), 0
        self._tried = 0
        self.ways = 0

    def wait(self, calls: int) -> None:
        """Something goes on that was not planned by calls."""
        self._tried += calls
        self._progress(0, 1)

    @property
    def expected_s(self) -> float:
        """Return the seconds that all courses take, about; a way of one side costs half of a lockstep."""
        if self.calls is None:
            return self._box_ns / 1e9
        call_ns = (now_ns() - self._begin) / max(self._tried, 1)
        return call_ns * self.calls * (1 + self.ways / 2) / 1e9

    def __call__(self, calls: int) -> None:
        self._done += calls
        done, total = self._done, (self.calls or 0) * (1 + self.ways)
        if self.calls is None:
            done, total = now_ns() - self._begin, self._box_ns
        self._progress(min(done, total), total)


def play_all(
    match: Match,
    courses: list[Course],
    way: Way,
    limits: CourseLimits,
    found: ValidationState,
    meter: CourseMeter,
) -> None:
    """Every course in lockstep, each then in the other ways; the first difference ends it."""
    ways = other_ways(match, more_threads())
    for course in courses:
        share = CourseLimits(
            calls=None if limits.calls is None else max(round(limits.calls * course.share + 0.5), 1),
            box_ns=None if limits.box_ns is None else round(limits.box_ns * course.share),
        )
        first = play_course(match, course, way, share, meter)
        found.plays.append(first)
        if first.interrupted:
            raise KeyboardInterrupt
        for keys in ways:
            if found.failed:
                return
            tape = first if limits.box_ns is None else first.first_calls(AGAIN_CALLS)
            found.plays.append(play_otherwise(match, course, tape, keys, way, meter))
        if found.failed:
            return


def record(match: Match, way: Way, found: ValidationState, recorder: Recorder, spec: Spec) -> Record:
    first = [each for each in found.plays if not each.part.by_digest]
    calls = sum(each.part.steps for each in found.plays)
    counters = Counter[str]()
    for each in first:
        counters.update(each.counters)
    # what a preset exists for and no tape made happen: nothing was found out about it
    silent_ones = [name for name in spec.mechanics if not counters.get(f"{COVERAGE}{name}")]
    said = list(found.faults)
    if silent_ones and not found.failed:
        said.append(notice(Code.MECHANIC_SILENT, mechanics=", ".join(silent_ones)))
    if first:
        said += notices_of(not_compared(first[0].seen), first[0].seen.get("settings", ()))
    if found.failed and found.failed.unkept:
        said.append(notice(Code.NO_BUNDLE, why=found.failed.unkept))
    return recorder.record(
        method=describe_method(
            spec,
            rounds=len(found.plays),
            iterations=calls * spec.num_envs // max(len(found.plays), 1),
            policy=", ".join(each.part.tape for each in first),
            order="lockstep, the reference first",
            digest=found.digest,
            timing_seed=found.timing_seed,
        ),
        counters=counters,
        values={},
        notices=said,
        partial=found.partial,
        validation=validation(match, way, found, first),
    )


def again(bundle: Bundle, progress: Progress = silent) -> tuple[Record, bool | None]:
    """Play a bundle again: the record of it, and whether one step from the last good state differs too."""
    with open_separately(bundle.facts.reference, bundle.facts.candidate):
        with closing(play_bundle(bundle, progress=progress)) as shadowing:
            spec = shadowing.candidate.spec
            found = course_result(shadowing, bundle.facts.tape, [])
            reference = bundle.facts.reference.words
            checked = replace(shadowing.validation(), against=reference, parts=(found.part,))
            faults = shadowing.candidate.faults()
        made = Recorder("validate", spec).record(
            method=describe_method(spec, rounds=1, iterations=found.part.steps, policy=bundle.facts.tape),
            counters=found.counters,
            values={},
            notices=faults,
            validation=checked,
        )
        stepped_once = None if bundle.last_good is None else from_last_good(bundle) is not None
        return judge(made), stepped_once


def validation(match: Match, way: Way, found: ValidationState, first: list[CourseResult]) -> Validation:
    seen: Mapping[str, tuple[str, ...]] = first[0].seen if first else {}
    failed = found.failed
    ours, theirs = (sum(each.timing[side] for each in first) for side in (0, 1))
    return Validation(
        comparisons=sum(each.part.comparisons for each in found.plays),
        mismatches=int(failed is not None),
        timing_ratio=ours / theirs if min(ours, theirs) >= TIMED_NS else None,
        mode=way.closeness.mode,
        against=match.reference.words,
        fields=seen.get("fields", ()),
        left_out=not_compared(seen),
        envs_not_compared=max((each.envs_not_compared for each in first), default=0),
        parts=tuple(each.part for each in found.plays),
        difference=failed.difference if failed else None,
    )


def not_compared(seen: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the fields that were left out, or that only one side has ever shown."""
    return tuple(sorted({*seen.get("left_out", ()), *seen.get("one_sided", ())}))
