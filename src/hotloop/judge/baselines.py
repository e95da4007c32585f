"""Baselines: records kept by name for each machine, and the previous profile of a folder."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from hotloop.core.errors import InputError, unknown
from hotloop.core.record import IN_TURNS, Record, SpeedTarget, read
from hotloop.core.record.metadata import own_commit
from hotloop.judge.compare import compare_stored, deciding_command, forbidding, hardware, unequal
from hotloop.stats.summary import FEWEST_LEVELS, Change, changes, with_metrics

FOLDER = Path("baselines")

MOST_HIDDEN = 1.0  # Of a change that two runs may hide and still say something: all of the time, once more
NAME = re.compile(r"\w[\w.-]*")


def names_file(word: str) -> bool:
    """Return whether a baseline is given as a file rather than by the name it was saved under."""
    return word.endswith(".json") or Path(word).name != word


def baseline_path(name: str, fingerprint: str) -> Path:
    """Return where a baseline of that name is kept for a machine; refuses what cannot be a name."""
    if names_file(name) or not NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name for a baseline: use letters, digits, '-', '_' and '.'")
    return FOLDER / fingerprint / f"{name}.json"


def check_free(name: str, fingerprint: str) -> Path:
    """Return the path of a baseline to be; refuse one that is there, and say how to replace it."""
    path = baseline_path(name, fingerprint)
    if path.exists():
        raise InputError(f"baseline {name} exists and is never overwritten: to replace it, first rm {path}")
    return path


def is_kept(word: str, machine: Mapping[str, Any]) -> bool:
    """Return whether there is such a file, or a baseline of that name, here or of another machine."""
    if names_file(word) or not NAME.fullmatch(word):
        return Path(word).exists()
    return any(FOLDER.glob(f"*/{word}.json")) or baseline_path(word, machine["fingerprint"]).exists()


def find(word: str, machine: Mapping[str, Any]) -> Record:
    """Return the record that a file's path or a saved baseline's name stands for."""
    path = Path(word) if names_file(word) else saved(word, machine)
    return with_metrics(read(path))


def saved(name: str, machine: Mapping[str, Any]) -> Path:
    """Return where a baseline of this machine is; refuses one of another with what differs."""
    path = baseline_path(name, machine["fingerprint"])
    if path.exists():
        return path
    elsewhere = sorted(FOLDER.glob(f"*/{path.name}"))
    if elsewhere:
        other = unequal(hardware(read(elsewhere[-1]).machine), hardware(machine))
        raise InputError(f"baseline {name} is of another machine ({other}): save one of this machine")
    known = sorted(each.stem for each in path.parent.glob("*.json"))
    has = f"this machine has {', '.join(known)}" if known else f"save one with --save-baseline {name}"
    raise unknown("baseline", name, known, has)


def latest_profile(folder: Path, target: str) -> Record | None:
    """Return the latest whole profile of a target among a folder's records; None if there is none."""
    found = []
    for path in (path for path in folder.glob("profile-*.json") if path.suffixes == [".json"]):
        try:
            record = read(path)
        except InputError:
            continue
        is_one = record.kind == "profile" and record.target.name == target
        if is_one and not record.partial and record.work.env_steps:
            found.append(with_metrics(record))
    return max(found, key=lambda record: record.created, default=None)


def with_previous(record: Record, previous: Record | None) -> Record:
    """Hold a finished profile against the previous one, and say what is unlike; its verdict stays its own.

    What two runs one after the other could not have shown cannot be told, with how large a change that hides.
    """
    if previous is None or record.partial or not record.work.env_steps:
        return record
    compared = compare_stored(previous, record, unlike=True)
    ratio, is_unknown = compared.ratio, compared.outcome == "cannot tell"
    # Nothing but noise kept the two from being told apart.
    is_noise = is_unknown and not forbidding(previous, record, compared.band)
    if is_noise and ratio is not None and ratio.low <= 1 <= ratio.high:
        hidden = max(ratio.high, 1 / ratio.low) - 1
        noise = f"within noise: a change of less than {hidden:.0%} would not have shown"
        if hidden > MOST_HIDDEN:
            noise = "two runs on a machine as unsteady as this one say nothing about speed"
        decides = deciding_command(compared.a, compared.b)
        compared = replace(compared, why=f"{noise}; to decide: {decides}")
    return replace(record, comparisons=(*record.comparisons, compared))


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
    goal: SpeedTarget | None = None


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
        return max(0, FEWEST_LEVELS - (len(self.points) - self.start))


def histories(records: Iterable[Record], accepted: Mapping[str, str] | None = None) -> list[Series]:
    """Return every series that whole records make, by target; `accepted` maps run ids to why."""
    found: dict[Identity, list[Record]] = {}
    for record in sorted(records, key=lambda each: each.created):
        # A whole run that did nothing beside, such as comparing every step.
        is_plain = record.kind in KINDS and not record.partial and record.validation is None
        if is_plain and record.method.headline in record.metrics:
            identity = Identity(
                target=record.target.words,
                kind=record.kind,
                metric=record.method.headline,
                workload_hash=record.target.workload_hash,
                impl=record.target.impl,
                fingerprint=record.machine["fingerprint"],
                in_turns=record.method.order == IN_TURNS,
            )
            found.setdefault(identity, []).append(record)
    series = (series_of(identity, each, accepted or {}) for identity, each in found.items())
    return sorted(series, key=lambda each: (each.identity.target, each.identity.kind))


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
