"""Combinations of settings: read as others name them, sorted by whether they can be run."""

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from statistics import fmean, median
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.project import PROGRAM
from hotloop.core.record import Record
from hotloop.core.record.experiments import RSS, Refused
from hotloop.core.record.metadata import Described
from hotloop.core.settings import Target
from hotloop.envs.projects import INSTALLED, parameters
from hotloop.lab.measure.target import open_subject
from hotloop.lab.programs import measure as programs
from hotloop.lab.programs.launch import Launcher, Program, matches, metric_of, parse_metric, to_number
from hotloop.lab.programs.measure import ProgramRecorder, ProgramSide
from hotloop.lab.sweep import scale as reading
from hotloop.lab.sweep.scale import Axes, SweepPlace, check_values
from hotloop.lab.training.settings import (
    MINIBATCH_SIZE,
    MINIBATCHES,
    PREFIX,
    is_training,
    with_minibatch_size,
)
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import spec_of, untimed
from hotloop.options.bench import BenchProgramOptions

KIND = "tune"

# What other trainers call it, to what it is called here
ALIASES = {
    "num_workers": "threads",
    "n_envs": "num_envs",
    "rollout_steps": "train.num_steps",
    "n_steps": "train.num_steps",
    "batch_size": "train.minibatch_size",
    "n_epochs": "train.update_epochs",
}

# The second is what a training of foreign envs calls them
WORKERS, FOREIGN_WORKERS = "num_workers", "workers"


def read(target: Target) -> Axes:
    """Read the axes under our own names; num_minibatches become sizes."""
    named = {own_name(target, key): value for key, value in target.keys.items()}
    if len(named) < len(target.keys):
        raise InputError("a key is given under two names: give it once")
    found = reading.read(replace(target, keys=named), kind=KIND)
    return replace(found, places=tuple(with_size(found.target, place) for place in found.places))


def own_name(target: Target, key: str) -> str:
    """Return our name of a key that others call something else; a parameter of user code keeps its name."""
    if key not in ALIASES or not target.is_foreign:
        return ALIASES.get(key, key)
    own = () if target.name.partition(":")[0] in INSTALLED else parameters(target)
    if key in own:
        return key
    if key == WORKERS and ALIASES[key] not in own:
        training = is_training(target) or any(
            ALIASES.get(each, each).startswith(PREFIX) for each in target.keys
        )
        if training or MINIBATCHES in target.keys:
            return FOREIGN_WORKERS
        raise InputError(
            f"{key}= does not fit {target.name}: Hotloop has one worker for each env with vector=async; "
            f"compare vector=sync,async, or name a parameter of {target.name}"
        )
    return ALIASES[key]


def with_size(target: Target, place: SweepPlace) -> SweepPlace:
    """Return the place with a size of minibatches if their number was given."""
    asked = {**target.keys, **place.keys}
    if MINIBATCHES not in asked:
        return place
    keys = {key: value for key, value in place.keys.items() if key != MINIBATCHES}
    sized = with_minibatch_size(Target(target.name, asked))
    return replace(place, keys={**keys, MINIBATCH_SIZE: sized.keys[MINIBATCH_SIZE]})


def target_at(axes: Axes, place: SweepPlace) -> Target:
    """Return the target with the settings of a place."""
    found = axes.target_at(place)
    found.keys.pop(MINIBATCHES, None)
    return found


def name_of(place: SweepPlace) -> str:
    """Return the values of a place in words."""
    return " ".join(f"{axis}={value}" for axis, value in place.at.items())


def sort(axes: Axes) -> tuple[list[SweepPlace], list[Refused]]:
    """Return the places that can be run, and the others with the reason; InputError if none can."""
    runs, skipped = list[SweepPlace](), list[Refused]()
    for place in axes.places:
        try:
            check_place(target_at(axes, place))
            runs.append(place)
        except InputError as error:
            skipped.append(Refused(at=place.at, why=str(error)))
    if not runs:
        raise InputError(f"none of the {len(skipped)} combinations can be run: {skipped[0].why}")
    return runs, skipped


def check_place(target: Target) -> None:
    """Refuse settings that cannot be run."""
    if is_training(target):
        read_training(target)
    elif not (target.is_foreign or is_program(target)):
        open_subject(target, profile=False).close()


