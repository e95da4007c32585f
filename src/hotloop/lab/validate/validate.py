"""Validate: a reference against a candidate over tapes, until all of it is seen to be the same or is not.

First the reference is played against itself: what differs from itself cannot judge anybody. Then both
play the courses in lockstep, everything compared at every step; and the candidate plays them again in
other batch sizes and with more threads, held against the same play by hashes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from hotloop.core import registry
from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError, InputError, SetupError
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.comparison import AdoptionChecklist, Comparison, Configuration, Validation
from hotloop.core.settings import describe
from hotloop.core.target import Target
from hotloop.envs.open import open_target
from hotloop.envs.projects import open_separately
from hotloop.envs.spec import BatchSettings, Spec
from hotloop.judge.compare import REPEATABLE
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.policy import RANDOM, draw_timing_seed
from hotloop.lab.measure.record import COVERAGE, Recorder, describe_method, kept_so_far, play_digest
from hotloop.lab.measure.target import check_player
from hotloop.lab.validate.bundle import Bundle, from_last_good, play_bundle, shrink
from hotloop.lab.validate.equal import check_ignored, closeness_of, notices_of
from hotloop.lab.validate.lockstep import (
    CourseResult,
    Limits,
    Way,
    course_result,
    other_ways,
    play_course,
    play_otherwise,
)
from hotloop.lab.validate.match import (
    ADVERSARIAL,
    Course,
    Match,
    courses_for,
    more_threads,
    rivals,
    takes,
)
from hotloop.options.validate import SMOKE, SOAK, ValidateOptions

# For both sides together; playing the tapes in other ways takes the rest of a minute
SMOKE_NS = 45_000_000_000

SOAK_COMPARISONS = 100_000
SOAK_RIVALS = 1_000_000  # Beside another way of the same world, which is native code too
ITSELF_CALLS = 300

ITSELF_NS = 1_500_000_000  # How far the reference is played against itself, a course
AGAIN_CALLS = 2_000  # Of a smoke test are played in other ways
AGAIN_SHARE = 4 / 3  # What all of a smoke test takes about, beside what the first plays take


# That both sides must have stepped for: of less, somebody else's turn on the core decides the ratio
TIMED_NS = 50_000_000


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


def limits_of(options: ValidateOptions, match: Match, spec: Spec, presets: int) -> Limits:
    """Return the calls of all courses in lockstep, or their time, which the presets of a world share."""
    if options.amount == SMOKE:
        return Limits(box_ns=SMOKE_NS // presets)
    if options.amount != SOAK:
        return Limits(calls=-(-int(options.amount) // spec.num_envs))
    comparisons = SOAK_RIVALS if match.against in rivals() else SOAK_COMPARISONS
    return Limits(calls=-(-comparisons // (spec.num_envs * spec.agents)))


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
        seed = seed_of(match, options.policy)
        if seed is not None:
            courses = [replace(each, keys={**each.keys, "seed": seed}) for each in courses]
        recorder = Recorder("validate", spec)
        limits = limits_of(options, match, spec, presets)
        found = ValidationState(faults=faults, digest=digest, timing_seed=seed)

        def so_far() -> Record | None:
            return record(match, way, found, recorder, spec) if found.plays else None

        progress = kept_so_far(so_far, progress)
        meter = Meter(progress, limits)
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


def seed_of(match: Match, policy: str | None) -> int | None:
    """Draw the seed of all courses of foreign envs; None if a tape, a key or the env's maker decides it."""
    sides = (match.reference, match.candidate)
    if any(not each.is_foreign or "seed" in each.keys or takes(each, "seed") for each in sides):
        return None
    return draw_timing_seed(policy or RANDOM)


def check_itself(
    match: Match, courses: list[Course], way: Way, calls: int | None, meter: "Meter"
) -> set[str]:
    """Refuse a reference that does not repeat its own answers; returns the fields it shows."""
    alone = replace(match, candidate=match.reference)
    limits = Limits(calls=min(ITSELF_CALLS, calls or ITSELF_CALLS), box_ns=ITSELF_NS)
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


