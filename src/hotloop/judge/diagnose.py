"""A diagnosis: the bottleneck of a record, what to change first, and what each change would buy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isinf

from hotloop.core.errors import InputError
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.record.codec import Interval
from hotloop.core.record.comparison import Ratio
from hotloop.judge.case import SELF, Alternative, Case, Row, speed_up
from hotloop.judge.compare import conditions_of, differences, ratio_of
from hotloop.judge.course import UPDATES_PER_S, views, weight, where
from hotloop.judge.evidence import describe_share
from hotloop.judge.expect import Expectations
from hotloop.judge.rules import RULES, WORTH, Rule, find_observations, is_looked_at

AWAY = 1e12  # How many times as fast something is that is gone
LARGEST = 8  # Rows that are listed
LEAST_SHOWN = 0.0005  # Of the time, that a row takes which is listed
OPAQUE = 0.5  # Of the time in one row, from which on one wants to know what is inside

# Of the time, that a function takes which is listed, and a row that is worth naming as the lever.
LEAST_INSIDE = 0.05

LEAST_LIBRARY = 0.02  # Of the time, that a function of a library takes which is listed
DEEP = 3  # Levels, with the wall itself, up to which a row's own name says what it is
MOVED = 1.1  # How many times as fast a row is called changed
COMMAND = "command"  # The variant of a run that has the words it was started with
KINDS = ("profile", "train", "run")  # Of records that say where time went


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A row that bounds the speed, and what making it faster would buy end to end."""

    name: str
    path: str
    share: float
    interval: Interval | None
    said: str
    halved: float  # Times as fast in all, were it twice as fast
    gone: float  # Were it gone
    where: str = ""  # The phase of the run that the share is of, in words; empty if the share is of all of it
    of_run: float = 1.0  # What that phase takes of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A change that is worth making, or something that must be mended before numbers mean anything."""

    rule: str
    symptom: str
    said: str  # The evidence
    remedy: str
    check: str  # The command that shows what it came to
    path: str | None = None  # Of the row that it is about
    share: float | None = None
    gain: float | None = None  # Times as fast end to end; None if that cannot be told from a record
    interval: Interval | None = None
    at_most: bool = False
    # Whether the gain needs the row to vanish, so that it is the most the change can buy.
    vanishes: bool = False
    keys: dict[str, str] = field(default_factory=dict)
    is_fault: bool = False  # Whether it comes before every gain


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBounds:
    """One phase of a run: what bounds it."""

    name: str
    of_run: float  # Its share of the time
    updates: int
    speed: float | None
    unit: str
    bounds: tuple[Bound, ...]
    lever: Bound | None  # The row to open first in it; None if nothing reaches a twentieth of its time


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A rule whose evidence the record does not have."""

    rule: str
    symptom: str
    needs: str
    get: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What is said of one record."""

    run_id: str
    kind: str
    target: str
    created: str
    partial: bool
    bounds: tuple[Bound, ...]  # The largest rows, the first being the bottleneck
    # Functions below the rows of a tree, by samples: the user's own if they are known, the lever first.
    inside: tuple[Bound, ...]
    # Functions of libraries with most time of their own: where the time of the user's functions goes.
    libraries: tuple[Bound, ...]
    lever: Bound | None  # The row or function to open first; None if nothing reaches a twentieth of the time
    # Where the lever spends most of its time, with the code there; empty if that is not known.
    hottest_line: str
    notes: tuple[str, ...]  # What Hotloop itself took
    checks: int  # Rules that had what they need
    candidates: tuple[Candidate, ...]  # In the order of what they would buy
    gaps: tuple[Gap, ...]
    expectations: Expectations | None = None
    stages: tuple[StageBounds, ...] = ()  # The phases of the run; empty if it is one population

    @property
    def is_healthy(self) -> bool:
        return not self.candidates


