"""The experiments as functions of Python: they return the records that the commands print."""

from collections.abc import Callable, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs import callables
from hotloop.envs.callables import KEY, NUMBERS, numbered, parameters_of
from hotloop.envs.foreign.inside import has
from hotloop.envs.foreign.open import OpenRequest, call_maker, subject_of
from hotloop.envs.subject import Subject
from hotloop.lab import bench as benching
from hotloop.lab.compare import compare as comparing
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile.probes import choose
from hotloop.lab.profile.profile import ProfilePlan
from hotloop.lab.profile.profile import profile as run_profile
from hotloop.lab.profile.trace import Tracer
from hotloop.lab.validate import validate as validating
from hotloop.lab.validate.match import match_of
from hotloop.options.bench import BenchOptions
from hotloop.options.validate import ValidateOptions


def profile(  # noqa: PLR0913 - one argument a flag of the command
    env: Any,
    /,
    *,
    policy: Any = RANDOM,
    steps: int | None = None,
    time: Sequence[str] = (),
    phases: Any = None,
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
    to actions. `time` names functions to look at, `phases` finds what reports the phases of an env, and
    `probes` says who else looks, each in a pass of its own.
    Other keys go to the target or to the function; of them `seed` is ours.

    Nothing is written unless it is asked for: `tape` is a file for the actions that were played, `files` a
    folder for what probes draw. `trace` is given sampled steps; `baselines` is a folder of profiles, whose
    latest of the target is compared with.
    """
    chosen = choose(probes)
    maker = None if isinstance(env, str) else maker_of(env, given, phases)
    with closing(Opener(maker.open if maker else None)) as opener:
        plan = ProfilePlan(
            target=Target(maker.name) if maker else Target(env, given, phases),
            opener=opener,
            steps=steps,
            policy=policy,
            time=tuple(time),
            tape=tape,
            tracer=trace,
            probes=chosen,
            baselines=baselines,
            files=files,
        )
        return run_profile(plan)


class Maker:
    """Makes the environments of the two sides, and of the probes."""

    def __init__(self, name: str, make: Callable[[], Any], seed: int, looks: Any = None) -> None:
        """`looks` finds what reports the phases: a function of the env, or its name."""
        self.name, self.make, self.seed = name, make, seed
        self.looks = callables.find(looks) if isinstance(looks, str) else looks

    def open(self, target: Target, *, profile: bool) -> Subject:
        """A new one, with its calls in spans where it is to be watched."""
        order = OpenRequest(target=target, arguments={}, seed=self.seed, looks=self.looks, again=self.make)
        return subject_of(call_maker(self.name, self.make), order, timed=profile)


def maker_of(env: Any, given: dict[str, object], looks: Any = None) -> Maker:
    """Return what makes the envs of a function, or copies of an env."""
    seed = given.pop("seed", 42)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed={seed} does not fit: expected int of at least 0")
    if has(env, "reset") and has(env, "step") and not isinstance(env, type):
        kind = type(env)
        return Maker(f"{kind.__module__}:{kind.__qualname__}", lambda: copy_env(env), seed, looks)
    if not callable(env):
        raise InputError(
            f"{env!r} cannot be profiled: give a target, a function that makes an env, or an env"
        )

    def make() -> Any:
        number = NUMBERS.take()  # of the instance, if the function asks for it
        asked = {KEY: number} if KEY in parameters_of(env) else {}
        return env(**{**asked, **numbered(given, number)})

    name = getattr(env, "__qualname__", type(env).__name__)
    return Maker(f"{getattr(env, '__module__', None)}:{name}", make, seed, looks)


def copy_env(env: Any) -> Any:
    """Return a copy of an env; InputError if it cannot be copied."""
    try:
        return deepcopy(env)
    except Exception as error:  # noqa: BLE001 - anything may be inside an env
        raise InputError(
            f"the environment cannot be copied ({error}): give a function that makes one"
        ) from None


def target_of(env: Any, keys: dict[str, object], phases: Any = None) -> Target:
    """Return what is measured, by a name under which it is found in this process."""
    looks = phases if phases is None or isinstance(phases, str) else callables.lend(phases)
    if isinstance(env, str):
        target = Target.parse(env)
        return replace(target, keys={**target.keys, **keys}, phases=looks)
    if has(env, "step") and not isinstance(env, type):

        def copy() -> Any:
            return copy_env(env)

        copy.__module__, copy.__qualname__ = type(env).__module__, type(env).__qualname__
        return Target(callables.lend(copy), keys, looks)
    if not callable(env):
        raise InputError(
            f"{env!r} cannot be measured: give a target, a function that makes an env, or an env"
        )
    return Target(callables.lend(env), keys, looks)


def player_of(policy: Any) -> str:
    """Return the name of a policy; a function is lent one."""
    return policy if isinstance(policy, str) else callables.lend(policy)


def bench(
    env: Any,
    /,
    *,
    policy: Any = RANDOM,
    rounds: int | None = None,
    iterations: int | None = None,
    warmup: int | None = None,
    profile: bool = False,
    phases: Any = None,
    **given: object,
) -> Record:
    """Say how fast an environment steps: the record that `hotloop bench` prints.

    `env` is a target as the command line names one, a function that makes an environment, or an environment;
    `policy` is what the command takes, or a function. Other keys go to the target. Nothing is written.
    """
    target, player = target_of(env, given, phases), player_of(policy)
    options = BenchOptions(
        target=target.name,
        rounds=rounds,
        iterations=iterations,
        warmup=warmup,
        policy=player,
        profile=profile,
    )
    extras = benching.Extras(phases=profile)
    return benching.bench(target, Rounds.from_options(options), policy=player, extras=extras)


def compare(
    a: Any,
    b: Any,
    /,
    *,
    policy: Any = RANDOM,
    seconds: float | None = None,
    band: float | None = None,
    profile: bool = False,
    phases: Any = None,
    unlike: bool = False,
) -> Record:
    """Say which of two is faster, and whether both do the same: the record that `hotloop compare` prints.

    `a`, the baseline, and `b` are targets with their keys, as in `"grid/toy agents=100"`, functions
    that make environments, or environments. `seconds` is what one run may take, `band` a share: changes
    up to it are the same.
    """
    plan = Plan()
    plan = plan if seconds is None else replace(plan, budget_ns=round(seconds * 1e9))
    plan = plan if band is None else replace(plan, band=band)
    asked = comparing.CompareSettings(plan=plan, policy=player_of(policy), profile=profile, unlike=unlike)
    sides = [TargetContender(target_of(each, {}, phases)) for each in (a, b)]
    return comparing.compare(sides[0], sides[1], asked)


def validate(
    candidate: Any,
    /,
    scale: str | int = "smoke",
    *,
    against: Any = None,
    mode: str = "bytes",
    ignore: Sequence[str] = (),
    **given: object,
) -> Record:
    """Say whether one is the same as its reference: the record that `hotloop validate` prints.

    Both are what `compare` takes; a preset of ours has a reference of its own. `scale` is `smoke`, `soak` or
    a number of env-steps. What differs is named in the record; no bundle is kept.
    """
    target = target_of(candidate, given)
    if "=" in str(scale):
        raise InputError(f"{scale!r} is no amount: give keys as keyword arguments")
    options = ValidateOptions(target=target.name, words=[str(scale)], mode=mode, ignore=[*ignore])
    reference = (
        None if against is None else against if isinstance(against, str) else target_of(against, {}).words
    )
    match = match_of(target, reference)
    return validating.validate(match, options)[0]
