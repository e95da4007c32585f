"""What validate compares: a reference, a candidate, and the tapes that both play."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import registry
from hotloop.core.errors import HotloopError, InputError, MissingError
from hotloop.core.machine import usable_cores
from hotloop.core.settings import Target, describe
from hotloop.core.world import Rival
from hotloop.envs import projects
from hotloop.envs.cuda import device
from hotloop.envs.env_by_env import VEC_ENV, EnvByEnv, is_batch, is_single, open_instances
from hotloop.envs.foreign.vector import NEXT_STEP, SAME_STEP
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject, WholeNumbers
from hotloop.lab.measure.policy import RANDOM, RandomPlay, acting
from hotloop.lab.measure.target import open_with_players
from hotloop.lab.validate.equal import EXACT, FOREIGN, Closeness, unlike_sides

TWIN, CUDA = "reference", "cuda"
FEW, MANY = 8, 64  # Envs played beside a slow reference, and beside a quick one


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A reference, and the candidate that has to be like it."""

    against: str  # As it was asked for
    reference: Target
    candidate: Target
    rival: Rival | None = None  # Where both are ways of one world


def rivals() -> list[str]:
    """Return the names of every world's rivals."""
    return sorted({name for world in registry.worlds().values() for name in world.rivals})


def known_references() -> str:
    """Return what --against takes, in words."""
    return ", ".join((TWIN, *rivals(), CUDA, "path.py:callable, or a quoted target with its keys"))


def match_of(target: Target, against: str | None) -> Match:
    """Return what a target is compared with, each side with the keys it is made from."""
    if against is None and target.is_foreign:
        raise InputError(
            f"{target.name} has no twin of ours: say --against its reference ({known_references()})"
        )
    against = against or TWIN
    rival: Rival | None = None
    if against in (TWIN, CUDA, *rivals()):
        if target.is_foreign:
            raise InputError(
                f"--against {against} is for our worlds: {target.name} needs {known_references()}"
            )
        if against not in (TWIN, CUDA):
            world = registry.find(target.name).world
            if against not in world.rivals:
                raise InputError(f"{world.name} has no {against}: use --against {TWIN}")
            rival = world.rivals[against]
        for key in ("impl", "device", "host_views", *([rival.parameter] if rival else [])):
            if key in target.keys:
                raise InputError(f"leave out {key}=: --against {against} decides it for both sides")
        reference, candidate = map(target.with_keys, keys_of_sides(against, rival))
    else:
        reference, candidate = own_reference(against, target), target
    return with_envs(Match(against=against, reference=reference, candidate=candidate, rival=rival))


def keys_of_sides(against: str, rival: Rival | None) -> tuple[dict[str, object], dict[str, object]]:
    """Return the keys of the reference and of the candidate; MissingError without CUDA."""
    native: dict[str, object] = {"impl": "native"}
    if rival:
        return {**native, rival.parameter: rival.reference}, {**native, rival.parameter: rival.candidate}
    if against == TWIN:
        return {"impl": "reference"}, native
    if isinstance(missing := device(), str):
        raise MissingError(f"--against {CUDA}: {missing}; or use --against {TWIN}")
    return native, {**native, "device": "cuda", "host_views": True}


def own_reference(words: str, candidate: Target) -> Target:
    """Return a target in quotes with its keys as the reference, or one by itself with the candidate's keys.

    A number of envs that only the candidate's own batch takes stays there: the reference is then opened as
    often as that batch has envs.
    """
    reference = Target.parse(words, "--against")
    if not reference.is_foreign and "/" not in reference.name:
        raise InputError(f"--against {words} does not fit: expected {known_references()}")
    if (
        reference.keys or reference.name == candidate.name
    ):  # with its keys, a target would be its own reference
        return reference
    with projects.open_separately(reference, candidate):
        own = candidate.is_foreign and takes(candidate, "num_envs") and not takes(reference, "num_envs")
    kept = {key: value for key, value in candidate.keys.items() if not (own and key == "num_envs")}
    return reference.with_keys(kept)


def with_envs(match: Match) -> Match:
    """Give both sides the envs that one of them insists on, or as many as are worth playing."""
    reference, candidate = match.reference, match.candidate
    with projects.open_separately(reference, candidate):
        free = [takes(side, "num_envs") and "num_envs" not in side.keys for side in (reference, candidate)]
        if all(free):
            envs = {"num_envs": MANY if match.rival or match.against == CUDA else FEW}
            return replace(match, reference=reference.with_keys(envs), candidate=candidate.with_keys(envs))
        if free[0]:
            return replace(match, reference=fit_envs(reference, candidate))
        return replace(match, candidate=fit_envs(candidate, reference)) if free[1] else match


