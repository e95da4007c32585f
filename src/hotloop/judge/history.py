"""The history of a speed: one point a commit, where it changed its level, and what was accepted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from hotloop.core.record import IN_TURNS, Goal, Record
from hotloop.core.record.metadata import own_commit
from hotloop.stats.changepoints import FEWEST, Change, changes

KINDS = ("bench", "profile", "train", "run")  # Kinds of records that are about one speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What points of one series have in common: nothing else may be joined by a line."""

    target: str  # Its name and its keys, as they would be typed
    kind: str
    metric: str
    workload_hash: str
    impl: str
    fingerprint: str  # Of the machine
    in_turns: bool = False  # Whether several commits were measured together, by short turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was measured of one commit, the median where it was measured more than once."""

    commit: str
    dirty: bool
    created: str  # When it was measured first
    median: float
    low: float
    high: float
    run_ids: tuple[str, ...]
    goal: Goal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One speed over the commits, in their order if it is known, else as they were measured first."""

    identity: Identity
    cpu: str  # What the machine calls itself
    points: tuple[Point, ...]
    changes: tuple[Change, ...]  # Where the level changed, after what was accepted last
    accepted: Mapping[int, str]  # Point to why the level since it is the right one

    @property
    def start(self) -> int:
        """The first point of the present baseline: the last that was accepted, or the first of all."""
        return max(self.accepted, default=0)

    @property
    def missing(self) -> int:
        """How many more commits it takes before a change of level can be told from noise."""
        return max(0, FEWEST - (len(self.points) - self.start))


def histories(records: Iterable[Record], accepted: Mapping[str, str] | None = None) -> list[Series]:
    """Return every series that whole records make, by target; `accepted` maps run ids to why."""
    found: dict[Identity, list[Record]] = {}
    for record in sorted(records, key=lambda each: each.created):
        if is_plain(record) and record.method.headline in record.metrics:
            found.setdefault(identity_of(record), []).append(record)
    series = (series_of(identity, each, accepted or {}) for identity, each in found.items())
    return sorted(series, key=lambda each: (each.identity.target, each.identity.kind))


def is_plain(record: Record) -> bool:
    """Return whether a record is of a whole run that did nothing beside, such as comparing every step."""
    return record.kind in KINDS and not record.partial and record.validation is None


def identity_of(record: Record) -> Identity:
    return Identity(
        target=record.target.words,
        kind=record.kind,
        metric=record.method.headline,
        workload_hash=record.target.workload_hash,
        impl=record.target.impl,
        fingerprint=record.machine["fingerprint"],
        in_turns=record.method.order == IN_TURNS,
    )


def series_of(identity: Identity, records: Sequence[Record], accepted: Mapping[str, str]) -> Series:
    """The records of one series, joined by commit, in the order of the commits if the records know it."""
    by_commit: dict[tuple[str, bool], list[Record]] = {}
    # By how many commits there are up to the record's own; 0 if the record does not know.
    for record in sorted(
        records, key=lambda each: (each.code.get("ancestry") or {"position": 0})["position"]
    ):
        by_commit.setdefault(own_commit(record.code), []).append(record)
    points = tuple(point_of(commit, each) for commit, each in by_commit.items())
    marked = {
        index: accepted[run] for index, point in enumerate(points) for run in point.run_ids if run in accepted
    }
    start = max(marked, default=0)
    return Series(
        identity=identity,
        cpu=records[-1].machine["cpu"],
        points=points,
        changes=tuple(
            replace(each, index=each.index + start)
            for each in changes([each.median for each in points[start:]])
        ),
        accepted=marked,
    )


def point_of(commit: tuple[str, bool], records: Sequence[Record]) -> Point:
    metrics = [record.metrics[record.method.headline] for record in records]
    return Point(
        commit=commit[0],
        dirty=commit[1],
        created=records[0].created,
        median=median(each.median for each in metrics),
        low=min((each.ci95 or (each.median,))[0] for each in metrics),
        high=max((each.ci95 or (each.median,))[-1] for each in metrics),
        run_ids=tuple(record.run_id for record in records),
        goal=records[-1].goal,
    )