def checked_present(axes: Axes) -> Target:
    """Return the present settings: keys of one value, and defaults; InputError if they cannot be run."""
    keys = {key: value for key, value in axes.target.keys.items() if key != MINIBATCHES}
    training = any(axis.startswith(PREFIX) or axis == MINIBATCHES for axis in axes.values)
    if training and not any(key.startswith(PREFIX) for key in keys):
        keys[f"{PREFIX}timing"] = "off"  # it is a training, and nothing about it is given
    present = axes.present if isinstance(axes, ProgramAxes) else replace(axes.target, keys=keys)
    try:
        check_place(present)
    except InputError as error:
        raise InputError(
            f"the present settings, {present.words}, cannot be run: {error}; the winner takes turns with "
            "them, so give a key of theirs that fits"
        ) from None
    return present


def is_same(one: Target, other: Target) -> bool:
    """Return whether two targets come to the same settings: a key may be given as its default."""
    if one == other or one.is_foreign or is_program(one):
        return one == other
    mine, theirs = described_as(one), described_as(other)
    return (mine.params, mine.variant) == (theirs.params, theirs.variant)


def described_as(target: Target) -> Described:
    """Return how a record describes a target."""
    if is_training(target):
        return spec_of(untimed(read_training(target))).described
    with closing(open_subject(target, profile=False)) as subject:
        return subject.spec.described


VALUES = re.compile(r"\{([^{}\s\"']*,[^{}\s\"']*)\}")  # The values of a setting, as a shell would have them

SEED = "{seed}"

USUAL_SEED = 1  # Of every run whose speed is measured

# Runs of each combination in the first stage, where there are more places than a last stage has
ROUNDS, FEW_PLACES = 3, 2

EXPERIMENT, LEARNING = f"{__name__}:measure", f"{__name__}:learn_one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A word of a command that has several values."""

    axis: str
    at: int  # Which word it is
    before: str
    after: str
    values: tuple[str, ...]
    has_flag: bool  # Whether the word before it is its flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAxes(Axes):
    """The combinations of a command's settings."""

    command: tuple[str, ...]
    slots: tuple[Slot, ...]
    present: Target  # The command as it is run now

    def target_at(self, place: SweepPlace) -> Target:
        filled = list(self.command)
        for slot in self.slots:
            filled[slot.at] = f"{slot.before}{place.at[slot.axis]}{slot.after}"
        return target_of(filled)


def is_program(target: Target) -> bool:
    """Return whether a target is a command."""
    return target.name.startswith(PROGRAM)


def target_of(words: Sequence[str]) -> Target:
    """Return a command as a target."""
    return Target(PROGRAM + shlex.join(words))


def program_of(target: Target, seed: int = USUAL_SEED) -> Program:
    """Return the command of a target, with a seed where it takes one."""
    words = shlex.split(target.name.removeprefix(PROGRAM))
    return Program(tuple(word.replace(SEED, str(seed)) for word in words))


def read_program(words: Sequence[str], present: str | None = None) -> ProgramAxes:
    """Read a command's settings; `present` is the command as it is run now, by default without them."""
    marked = list(words) if any(map(VALUES.search, words)) else unexpanded(words)
    slots = tuple(slot_of(marked, at) for at, word in enumerate(marked) if VALUES.search(word))
    if not slots:
        raise InputError(
            "tune needs a setting with several values: python train.py '--num-envs' '{8,32}', "
            "with quotes, since shells expand the braces"
        )
    values = {slot.axis: slot.values for slot in slots}
    if len(values) < len(slots):
        raise InputError("a setting is given twice: give it once")
    check_values(values)
    now = without(marked, slots) if present is None else Program.parse(present, "--present").words
    return ProgramAxes(
        target=target_of(marked),
        values=values,
        places=tuple(
            SweepPlace(at=dict(zip(values, each, strict=True)), keys={}) for each in product(*values.values())
        ),
        command=tuple(marked),
        slots=slots,
        present=target_of(now),
    )


