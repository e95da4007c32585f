"""From a foreign target to a subject: what its name means, what came back, which keys are ours."""

import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from hotloop.core.errors import Code, InputError, MissingError, SetupError, TheirError, notice
from hotloop.core.files import confinement
from hotloop.core.machine import install_line, need
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.core.record.metadata import Described
from hotloop.core.settings import Target, hash_of
from hotloop.envs import callables
from hotloop.envs.batch import Batch
from hotloop.envs.callables import NUMBERS, numbered
from hotloop.envs.foreign.inside import (
    BROKEN,
    WAITS,
    attribute,
    awaitable_error,
    awaited,
    has,
    is_a,
    plain,
    unwrapped,
)
from hotloop.envs.foreign.single import FunctionSubject, ModelSubject, SeveralSubject, SingleSubject
from hotloop.envs.foreign.subject import ForeignSubject, OneEnvSubject
from hotloop.envs.foreign.vector import RowsSubject, SeededSubject, TensorSubject, VectorSubject
from hotloop.envs.foreign.zoo import ParallelSubject, TurnSubject
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject

# How several envs of one id are run: one after another, in workers, or by the vector env of its makers.
MODES = ("sync", "async", "own")

PROFILING = "HOTLOOP_PROFILING"

PARALLEL = "pettingzoo parallel"  # The interface whose agents have names

REGISTER = "; if a package registers it, name that too: gym:package:ID"