def fit_envs(free: Target, fixed: Target) -> Target:
    """Return a side that takes any number of envs as it is made beside one that insists on its own number.

    A callable whose envs can be compared one by one stays as it makes itself: a batch that is right with one
    env may be wrong with several.
    """
    with closing(open_target(fixed)) as subject:
        envs, by_env = subject.spec.num_envs, has_rows(subject)
    if free.is_foreign and by_env:
        needs_envs = "num_envs" in projects.parameters(free, required=True)
        own = free.with_keys({"num_envs": max(envs, FEW)} if needs_envs else {})
        with closing(open_target(own)) as subject:
            if has_rows(subject):
                return own
    return free.with_keys({"num_envs": envs})


def takes(target: Target, key: str) -> bool:
    """Return whether a side can be made with another value of a key."""
    if not target.is_foreign:
        world = registry.find(target.name).world
        return key in ("num_envs", "threads") or key in {info.name for info in describe(world.parameters)}
    if target.name.partition(":")[0] in ("gym", "pettingzoo", "puffer"):
        return False
    return key in projects.parameters(target)


ADVERSARIAL = "adversarial"
RESET_ONE, RESET_ALL = 37, 101  # Every so many steps an adversarial tape begins one env anew, and all of them
FIRST_RESET = 64  # The other tapes begin all envs anew before this step, and before twice as many, and so on
CHUNK = 64  # Calls whose actions are drawn at a time
WILD = 5  # How far beyond the actions there are an adversarial tape goes

