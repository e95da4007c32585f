"""Pairs: what is held against what, and how many envs of each."""

import importlib.util
import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from hotloop.core import registry
from hotloop.core.errors import InputError, SetupError
from hotloop.core.settings import describe, parse_pairs
from hotloop.core.validation import Recipe
from hotloop.core.world import Rival
from hotloop.envs import callables
from hotloop.envs.foreign.opening import parameters_of
from hotloop.envs.subject import Subject
from hotloop.envs.targets import open_target

TWIN, CUDA = "reference", "cuda"
FEW, MANY = 8, 64
"""Envs played beside a slow reference, and beside a quick one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A reference, and the candidate that has to be like it."""

    against: str
    """As it was asked for."""
    reference: Recipe
    candidate: Recipe
    rival: Rival | None = None
    """Where both are ways of one world."""

    @property
    def quick(self) -> bool:
        """Whether both sides are native code."""
        return self.rival is not None or self.against == CUDA


def rivals() -> list[str]:
    """The names of every world's rivals."""
    return sorted({name for world in registry.worlds().values() for name in world.rivals})


def known() -> str:
    return ", ".join((TWIN, *rivals(), CUDA, "path.py:callable, or a quoted target with its keys"))


def pair_of(target: str, given: Mapping[str, object], against: str | None) -> Pair:
    """What a target is to be held against, each side with the keys it is made from."""
    if against is None and registry.names_callable(target):
        raise InputError(f"{target} has no twin of ours: say --against its reference ({known()})")
    asked = against or TWIN
    if asked in (TWIN, CUDA, *rivals()):
        check_ours(target, given, asked)
        rival = None if asked in (TWIN, CUDA) else rival_of(target, asked)
        sides = both_ways(rival) if rival else {TWIN: twin, CUDA: cuda}[asked](target)
        reference, candidate = ({**given, **side} for side in sides)
        pair = Pair(
            against=asked,
            reference=Recipe(target=target, given=reference),
            candidate=Recipe(target=target, given=candidate),
            rival=rival,
        )
    else:
        pair = Pair(
            against=asked,
            reference=other(asked, given),
            candidate=Recipe(target=target, given=dict(given)),
        )
    return with_envs(pair)


def check_ours(target: str, given: Mapping[str, object], against: str) -> None:
    """Refuse what is decided by the pair, and somebody else's environment, which has no such side."""
    if registry.names_callable(target):
        raise InputError(f"--against {against} is for our worlds: {target} needs {known()}")
    own = [] if against in (TWIN, CUDA) else [rival_of(target, against).parameter]
    for key in ("impl", "device", *own):
        if key in given:
            raise InputError(f"leave out {key}=: --against {against} decides it for both sides")


Keys = dict[str, object]


def twin(target: str) -> tuple[Keys, Keys]:
    return {"impl": "reference"}, {"impl": "native"}


def rival_of(target: str, name: str) -> Rival:
    world = registry.find(target).world
    if name not in world.rivals:
        raise InputError(f"{world.name} has no {name}: use --against {TWIN}")
    return world.rivals[name]


def both_ways(rival: Rival) -> tuple[Keys, Keys]:
    native: Keys = {"impl": "native"}
    return {**native, rival.parameter: rival.reference}, {**native, rival.parameter: rival.candidate}


def cuda(target: str) -> tuple[Keys, Keys]:
    if importlib.util.find_spec("hotloop._cuda") is None:
        raise SetupError(
            f"--against {CUDA}: this installation has no CUDA module; build it where there is nvcc, "
            f"or use --against {TWIN}"
        )
    return {"impl": "native"}, {"impl": "native", "device": "cuda"}


def other(words: str, given: Mapping[str, object]) -> Recipe:
    """A reference of its own: a target in quotes with its keys, or by itself with those of the candidate."""
    try:
        target, *pairs = shlex.split(words) or [""]
    except ValueError as error:
        raise InputError(f"--against cannot be read: {error} in {words!r}") from None
    if not registry.names_callable(target) and "/" not in target:
        raise InputError(f"--against {words} does not fit: expected {known()}")
    return Recipe(target=target, given=parse_pairs(pairs) if pairs else dict(given))


def with_envs(pair: Pair) -> Pair:
    """Give both sides as many envs: those that one of them insists on, or as many as are worth playing."""
    sides = (pair.reference, pair.candidate)
    free = [takes(side, "num_envs") and "num_envs" not in side.given for side in sides]
    if not any(free):
        return pair
    envs = MANY if pair.quick else FEW
    for side, is_free in zip(sides, free, strict=True):
        if not is_free:
            with closing(opened(side)) as subject:
                envs = subject.spec.num_envs
    reference, candidate = (
        replace(side, given={**side.given, "num_envs": envs}) if is_free else side
        for side, is_free in zip(sides, free, strict=True)
    )
    return replace(pair, reference=reference, candidate=candidate)


def takes(recipe: Recipe, key: str) -> bool:
    """Whether a side can be made with another value of a key."""
    if not registry.names_callable(recipe.target):
        world = registry.find(recipe.target).world
        return key in ("num_envs", "threads") or key in {info.name for info in describe(world.parameters)}
    if recipe.target.partition(":")[0] in ("gym", "pettingzoo", "puffer"):
        return False
    return key in parameters_of(callables.find(recipe.target))


def opened(recipe: Recipe, **more: object) -> Subject:
    return open_target(recipe.target, {**recipe.given, **more})
