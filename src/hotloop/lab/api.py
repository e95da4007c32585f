"""The experiments as functions of Python: they return the records that the commands print."""

from collections.abc import Callable, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.envs.foreign.functions import find
from hotloop.envs.foreign.opening import Order, made, subject_of
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.profile import profile as looking
from hotloop.lab.profile.profile import plan
from hotloop.lab.profile.profile import profile as profile_target


def profile(
    env: Any,
    /,
    *,
    policy: Any = RANDOM,
    steps: int | None = None,
    time: Sequence[str] = (),
    tape: Path | None = None,
    **given: object,
) -> Record:
    """Say where the time of an environment's loop goes.

    `env` is a target as the command line names one, a function that makes an environment, or an
    environment, of which a copy is made. `policy` is what the command takes, or a function from observations
    to actions. Other keys go to the target or to the function; of them `seed` is ours.
    """
    if isinstance(env, str):
        return profile_target(Target(env, given), steps, policy=policy, time=time, tape=tape)
    maker = maker_of(env, given)
    order = Order(target=Target(maker.name), arguments={}, seed=maker.seed)
    clean, watched = (opened(maker, order, timed=timed) for timed in (False, True))
    functions = [find(name, maker.home) for name in time]
    sides = looking.Asked(
        clean=clean, watched=watched, target=order.target, policy=policy, functions=functions, tape=tape
    )
    with closing(clean):
        return looking.look(sides, plan(steps))


class Maker:
    """Makes the environments of the two sides."""

    def __init__(self, name: str, make: Callable[[], Any], home: str | None, seed: int) -> None:
        self.name, self.make, self.home, self.seed = name, make, home, seed


def maker_of(env: Any, given: dict[str, object]) -> Maker:
    seed = given.pop("seed", 42)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed={seed} does not fit: expected int of at least 0")
    if hasattr(env, "reset") and hasattr(env, "step") and not isinstance(env, type):
        kind = type(env)
        return Maker(f"{kind.__module__}:{kind.__qualname__}", lambda: copied(env), kind.__module__, seed)
    if not callable(env):
        raise InputError(
            f"{env!r} cannot be profiled: give a target, a function that makes an env, or an env"
        )
    name = getattr(env, "__qualname__", type(env).__name__)
    home = getattr(env, "__module__", None)
    return Maker(f"{home}:{name}", lambda: env(**given), home, seed)


def copied(env: Any) -> Any:
    try:
        return deepcopy(env)
    except Exception as error:  # noqa: BLE001 - anything may be inside an env
        raise InputError(
            f"the environment cannot be copied ({error}): give a function that makes one"
        ) from None


def opened(maker: Maker, order: Order, *, timed: bool) -> Subject:
    return subject_of(made(maker.name, maker.make), order, timed=timed)
