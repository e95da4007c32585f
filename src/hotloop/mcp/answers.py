"""What an agent is answered: the few facts of a record that decide what it does next, each with its type."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record
from hotloop.judge.diagnose import Diagnosis, Since
from hotloop.stats.summary import with_metrics

MOST_ROWS = 24  # Of a profile; the record has them all
MOST_FUNCTIONS = 10

MEANINGS = {
    ExitCode.FINE: "fine",
    ExitCode.UNSTABLE: "measured, but the rounds vary by over 20%: quiet the machine and measure again",
    ExitCode.MISMATCH: "the two sides do not do the same: no speed means anything until that is mended",
    ExitCode.REGRESSION: "slower, or a target was missed",
    ExitCode.CANNOT_TELL: "cannot tell: more rounds, a quieter machine or a larger change is needed",
    ExitCode.INTERRUPTED: "interrupted before its end",
}


class Plain(BaseModel):
    """Facts that cannot be changed, described in the schema by what is said of them here."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    @classmethod
    def read(cls, source: object, **paths: str) -> Self:
        """Return the facts of a source; `paths` lead to those that it has by other names, with dots."""
        return cls(**{name: attrgetter(paths.get(name, name))(source) for name in cls.model_fields})


class Said(Plain):
    """What a reader of the result must know to trust it."""

    text: str
    remedy: str


class Answer(Plain):
    """What every measurement comes to."""

    verdict: str
    """pass, fail or cannot tell"""
    exit_code: int
    meaning: str
    target: str
    record: str | None
    """The file that has everything; diagnose, compare and report read it."""
    notices: list[Said]


class Speed(Plain):
    """A speed over the rounds of a measurement."""

    metric: str
    median: float
    low: float | None
    """The lower end of the median's 95% interval; null where the rounds are too few."""
    high: float | None
    rounds: int


class BenchAnswer(Answer):
    """How fast a target steps."""

    speed: Speed | None


class Row(Plain):
    """A row of the tree of time."""

    path: str
    """Names from the outermost inwards, joined by /."""
    share: float
    """Of the wall time."""
    mean_ns: float
    """Of one call."""
    calls: int


class HotFunction(Plain):
    """A function where samples found the program."""

    function: str
    own: float
    """The share of samples that were in the function itself."""


class ProfileAnswer(Answer):
    """Where the time of a step goes."""

    speed: Speed | None
    rows: list[Row]
    """The largest first."""
    functions: list[HotFunction]
    """The hottest first, in somebody's own code; empty in ours."""
    instrument_cost: float | None
    """Time with the instrument over time without."""


class PhaseChange(Plain):
    """One phase on both sides."""

    phase: str
    times_as_fast: float
    low: float
    high: float


class CompareAnswer(Answer):
    """Which of two is faster, and whether both do the same."""

    outcome: str
    """Of B against A: faster, slower, same or cannot tell."""
    times_as_fast: float | None
    """B's speed over A's, the median over the rounds; null where none was measured."""
    low: float | None
    high: float | None
    why: str
    difference: str | None
    """Where the two first answered differently; then no speed means anything."""
    smallest_visible_change: float | None
    phases: list[PhaseChange]


class Place(Plain):
    """The first place where two sides differ."""

    step: int
    """0 is the reset."""
    env: int | None
    field: str
    reference: str
    candidate: str
    before: str | None
    """What both said there the tick before."""


class Compared(Plain):
    """Something that was compared by its distribution."""

    what: str
    policy: str
    """Who played."""
    difference: float
    """Candidate less reference, in its own unit."""
    low: float
    """The interval holds for all that was compared at once."""
    high: float
    seen_from: float
    """The size from which a difference would have been found four times in five."""


class Bound(Plain):
    """How large a difference of one kind can still be; never nothing."""

    kind: str
    policy: str
    """Who played."""
    compared: int
    no_larger_than: float
    """In spreads: standard deviations of what was compared; 0 where all of it was found to differ."""
    seen_from: float
    """In spreads: from this size on a difference would have been found four times in five."""


class ValidateAnswer(Answer):
    """Whether a candidate does what its reference does."""

    found: str
    """equal, not equal or broken off; of distributions: they differ, or no difference larger than stated"""
    against: str
    comparisons: int
    difference: Place | None
    replay: str | None
    """The bundle that shows the difference again: hotloop validate --replay BUNDLE."""
    differences: list[Compared]
    """Of distributions: what was found twice."""
    bounds: list[Bound]
    """Of distributions: one for each kind and policy."""


class Bottleneck(Plain):
    """A row that bounds the speed."""

    path: str
    share: float
    twice_as_fast_buys: float
    """Times as fast in all, were this row twice as fast."""
    gone_buys: float
    said: str


class Change(Plain):
    """A change that is worth making."""

    symptom: str
    evidence: str
    remedy: str
    check: str
    """The command that shows what it came to."""
    buys: float | None
    """Times as fast end to end; null where a record cannot tell."""


class Kept(Plain):
    """What a change came to against what was predicted of it."""

    times_as_fast: float
    low: float | None
    high: float | None
    bottleneck_moved: bool
    unlike: list[str]
    """What else differs between the two records: then they are not of one thing."""


class DiagnoseAnswer(Plain):
    """What to change first."""

    target: str
    record: str
    bounds: list[Bottleneck]
    changes: list[Change]
    """What would buy most first; empty where nothing known is wrong."""
    not_looked_at: list[str]
    """Rules whose evidence the record does not have, and the command that gets it."""
    since: Kept | None


class Line(Plain):
    """A record in one line."""

    record: str
    kind: str
    target: str
    created: str
    verdict: str | None
    speed: Speed | None
    outcome: str | None
    """Of a comparison, B against A."""


