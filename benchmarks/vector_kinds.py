"""Vector envs of many kinds over one small game: every kind gives the same answers for the same actions.

`vectors.py` compares them in pairs. Each function at the bottom makes one kind, for example
`vector_kinds.py:gym_async num_envs=8 cost=heavy`. A kind imports its package when it is made.
"""

import asyncio
import mmap
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

import vector_game
from vector_arrays import Arrays, Compiled, Jax, Numba, Torch
from vector_game import COSTS, WIDTH, Batch, Five, Light, seeds_of

Row = tuple[NDArray[np.float32], float, bool, bool]
"""One env's observation, reward, and whether its episode ended or was cut off."""


def play(env: Light, action: Any) -> Row:
    """Step an env, and begin its next episode if this one is over."""
    observation, reward, ended, cut, _ = env.step(action)
    if ended or cut:
        observation = env.reset()[0]
    return observation, reward, ended, cut


def gathered(rows: Iterable[Row]) -> Five:
    observations, rewards, ended, cut = zip(*rows, strict=True)
    return np.stack(observations), np.array(rewards), np.array(ended), np.array(cut), {}


class Serial(Batch):
    """One env after another in this process."""

    def __init__(self, num_envs: int, cost: str) -> None:
        super().__init__(num_envs)
        self.members = [COSTS[cost]() for _ in range(num_envs)]

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        seeds = seeds_of(seed, self.num_envs)
        pairs = zip(self.members, seeds, strict=True)
        return np.stack([env.reset(seed=one)[0] for env, one in pairs]), {}

    def step(self, actions: Any) -> Five:
        return gathered(self.play_all(actions))

    def play_all(self, actions: Any) -> Iterable[Row]:
        return map(play, self.members, actions)


class Threads(Serial):
    """Two threads of a pool share the envs."""

    def __init__(self, num_envs: int, cost: str) -> None:
        super().__init__(num_envs, cost)
        self.pool = ThreadPoolExecutor(2)

    def play_all(self, actions: Any) -> Iterable[Row]:
        half = self.num_envs // 2
        parts = (slice(0, half), slice(half, self.num_envs))
        done = self.pool.map(lambda part: list(map(play, self.members[part], actions[part])), parts)
        return [row for rows in done for row in rows]

    def close_extras(self, **_: Any) -> None:
        self.pool.shutdown()


class Tasks(Serial):
    """Every env's step is a task of an event loop."""

    def __init__(self, num_envs: int, cost: str) -> None:
        super().__init__(num_envs, cost)
        self.loop = asyncio.new_event_loop()

    def play_all(self, actions: Any) -> Iterable[Row]:
        return self.loop.run_until_complete(self.gather(actions))

    async def gather(self, actions: Any) -> list[Row]:
        return await asyncio.gather(*map(self.play_one, self.members, actions))

    async def play_one(self, env: Light, action: Any) -> Row:
        await asyncio.sleep(0)
        return play(env, action)

    def close_extras(self, **_: Any) -> None:
        self.loop.close()


def serve_pipe(pipe: Connection, num_envs: int, cost: str) -> None:
    """Play a part of the envs in a worker until the other end of the pipe closes."""
    part = Serial(num_envs, cost)
    try:
        while True:
            method, argument = pipe.recv()
            pipe.send(part.reset(seed=argument) if method == "reset" else part.step(argument))
    except (EOFError, KeyboardInterrupt):
        return


class Pipes(Batch):
    """Two workers with a part of the envs each; actions and answers go through pipes."""

    def __init__(self, num_envs: int, cost: str, workers: int = 2) -> None:
        super().__init__(num_envs)
        context = multiprocessing.get_context("fork")
        self.part = num_envs // workers
        self.pipes, self.workers = [], []
        for _ in range(workers):
            ours, theirs = context.Pipe()
            worker = context.Process(target=serve_pipe, args=(theirs, self.part, cost), daemon=True)
            worker.start()
            theirs.close()
            self.pipes.append(ours)
            self.workers.append(worker)

    def parts(self, whole: Sequence[Any]) -> Iterator[Sequence[Any]]:
        return (whole[begin : begin + self.part] for begin in range(0, self.num_envs, self.part))

    def ask(self, method: str, whole: Sequence[Any]) -> list[Any]:
        for pipe, part in zip(self.pipes, self.parts(whole), strict=True):
            pipe.send((method, part))
        return [pipe.recv() for pipe in self.pipes]

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        answers = self.ask("reset", seeds_of(seed, self.num_envs))
        return np.concatenate([observations for observations, _ in answers]), {}

    def step(self, actions: Any) -> Five:
        arrays = zip(*(answer[:4] for answer in self.ask("step", actions)), strict=True)
        observations, rewards, ended, cut = map(np.concatenate, arrays)
        return observations, rewards, ended, cut, {}

    def close_extras(self, **_: Any) -> None:
        for pipe in self.pipes:
            pipe.close()
        for worker in self.workers:
            worker.join(timeout=5)
            worker.kill()