def diagnose(
    record: Record,
    alternatives: Sequence[Alternative] | None = (),
    expectations: Expectations | None = None,
    *,
    file: str = "RECORD",
) -> Diagnosis:
    """Hold every rule against a record; `file` is how the record would be typed.

    `alternatives` are the other ways of a phase as they were measured; None if not measured.
    """
    check(record)
    case = Case(record, None if alternatives is None else tuple(alternatives))
    line, stages = case.hottest_line, views(record)
    levers = [lever_of(record, stage) for stage in stages or (None,)]
    return Diagnosis(
        run_id=record.run_id,
        kind=record.kind,
        target=record.target.words,
        created=record.created,
        partial=record.partial,
        bounds=tuple(bounds(case)),
        inside=tuple(inside(case)),
        libraries=tuple(bound(row) for row in case.libraries[:LARGEST] if row.part.share >= LEAST_LIBRARY),
        lever=max(filter(None, levers), key=lambda each: each.share * each.of_run, default=None),
        hottest_line=f"{line[1]:.0%} of it at {line[0]}" if line else "",
        notes=tuple(notes(case)),
        checks=sum(is_looked_at(rule, case) for rule in RULES),
        candidates=tuple(candidates(case, file)),
        gaps=tuple(
            Gap(rule=rule.name, symptom=rule.symptom, needs=rule.needs, get=fill(rule.get, record))
            for rule in RULES  # that could matter and have nothing to look at
            if rule.get and not rule.is_note and rule.concerns(case) and not rule.has(case)
        ),
        expectations=expectations,
        stages=tuple(stage_bounds(record, stage) for stage in stages),
    )


def check(record: Record) -> None:
    """Refuse what says nothing about where its time went, with what does."""
    case = Case(record)
    if case.rows or case.functions:
        return
    word = record.target.words
    how = {
        "train": f"train with its times: hotloop train {record.target.name} train.timing=auto",
        "run": "put spans inside the run: with hotloop.span('learn'): ...",
        "profile": f"profile it to the end: hotloop profile {word}",
    }
    if is_process(record):
        how["profile"] = "it only waited: look at the process while it works"
    if record.work.runs:
        how["bench"] = f"look inside it: hotloop profile -- {word}"
    raise InputError(
        f"{record.run_id} is a {record.kind} record without phases: "
        f"{how.get(record.kind, f'look inside it: hotloop profile {word}')}"
    )


def lever_of(record: Record, stage: Record | None = None) -> Bound | None:
    """Return what to open first in a run, or in one phase of it."""
    row = Case(stage or record).lever
    return bound(row, record, stage) if row and row.part.share >= LEAST_INSIDE else None


def stage_bounds(record: Record, stage: Record) -> StageBounds:
    """Return the rows of one phase of a run, with what each buys of the whole run."""
    leaves = sorted(Case(stage).leaves, key=lambda row: -row.part.share)
    unit = ENV_STEPS_PER_S if ENV_STEPS_PER_S in stage.metrics else UPDATES_PER_S
    speed = stage.metrics.get(unit)
    return StageBounds(
        name=str(stage.label),
        of_run=weight(record, stage),
        updates=stage.work.updates,
        speed=speed.median if speed else None,
        unit=unit,
        bounds=tuple(bound(row, record, stage) for row in leaves[:LARGEST] if row.part.share >= LEAST_SHOWN),
        lever=lever_of(record, stage),
    )


def notes(case: Case) -> Iterable[str]:
    """Return what Hotloop's own loop and instrument took, which is no advice about the user's code."""
    for row in case.rows:
        if case.is_harness(row) and row.part.share >= LEAST_INSIDE:
            yield f"Hotloop's own loop took {row.part.share:.1%} of the time"
    for rule in RULES:
        if rule.is_note and rule.concerns(case) and rule.has(case):
            yield from (seen.said for seen in rule.look(case))


def bounds(case: Case) -> Iterable[Bound]:
    """Return the leaves by their share, the largest first."""
    ordered = sorted(case.leaves, key=lambda row: -row.part.share)
    if case.leaves and case.leaves == case.yours:
        ordered = list(case.yours)
    return (bound(row) for row in ordered[:LARGEST] if row.part.share >= LEAST_SHOWN)


def inside(case: Case) -> Iterable[Bound]:
    """Return the functions of what the tree shows as one row, by what each takes with all that it calls."""
    first = case.largest
    if first is None or first.sampled or first.part.share < OPAQUE:
        return ()
    ordered: Iterable[Row] = case.yours
    if not case.yours:
        ordered = sorted((row for row in case.functions if row.is_leaf), key=lambda row: -row.part.share)
    return [bound(row) for row in ordered if row.part.share >= LEAST_INSIDE][:LARGEST]


def bound(row: Row, record: Record | None = None, stage: Record | None = None) -> Bound:
    """Return a row with what it buys of the whole run; its share is of the phase that it is in."""
    of_run = weight(record, stage) if record and stage else 1.0
    part, parts = row.part.scaled(of_run), row.path.split("/")
    # A row deep in a tree is named with what it is in: calls of what, or whose observations.
    name = row.name if len(parts) <= DEEP or row.name.endswith(SELF) else "/".join(parts[-2:])
    return Bound(
        name=row.path if row.sampled else name,
        path=row.path,
        share=row.part.share,
        interval=row.part.interval,
        said=describe_share(row).partition(" is ")[2],
        halved=speed_up(part.share, 2.0),
        gone=speed_up(part.share, AWAY),
        where=where(record, stage) if record and stage else "",
        of_run=of_run,
    )


