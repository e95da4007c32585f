"""The experiments as functions of Python: they return the records that the commands print."""

from collections.abc import Callable, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.envs.callables import parameters_of
from hotloop.envs.foreign.opening import Order, made, subject_of
from hotloop.envs.instances import KEY, NUMBERS, numbered
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile.probes import choose
from hotloop.lab.profile.profile import Asked, Extras, look
from hotloop.lab.profile.trace import Tracer


def profile(  # noqa: PLR0913 - one argument a flag of the command
    env: Any,
    /,
    *,
    policy: Any = RANDOM,
    steps: int | None = None,
    time: Sequence[str] = (),
    probes: Sequence[str] = (),
    tape: Path | None = None,
    trace: Tracer | None = None,
    baselines: Path | None = None,
    files: Path | None = None,
    **given: object,
) -> Record:
    """Say where the time of an environment's loop goes: the record that `hotloop profile` prints.

    `env` is a target as the command line names one, a function that makes an environment, or an
    environment, of which a copy is made. `policy` is what the command takes, or a function from observations
    to actions. `time` names functions to look at, `probes` who else looks, each in a pass of its own.
    Other keys go to the target or to the function; of them `seed` is ours.

    Nothing is written unless it is asked for: `tape` is a file for the actions that were played, `files` a
    folder for what probes draw. `trace` is given sampled steps; `baselines` is a folder of profiles, whose
    latest of the target is compared with.
    """
    extras = Extras(probes=choose(probes, time), baselines=baselines, files=files)
    maker = None if isinstance(env, str) else maker_of(env, given)
    with closing(Opener(maker.open if maker else None)) as opener:
        asked = Asked(
            target=Target(maker.name) if maker else Target(env, given),
            opener=opener,
            steps=steps,
            policy=policy,
            time=tuple(time),
            tape=tape,
            tracer=trace,
        )
        return look(asked, extras)


class Maker:
    """Makes the environments of the two sides, and of the probes."""

    def __init__(self, name: str, make: Callable[[], Any], seed: int) -> None:
        self.name, self.make, self.seed = name, make, seed

    def open(self, target: Target, *, profile: bool) -> Subject:
        """A new one, with its calls in spans where it is to be watched."""
        order = Order(target=target, arguments={}, seed=self.seed, again=self.make)
        return subject_of(made(self.name, self.make), order, timed=profile)


def maker_of(env: Any, given: dict[str, object]) -> Maker:
    seed = given.pop("seed", 42)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed={seed} does not fit: expected int of at least 0")
    if hasattr(env, "reset") and hasattr(env, "step") and not isinstance(env, type):
        kind = type(env)
        return Maker(f"{kind.__module__}:{kind.__qualname__}", lambda: copied(env), seed)
    if not callable(env):
        raise InputError(
            f"{env!r} cannot be profiled: give a target, a function that makes an env, or an env"
        )
    name = getattr(env, "__qualname__", type(env).__name__)
    return Maker(f"{getattr(env, '__module__', None)}:{name}", lambda: env(**with_instance(env, given)), seed)


def with_instance(env: Any, given: dict[str, object]) -> dict[str, object]:
    """The keys of a call, with the number of what it makes where it asks for that."""
    number = NUMBERS.take()
    asked = {KEY: number} if KEY in parameters_of(env) else {}
    return {**asked, **numbered(given, number)}


def copied(env: Any) -> Any:
    try:
        return deepcopy(env)
    except Exception as error:  # noqa: BLE001 - anything may be inside an env
        raise InputError(
            f"the environment cannot be copied ({error}): give a function that makes one"
        ) from None