class Spin(Batch):
    """Two forked workers on shared memory; both ends wait by spinning, and let others run now and then."""

    LOOKS = 200
    """Between two calls of sched_yield."""

    def __init__(self, num_envs: int, cost: str, workers: int = 2) -> None:
        super().__init__(num_envs)
        self.memory = mmap.mmap(-1, 1 << 16)
        self.wanted = np.frombuffer(self.memory, np.int64, workers, 0)  # above 0: step; below 0: reset
        self.ready = np.frombuffer(self.memory, np.int64, workers, 512)
        self.inputs = np.frombuffer(self.memory, np.int64, num_envs, 1024)  # actions, or seeds
        self.rewards = np.frombuffer(self.memory, np.float64, num_envs, 4096)
        self.ended = np.frombuffer(self.memory, np.bool_, num_envs, 8192)
        self.cut = np.frombuffer(self.memory, np.bool_, num_envs, 9216)
        shape = (num_envs, WIDTH)
        self.observations = np.frombuffer(self.memory, np.float32, num_envs * WIDTH, 16384).reshape(shape)
        self.calls = 0
        self.pids = [self.start(worker, workers, cost) for worker in range(workers)]

    def start(self, worker: int, workers: int, cost: str) -> int:
        parent, pid = os.getpid(), os.fork()
        if pid:
            return pid
        try:
            part = range(worker * self.num_envs // workers, (worker + 1) * self.num_envs // workers)
            self.serve(worker, {number: COSTS[cost]() for number in part}, parent)
        finally:
            os._exit(0)

    def serve(self, worker: int, envs: dict[int, Light], parent: int) -> None:
        last = 0
        while self.wait(lambda last=last: self.wanted[worker] != last, parent):
            last = int(self.wanted[worker])
            for number, env in envs.items():
                if last < 0:
                    seed = int(self.inputs[number])
                    self.observations[number] = env.reset(seed=None if seed < 0 else seed)[0]
                    continue
                row = play(env, self.inputs[number])
                self.observations[number], self.rewards[number] = row[:2]
                self.ended[number], self.cut[number] = row[2:]
            self.ready[worker] = last

    def wait(self, is_met: Callable[[], Any], parent: int) -> bool:
        """Return True when the condition is met, and False when the parent is gone."""
        while True:
            for _ in range(self.LOOKS):
                if is_met():
                    return True
            os.sched_yield()
            if parent not in (os.getpid(), os.getppid()):
                return False

    def run_workers(self, sign: int) -> None:
        self.calls += 1
        self.wanted[:] = sign * self.calls
        self.wait(self.are_ready, os.getpid())

    def are_ready(self) -> bool:
        return bool((abs(self.ready) == self.calls).all())

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.inputs[:] = [-1 if one is None else one for one in seeds_of(seed, self.num_envs)]
        self.run_workers(-1)
        return self.observations.copy(), {}

    def step(self, actions: Any) -> Five:
        self.inputs[:] = actions
        self.run_workers(1)
        return self.observations.copy(), self.rewards.copy(), self.ended.copy(), self.cut.copy(), {}

    def close_extras(self, **_: Any) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.pids = []


class RayWorkers(Batch):
    """Two actors of Ray with a part of the envs each."""

    def __init__(self, num_envs: int, cost: str, workers: int = 2) -> None:
        super().__init__(num_envs)
        import ray

        if not ray.is_initialized():
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        # The actors cannot import these files by the names under which they were opened.
        for module in (sys.modules[__name__], vector_game):
            ray.cloudpickle.register_pickle_by_value(module)
        self.ray, self.part = ray, num_envs // workers
        actor = ray.remote(num_cpus=0)(Serial)
        self.actors = [actor.remote(self.part, cost) for _ in range(workers)]

    def parts(self, whole: Sequence[Any]) -> list[Sequence[Any]]:
        return [whole[begin : begin + self.part] for begin in range(0, self.num_envs, self.part)]

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        parts = self.parts(seeds_of(seed, self.num_envs))
        asked = [actor.reset.remote(seed=part) for actor, part in zip(self.actors, parts, strict=True)]
        return np.concatenate([observations for observations, _ in self.ray.get(asked)]), {}

    def step(self, actions: Any) -> Five:
        parts = self.parts(actions)
        asked = [actor.step.remote(part) for actor, part in zip(self.actors, parts, strict=True)]
        arrays = zip(*(answer[:4] for answer in self.ray.get(asked)), strict=True)
        observations, rewards, ended, cut = map(np.concatenate, arrays)
        return observations, rewards, ended, cut, {}

    def close_extras(self, **_: Any) -> None:
        for actor in self.actors:
            self.ray.kill(actor)


class Tianshou(Batch):
    """A vector env of Tianshou, which leaves it to its caller to begin episodes."""

    def __init__(self, num_envs: int, cost: str, kind: str) -> None:
        super().__init__(num_envs)
        from tianshou import env

        self.envs = getattr(env, kind)([COSTS[cost]] * num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        seeds = enumerate(seeds_of(seed, self.num_envs))
        return np.concatenate([self.envs.reset([env], seed=one)[0] for env, one in seeds]), {}

    def step(self, actions: Any) -> Five:
        observations, rewards, ended, cut, _ = self.envs.step(actions)
        over = np.flatnonzero(ended | cut)
        if len(over):
            observations[over] = self.envs.reset(over)[0]
        return observations, rewards, ended, cut, {}

    def close_extras(self, **_: Any) -> None:
        self.envs.close()


class EnvPoolParts(VectorEnv):
    """EnvPool's send and recv: each step gathers its answers in parts as they come, and sorts them."""

    def __init__(self, num_envs: int, parts: int) -> None:
        import envpool

        pool = envpool.make_gymnasium(
            "CartPole-v1", num_envs=num_envs, batch_size=num_envs // parts, num_threads=2
        )
        self.pool, self.parts, self.num_envs = pool, parts, num_envs
        self.single_observation_space, self.single_action_space = pool.observation_space, pool.action_space
        self.observation_space = batch_space(pool.observation_space, num_envs)
        self.action_space = batch_space(pool.action_space, num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.numbers = np.arange(num_envs, dtype=np.int32)

    def gather(self) -> Five:
        parts = [self.pool.recv() for _ in range(self.parts)]
        order = np.argsort(np.concatenate([part[4]["env_id"] for part in parts]))
        observations, rewards, ended, cut = (
            np.concatenate([part[place] for part in parts])[order] for place in range(4)
        )
        return observations, rewards, ended, cut, {}

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.pool.async_reset()
        return self.gather()[0], {}

    def step(self, actions: Any) -> Five:
        self.pool.send(np.asarray(actions), self.numbers)
        return self.gather()


def gym_sync(num_envs: int = 8, cost: str = "light", copy: bool = True) -> Any:
    return SyncVectorEnv([COSTS[cost]] * num_envs, copy=copy)


def gym_async(num_envs: int = 8, cost: str = "light", shared: bool = True) -> Any:
    return AsyncVectorEnv([COSTS[cost]] * num_envs, shared_memory=shared)


def gym_recorded(num_envs: int = 8, cost: str = "light") -> Any:
    from gymnasium.wrappers.vector import RecordEpisodeStatistics

    return RecordEpisodeStatistics(gym_sync(num_envs, cost))


def sb3_dummy(num_envs: int = 8, cost: str = "light") -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([COSTS[cost]] * num_envs)


def sb3_subproc(num_envs: int = 8, cost: str = "light") -> Any:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    return SubprocVecEnv([COSTS[cost]] * num_envs, start_method="fork")


def serial(num_envs: int = 8, cost: str = "light") -> Any:
    return Serial(num_envs, cost)


def threads(num_envs: int = 8, cost: str = "light") -> Any:
    return Threads(num_envs, cost)


def tasks(num_envs: int = 8, cost: str = "light") -> Any:
    return Tasks(num_envs, cost)


def pipes(num_envs: int = 8, cost: str = "light") -> Any:
    return Pipes(num_envs, cost)


def spin(num_envs: int = 8, cost: str = "light") -> Any:
    return Spin(num_envs, cost)


def ray_workers(num_envs: int = 8, cost: str = "light") -> Any:
    return RayWorkers(num_envs, cost)


def numpy_batch(num_envs: int = 4096) -> Any:
    return Arrays(num_envs)


def numba_batch(num_envs: int = 4096) -> Any:
    return Numba(num_envs)


def jax_batch(num_envs: int = 4096) -> Any:
    return Jax(num_envs)


def torch_batch(num_envs: int = 4096) -> Any:
    return Torch(num_envs)


def c_batch(num_envs: int = 4096) -> Any:
    return Compiled(num_envs)


def tianshou_dummy(num_envs: int = 8, cost: str = "light") -> Any:
    return Tianshou(num_envs, cost, "DummyVectorEnv")


def tianshou_subproc(num_envs: int = 8, cost: str = "light") -> Any:
    return Tianshou(num_envs, cost, "SubprocVectorEnv")


def tianshou_shmem(num_envs: int = 8, cost: str = "light") -> Any:
    return Tianshou(num_envs, cost, "ShmemVectorEnv")


def envpool_sync(num_envs: int = 64, threads: int = 1) -> Any:
    import envpool

    return envpool.make_gymnasium("CartPole-v1", num_envs=num_envs, num_threads=threads)


def envpool_parts(num_envs: int = 64, parts: int = 1) -> Any:
    return EnvPoolParts(num_envs, parts)


def puffer(num_envs: int = 8, cost: str = "light", backend: str = "Serial") -> Any:
    import pufferlib.emulation
    import pufferlib.vector

    def make(**more: Any) -> Any:
        return pufferlib.emulation.GymnasiumPufferEnv(env_creator=COSTS[cost], **more)

    more = {"num_workers": 2} if backend == "Multiprocessing" else {}
    return pufferlib.vector.make(make, backend=getattr(pufferlib.vector, backend), num_envs=num_envs, **more)