def candidates(case: Case, file: str) -> list[Candidate]:
    """Return what every rule sees, faults first, then by what each change buys."""
    found = []
    for rule, seen in find_observations(case):
        words = " ".join(f"{key}={value}" for key, value in seen.keys.items())
        found.append(
            Candidate(
                rule=rule.name,
                symptom=rule.symptom,
                said=seen.said,
                remedy=rule.remedy.format(keys=words),
                check=check_command(rule, words, case.record, file),
                path=seen.row.path if seen.row else None,
                share=seen.part.share if seen.part else None,
                gain=seen.gain,
                interval=seen.interval,
                at_most=seen.at_most,
                vanishes=seen.gain is not None and isinf(seen.factor),
                keys={key: str(value) for key, value in seen.keys.items()},
                is_fault=rule.is_fault,
            )
        )
    return sorted(found, key=lambda each: (not each.is_fault, each.gain is None, -(each.gain or 0.0)))


def check_command(rule: Rule, words: str, record: Record, file: str) -> str:
    """Return the rule's own command; or both ways in turns, or the same again and what was predicted."""
    if rule.check:
        return fill(rule.check, record)
    if words and record.kind == "profile" and record.target.world:
        return f'hotloop compare "{record.target.words}" "{changed(record, words)}"'
    return f"{again(record, words)}, then: hotloop diagnose --since {file}"


def fill(command: str, record: Record) -> str:
    """Return a rule's command with the target of a record, as it can be typed."""
    if is_program(record) and "--probe torch" in command:
        return "run the loop under torch.profiler: programs have no torch probe"
    if is_program(record) and command.startswith("hotloop compare"):
        return f"hotloop compare {typed(record)}, and with fewer threads"
    return command.format(target=typed(record), again=again(record))


def is_program(record: Record) -> bool:
    """Return whether the record is of a program or a loop, which Hotloop runs as a command."""
    return record.kind == "run" or bool(record.work.runs) or is_process(record)


def is_process(record: Record) -> bool:
    """Return whether the record is of a process that ran already, which its command starts again."""
    return record.target.name.startswith("pid:")


def again(record: Record, words: str = "") -> str:
    """Return what makes another record like it, with some keys changed."""
    if record.kind == "run":
        command = record.target.variant.get(COMMAND, "run it again as before")
        return f"{command} (with {words})" if words else str(command)
    if record.work.runs or is_process(record):
        return f"hotloop {record.kind} {typed(record)} {words}".rstrip()
    rest = " run=NAME, its other settings as before" if record.kind == "train" else ""
    return f"hotloop {record.kind} {changed(record, words)}{rest}"


def typed(record: Record) -> str:
    """Return the target as it would be typed, a program or the command of a loop after its dashes."""
    if record.work.runs:
        return f"-- {record.target.words}"
    if is_process(record):
        return f"-- {record.target.params['command']}"
    if record.kind == "run":
        return f"-- {record.target.variant.get(COMMAND, 'python YOUR_LOOP.py')}"
    return record.target.words


def changed(record: Record, words: str) -> str:
    """Return the target with some keys changed."""
    new = dict(word.split("=", 1) for word in words.split())
    keys = {**record.target.keys, **new}
    return " ".join([record.target.name, *(f"{key}={value}" for key, value in keys.items())])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row before and after."""

    name: str
    path: str
    before_ns: float  # Of one env-step, update or run, as the records count
    after_ns: float
    worth: float  # Times as fast in all by this row's change alone, by the account of before


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was predicted of a change, and what came of it."""

    symptom: str
    predicted: float
    interval: Interval | None
    at_most: bool
    said: str  # `as predicted`, `less than predicted`, `more than predicted`, `cannot tell`


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """A record against an earlier one: predicted, seen, and whether the bottleneck has moved."""

    before: str
    after: str
    seen: float  # Times as fast
    interval: Interval | None
    in_turns: bool  # Whether both were measured side by side, and not one after the other
    unlike: tuple[str, ...]
    settings: tuple[str, ...]  # What differs in how it was run
    outcomes: tuple[Outcome, ...]
    rows: tuple[RowChange, ...]
    bottleneck: tuple[Bound, Bound] | None  # Before and after

    @property
    def moved(self) -> bool:
        places = {each.path.removesuffix(f"/{SELF}") for each in self.bottleneck or ()}
        return len(places) > 1


