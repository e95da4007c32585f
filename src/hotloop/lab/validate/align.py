"""Alignment: two sides of unlike numbers of envs, or unlike interfaces, as batches of the same envs.

Env i of the wider side is compared with an env of the narrower side's kind that is seeded i later.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from hotloop.core.errors import HotloopError, InputError
from hotloop.core.target import Target
from hotloop.envs.env_by_env import VEC_ENV, EnvByEnv, is_batch, is_single, open_instances
from hotloop.envs.foreign.vector import NEXT_STEP, SAME_STEP
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.target import open_with_players
from hotloop.lab.validate.equal import EXACT, Closeness, unlike_autoreset
from hotloop.lab.validate.streams import FOREIGN

Pair = tuple[Subject, Subject]

MODES = (NEXT_STEP, SAME_STEP, "Disabled")
"""Gymnasium's conventions of autoreset; a single env is shown in whichever the other side has."""


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
    check_autoreset(a, b)
    widths = (a.spec.num_envs, b.spec.num_envs)
    if not (is_foreign(a) or is_foreign(b)):
        return wide_batch(a, max(widths)), wide_batch(b, max(widths))
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
    one, other = (view_of(side, max(widths), autoreset) for side in (a, b))
    return one, other


def view_of(side: Subject, envs: int, autoreset: str) -> Subject:
    """Return the rows of a side; a narrower one is opened as often as makes it as wide."""
    if side.spec.num_envs == envs:
        return EnvByEnv([side], autoreset)
    return open_instances(side.spec.same_work, envs, autoreset)


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


def check_autoreset(a: Subject, b: Subject) -> None:
    """Refuse batches of libraries that begin the next episode at different moments."""
    if not (is_foreign(a) or is_foreign(b)):
        return
    if a.autoreset in MODES and b.autoreset in MODES and a.autoreset != b.autoreset:
        raise unlike_autoreset(a, b)


def closeness_between(a: Subject, b: Subject, closeness: Closeness = EXACT) -> Closeness:
    """Return how two aligned sides are compared.

    Between interfaces floats are compared in the narrower type: a batch may keep in 32 bits what a single env
    returns in 64.
    """
    return closeness if form_of(a) == form_of(b) else replace(closeness, narrows=True)
