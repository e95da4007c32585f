"""The user's envs as a batch that the trainer takes, what steps them, and a measured env in that layout."""

import json
import mmap
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import HotloopError, InputError, TheirError
from hotloop.core.machine import need
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.core.settings import Target, apply, hash_of
from hotloop.core.world import Layout, World
from hotloop.envs import callables
from hotloop.envs.batch import Batch
from hotloop.envs.callables import NUMBERS, numbered
from hotloop.envs.foreign.forms import (
    Arrays,
    Begun,
    Form,
    Member,
    Whole,
    counts_envs,
    form_from,
    form_of,
    form_of_batch,
    show,
    tell_mask,
)
from hotloop.envs.foreign.inside import plain
from hotloop.envs.foreign.open import OpenRequest, gym, one_of, parse_request, pettingzoo
from hotloop.envs.foreign.single import SingleSubject
from hotloop.envs.foreign.subject import ForeignSubject, close_env
from hotloop.envs.foreign.vector import VectorSubject
from hotloop.envs.foreign.zoo import ParallelSubject
from hotloop.envs.native import Engine, Seeds
from hotloop.envs.spec import BatchSettings, BatchSpec, batch_spec

GYM, ZOO = "gym:", "pettingzoo:"

MOST_WORKERS = 256

# One after another; in threads, for envs that let go of the interpreter; in processes of their own.
SYNC, THREADS, PROCESSES = VECTORS = ("sync", "threads", "async")

STEP, BEGIN, END = b"s", b"b", b"e"

DONE = b""

CLOSE_S = 5.0  # What a process gets to close its envs before it is ended


class Here:
    """One after another, in this thread."""

    def __init__(self, form: Form, envs: Sequence[Any], arrays: Arrays, actions: NDArray[Any]) -> None:
        self.envs = envs
        self.members: list[Member] = [form.member(env, arrays, place) for place, env in enumerate(envs)]
        self._actions = actions

    def begin(self, begun: Begun) -> None:
        for place, seed in begun:
            self.members[place].begin(seed)

    def step(self) -> None:
        for member, action in zip(self.members, self._actions, strict=True):
            member.step(action)
            lifeline.end_copy()  # before the next env makes two of it

    def close(self) -> None:
        for member in self.members:
            member.close()


class Threads(Here):
    """In threads, each with its own envs."""

    def __init__(
        self, form: Form, envs: Sequence[Any], arrays: Arrays, actions: NDArray[Any], workers: int
    ) -> None:
        super().__init__(form, envs, arrays, actions)
        self._shares = shared_out(len(envs), workers)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="hotloop-env")

    def step(self) -> None:
        def step_some(share: range) -> None:
            for place in share:
                self.members[place].step(self._actions[place])
                lifeline.end_copy()

        for _ in self._pool.map(step_some, self._shares):
            pass

    def close(self) -> None:
        self._pool.shutdown()
        super().close()


class Worker(NamedTuple):
    """A process, the pipe to it, and its envs."""

    process: Any
    pipe: Connection
    share: range