EXTREMES = (np.iinfo(np.int32).min, np.iinfo(np.int32).max, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A kind of tape and how much of it is played."""

    tape: str
    share: float  # Of all steps
    keys: Mapping[str, object]  # What both sides are made with beside their own keys


def courses_for(subject: Subject, target: Target, policy: str | None = None) -> list[Course]:
    """Return the tapes to play: random, those of the subject's players or of one policy, and adversarial."""
    players = [policy] if policy else [name for name in subject.players if name != RANDOM]
    scripted = [Course(tape=player, share=0.25 / len(players), keys={}) for player in players]
    # episodes that end soon, unless the target says how long they are
    episode = None if target.is_foreign else registry.find(target.name).world.episode
    short = {episode.parameter: episode.short} if episode and episode.parameter not in target.keys else {}
    adversarial = Course(tape=ADVERSARIAL, share=0.25, keys=short)
    return [Course(tape=RANDOM, share=0.5 if players else 0.75, keys={}), *scripted, adversarial]


def actions_of(tape: str, subject: Subject) -> Iterator[Any]:
    """Yield the actions of a tape, one call after another; a player looks at the subject before each."""
    if tape not in (RANDOM, ADVERSARIAL):
        yield from acting(tape, subject)
    play = Adversarial(subject) if tape == ADVERSARIAL else RandomPlay(subject)
    while True:
        yield from (subject.settle(each) for each in play.draw(CHUNK)[:CHUNK])


def resets_before(tape: str, step: int, num_envs: int) -> list[int]:
    """Return the envs that a tape begins anew before a step.

    Every tape does, because what an episode leaves behind shows in the next one: after longer and longer
    stretches, so that episodes grow old first.
    """
    if step == 0:
        return []
    if tape != ADVERSARIAL:
        is_power_of_two = step & (step - 1) == 0
        return list(range(num_envs)) if step >= FIRST_RESET and is_power_of_two else []
    if step % RESET_ALL == 0:
        return list(range(num_envs))
    return [step // RESET_ONE % num_envs] if step % RESET_ONE == 0 else []


class Adversarial:
    """Every action in turn by every agent, then actions that do not exist among those that do."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._random = np.random.default_rng([subject.spec.seed, 1])
        self._calls = 0

    def draw(self, calls: int) -> Sequence[Any]:
        first, self._calls = self._calls, self._calls + calls
        known = self._subject.whole_numbers
        if known is None:
            return self._subject.draw(self._random, calls)
        in_turn = [self._subject.unfold(self._row(known, call)) for call in range(first, first + calls)]
        return self._subject.legal(self._random, in_turn)

    def _row(self, known: WholeNumbers, call: int) -> NDArray[np.int32]:
        if call // known.count % 2 == 0 or not known.any_is_taken:
            in_turn = (np.indices(known.shape).sum(axis=0) + call) % known.count
            row: NDArray[np.int32] = (known.start + in_turn).astype(np.int32)
            return row
        below, above = known.start - WILD, known.start + known.count + WILD
        row = self._random.integers(below, above, size=known.shape, dtype=np.int32)
        row.reshape(-1)[call % row.size] = EXTREMES[call % len(EXTREMES)]
        return row


def more_threads() -> int:
    """Return as many threads as there are cores, from 2 to 4."""
    return min(max(usable_cores() or 2, 2), 4)


Pair = tuple[Subject, Subject]

# Gymnasium's conventions of autoreset; a single env is shown in whichever the other side has
MODES = (NEXT_STEP, SAME_STEP, "Disabled")


@contextmanager
def aligned(a: Subject, b: Subject) -> Iterator[Pair]:
    """Give both sides as batches of as many envs, and close what was opened for that; both stay open."""
    views = align(a, b)
    try:
        yield views
    finally:
        for side, view in zip((a, b), views, strict=True):
            if not shows(view, side):
                view.close()


def open_aligned(reference: Target, candidate: Target) -> Pair:
    """Open two targets as batches of as many envs; who closes what is returned has closed everything."""
    opened: list[Subject] = []
    try:
        opened += [open_target(reference)]
        opened += [open_target(candidate)]
        views = align(opened[0], opened[1])
    except BaseException:
        close_all(opened)
        raise
    close_all([side for side, view in zip(opened, views, strict=True) if not shows(view, side)])
    return views


def close_all(sides: list[Subject]) -> None:
    for side in sides:
        with suppress(HotloopError):
            side.close()


def shows(view: Subject, side: Subject) -> bool:
    """Whether what is shown is the side itself, rather than instances made beside it."""
    return view is side or (isinstance(view, EnvByEnv) and view.inner is side)


def align(a: Subject, b: Subject) -> Pair:
    """Return both sides as batches of as many envs; InputError where their episodes cannot be matched."""
    widths = (a.spec.num_envs, b.spec.num_envs)
    if not (is_foreign(a) or is_foreign(b)):
        return wide_batch(a, max(widths)), wide_batch(b, max(widths))
    if a.autoreset in MODES and b.autoreset in MODES and a.autoreset != b.autoreset:
        raise unlike_autoreset(a, b)
    if widths[0] == widths[1] and form_of(a) == form_of(b):
        return a, b
    if not (has_rows(a) and has_rows(b)):
        if widths[0] == widths[1] or not (is_foreign(a) and is_foreign(b)):
            return a, b
        raise InputError(
            f"{a.spec.name} has {widths[0]} envs and {b.spec.name} {widths[1]}, and their interfaces cannot "
            "be compared env by env: give both as many, or use --unlike"
        )
    autoreset = next((side.autoreset for side in (a, b) if is_batch(side)), a.autoreset)
    one, other = (
        EnvByEnv([side], autoreset)
        if side.spec.num_envs == max(widths)
        else open_instances(side.spec.same_work, max(widths), autoreset)  # as often as makes it as wide
        for side in (a, b)
    )
    return one, other


def wide_batch(side: Subject, envs: int) -> Subject:
    """Return a batch of ours with so many envs; as it is where only its maker knows how to make it."""
    made_from = side.spec.made_from
    if side.spec.num_envs == envs or made_from is None:
        return side
    return open_with_players(made_from.with_keys({"num_envs": envs}), profile=False)


def is_aligned(*sides: Subject) -> bool:
    """Whether sides are shown env by env; of two, the wider one always is from here."""
    return any(isinstance(side, EnvByEnv) for side in sides)


def is_foreign(side: Subject) -> bool:
    return side.spec.impl == FOREIGN


def has_rows(side: Subject) -> bool:
    """Whether a side can be shown env by env."""
    return side.spec.agents == 1 and (is_single(side) or is_batch(side))


def form_of(side: Subject) -> str:
    """Return the form in which a side takes actions and answers."""
    if is_single(side):
        return "single"
    interface = side.spec.interface
    return "batch" if is_batch(side) and interface != VEC_ENV else interface


def closeness_between(a: Subject, b: Subject, closeness: Closeness = EXACT) -> Closeness:
    """Return how two aligned sides are compared.

    Between interfaces floats are compared in the narrower type: a batch may keep in 32 bits what a single env
    returns in 64.
    """
    return closeness if form_of(a) == form_of(b) else replace(closeness, narrows=True)


def check_alike(reference: Subject, candidate: Subject) -> None:
    """Refuse sides that cannot play one tape: other spaces, agents or actions, another way to begin anew."""
    one, other = reference.spec, candidate.spec
    if one.agents != other.agents:
        raise unlike_sides("agents", one.agents, other.agents)
    for what, ours, theirs in zip(
        ("an observation space", "an action space"), reference.spaces, candidate.spaces, strict=True
    ):
        if ours is not None and theirs is not None and ours != theirs:
            raise unlike_sides(what, ours, theirs)
    if reference.autoreset != candidate.autoreset:
        raise unlike_autoreset(reference, candidate)


def unlike_autoreset(reference: Subject, candidate: Subject) -> InputError:
    return InputError(
        f"the sides have different autoreset conventions: {reference.spec.name} begins the next episode "
        f"{reference.autoreset!r}, {candidate.spec.name} {candidate.autoreset!r}; make them alike"
    )