KINDS = (
    "an env of Gymnasium, dm_env or OpenSpiel, a vector env, a parallel or AEC env of PettingZoo, an env of "
    "PufferLib or torchrl, a VecEnv of Stable-Baselines3, a batch of hotloop.make, or an object with step "
    "and perhaps reset"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """What was asked for: the target, the keys of its makers, and ours."""

    target: Target
    arguments: dict[str, object]  # The keys of its makers
    num_envs: int | None = None
    vector: str | None = None
    seed: int = 42
    reseed: bool = False  # Whether every episode is given a seed
    looks: Callable[[Any], Any] | None = None  # From the env to what reports its phases
    again: Callable[[], Any] | None = None  # Makes another, where that is how an episode begins


def open_foreign(target: Target, *, timed: bool, seeds_before: int = 0) -> Subject:
    """Open a target that is not a preset; with `timed`, its calls are in spans.

    `seeds_before` is how many envs other instances have: its own seeds come after theirs.
    """
    prefix, _, name = target.name.partition(":")
    makers: dict[str, Callable[[str, OpenRequest], Any]] = {
        "gym": gym,
        "pettingzoo": pettingzoo,
        "puffer": puffer,
    }
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it would greet on stdout
    if prefix in makers:
        order = parse_request(target, own=(), seeds_before=seeds_before)
        if timed and name.startswith("hotloop/"):
            order = replace(order, arguments={**order.arguments, "profile": True})
        made_with = replace(order, arguments=numbered(order.arguments, NUMBERS.take()))
        with profiling(on=timed):
            return subject_of(makers[prefix](name, made_with), order, timed=timed)
    own = callables.parameters_of(callables.find(target.name))
    order = parse_request(target, own=own, seeds_before=seeds_before)
    with profiling(on=timed):
        make = callables.maker(target.name, order.arguments)
        order = replace(order, again=lambda: make(NUMBERS.take()))
        env = call_target(order)
        # a class is refused later: the user may have forgotten to call it
        is_env = isinstance(env, (Batch, Several, type)) or is_a(env, "pyspiel", "Game")
        if is_env or callable(attribute(env, "step")) or order.num_envs or order.vector:
            return subject_of(env, order, timed=timed)
        # a function that returned no env is measured itself; that call was its warm-up
        refuse_async(env, target.name)
        spec = spec_of(order, "function", num_envs=1, agents=1, notices=(notice(Code.FUNCTION),))
        call = awaited(callables.bound(target.name, order.arguments))
        return FunctionSubject(SimpleNamespace(step=call), spec, timed=timed)


@contextmanager
def profiling(*, on: bool) -> Iterator[None]:
    """Have engines that are made meanwhile, ours and others', time their phases, if `on`."""
    kept = os.environ.get(PROFILING)
    if on:
        os.environ[PROFILING] = "1"
    try:
        yield
    finally:
        if kept is None:
            os.environ.pop(PROFILING, None)
        else:
            os.environ[PROFILING] = kept


def parse_request(target: Target, own: tuple[str, ...], seeds_before: int = 0) -> OpenRequest:
    """Sort keys into ours and the callable's; one that the callable has itself is its own."""
    words = {key: callables.literal(value) for key, value in target.keys.items()}
    ours: dict[str, Any] = {
        key: words[key] for key in ("num_envs", "vector", "seed", "reseed") if key in words and key not in own
    }
    if not isinstance(ours.get("reseed", False), bool):
        raise InputError(f"reseed={ours['reseed']} does not fit: expected true or false")
    for key, least in (("num_envs", 1), ("seed", 0)):
        value = ours.get(key, least)
        if not isinstance(value, int) or value < least:
            raise InputError(f"{key}={value} does not fit: expected int of at least {least}")
    if ours.get("vector", "sync") not in MODES:
        raise InputError(f"vector={ours['vector']} does not fit: expected one of {', '.join(MODES)}")
    arguments = {key: value for key, value in words.items() if key not in ours}
    looks = callables.find(target.phases) if target.phases else None
    request = OpenRequest(target=target, arguments=arguments, looks=looks, **ours)
    return replace(request, seed=request.seed + seeds_before)


@dataclass(frozen=True, slots=True)
class Several:
    """Envs that no vector env takes, stepped one after another."""

    envs: list[Any]


def call_target(order: OpenRequest) -> Any:
    """What a callable returns, or as many of it as were asked for."""
    name, arguments = order.target.name, order.arguments
    if order.num_envs is None and order.vector is None:
        return callables.call(name, arguments)
    if order.vector == "own":
        raise InputError(f"vector=own is for gym: ids; let {name} return its vector env itself")
    count = order.num_envs or 1
    number = NUMBERS.take(count)  # here, since workers would all begin with the same
    makers = [partial(one_of, name, arguments, number + env) for env in range(count)]
    if order.vector == "async":
        makers[0] = partial(makers[0], for_workers=True)
        return call_maker(name, lambda: in_processes(need("gymnasium").vector.AsyncVectorEnv, makers))
    return several(name, makers)


def in_processes(make: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Workers that share memory; where a space is of a kind that Gymnasium cannot lay out there, pipes."""
    try:
        return make(*arguments, **more)
    except ValueError as error:
        if not is_a(error.__cause__, "gymnasium.error", "CustomSpaceError"):
            raise
        return make(*arguments, **more, shared_memory=False)


# What Gymnasium's vector envs ask of an env.
OF_WORKERS = ("metadata", "observation_space", "action_space", "render_mode")


def one_of(name: str, arguments: dict[str, object], number: int, *, for_workers: bool = False) -> Any:
    """One of several that a callable makes; workers of Gymnasium's take envs of its kind alone."""
    env = as_gymnasium(callables.call(name, arguments, number))
    missing = [each for each in OF_WORKERS if for_workers and not has(env, each)]
    if missing:
        raise InputError(
            f"vector=async runs envs of Gymnasium: the {type(env).__name__} of {name} has no {missing[0]}; "
            "use vector=sync, or make it a gymnasium.Env"
        )
    return env


def several(name: str, makers: Sequence[Callable[[], Any]]) -> Any:
    """Envs of Gymnasium in its vector env; others, whatever they are, one after another."""
    first = makers[0]()
    if is_a(first, "gymnasium", "Env") and not is_a(first, "gymnasium.vector", "VectorEnv"):
        vector = need("gymnasium").vector
        return call_maker(name, lambda: vector.SyncVectorEnv([lambda: first, *makers[1:]]))
    return Several([first, *(make() for make in makers[1:])])


def gym(name: str, order: OpenRequest) -> Any:
    """An env, or several in a vector env, of an id that is registered with Gymnasium."""
    gymnasium = need("gymnasium")
    import_registrar(name, gymnasium)
    if order.num_envs is None and order.vector is None:
        return call_maker(order.target.name, lambda: gymnasium.make(name, **order.arguments))
    mode = {"own": "vector_entry_point"}.get(order.vector or "sync", order.vector or "sync")

    def make(**vector: Any) -> Any:
        """Several at once, made as `vector` says."""
        count, keys = order.num_envs or 1, order.arguments
        return gymnasium.make_vec(
            name, num_envs=count, vectorization_mode=mode, vector_kwargs=vector or None, **keys
        )

    return call_maker(order.target.name, lambda: in_processes(make))


# The first word of an id to the package that registers it, where the two are not called alike.
REGISTERED_BY = {"ale": "ale_py", "babyai": "minigrid"}


def import_registrar(name: str, gymnasium: Any) -> None:
    """Import what registers an id: the package before a colon, or one called about as the id begins."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # a package of the current folder
    module, _, name = name.rpartition(":")
    if name in gymnasium.registry or module:
        return
    word = re.split(r"[/\-]", name)[0]
    first, parted = word.lower(), re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()
    if first == "hotloop":
        importlib.import_module("hotloop.envs.adapters").register_envs()
        return
    usual = [
        called
        for each in dict.fromkeys((first, parted))  # FlappyBird: flappybird, flappy_bird
        for called in (each, f"{each}_env", f"{each}_gymnasium", f"gym_{each}")
    ]
    package = next(filter(is_installed, [REGISTERED_BY[first]] if first in REGISTERED_BY else usual), None)
    if package is not None:
        call_maker(f"gym:{name}", lambda: gymnasium.register_envs(importlib.import_module(package)))


def is_installed(package: str) -> bool:
    """Whether there is such a package, beside those of Python itself."""
    try:
        there = package not in sys.stdlib_module_names and importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
    if there and (folder := confinement()) is not None:
        folder.package(package)
    return there


def pettingzoo(name: str, order: OpenRequest) -> Any:
    """An env of a module such as `sisl.pursuit_v5`: parallel where there is one, or as `api=` says."""
    need("pettingzoo")
    arguments = dict(order.arguments)
    api = arguments.pop("api", None)
    if api not in (None, "parallel", "aec"):
        raise InputError(f"api={api} does not fit: expected one of parallel, aec")
    module = zoo_module(name, order.target.name)
    wanted = {"parallel": "parallel_env", "aec": "env"}.get(str(api)) or (
        "parallel_env" if hasattr(module, "parallel_env") else "env"
    )
    maker = getattr(module, wanted, None)
    if maker is None:
        raise InputError(f"pettingzoo.{name} has no {wanted}: leave out api={api}")
    if order.vector in ("async", "own"):
        raise InputError(f"vector={order.vector} is for Gymnasium: envs of PettingZoo take vector=sync")
    if order.num_envs is None and order.vector is None:
        return call_maker(order.target.name, lambda: maker(**arguments))
    return Several(
        [call_maker(order.target.name, lambda: maker(**arguments)) for _ in range(order.num_envs or 1)]
    )


def zoo_module(name: str, target: str) -> ModuleType:
    try:
        return importlib.import_module(f"pettingzoo.{name}")
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith("pettingzoo"):
            raise MissingError(f"{target} needs {error.name}: {install_line(error.name)}") from None
        raise InputError(f"PettingZoo has no {name}: write for example pettingzoo:sisl.pursuit_v5") from None
    except ImportError as error:  # a version that is no longer there says so
        raise InputError(f"{target}: {' '.join(str(error).split())}") from None
    except BROKEN as error:
        raise InputError(f"{target} cannot be imported: {callables.last_words(error)}") from error


def puffer(name: str, order: OpenRequest) -> Any:
    """An env of PufferLib's ocean by its name."""
    need("pufferlib")
    creator = importlib.import_module("pufferlib.ocean").env_creator
    extra = {} if order.num_envs is None else {"num_envs": order.num_envs}
    return call_maker(order.target.name, lambda: creator(name)(**extra, **order.arguments))


def call_maker(target: str, make: Callable[[], Any]) -> Any:
    """Return what the user's code makes; TheirError with its last words if it raises."""
    try:
        with lifeline.doing(Activity.MAKE):
            return make()
    except KeyboardInterrupt:
        raise
    except BROKEN as error:
        what = " ".join(str(error).split())
        if type(error).__name__ == "DependencyNotInstalled":
            raise MissingError(f"{target}: {what}") from None
        if type(error).__module__.startswith("gymnasium.error"):
            raise InputError(f"{target}: {what}{REGISTER if 'exist' in what else ''}") from None
        if isinstance(error, (InputError, SetupError)):
            raise
        said = f"{target} raised: {callables.last_words(error)}{lifeline.at_step()}"
        raise TheirError(said) from error


def subject_of(env: Any, order: OpenRequest, *, timed: bool) -> Subject:
    """The adapter for what was made; InputError where there is none for it."""
    if isinstance(env, Batch):
        env.spec = env.spec.named(order.target.name)
        return env
    if isinstance(env, Several):
        orders = (replace(order, seed=order.seed + number) for number in count())
        return SeveralSubject(
            [subject_of(*each, timed=timed) for each in zip(env.envs, orders, strict=False)]
        )
    env = as_gymnasium(env)
    kind, adapter, num_envs, agents = interface(env, order.target.name)
    if order.reseed and not (issubclass(adapter, OneEnvSubject) and has(env, "reset")):
        raise InputError(
            f"reseed=true is for what is reset one by one: {order.target.name} begins episodes by itself"
        )
    names = tuple(map(str, env.possible_agents)) if kind == PARALLEL else ()
    spec = spec_of(order, kind, num_envs=num_envs, agents=agents, agent_names=names)
    subject = adapter(env, spec, timed=timed, looks=order.looks, reseed=order.reseed)
    if isinstance(subject, ModelSubject):
        subject.again, subject.arguments = order.again, order.arguments
    return subject


def spec_of(order: OpenRequest, kind: str, *, num_envs: int, **more: Any) -> Spec:
    """Return the spec of a foreign env of a kind; `more` are further fields of it."""
    name = order.target.name
    seeds = {"seed": order.seed, "reseed": True} if order.reseed else {"seed": order.seed}
    params = {**{key: plain(value) for key, value in order.arguments.items()}, **seeds}
    return Spec(
        name=name,
        impl="foreign",
        requested="foreign",
        num_envs=num_envs,
        seed=order.seed,
        described=Described(
            name=name,
            world=None,
            impl="foreign",
            device="cpu",
            params=params,
            workload_hash=hash_of(name, params),
            variant={"num_envs": num_envs, "interface": kind},
            keys={key: plain(value) for key, value in order.target.keys.items()},
        ),
        same_work=order.target,
        **more,
    )


DM_METHODS = ("reset", "step", "action_spec", "observation_spec")


def as_gymnasium(env: Any) -> Any:
    """The env itself, or one of Gymnasium's where it has an interface of DeepMind's."""
    if is_a(env, "pyspiel", "Game"):
        env = importlib.import_module("open_spiel.python.rl_environment").Environment(env)
    if has(env, "action_space") or not all(callable(attribute(env, each)) for each in DM_METHODS):
        return env
    need("gymnasium")
    try:
        spec = env.action_spec()
        if isinstance(spec, Mapping) and "num_actions" in spec and has(env, "num_players"):
            return importlib.import_module("hotloop.envs.foreign.deepmind").SpielEnv(env)
        return importlib.import_module("hotloop.envs.foreign.deepmind").DmEnv(env)
    except Exception as error:
        raise InputError(
            f"the specs of a {type(env).__name__} are none of dm_env's or OpenSpiel's: "
            f"{callables.last_words(error)}; give an env of Gymnasium around it"
        ) from error


# Its name, the adapter for it, envs and agents of each.
Interface = tuple[str, type[ForeignSubject], int, int]


def interface(env: Any, target: str) -> Interface:
    """Which of the known interfaces an object has."""
    if is_a(env, "gymnasium.vector", "VectorEnv"):
        return "gymnasium vector", VectorSubject, env.num_envs, 1
    if is_a(env, "stable_baselines3.common.vec_env", "VecEnv"):
        return "stable-baselines3", SeededSubject, env.num_envs, 1
    if is_a(env, "torchrl.envs", "EnvBase"):
        return "torchrl", TensorSubject, max(1, env.batch_size.numel()), 1
    return with_agents(env) or of_object(env, target)


def with_agents(env: Any) -> Interface | None:
    """The interfaces of PettingZoo and PufferLib."""
    if is_a(env, "pettingzoo", "ParallelEnv"):
        return PARALLEL, ParallelSubject, 1, len(env.possible_agents)
    if is_a(env, "pettingzoo", "AECEnv"):
        return "pettingzoo aec", TurnSubject, 1, 1
    agents = count_of(env, "num_agents")
    names = ("single_action_space", "reset", "step")
    if agents and all(has(env, name) for name in names) and not is_a(env, "gymnasium", "Env"):
        envs = count_of(env, "num_envs") or 1
        return "pufferlib", RowsSubject, envs, agents // envs
    return None


def of_object(env: Any, target: str) -> Interface:
    """The interface of what belongs to no library that is known, or to Gymnasium: by what it has."""
    refuse_async(env, target)
    if not callable(attribute(env, "step")):
        raise InputError(f"{target} returned a {type(env).__name__}: expected {KINDS}")
    if isinstance(env, type):
        raise InputError(f"{target} returned the class {env.__name__}: return an instance of it")
    envs, agents = count_of(env, "num_envs"), count_of(env, "num_agents") or count_of(env, "n_agents")
    if not callable(attribute(env, "reset")):
        if needs_action(env):
            raise InputError(
                f"{target} made a {type(env).__name__}, which has no reset, and whose step takes an action: "
                "give it a reset() that begins an episode"
            )
        return "step alone", ModelSubject, 1, agents or 1
    if envs is not None:
        return "batched", SeededSubject, envs, max(1, (agents or 1) // envs)
    if is_a(env, "gymnasium", "Env"):
        return "gymnasium", SingleSubject, 1, agents or 1
    names_actions = any(has(env, name) for name in ("action_space", "action_spaces", "num_actions"))
    plays_itself = not names_actions and needs_action(env) is False
    return "reset and step", ModelSubject if plays_itself else SingleSubject, 1, agents or 1


def refuse_async(env: Any, target: str) -> None:
    """Refuse a coroutine in place of an env, and an env whose methods return one."""
    if inspect.isawaitable(env):
        raise awaitable_error(f"{target} returned", env)
    for method in ("reset", "step"):
        if inspect.iscoroutinefunction(attribute(env, method)):
            raise InputError(f"{target}: {method} of {type(env).__name__} is async: {WAITS}")


def needs_action(env: Any) -> bool | None:
    """Whether a step cannot be taken without one; None where nothing says what it takes."""
    try:
        inspect.signature(env.step).bind()
    except TypeError:
        return True
    except ValueError:
        return None
    return False


def count_of(env: Any, name: str) -> int | None:
    """A number that an object says of itself, itself or inside its wrappers; None where it does not."""
    for owner in (env, unwrapped(env)):
        value = attribute(owner, name)
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value > 0:
            return int(value)
    return None
