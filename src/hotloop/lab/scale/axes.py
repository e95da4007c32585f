"""Axes: the keys of a target that have several values, and the grids that have a name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, get_origin

from hotloop.core import registry
from hotloop.core.errors import InputError, unknown
from hotloop.core.settings import describe
from hotloop.core.target import Target
from hotloop.envs.spec import BatchSettings
from hotloop.lab.training import settings as training

STEPS = "steps"  # The axis that is the length of a run, and no key of the target

ALIASES = {"envs": "num_envs"}

# The classic ones, for whatever has such keys; a world may have its own of the same name, and more
GRIDS: Mapping[str, Mapping[str, str]] = {
    "agents": {"agents": "10,20,50,100,200,500,1000"},
    "steps": {STEPS: "100,200,500,1000,2000,5000"},
    "envs": {"num_envs": "50,100,200,300,400,500"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One place on the axes."""

    at: dict[str, str]  # Axis to value
    keys: dict[str, str]  # What the target is given for it

    @property
    def steps(self) -> int | None:
        """How long a run is, where that is an axis."""
        return int(self.at[STEPS]) if STEPS in self.at else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The places of a sweep."""

    target: Target  # With the keys that stay the same
    values: dict[str, tuple[str, ...]]  # Axis to its values, in the order they were given
    places: tuple[Place, ...]

    def target_at(self, place: Place) -> Target:
        return self.target.with_keys(place.keys)

    @property
    def words(self) -> str:
        """As they would be typed."""
        return " ".join(f"{axis}={','.join(values)}" for axis, values in self.values.items())


Rows = Mapping[str, Mapping[str, str]]  # The sizes of an axis, each to the keys that make it


def read(target: Target, grid: str | None = None, *, kind: str = "scale") -> Axes:
    """Part a target's keys into those of one value and axes; refuses a target without an axis."""
    single, several = parted(target)
    rows = dict[str, Rows]() if grid is None else dict([grid_of(target, grid)])
    rows |= {axis: plain_rows(axis, values) for axis, values in several.items()}
    if not rows:
        grids = ", or --grid NAME" if kind == "scale" else ""
        raise InputError(
            f"{kind} needs an axis: a key with several values, such as agents=10,100,1000{grids}"
        )
    check_values({axis: tuple(sizes) for axis, sizes in rows.items()})
    return Axes(
        target=replace(target, keys=single),
        values={axis: tuple(sizes) for axis, sizes in rows.items()},
        places=tuple(places_of(rows)),
    )


def plain_rows(axis: str, values: Sequence[str]) -> Rows:
    """The sizes of an axis that is a key, or the length of a run."""
    return {value: {} if axis == STEPS else {axis: value} for value in values}


def grid_of(target: Target, grid: str) -> tuple[str, Rows]:
    """A grid by its name: a world's own, or a classic one; the name of its axis, and its sizes."""
    own = {} if target.is_foreign else registry.find(target.name).world.sizes
    if grid in own:
        sizes = own[grid].items()
        return grid, {f"{size:g}": {key: str(value) for key, value in keys.items()} for size, keys in sizes}
    if grid in GRIDS:
        [(axis, values)] = GRIDS[grid].items()
        return axis, plain_rows(axis, values.split(","))
    there = list(dict.fromkeys([*GRIDS, *own]))
    raise unknown("grid", grid, there, f"{target.name} has {', '.join(there)}")


def parted(target: Target) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Keys of one value, and axes."""
    single, several = dict[str, Any](), dict[str, tuple[str, ...]]()
    lists = keys_of_lists(target)
    for key, value in target.keys.items():
        name = ALIASES.get(key, key)
        if isinstance(value, str) and "," in value and name not in lists:
            several[name] = tuple(word.strip() for word in value.split(","))
        elif name == STEPS and not has_key(target, STEPS):
            several[name] = (str(value),)
        else:
            single[name] = value
    return single, several


def keys_of_lists(target: Target) -> set[str]:
    """Keys whose one value has commas in it, which cannot be axes."""
    theirs = {info.name for info in infos_of(target) if get_origin(info.annotation) is tuple}
    return theirs | training.keys_of_lists()


def has_key(target: Target, name: str) -> bool:
    return any(info.name == name for info in infos_of(target))


def infos_of(target: Target) -> list[Any]:
    """What is declared of a target's keys; nothing of somebody else's."""
    if target.is_foreign:
        return []
    return [*describe(registry.find(target.name).world.parameters), *describe(BatchSettings)]


def check_values(several: Mapping[str, Sequence[str]]) -> None:
    """Refuse axes of one value, of an empty one, or of no length."""
    for axis, values in several.items():
        if len(values) < 2:
            raise InputError(f"{axis}={values[0]} is one value: an axis needs several, as {axis}=10,100,1000")
        if "" in values:
            raise InputError(f"{axis}={','.join(values)}: a value is empty; take out a comma")
    for word in several.get(STEPS, ()):
        if not word.isdecimal() or int(word) < 1:
            raise InputError(f"steps={word} does not fit: expected a length of at least 1")


def places_of(rows: Mapping[str, Rows]) -> Iterator[Place]:
    for values in product(*rows.values()):
        at = dict(zip(rows, values, strict=True))
        keys = dict[str, str]()
        for axis, value in at.items():
            keys |= rows[axis][value]
        yield Place(at=at, keys=keys)
