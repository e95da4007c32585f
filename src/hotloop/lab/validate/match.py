"""A match: what is held against what, and how many envs of each."""

from contextlib import closing
from dataclasses import dataclass, replace

from hotloop.core import registry
from hotloop.core.errors import InputError, SetupError
from hotloop.core.settings import describe
from hotloop.core.target import Target
from hotloop.core.world import Rival
from hotloop.envs import projects
from hotloop.envs.cuda import device
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject

TWIN, CUDA = "reference", "cuda"
FEW, MANY = 8, 64
"""Envs played beside a slow reference, and beside a quick one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A reference, and the candidate that has to be like it."""

    against: str
    """As it was asked for."""
    reference: Target
    candidate: Target
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


def match_of(target: Target, against: str | None) -> Match:
    """What a target is to be held against, each side with the keys it is made from."""
    if against is None and target.is_foreign:
        raise InputError(f"{target.name} has no twin of ours: say --against its reference ({known()})")
    asked, rival = against or TWIN, None
    if asked in (TWIN, CUDA, *rivals()):
        check_ours(target, asked)
        rival = None if asked in (TWIN, CUDA) else rival_of(target.name, asked)
        sides = both_ways(rival) if rival else {TWIN: twin, CUDA: cuda}[asked]()
        reference, candidate = map(target.with_keys, sides)
    else:
        reference, candidate = other(asked, target), target
    return with_envs(Match(against=asked, reference=reference, candidate=candidate, rival=rival))


def check_ours(target: Target, against: str) -> None:
    """Refuse what is decided by the match, and somebody else's environment, which has no such side."""
    if target.is_foreign:
        raise InputError(f"--against {against} is for our worlds: {target.name} needs {known()}")
    own = [] if against in (TWIN, CUDA) else [rival_of(target.name, against).parameter]
    for key in ("impl", "device", "host_views", *own):
        if key in target.keys:
            raise InputError(f"leave out {key}=: --against {against} decides it for both sides")


Keys = dict[str, object]


def twin() -> tuple[Keys, Keys]:
    return {"impl": "reference"}, {"impl": "native"}


def rival_of(target: str, name: str) -> Rival:
    world = registry.find(target).world
    if name not in world.rivals:
        raise InputError(f"{world.name} has no {name}: use --against {TWIN}")
    return world.rivals[name]


def both_ways(rival: Rival) -> tuple[Keys, Keys]:
    native: Keys = {"impl": "native"}
    return {**native, rival.parameter: rival.reference}, {**native, rival.parameter: rival.candidate}


def cuda() -> tuple[Keys, Keys]:
    found = device()
    if isinstance(found, str):
        raise SetupError(f"--against {CUDA}: {found}; or use --against {TWIN}")
    return {"impl": "native"}, {"impl": "native", "device": "cuda", "host_views": True}


def other(words: str, candidate: Target) -> Target:
    """A reference of its own: a target in quotes with its keys, or by itself with those of the candidate."""
    reference = Target.parse(words, "--against")
    if not reference.is_foreign and "/" not in reference.name:
        raise InputError(f"--against {words} does not fit: expected {known()}")
    return reference if reference.keys else reference.with_keys(candidate.keys)


def with_envs(match: Match) -> Match:
    """Give both sides as many envs: those that one of them insists on, or as many as are worth playing."""
    with projects.apart(match.reference, match.candidate):
        return sized(match)


def sized(match: Match) -> Match:
    """The same, where both sides may be opened."""
    sides = (match.reference, match.candidate)
    free = [takes(side, "num_envs") and "num_envs" not in side.keys for side in sides]
    if not any(free):
        return match
    envs = MANY if match.quick else FEW
    for side, is_free in zip(sides, free, strict=True):
        if not is_free:
            with closing(opened(side)) as subject:
                envs = subject.spec.num_envs
    reference, candidate = (
        side.with_keys({"num_envs": envs}) if is_free else side
        for side, is_free in zip(sides, free, strict=True)
    )
    return replace(match, reference=reference, candidate=candidate)


def takes(target: Target, key: str) -> bool:
    """Whether a side can be made with another value of a key."""
    if not target.is_foreign:
        world = registry.find(target.name).world
        return key in ("num_envs", "threads") or key in {info.name for info in describe(world.parameters)}
    if target.name.partition(":")[0] in ("gym", "pettingzoo", "puffer"):
        return False
    return key in projects.parameters(target)


def opened(target: Target, **more: object) -> Subject:
    return open_target(target.with_keys(more))