class Processes:
    """In processes, each with its own envs; arrays and actions are memory that all of them share.

    A step costs each process one byte to go and an empty message back. They are forked, so that whatever
    makes an env need not be pickled.
    """

    def __init__(
        self,
        form: Form,
        makers: Sequence[Callable[[], Any]],
        arrays: Arrays,
        actions: NDArray[Any],
        workers: int,
    ) -> None:
        self._name = form.name
        context = multiprocessing.get_context("fork")
        self._workers: list[Worker] = []
        for share in shared_out(len(makers), workers):
            mine, theirs = context.Pipe()
            others = [worker.pipe for worker in self._workers] + [mine]
            process = context.Process(
                target=serve_envs,
                args=(theirs, others, form, {place: makers[place] for place in share}, arrays, actions),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._workers.append(Worker(process, mine, share))
        self._wait(self._workers)

    def begin(self, begun: Begun) -> None:
        asked = [(worker, [each for each in begun if each[0] in worker.share]) for worker in self._workers]
        told = [worker for worker, some in asked if some]
        for worker, some in asked:
            if some:
                self._tell(worker, BEGIN + json.dumps(some).encode())
        self._wait(told)

    def step(self) -> None:
        for worker in self._workers:
            self._tell(worker, STEP)
        self._wait(self._workers)

    def _tell(self, worker: Worker, what: bytes) -> None:
        try:
            worker.pipe.send_bytes(what)
        except OSError as error:
            raise self._ended(worker) from error

    def _wait(self, workers: Sequence[Worker]) -> None:
        """Until all have answered; the first that could not is the error."""
        for worker in workers:
            try:
                said = worker.pipe.recv_bytes()
            except (EOFError, OSError) as error:
                raise self._ended(worker) from error
            if said != DONE:
                raise TheirError(f"{said.decode()} (in the worker of {named(worker.share)})")

    def _ended(self, worker: Worker) -> TheirError:
        """What is said of a process that is gone."""
        worker.process.join(CLOSE_S)
        code = worker.process.exitcode
        how = "closed its pipe" if code is None else f"ended with {code}"
        if code is not None and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        return TheirError(
            f"{self._name}: the worker of {named(worker.share)} {how} in the middle of its work; "
            "vector=sync runs the envs in this process, where a debugger reaches them"
        )

    def close(self) -> None:
        for worker in self._workers:
            with suppress(OSError):  # it may be gone already
                worker.pipe.send_bytes(END)
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(CLOSE_S)
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join()
        self._workers = []


def serve_envs(
    pipe: Connection,
    others: Sequence[Connection],
    form: Form,
    makers: dict[int, Callable[[], Any]],
    arrays: Arrays,
    actions: NDArray[Any],
) -> None:
    """What a process does: make its envs, then as it is told, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the trainer, which then ends this one
    for other in others:
        other.close()
    members: dict[int, Member] = {}
    try:
        members |= {place: form.member(make(), arrays, place) for place, make in makers.items()}
        pipe.send_bytes(DONE)
        while (told := pipe.recv_bytes()) != END:
            if told == STEP:
                for place, member in members.items():
                    member.step(actions[place])
            else:
                for place, seed in json.loads(told[1:]):
                    members[place].begin(seed)
            pipe.send_bytes(DONE)
    except (EOFError, ConnectionError):
        pass
    except BaseException as error:  # noqa: BLE001 - whatever it is, the trainer has to know
        traceback.print_exc()
        sys.stderr.flush()
        said = str(error) if isinstance(error, HotloopError) else f"{form.name} raised: {error!r}"
        pipe.send_bytes(said.encode())
    for member in members.values():
        member.close()


def shared_out(envs: int, workers: int) -> list[range]:
    """Envs in a row, as evenly as they go, none without any."""
    ends = [envs * worker // workers for worker in range(workers + 1)]
    return [range(*each) for each in pairwise(ends) if each[0] < each[1]]


def named(share: range) -> str:
    return f"env {share[0]}" if len(share) == 1 else f"envs {share[0]} to {share[-1]}"


Crew = Here | Processes | Whole  # What steps all envs of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class NoParameters:
    """What a foreign env has: its keys go to its maker."""


class EnvsEngine:
    """The user's envs, stepped by a crew, their answers in arrays; episodes follow at once."""

    def __init__(
        self, spec: BatchSpec, crew: Crew, arrays: dict[str, NDArray[Any]], actions: NDArray[Any]
    ) -> None:
        self._name, self._crew, self._arrays, self._actions = spec.name, crew, arrays, actions
        self._layout, self._envs = spec.layout, spec.num_envs
        self._seeds, self._random = (np.random.default_rng([spec.seed, use]) for use in range(2))
        self._steps = self._lived = self._resets = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._arrays

    def reset(self, seeds: Seeds) -> None:
        self.reset_many(np.arange(self._envs), seeds)
        self._arrays["terminals"][:] = self._arrays["truncations"][:] = False

    def reset_many(self, envs: NDArray[np.int64], seeds: Seeds) -> None:
        """Begin episodes; the first of each env has a seed of ours, the next ones go on from there."""
        begun = []
        for place, env in enumerate(envs.tolist()):
            seed = None if seeds is None else int(seeds[place]) % 2**31
            if seed is None and self._resets < self._envs:
                seed = int(self._seeds.integers(2**31))
            self._resets += 1
            begun.append((env, seed))
        with lifeline.doing(Activity.RESET, Activity.STEP):
            self._crew.begin(begun)
        self._check_numbers("observations", "after a reset")

    def step(self, actions: NDArray[Any]) -> None:
        if actions.dtype != self._actions.dtype or actions.size != self._actions.size:
            raise TypeError("actions that cannot be read in place")
        np.copyto(self._actions, actions.reshape(self._actions.shape))
        alive = self._arrays.get("alive")
        self._lived += self._envs if alive is None else int(np.count_nonzero(alive))
        lifeline.pulse[lifeline.STEPS] = self._steps // self._envs
        self._crew.step()
        self._steps += self._envs
        ended = int(np.count_nonzero(self._arrays["terminals"] | self._arrays["truncations"]))
        self._resets += ended
        for name in ("observations", "rewards", *(["final_observations"] if ended else [])):
            self._check_numbers(name, f"in step {self._steps // self._envs}")

    def _check_numbers(self, name: str, when: str) -> None:
        """Raise if an observation or reward is NaN or infinite."""
        found = self._arrays[name]
        if np.isfinite(found).all():
            return
        env, *_ = place = tuple(map(int, np.argwhere(~np.isfinite(found))[0]))
        raise InputError(
            f"{self._name}: env {env} had {found[place]:g} among its {name.replace('_', ' ')} {when}, and "
            "nothing can be learnt from that: find where it divides or overflows, or give it a wrapper that "
            "replaces such numbers"
        )

    def players(self) -> list[str]:
        return ["random"]

    def choose(self, player: int, actions: NDArray[Any]) -> None:
        masks = self._arrays.get("masks")
        actions[...] = random_actions(self._layout, self._random, actions.shape[:2], masks)

    def digest(self, env: int) -> int:
        """Of what it shows: its state is its own."""
        return hash(self._arrays["observations"][env].tobytes()) & (2**64 - 1)

    def save(self, *_: Any) -> Any:
        raise RuntimeError(f"{self._name} cannot be saved, loaded or forked")

    load = fork = save

    def counters(self) -> list[tuple[str, int]]:
        steps = [(name, self._steps) for name in ("env_steps", "foreign_steps")]
        return [*steps, ("agent_steps", self._lived), ("resets", self._resets)]

    def lend(self, threads: int) -> None:
        """It has no threads that could be others'."""


class EnvsBatch(Batch):
    """Such envs behind the arrays of a batch."""

    can_save = False

    def __init__(
        self, spec: BatchSpec, crew: Crew, arrays: dict[str, NDArray[Any]], actions: NDArray[Any]
    ) -> None:
        # it draws nothing and times no phases: what is for that alone is never called
        super().__init__(cast("Engine", EnvsEngine(spec, crew, arrays, actions)), spec)
        self.crew = crew

    @property
    def counters(self) -> dict[str, int]:
        """All of it is of user code: none of our paths is counted."""
        return dict(self.engine.counters()) | {"actions_converted": self._converted}

    def draw(self, random: np.random.Generator, calls: int) -> list[NDArray[Any]]:
        shape = (calls * self.spec.num_envs, self.spec.agents)
        drawn = random_actions(self.spec.layout, random, shape, None)
        like = self.new_actions()
        return list(drawn.astype(like.dtype).reshape(calls, *like.shape))

    def close(self) -> None:
        with lifeline.doing(Activity.CLOSE):
            self.crew.close()
        super().close()

    def _accept(self, actions: NDArray[Any]) -> NDArray[Any]:
        if self.spec.layout.acts is None:
            return super()._accept(actions)
        like, given = self.new_actions(), np.asarray(actions)
        if (given.dtype, given.shape) == (like.dtype, like.shape):
            return actions
        raise InputError(f"actions are {given.dtype} {given.shape}: expected {like.dtype} {like.shape}")


def random_actions(
    layout: Layout, random: np.random.Generator, rows: tuple[int, ...], masks: NDArray[np.bool_] | None
) -> NDArray[Any]:
    """Actions that are legal and all as likely, for rows [envs, agents]; of real numbers from -1 to 1."""
    acts = layout.acts
    if acts is not None and acts.low:
        return random.uniform(-1, 1, (*rows, acts.width)).astype(np.float32)
    sizes = (layout.num_actions,) if acts is None else acts.choices
    chances = random.random((*rows, sum(sizes)))
    if masks is not None:
        chances = np.where(masks, chances, -1)
    parts = np.split(chances, np.cumsum(sizes)[:-1], axis=-1)
    drawn = np.stack([part.argmax(-1) for part in parts], axis=-1)
    return drawn[..., 0] if acts is None else drawn


def open_trainable(target: Target) -> Batch:
    """The batch that is trained on; refuses what the trainer cannot take, with what it is."""
    gymnasium = need("gymnasium")
    by_id = target.name.startswith((GYM, ZOO))
    own = () if by_id else callables.parameters_of(callables.find(target.name))
    ours = {"num_envs", *(key for key in ("vector", "workers") if key not in own)}
    order = parse_request(
        Target(target.name, {k: v for k, v in target.keys.items() if k not in ours}), own=own
    )
    if order.reseed:
        raise InputError("reseed=true repeats episodes, which a training must not: leave it out")
    options = apply(BatchSettings, {"num_envs": target.keys.get("num_envs", 1), "seed": order.seed})
    vector, workers = parse_crew({k: v for k, v in target.keys.items() if k in ours}, options.num_envs)
    number = NUMBERS.take(options.num_envs)  # here, since workers would all begin with the same
    makers = [partial(make_env, target.name, order, number + env) for env in range(options.num_envs)]
    first = makers[0]()
    if counts_envs(first):
        close_env(first)
        return open_whole(target, order, options, number, own)
    form = form_of(target.name, first, gymnasium)
    variant = {"vector": vector, **({} if vector == SYNC else {"workers": workers})}
    spec = envs_spec(target, form, options, order.arguments, variant)
    arrays, actions = make_arrays(spec)
    if vector == PROCESSES:
        close_env(first)
        crew: Crew = Processes(form, makers, arrays, actions, workers)
    else:
        envs = [first, *(make() for make in makers[1:])]
        here = vector == SYNC
        crew = Here(form, envs, arrays, actions) if here else Threads(form, envs, arrays, actions, workers)
    return EnvsBatch(spec, crew, arrays, actions)


def open_whole(
    target: Target, order: OpenRequest, options: BatchSettings, number: int, own: Collection[str]
) -> Batch:
    """Open the user's own batch, with as many envs as the training has."""
    if {"vector", "workers"} & (target.keys.keys() - set(own)):
        raise InputError(f"{target.name} steps its envs by itself: leave out vector= and workers=")
    count = {"num_envs": options.num_envs} if "num_envs" in own else {}
    env = make_env(target.name, replace(order, arguments={**order.arguments, **count}), number)
    if env.num_envs != options.num_envs:
        raise InputError(
            f"{target.name} makes {env.num_envs} envs and not {options.num_envs}: "
            f"give num_envs={env.num_envs}, or let it take a parameter num_envs"
        )
    form = form_of_batch(target.name, env)
    spec = envs_spec(target, form, options, order.arguments, {"vector": SYNC})
    arrays, actions = make_arrays(spec)
    crew = Whole(form, env, arrays, actions)
    return EnvsBatch(spec, crew, arrays, actions)


def envs_spec(
    target: Target,
    form: Form,
    options: BatchSettings,
    arguments: Mapping[str, object],
    crew: Mapping[str, object],
) -> BatchSpec:
    """Return the spec of a batch of such envs, with its maker's arguments and what steps them."""
    name, layout = target.name, form.layout

    def no_twin() -> Any:
        raise InputError(f"{name} has no twin: leave out validate=")

    world = World(
        name=name,
        summary="an environment of somebody else's",
        parameters=NoParameters,
        presets={"": {}},
        phases=(),
        plan=lambda parameters: {},
        layout=lambda parameters: layout,
        twin=no_twin,
    )
    spec = batch_spec(name, world, "", "foreign", NoParameters(), options, {})
    params = spec.described.params | {key: plain(value) for key, value in arguments.items()}
    described = replace(
        spec.described,
        world=None,
        params=params,
        variant=spec.described.variant | dict(crew),
        workload_hash=hash_of(name, params),
    )
    return replace(spec, described=described, made_from=None, same_work=target)


def parse_crew(keys: Mapping[str, object], num_envs: int) -> tuple[str, int]:
    """Return which of `VECTORS` is to step the envs, and with how many workers."""
    vector = str(keys.get("vector", SYNC))
    if vector not in VECTORS:
        raise InputError(f"vector={vector} does not fit: expected one of {', '.join(VECTORS)}")
    if "workers" in keys and vector == SYNC:
        raise InputError(f"workers= is for vector={PROCESSES} and vector={THREADS}: give one of them")
    usual = min(num_envs, len(os.sched_getaffinity(0)))
    workers = callables.literal(keys.get("workers", usual))
    if not isinstance(workers, int) or not 1 <= workers <= min(num_envs, MOST_WORKERS):
        most = min(num_envs, MOST_WORKERS)
        raise InputError(f"workers={workers} does not fit: expected int from 1 to {most}, one an env at most")
    return vector, workers if vector != SYNC else 1


def make_arrays(spec: BatchSpec) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """The batch's arrays and the actions, in memory that workers can share."""
    envs, layout = spec.num_envs, spec.layout
    arrays = {each.name: room((envs, *each.shape), each.dtype) for each in layout.arrays}
    arrays["final_observations"] = room(arrays["observations"].shape, np.float32)
    return arrays, room((envs, *layout.action_shape), layout.action_type)


def room(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros in memory that processes forked from this one share."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    memory = mmap.mmap(-1, max(1, count * kind.itemsize))
    return np.frombuffer(memory, kind, count).reshape(shape)


def make_env(name: str, order: OpenRequest, number: int) -> Any:
    """One env; `number` stands for `{instance}` in its keys."""
    if not name.startswith((GYM, ZOO)):
        return one_of(name, order.arguments, number)
    maker, prefix = (gym, GYM) if name.startswith(GYM) else (pettingzoo, ZOO)
    return maker(name.removeprefix(prefix), replace(order, arguments=numbered(order.arguments, number)))


EXPECTED = "runs play envs of Gymnasium, alone or in a vector, and parallel envs of PettingZoo"


class TrainingView:
    """Present a measured env in the trainer's batch layout, so that a trained policy can play it."""

    def __init__(self, subject: ForeignSubject) -> None:
        self._subject, self._env = subject, subject.env
        self._form = form = form_by_spaces(subject)
        settings = BatchSettings(num_envs=subject.spec.num_envs, seed=subject.spec.seed)
        spec = envs_spec(Target(form.name), form, settings, {}, {})
        self._arrays, actions = make_arrays(spec)
        self.batch = EnvsBatch(spec, Here(form, [], self._arrays, actions), self._arrays, actions)
        self._resets = subject.resets

    def look(self) -> list[int]:
        """Take over what is shown now; returns the envs that began an episode since the last look."""
        subject, form, arrays = self._subject, self._form, self._arrays
        masks = subject.told.get("action_mask")
        if form.agents:
            for number, agent in enumerate(self._env.possible_agents):
                alive = arrays["alive"][0, number] = agent in self._env.agents
                if alive:
                    show(form, subject.observation[agent], arrays["observations"][0, number])
                if alive and form.masked:
                    tell_mask(form, (masks or {}).get(agent), arrays["masks"][0, number])
        else:
            alone = isinstance(subject, SingleSubject)
            for env in range(self.batch.spec.num_envs):
                seen = subject.observation if alone else part_of(subject.observation, env)
                show(form, seen, arrays["observations"][env])
                if form.masked:
                    mask = masks if alone or masks is None else part_of(masks, env)
                    tell_mask(form, mask, arrays["masks"][env, 0])
        begun, self._resets = subject.resets != self._resets, subject.resets
        return list(range(self.batch.spec.num_envs)) if begun else []

    def own(self, actions: NDArray[Any]) -> Any:
        """Return what the env's step takes for a batch's actions."""
        doing = self._form.doing
        if self._form.agents:
            agents = enumerate(self._env.possible_agents)
            return {agent: doing.own(actions[0, number]) for number, agent in agents}
        taken = [doing.own(row[0]) for row in actions]
        return taken[0] if isinstance(self._subject, SingleSubject) else np.array(taken)


def form_by_spaces(subject: ForeignSubject) -> Form:
    """How a subject is read and acted on, by its spaces alone; InputError where no run can."""
    name, env = subject.spec.name, subject.env
    agents: Sequence[Any] = ()
    if isinstance(subject, ParallelSubject):
        agents = env.possible_agents
        seen, done = env.observation_space(agents[0]), env.action_space(agents[0])
    elif isinstance(subject, VectorSubject) and hasattr(env, "single_observation_space"):
        seen, done = env.single_observation_space, env.single_action_space
    elif isinstance(subject, SingleSubject) and hasattr(env, "observation_space"):
        seen, done = env.observation_space, env.action_space
    else:
        raise InputError(
            f"{name} is a {type(env).__name__}: {EXPECTED}; give a policy of its own, module:callable"
        )
    return form_from(name, seen, done, agents).with_masks(told=True)


def part_of(batched: Any, env: int) -> Any:
    """What one env of several shows: arrays by env, in a mapping or a tuple where it shows several things."""
    if isinstance(batched, Mapping):
        return {key: part_of(value, env) for key, value in batched.items()}
    if isinstance(batched, tuple):
        return tuple(part_of(value, env) for value in batched)
    return batched[env]
