"""The record of a run, and the files beside it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from hotloop.core.errors import ExitCode, InputError, Notice, worst
from hotloop.core.files import small_text, write_new
from hotloop.core.record.codec import Amount, Count, ForeignError, Interval, from_plain, parse
from hotloop.core.record.comparison import Comparison, Statistical, Validation
from hotloop.core.record.experiments import BudgetResult, Soak, Sweep, Tuning
from hotloop.core.record.metadata import CodeInfo, Described, Instructions, Machine, PathRan, Work, own_commit
from hotloop.core.record.profile import Finding, Looks, Overhead, Pauses, Phase, RerunResult, Slow, Stage

T = TypeVar("T")

SCHEMA = 1

METHOD = 2  # The version of how things are measured; results of different versions are unlike

HASH = "content_hash"

LONGEST_NAME = 180  # Bytes of a name; file systems take 255, and endings and numbers follow

# The order of a method that measured several commits of one project together.
IN_TURNS = "in turns with other commits, in shuffled orders"

# Of the first of several commits: the speeds of a second instance, for how much one differs from itself.
NOISE = "again.env_steps_per_s"

# Events a second, beyond anything that was ever measured; 0 is where nothing happened.
SLOWEST, FASTEST = 1e-12, 1e18

ENV_STEPS_PER_S = "env_steps_per_s"

# The metric that is judged unless a method says otherwise; agent-steps are the same times a constant.
EPISODES_PER_S = "episodes_per_s"

# Of a simulation: episodes, whichever their length, one value per stretch of equally many calls.
GAMES_PER_S = "games_per_s"

RUNS_PER_S = "runs_per_s"  # Of whole programs

# The values that say what CPU time each round took over its wall time; 2.0 is two cores busy.
CPU_SHARE = "cpu_share"

# What the names of values begin with that say what episodes came to by a world's own measures.
OUTCOME = "outcome."

RETURN_OF = f"{OUTCOME}return of "  # And those that say it of one agent
MEAN = "mean."  # Before a heading and a label of a world's history: its mean over all steps of each env
ENDED = "ended."  # Before a reason in words: how many episodes ended for it
CONTEST = "contest."  # What the names of values begin with that are about games against a player
REASON = f"{CONTEST}ended."  # Before a reason in words: how many games ended for it
PAIR = f"{CONTEST}pair."  # Before two players of a round robin, the hero first: the hero's score of each game
ELO = "elo"  # The name of the finding that rates the players of a round robin

SPLIT = f"{CONTEST}split."
WITHIN = "/"
FORWARD = f"{SPLIT}inference{WITHIN}forward"  # Before a part of the time: its nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How it was measured."""

    rounds: Count
    iterations: Count  # Env-steps in a round; one batch call makes num_envs of them
    warmup: Count  # Env-steps before the first round, thrown away
    threads: Count
    order: str  # In which the sides of a round were measured; `single` where there was one
    clock: str
    policy: str
    # When it was collected: `between` rounds, outside the clock, or as in `life`, whenever Python would.
    garbage: str = "between"
    version: int = METHOD
    headline: str = ENV_STEPS_PER_S  # The metric that is judged, more of it being better
    # Of the timed turns, drawn anew for every run; None where they had the seed of the target.
    timing_seed: Count | None = None
    # Number of steps to a hash of all that a short play of so many showed; None if it cannot be repeated.
    digest: dict[str, str] | None = None

    @property
    def unit(self) -> str:
        """Return what speeds of loops are counted in: a simulation's in games, all others in env-steps."""
        return "game" if self.headline == GAMES_PER_S else "env-step"

    @property
    def ns_per_unit(self) -> str:
        """Return what the times of a comparison's side are called, after the side."""
        return f"ns_per_{self.unit.replace('-', '_')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Statistics of one metric over the rounds, derived from its raw values."""

    median: float
    mean: float
    cv: Amount | None  # Sample standard deviation over mean; None where that is undefined
    ci95: Interval | None  # Of the median; None where the rounds are too few
    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the run used."""

    rss_peak_bytes: Count | None = None
    rss_mean_bytes: Count | None = None
    rss_slope: float | None = None  # Bytes a second
    # Nanoseconds since the pass began, and bytes then; as many points as a curve needs.
    rss_over_time: tuple[tuple[Count, Count], ...] = ()
    cpu_share: Amount | None = None  # CPU time over wall time; 2.0 is two cores busy
    # Time that its threads could have run and had no core, over wall time; None if not measured.
    ready_share: Amount | None = None
    pauses: Pauses | None = None  # Garbage collection in the whole run; None if not measured
    gpu: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTarget:
    """The speed that was asked for, and how far it is."""

    env_steps_per_s: Amount
    floor: Amount | None  # The lower bound of the speed's interval: what this machine can be relied on for
    enforced: bool
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run. Raw values are kept; `hotloop.stats.metrics` derives the metrics from them."""

    schema: int = SCHEMA
    run_id: str
    kind: str  # The command that made it: bench, profile, compare, ..
    created: str  # ISO 8601, UTC
    label: str | None = None
    partial: bool = False  # Interrupted before its last round
    target: Described
    machine: Machine
    code: CodeInfo
    method: Method
    work: Work
    path: PathRan
    values: dict[str, tuple[float, ...]]  # Metric to one raw value a round
    metrics: dict[str, Metric] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    unaccounted_ns: int | None = None
    looks: Looks | None = None  # Of a loop or a training: speed and memory from update to update
    stages: tuple[Stage, ...] = ()  # The phases of a run that has several; empty if it is one population
    overhead: Overhead | None = None
    validation: Validation | None = None
    statistical: Statistical | None = None  # Of a validation by distributions
    resources: Resources | None = None
    goal: SpeedTarget | None = None
    held: BudgetResult | None = None  # The budget that it was measured for
    instructions: Instructions | None = None
    comparisons: tuple[Comparison, ...] = ()
    slow: Slow | None = None
    again: RerunResult | None = None
    sweep: Sweep | None = None
    soak: Soak | None = None
    tuning: Tuning | None = None
    findings: tuple[Finding, ...] = ()  # What probes found, each in a pass of its own
    notices: tuple[Notice, ...] = ()
    verdict: str | None = None
    exit_code: int = 0

    def to_json(self) -> str:
        """The record as JSON text, fields in the order of their declaration, then their hash."""
        plain = asdict(self)
        return json.dumps(plain | {HASH: content_hash(plain)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a record; InputError where the text is not one, was altered, or is of a newer schema."""
        try:
            return cls._read(parse(text))
        except ForeignError as error:
            raise InputError(f"not a Hotloop record: {error}") from None

    @classmethod
    def _read(cls, plain: Any) -> Self:
        """Return the record of what its JSON says; ForeignError where something does not fit."""
        schema = plain.get("schema") if isinstance(plain, dict) else None
        if not isinstance(schema, int) or isinstance(schema, bool):
            raise ForeignError("it has no schema number")
        if schema != SCHEMA:
            raise InputError(
                f"it has schema {schema}, this Hotloop reads {SCHEMA}: use the version that wrote it"
            )
        written = plain.pop(HASH, None)
        record = from_plain(cls, plain)
        check_parts(record)
        if written not in (None, content_hash(plain)):  # None is from before there was a hash
            raise ForeignError(
                f"$.{HASH}: it was altered after it was written; "
                "what is to be added belongs in a file beside it"
            )
        return record


def content_hash(plain: Mapping[str, Any]) -> str:
    """Sixteen hex digits of all that a record says; they detect accidental edits, not forgery."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_parts(record: Record) -> None:
    """Refuse parts that each have their type and together make no sense."""
    envs = record.target.variant.get("num_envs", 1)
    if not isinstance(envs, int) or isinstance(envs, bool) or envs < 1:
        raise ForeignError(f"$.target.variant.num_envs: expected int of at least 1, got {envs!r:.40}")
    for name, speeds in record.values.items():
        for index, speed in enumerate(speeds if name.endswith("_per_s") else ()):
            if speed and not SLOWEST <= speed <= FASTEST:
                raise ForeignError(f"$.values.{name}[{index}]: expected a speed, got {speed}")


def new_record(
    kind: str,
    *,
    now: datetime,
    code: CodeInfo,
    target: Described,
    values: Mapping[str, Sequence[float]],
    name: str | None = None,
    **parts: Any,
) -> Record:
    """Return a record with its run id and date; its metrics are not derived yet.

    Args:
        kind: The command that makes it.
        now: When the run began.
        code: The code that ran; its commit is in the run id.
        target: What was measured.
        values: Metric to one raw value a round.
        name: What the run id ends in; by default the words of the target.
        parts: The record's other fields.
    """
    return Record(
        run_id=run_id(now, *own_commit(code), name or target.words),
        kind=kind,
        created=now.isoformat(timespec="seconds"),
        code=code,
        target=target,
        values={metric: tuple(raw) for metric, raw in values.items()},
        **parts,
    )


def run_id(now: datetime, commit: str, dirty: bool, target: str) -> str:
    """`<YYYYMMDD-HHMMSS>-<commit>[-dirty]-<target>`, fit for a file name."""
    stamp = now.astimezone(UTC).strftime("%Y%m%d-%H%M%S")
    words = [stamp, commit[:12], *(["dirty"] if dirty else []), target]
    return file_name("-".join(words))


def file_name(text: str) -> str:
    """Text as the name of one file in one folder: no separators, and no longer than a file system takes."""
    name = re.sub(r"[^\w.-]+", "-", text).lstrip(".")
    return name.encode()[:LONGEST_NAME].decode(errors="ignore") or "unnamed"


def write(path: Path, record: Record) -> None:
    """Write a record whole or not at all; InputError where the path exists (see `free_path`)."""
    write_new(path, record.to_json())


def read(path: Path) -> Record:
    """Read a record; InputError where there is none, or something else."""
    try:
        text = small_text(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a Hotloop record: it is not text") from None
    try:
        return Record.from_json(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One item of a suite."""

    do: str
    target: str  # As it would be typed
    against: str | None = None
    record: Record | None = None
    refused: str = ""  # Why there is no record
    code: ExitCode = ExitCode.FINE  # What it says to the shell
    kept: bool = False  # Whether it was measured before, by the run that this one goes on with

    def plain(self) -> Mapping[str, Any]:
        return {
            "do": self.do,
            "target": self.target,
            "against": self.against,
            "code": int(self.code),
            "refused": self.refused,
            "record": None if self.record is None else json.loads(self.record.to_json()),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRan:
    """All of them."""

    name: str
    created: str
    items: tuple[Ran, ...]
    asked: int  # How many there are in the suite; fewer were run where it was interrupted
    interrupted: bool = False

    @property
    def code(self) -> ExitCode:
        """What the suite says to the shell: the gravest of its items."""
        stopped = [ExitCode.INTERRUPTED] if self.interrupted else []
        return worst([*(item.code for item in self.items), *stopped])

    def to_json(self) -> str:
        facts = {
            "suite": self.name,
            "created": self.created,
            "interrupted": self.interrupted,
            "asked": self.asked,
            "code": int(self.code),
            "items": [item.plain() for item in self.items],
        }
        return json.dumps(facts, indent=1) + "\n"


ACCEPTED_SUFFIX = ".accepted.json"  # What the name of the file ends in; the rest is the run's


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A run from which on a new level is the right one."""

    run_id: str
    why: str
    created: str  # ISO 8601, UTC


def accept(folder: Path, run_id: str, why: str) -> Path:
    """Write down that the level since a run is accepted; refuses where that was said before."""
    path = folder / f"{file_name(run_id)}{ACCEPTED_SUFFIX}"
    if path.exists():
        raise InputError(f"{run_id} is accepted already: remove {path} to give another reason")
    note = Accepted(run_id=run_id, why=why, created=datetime.now(UTC).isoformat(timespec="seconds"))
    write_new(path, json.dumps(asdict(note), indent=1) + "\n")
    return path


def read_beside(path: Path, kind: type[T], what: str) -> T:
    """Read a file beside a record; InputError where it holds something else."""
    try:
        return from_plain(kind, parse(small_text(path)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, ForeignError) as error:
        raise InputError(f"{path}: no {what}: {error}") from None


FRAMES_SUFFIX = ".frames.json"  # What the name of the file ends in; the rest is the tape's

FORMAT = "hotloop frames 1"

PICTURE = "data:image/png;base64,"  # What a picture begins with: nothing else is ever shown as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One moment: a picture, or words where a world draws none."""

    step: Count
    picture: str | None = None
    text: str | None = None
    note: str | None = None  # Why a viewer would jump to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """The moments that were kept, in their order."""

    format: str = FORMAT
    target: str
    title: str
    frames: tuple[Frame, ...]


def write_frames(path: Path, frames: Frames) -> None:
    write_new(path, json.dumps(asdict(frames)) + "\n")


def read_frames(path: Path) -> Frames:
    """Read frames; InputError where the file holds something else, or pictures that are none."""
    frames = read_beside(path, Frames, "frames")
    no_frames = f"{path}: no frames: $."
    if frames.format != FORMAT:
        raise InputError(f"{no_frames}format: expected {FORMAT!r}, got {frames.format!r:.40}")
    for index, frame in enumerate(frames.frames):
        if frame.picture is not None and not frame.picture.startswith(PICTURE):
            raise InputError(f"{no_frames}frames[{index}].picture: expected a PNG, got {frame.picture!r:.40}")
    return frames