class Meter:
    """Turns calls, or the time where that decides, into progress; the other ways count as the first does."""

    def __init__(self, progress: Progress, limits: Limits) -> None:
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
    match: Match, courses: list[Course], way: Way, limits: Limits, found: ValidationState, meter: Meter
) -> None:
    """Every course in lockstep, each then in the other ways; the first difference ends it."""
    ways = other_ways(match, more_threads())
    for course in courses:
        share = Limits(
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


def stand(
    match: Match, targets: Sequence[str], records: Sequence[Record], compared: Comparison | None
) -> AdoptionChecklist:
    """Return where a candidate stands; `targets` are what it has to be validated on."""
    by_workload: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda each: each.created):
        if concerns(record, match, targets):
            by_workload.setdefault(record.target.workload_hash, []).append(record)
    configurations = tuple(map(configuration, by_workload.values()))
    wanted = SOAK_RIVALS if match.rival else SOAK_COMPARISONS
    done = {
        target: sum(each.comparisons for each in configurations if each.target == target)
        for target in targets
    }
    missing = tuple(target for target in targets if done[target] < wanted)
    step, why, command = next_step(match, targets, configurations, missing, compared)
    alone = compared.ratio if compared else None
    if compared and match.rival:
        phases = (each.ratio for each in compared.phases if each.phase == match.rival.phase)
        alone = next(phases, None)
    return AdoptionChecklist(
        candidate=match.candidate.words,
        reference=match.reference.words,
        configurations=configurations,
        wanted=wanted,
        missing=missing,
        outcome=compared.outcome if compared else None,
        alone=alone,
        whole=compared.ratio if compared else None,
        part=f"the phase {match.rival.phase}" if match.rival else "the whole step",
        is_default=is_default(match),
        step=step,
        why=why,
        command=command,
    )


def concerns(record: Record, match: Match, targets: Sequence[str]) -> bool:
    """Return whether a record compared this candidate with this reference, whatever the workload."""
    checked = record.validation
    if checked is not None and checked.against is None and record.target.name in targets:
        # a run that had both ways of the phase work, and compared them at every step
        if match.rival is None or match.rival.shadow is None:
            return False
        settings = {**record.target.params, **record.target.variant, **record.target.keys}
        return str(settings.get(match.rival.shadow)).lower() == "true"
    if record.kind != "validate" or checked is None or not checked.against:
        return False
    if record.target.name not in targets:
        return False
    was, reference = Target.parse(checked.against), match.reference
    if reference.is_foreign or was.is_foreign:
        return was.name == reference.name
    ways = [rival.parameter for rival in registry.find(reference.name).world.rivals.values()]
    return all(was.keys.get(key) == reference.keys.get(key) for key in ("impl", "device", *ways))


def configuration(records: Sequence[Record]) -> Configuration:
    """Return what the records of one workload come to together; they are sorted, the oldest first."""
    found = [record.validation for record in records if record.validation]
    last = records[-1]
    return Configuration(
        target=last.target.name,
        keys=last.target.params,
        comparisons=sum(each.comparisons for each in found if not each.mismatches),
        mismatches=sum(each.mismatches for each in found),
        runs=len(found),
        difference=found[-1].difference,
        bundle=found[-1].bundle,
    )


def is_default(match: Match) -> bool:
    """Return whether the candidate is what a target without keys gets already."""
    if match.candidate.is_foreign:
        return False
    world = registry.find(match.candidate.name).world
    defaults = {info.name: info.default for info in [*describe(world.parameters), *describe(BatchSettings)]}
    changed = {
        key: value for key, value in match.candidate.keys.items() if match.reference.keys.get(key) != value
    }
    return all(value == defaults.get(key) or defaults.get(key) == "auto" for key, value in changed.items())


def next_step(
    match: Match,
    targets: Sequence[str],
    configurations: Sequence[Configuration],
    missing: Sequence[str],
    compared: Comparison | None,
) -> tuple[int, str, str]:
    """Return the number of the first step that is not done, why it is not, and the command to run."""
    against = f" --against {quoted(match.against)}"
    for each in configurations:
        if each.difference:
            bundle = each.bundle or "BUNDLE"
            return 1, f"{each.target} differs: {each.difference}", f"hotloop validate --replay {bundle}"
    if missing:
        where = targets[0].partition("/")[0] if list(missing) == list(targets) != [missing[0]] else missing[0]
        return 1, f"too little compared on {', '.join(missing)}", f"hotloop validate {where} soak{against}"
    sides = f"hotloop compare {quoted(match.reference.words)} {quoted(match.candidate.words)} --profile"
    if compared is None or compared.outcome in ("cannot tell", "slower", "same"):
        why = f"{compared.outcome}: {compared.why}" if compared else "it was not timed"
        return 2, why, f"{sides} --thorough"
    if not is_default(match):
        return 3, "equal and faster, and not yet what one gets", f"hotloop bench {match.candidate.words}"
    if match.rival:
        return 4, f"it is the default, and {match.rival.old_way} is still there", match.rival.removal
    return 5, "it is the default; the reference stays, as its specification", sides


def quoted(words: str) -> str:
    """Return words as a shell takes them as one argument."""
    return f'"{words}"' if " " in words else words