def slot_of(words: Sequence[str], at: int) -> Slot:
    """Return the setting in one word: after its flag, after a `=` in the same word, or by itself."""
    word = words[at]
    [match, *more] = VALUES.finditer(word)
    if more:
        raise InputError(f"{word!r} has two lists of values: one setting a word")
    before, after = word[: match.start()], word[match.end() :]
    flag = words[at - 1] if at else ""
    has_flag = not before and not after and flag.startswith("-")
    name = flag if has_flag else before.rstrip("=:")
    axis = name.lstrip("-") or f"word {at + 1}"
    return Slot(
        axis=axis,
        at=at,
        before=before,
        after=after,
        values=tuple(match[1].split(",")),
        has_flag=has_flag,
    )


def without(words: Sequence[str], slots: Sequence[Slot]) -> list[str]:
    """Return the command with its own defaults; a word that cannot be left out has its first value."""
    kept: dict[int, str] = dict(enumerate(words))
    for slot in slots:
        if slot.has_flag:
            del kept[slot.at - 1], kept[slot.at]
        elif slot.before.endswith("="):
            del kept[slot.at]
        else:
            kept[slot.at] = f"{slot.before}{slot.values[0]}{slot.after}"
    return list(kept.values())


def unexpanded(words: Sequence[str]) -> list[str]:
    """Return the command before the shell expanded its braces: `--num-envs 8 32` was `--num-envs {8,32}`.

    A flag of two dashes with several words after it, or given several times in a row, had braces.
    """
    made: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, _ = word.partition("=")
        end = at + 1
        if word.startswith("--") and equals:
            while end < len(words) and words[end].startswith(f"{name}="):
                end += 1
            values = [each.partition("=")[2] for each in words[at:end]]
            made.append(f"{name}={{{','.join(values)}}}" if len(values) > 1 else word)
        else:
            made.append(word)
            while word.startswith("--") and end < len(words) and not words[end].startswith("-"):
                end += 1
            values = list(words[at + 1 : end])
            made += [f"{{{','.join(values)}}}"] if len(values) > 1 else values
        at = end
    return made


def rounds_of(places: int) -> int:
    """Return the runs of each combination in the first stage: few if a later one adds to them."""
    return ROUNDS if places > FEW_PLACES else 2 * ROUNDS


def run_s(target: Target) -> float:
    """Return the seconds that a run takes; it fills the caches of the disk, too."""
    with Launcher() as launcher:
        return launcher.run(program_of(target)).wall_ns / 1e9


def forecast_s(axes: ProgramAxes) -> float:
    """Return the seconds of a run, about, by the present command and two combinations."""
    try:
        took = [run_s(axes.present)]
    except InputError as error:
        raise InputError(
            f"the present settings cannot be run: {error}; the winner takes turns with them: "
            "--present 'COMMAND' says how the program is run now"
        ) from None
    for place in (axes.places[0], axes.places[-1]):
        try:
            took.append(run_s(axes.target_at(place)))
        except InputError:  # it is skipped, with the reason, once it has its turn
            continue
    return fmean(took)


def measure(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Measure one cell: whole runs of a command, with its memory and the time of a run."""
    metric = metric_of(asked["metric"], less_is_better=asked["less_is_better"])
    options = BenchProgramOptions(rounds=asked["rounds"], warmup=0)
    with Launcher() as launcher:
        found = programs.bench_once(ProgramSide(program_of(target), launcher, metric), options, progress)
    more = {"latency_ns": found.values["wall_ns"], RSS: found.values["rss_peak_bytes"]}
    return replace(found, values={**found.values, **more})


def learn_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Run a command with a seed; the record has the last value that it printed of what it learnt."""
    metric, program = parse_metric(asked["metric"]), program_of(target, asked["seed"])
    recorder = ProgramRecorder("bench", program)
    with Launcher() as launcher:
        run = launcher.run(program)
    progress(1, 1)
    text = matches(metric, run, program)[-1]
    learnt = to_number(metric, text)
    if not isfinite(learnt):
        raise InputError(f"--learning-metric {metric.name} found {text}: expected a finite number")
    return recorder.record(
        rounds=1, warmup=0, runs=1, headline=metric.name, values={metric.name: [learnt], "return": [learnt]}
    )


def repeats(pairs: Sequence[tuple[Mapping[str, Sequence[float]], Mapping[str, Sequence[float]]]]) -> bool:
    """Return whether every run learnt exactly the same, so that all of them are one."""
    return len(pairs) > 1 and all(
        len({median(side["return"]) for side in sides}) == 1 for sides in zip(*pairs, strict=True)
    )