def since(
    before: Record, after: Record, predicted: Sequence[Candidate], in_turns: Ratio | None = None
) -> Since:
    """Hold what was predicted of an earlier record against a later one of the same.

    `in_turns` is what both came to when they were measured side by side, if they were.
    """
    if before.target.name != after.target.name or before.kind != after.kind:
        raise InputError(
            f"{before.run_id} is a {before.kind} of {before.target.name}, {after.run_id} a {after.kind} of "
            f"{after.target.name}: --since takes an earlier record of the same"
        )
    times = per_unit(before) / per_unit(after)
    # Without an interval if the rounds are too few for one.
    seen = in_turns or ratio_of(before, after) or Ratio(estimate=times, low=times, high=times, pairs=0)
    old, new = all_settings(before), all_settings(after)
    rows = changed_rows(before, after)
    first, last = next(iter(bounds(Case(before))), None), next(iter(bounds(Case(after))), None)
    made = [each for each in predicted if each.gain is not None and was_made(each, before, after, rows)]
    return Since(
        before=before.run_id,
        after=after.run_id,
        seen=seen.estimate,
        interval=(seen.low, seen.high) if seen.high > seen.low else None,
        in_turns=in_turns is not None,
        unlike=tuple(differences(conditions_of(before), conditions_of(after))),
        settings=tuple(
            f"{key} {old.get(key)} → {new.get(key)}"
            for key in {**old, **new}
            if key != COMMAND and old.get(key) != new.get(key)
        ),
        outcomes=tuple(outcome(each, seen) for each in made),
        rows=rows,
        bottleneck=(first, last) if first and last else None,
    )


def per_unit(record: Record) -> float:
    """Return the wall ns of one env-step, update or run."""
    if record.work.runs:
        return record.values["wall_ns"][0]
    speeds = record.metrics.get(record.method.headline)
    if speeds and speeds.median:
        return 1e9 / speeds.median
    return Case(record).wall_ns / max(record.work.env_steps or record.work.updates, 1)


def row_times(record: Record, *, own: bool = False) -> dict[str, float]:
    """Return the ns of each row by its path per unit of work; with `own` also what it takes itself."""
    units = 1 if record.work.runs else max(record.work.env_steps or record.work.updates, 1)
    itself = {row.path: row.mean_ns * row.calls / units for row in Case(record).own} if own else {}
    return {phase.path: phase.total_ns / units for phase in record.phases} | itself


def changed_rows(before: Record, after: Record) -> tuple[RowChange, ...]:
    """Return the leaves that got faster or slower, with what that alone is worth, the most first."""
    was, now = row_times(before, own=True), row_times(after, own=True)
    rows = [
        RowChange(
            name=row.name,
            path=row.path,
            before_ns=was[row.path],
            after_ns=(took := now.get(row.path, now.get(row.path.removesuffix(f"/{SELF}"), 0.0))),
            worth=speed_up(row.part.share, was[row.path] / max(took, 1e-9)),
        )
        for row in Case(before).leaves
        if was.get(row.path, 0.0) > 0
    ]
    moved = [each for each in rows if not 1 / WORTH < each.worth < WORTH]
    return tuple(sorted(moved, key=lambda each: -abs(each.worth - 1)))


def all_settings(record: Record) -> dict[str, object]:
    return {**record.target.params, **record.target.variant}


def was_made(each: Candidate, before: Record, after: Record, rows: Sequence[RowChange]) -> bool:
    """Return whether the change was made: its settings are there now, or its row is faster."""
    if each.keys:
        old, new = all_settings(before), all_settings(after)
        same = [str(new.get(key)).lower() == value.lower() for key, value in each.keys.items()]
        return all(same) and any(
            str(old.get(key)).lower() != value.lower() for key, value in each.keys.items()
        )
    if any(row.path == each.path and row.before_ns > MOVED * row.after_ns for row in rows):
        return True
    had, has = (row_times(record).get(str(each.path), 0.0) for record in (before, after))
    return had > MOVED * has  # a row with parts, which is no leaf


def outcome(each: Candidate, seen: Ratio) -> Outcome:
    """Return what came of a prediction, by the intervals of both."""
    assert each.gain is not None, "only what would buy something is held against what it did"
    low, high = each.interval or (each.gain, each.gain)
    low = 1.0 if each.at_most else low
    if seen.low < 1 < seen.high and seen.high > low:
        said = "cannot tell"
    elif seen.high >= low and seen.low <= high:
        said = "as predicted"
    else:
        said = "less than predicted" if seen.high < low else "more than predicted"
    return Outcome(
        symptom=each.symptom, predicted=each.gain, interval=each.interval, at_most=each.at_most, said=said
    )
