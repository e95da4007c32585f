"""Combinations of settings: read as others name them, sorted by whether they can be run."""

from contextlib import closing
from dataclasses import replace

from hotloop.core.errors import InputError
from hotloop.core.record.experiments import Refused
from hotloop.core.record.metadata import Described
from hotloop.core.target import Target
from hotloop.envs.projects import INSTALLED, parameters
from hotloop.lab.measure.target import open_subject
from hotloop.lab.scale import scale as reading
from hotloop.lab.scale.scale import Axes, Place
from hotloop.lab.training.settings import (
    MINIBATCH_SIZE,
    MINIBATCHES,
    PREFIX,
    is_training,
    with_minibatch_size,
)
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import spec_of, untimed
from hotloop.lab.tune import programs

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
    """The axes under our own names, num_minibatches become sizes."""
    named = {own_name(target, key): value for key, value in target.keys.items()}
    if len(named) < len(target.keys):
        raise InputError("a key is given under two names: give it once")
    found = reading.read(replace(target, keys=named), kind=KIND)
    return replace(found, places=tuple(with_size(found.target, place) for place in found.places))


def own_name(target: Target, key: str) -> str:
    """Our name of a key that others call something else; a parameter of the env's maker keeps its name."""
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


def with_size(target: Target, place: Place) -> Place:
    """The place with a size of minibatches, where their number was given."""
    asked = {**target.keys, **place.keys}
    if MINIBATCHES not in asked:
        return place
    keys = {key: value for key, value in place.keys.items() if key != MINIBATCHES}
    sized = with_minibatch_size(Target(target.name, asked))
    return replace(place, keys={**keys, MINIBATCH_SIZE: sized.keys[MINIBATCH_SIZE]})


def target_at(axes: Axes, place: Place) -> Target:
    found = axes.target_at(place)
    found.keys.pop(MINIBATCHES, None)
    return found


def name_of(place: Place) -> str:
    return " ".join(f"{axis}={value}" for axis, value in place.at.items())


def sort(axes: Axes) -> tuple[list[Place], list[Refused]]:
    """The places that can be run, and the others with the reason; refuses a search where none can."""
    runs, skipped = list[Place](), list[Refused]()
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
    if is_training(target):
        read_training(target)
    elif not (target.is_foreign or programs.is_program(target)):
        open_subject(target, profile=False).close()


def present_of(axes: Axes) -> Target:
    """The settings that stand now: what is given with one value, and what nobody gave as it is usually."""
    if isinstance(axes, programs.ProgramAxes):
        return axes.present
    keys = {key: value for key, value in axes.target.keys.items() if key != MINIBATCHES}
    training = any(axis.startswith(PREFIX) or axis == MINIBATCHES for axis in axes.values)
    if training and not any(key.startswith(PREFIX) for key in keys):
        keys[f"{PREFIX}timing"] = "off"  # it is a training, and nothing about it is given
    return replace(axes.target, keys=keys)


def checked_present(axes: Axes) -> Target:
    """The present settings; refused before anything is measured where they cannot be run beside a winner."""
    present = present_of(axes)
    try:
        check_place(present)
    except InputError as error:
        raise InputError(
            f"the present settings, {present.words}, cannot be run: {error}; the winner takes turns with "
            "them, so give a key of theirs that fits"
        ) from None
    return present


def is_same(one: Target, other: Target) -> bool:
    """Whether two targets come to the same settings: a key may be given as what it is usually."""
    if one == other or one.is_foreign or programs.is_program(one):
        return one == other
    mine, theirs = described_as(one), described_as(other)
    return (mine.params, mine.variant) == (theirs.params, theirs.variant)


def described_as(target: Target) -> Described:
    if is_training(target):
        return spec_of(untimed(read_training(target))).described
    with closing(open_subject(target, profile=False)) as subject:
        return subject.spec.described