class ReportAnswer(Plain):
    """The records there are, the newest first."""

    records: list[Line]
    left_out: list[str]
    """Files that are none."""


class WorldAnswer(Plain):
    """A world that ships."""

    name: str
    summary: str
    presets: list[str]
    players: list[str]
    """Who can play it: values of policy."""
    phases: list[str]
    parameters: dict[str, str]
    """Key to what it is, with its default; empty in the list of all worlds."""


class WorldsAnswer(Plain):
    """What there is to measure."""

    worlds: list[WorldAnswer]


def head(record: Record, file: str | None) -> dict[str, Any]:
    """Return what all answers about a record begin with, as it was judged."""
    return {
        "verdict": record.verdict or "cannot tell",
        "exit_code": record.exit_code,
        "meaning": MEANINGS.get(ExitCode(record.exit_code), "a fault"),
        "target": record.target.words,
        "record": file,
        "notices": [Said.read(each) for each in record.notices],
    }


def speed(record: Record) -> Speed | None:
    """Return the speed that a record is about; None if it has none."""
    name = record.method.headline
    metric = with_metrics(record).metrics.get(name)
    if metric is None:
        return None
    low, high = metric.ci95 or (None, None)
    return Speed(metric=name, median=metric.median, low=low, high=high, rounds=len(record.values[name]))


def bench_answer(record: Record, file: str | None) -> BenchAnswer:
    return BenchAnswer(**head(record, file), speed=speed(record))


def profile_answer(record: Record, file: str | None) -> ProfileAnswer:
    """Return where time went, and the functions of the first table of samples, whichever probe took it."""
    largest = sorted(record.phases, key=lambda row: row.total_ns, reverse=True)[:MOST_ROWS]
    tables = (table for finding in record.findings for table in finding.tables)
    samples = next((each for each in tables if {"function", "own_share"} <= set(each.columns)), None)
    functions = []
    if samples is not None:
        name, own = (samples.columns.index(each) for each in ("function", "own_share"))
        hottest = sorted(samples.rows, key=lambda row: float(row[own]), reverse=True)[:MOST_FUNCTIONS]
        functions = [HotFunction(function=str(row[name]), own=row[own]) for row in hottest]
    return ProfileAnswer(
        **head(record, file),
        speed=speed(record),
        rows=[Row.read(each) for each in largest],
        functions=functions,
        instrument_cost=record.overhead.ratio if record.overhead else None,
    )


def compare_answer(record: Record, file: str | None) -> CompareAnswer:
    compared, of_ratio = record.comparisons[0], {"low": "ratio.low", "high": "ratio.high"}
    ratio = compared.ratio
    return CompareAnswer(
        **head(record, file),
        outcome=compared.outcome,
        times_as_fast=ratio.estimate if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        why=compared.why,
        difference=compared.difference,
        smallest_visible_change=compared.visible,
        phases=[
            PhaseChange.read(each, times_as_fast="ratio.estimate", **of_ratio) for each in compared.phases
        ],
    )


def validate_answer(record: Record, file: str | None) -> ValidateAnswer:
    """Return what a validation found, of bytes or of distributions."""
    if (checked := record.validation) is not None:
        first, place = checked.difference, None
        if first is not None:
            field = f"{first.field}{list(first.index)}"
            place = Place.read(first, reference="a", candidate="b").model_copy(update={"field": field})
        return ValidateAnswer(
            **head(record, file),
            found="not equal" if checked.mismatches else "broken off" if record.partial else "equal",
            against=checked.against or "",
            comparisons=checked.comparisons,
            difference=place,
            replay=checked.bundle,
            differences=[],
            bounds=[],
        )
    found = record.statistical
    assert found is not None
    words = "they differ" if found.differences else "no difference larger than stated"
    return ValidateAnswer(
        **head(record, file),
        found="cannot tell" if found.pairs < found.needed else words,
        against=found.against,
        comparisons=found.compared,
        difference=None,
        replay=None,
        differences=[Compared.read(each) for each in found.differences],
        bounds=[Bound.read(each, kind="name", no_larger_than="bound") for each in found.groups],
    )


def diagnose_answer(told: Diagnosis, file: str, since: Since | None) -> DiagnoseAnswer:
    kept = None
    if since is not None:
        low, high = since.interval or (None, None)
        unlike = [*since.unlike, *since.settings]
        kept = Kept(times_as_fast=since.seen, low=low, high=high, bottleneck_moved=since.moved, unlike=unlike)
    return DiagnoseAnswer(
        target=told.target,
        record=file,
        bounds=[Bottleneck.read(each, twice_as_fast_buys="halved", gone_buys="gone") for each in told.bounds],
        changes=[Change.read(each, evidence="said", buys="gain") for each in told.candidates],
        not_looked_at=[f"{each.symptom}: {each.get}" for each in told.gaps],
        since=kept,
    )


def line(record: Record, file: str) -> Line:
    """Return a record in one line."""
    return Line(
        record=file,
        kind=record.kind,
        target=record.target.words,
        created=record.created,
        verdict=record.verdict,
        speed=speed(record),
        outcome=record.comparisons[0].outcome if record.comparisons else None,
    )


def world(name: str, facts: Mapping[str, Any], *, detailed: bool) -> WorldAnswer:
    """Return a world from what `hotloop worlds --json` says of it."""
    known = (*facts["parameters"], *facts["batch"]) if detailed else ()
    return WorldAnswer(
        name=name,
        summary=facts["summary"],
        presets=list(facts["presets"]),
        players=facts["players"],
        phases=facts["phases"],
        parameters={each["name"]: f"{each['help']} [{each['default']}]" for each in known},
    )
