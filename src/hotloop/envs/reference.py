"""A batch of twins and of their players: the same face as a native batch, in plain Python."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.exact_math import MASK, Draws, mix
from hotloop.core.world import Plan, PlayerTwin, Twin, World
from hotloop.envs.spec import BatchSettings

RANDOM_PLAYER = "random"

# Sets the random player's draws apart from the seeds of episodes; players.h has the same.
RANDOM_STREAM = 0x72616E646F6D

SEEN = ("observations", "masks", "luck")  # The arrays an agent sees


class NextSeeds:
    """The seeds that an engine takes for the next episodes of its envs."""

    def __init__(self, settings: BatchSettings) -> None:
        self._settings = settings
        self.episodes = [0] * settings.num_envs
        """Of each env, how many seeds were mixed for it."""
        self.last: list[int | None] = [None] * settings.num_envs

    def next(self, env: int) -> int:
        last = self.last[env]
        if self._settings.seed_step and last is not None:
            return (last + self._settings.seed_step) & MASK
        self.episodes[env] += 1
        return mix(self._settings.seed, env, self.episodes[env] - 1)


class ReferenceEngine:
    """Many twins stepped one after another; agrees with the native engine in everything but speed."""

    def __init__(self, world: World, plan: Plan, parameters: Any, options: BatchSettings) -> None:
        layout = world.layout(parameters)
        self.world = world
        self.num_envs, self.agents = options.num_envs, layout.agents
        self.autoreset, self.profile, self.drag = options.autoreset, options.profile, options.drag
        self.rows = {
            array.name: np.zeros((self.num_envs, *array.shape), np.dtype(array.dtype))
            for array in layout.arrays
        }
        self.final_observations = np.zeros_like(self.rows["observations"])
        twin = world.twin()
        self.twins = [
            twin(
                plan, {name: rows[env : env + 1].reshape(rows.shape[1:]) for name, rows in self.rows.items()}
            )
            for env in range(self.num_envs)
        ]
        self.seats = Players(
            world, plan, self.rows, self.twins, seed=options.seed, drawn_actions=layout.drawn_actions
        )
        self.seeds = NextSeeds(options)
        self.begun = [0] * self.num_envs
        self.ready = False
        self.resets = self.batch_calls = 0
        self.total_ns = dict.fromkeys(self.phase_names(), 0)
        self.before_ns = dict(self.total_ns)
        self.step_total_ns = self.step_last_ns = 0
        self.log: list[list[int]] = []
        self.log_rows = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return every array by name, [num_envs, ...]; views that the next call rewrites."""
        return {**self.rows, "final_observations": self.final_observations}

    def reset(self, seeds: NDArray[np.uint64] | None) -> None:
        self.ready = True
        self.reset_many(np.arange(self.num_envs), seeds)

    def reset_many(self, envs: NDArray[np.int64], seeds: NDArray[np.uint64] | None) -> None:
        if not self.ready:
            raise RuntimeError("reset_many before reset: call reset() once first")
        for i, env in enumerate(envs.tolist()):
            for name, rows in self.rows.items():
                if name != "observations":
                    rows[env] = 0
            self._restart(env, self.seeds.next(env) if seeds is None else int(seeds[i]))

    def step(self, actions: NDArray[np.int32]) -> None:
        # What the native binding takes; the batch explains what it refuses.
        wanted = (self.num_envs,) if self.agents == 1 and actions.ndim == 1 else (self.num_envs, self.agents)
        if actions.dtype != np.int32 or not actions.flags.c_contiguous or actions.shape != wanted:
            raise TypeError("actions of another type or shape")
        if not self.ready:
            raise RuntimeError("step before reset: call reset() first")
        if not self.autoreset and self._finished().any():
            raise RuntimeError(
                "step after the end of an episode with autoreset off: reset the finished envs first"
            )
        start = now_ns()
        self.before_ns = dict(self.total_ns)
        chosen = actions.reshape(self.num_envs, self.agents).tolist()
        for env in range(self.num_envs):
            self._step_one(env, chosen[env])
        self.step_last_ns = now_ns() - start
        self.step_total_ns += self.step_last_ns
        self.batch_calls += 1
        if len(self.log) < self.log_rows:
            # A row as the native engine's, in nanoseconds; the one worker is worker 0.
            ended = np.flatnonzero(self._finished())
            phases = (ns - self.before_ns[name] for name, ns in self.total_ns.items())
            first = int(ended[0]) if len(ended) else -1
            self.log.append([start, start + self.step_last_ns, len(ended), first, *phases])

    def _step_one(self, env: int, chosen: Sequence[int]) -> None:
        twin = self.twins[env]
        twin.chosen = chosen
        last = now_ns()
        for phase in self.world.phases:
            getattr(twin, phase)()
            last = self._mark(phase, last)
        if self.autoreset and self._finished()[env]:
            self.final_observations[env] = self.rows["observations"][env]
            self._restart(env, self.seeds.next(env))
        last = self._mark("autoreset", last)
        if self.drag:
            for _ in range(self.drag):
                pass
            self._mark("drag", last)

    def _mark(self, phase: str, last: int) -> int:
        if not self.profile:
            return last
        now = now_ns()
        self.total_ns[phase] += now - last
        return now

    def _finished(self) -> NDArray[np.bool_]:
        finished: NDArray[np.bool_] = self.rows["terminals"] | self.rows["truncations"]
        return finished

    def _restart(self, env: int, episode_seed: int) -> None:
        self.twins[env].restart(episode_seed)
        self.seeds.last[env] = episode_seed
        self.begun[env] += 1
        self.resets += 1

    def players(self) -> list[str]:
        return list(self.seats.names)

    def choose(self, player: int, actions: NDArray[np.int32]) -> None:
        """Let the player of a number fill in the actions."""
        if not self.ready:
            raise RuntimeError("choose before reset: call reset() first")
        self.seats.choose(self.seats.names[player], self.begun, actions)

    def picture(self, env: int) -> NDArray[np.uint8]:
        """Return what a world's drawer draws from."""
        if not self.ready:
            raise RuntimeError("picture before reset: call reset() first")
        cells: NDArray[np.uint8] = self.twins[env].picture()  # type: ignore[attr-defined]
        return cells

    def digest(self, env: int) -> int:
        """Return a hash of an env's logical state."""
        return self.twins[env].digest()

    def save(self, env: int) -> bytes:
        rows = b"".join(rows[env].tobytes() for rows in self.rows.values())
        facts = {"episode": self.seeds.episodes[env], "seed": self.seeds.last[env], "rows": len(rows)}
        head = json.dumps(facts).encode()
        return b"\n".join((head, rows + self.twins[env].save()))

    def load(self, env: int, saved: bytes) -> None:
        head, _, body = saved.partition(b"\n")
        facts = json.loads(head)
        self.seeds.episodes[env], self.seeds.last[env] = facts["episode"], facts["seed"]
        at = 0
        for rows in self.rows.values():
            size = rows[env].nbytes
            rows[env] = np.frombuffer(body[at : at + size], rows.dtype).reshape(rows.shape[1:])
            at += size
        self.twins[env].load(body[at:])
        self.begun[env] += 1
        self.ready = True

    def fork(self, env: int, into: int) -> None:
        if not self.ready:
            raise RuntimeError("fork before reset: call reset() first")
        if env != into:
            self.load(into, self.save(env))

    def counters(self) -> list[tuple[str, int]]:
        steps = self.batch_calls * self.num_envs
        names = dict.fromkeys(name for twin in self.twins for name in twin.counters)
        # Where rows may be empty, agent-steps are those of agents that lived.
        lived = (
            sum(twin.lived for twin in self.twins)  # type: ignore[attr-defined]
            if "alive" in self.rows
            else steps * self.agents
        )
        return [
            ("reference_steps", steps),
            ("batch_calls", self.batch_calls),
            ("env_steps", steps),
            ("agent_steps", lived),
            ("resets", self.resets),
            *((name, sum(twin.counters.get(name, 0) for twin in self.twins)) for name in names),
            *self.seats.counters(self.num_envs * self.agents),
        ]

    def phase_names(self) -> list[str]:
        return [*self.world.phases, "autoreset", *(["drag"] if self.drag else [])]

    def phase_ns(self, last_step_only: bool) -> list[float]:
        return [float(ns - self.before_ns[name] * last_step_only) for name, ns in self.total_ns.items()]

    def step_ns(self, last_step_only: bool) -> float:
        return float(self.step_last_ns if last_step_only else self.step_total_ns)

    def keep_log(self, rows: int) -> None:
        self.log, self.log_rows = [], rows

    def lend(self, threads: int) -> None:
        """Nothing is done with threads: twins are stepped one after another."""

    def take_log(self) -> NDArray[np.int64]:
        taken, self.log = self.log, []
        return np.array(taken, np.int64).reshape(len(taken), 4 + len(self.total_ns))


def random_actions(
    seed: int, env: int, asked: int, agents: int, bound: int, masks: NDArray[np.bool_] | None = None
) -> list[int]:
    """Uniform over the first `bound` actions, a function of the seed, the env and how often it was asked.

    Under masks [agents, num_actions] it is uniform over the legal ones; 0 where none is.
    """
    draws = Draws(mix(seed, env, RANDOM_STREAM), asked)
    if masks is None:
        return [draws.below(agent, bound) for agent in range(agents)]
    legal = [np.flatnonzero(mask) for mask in masks]
    return [int(row[draws.below(agent, len(row))]) if len(row) else 0 for agent, row in enumerate(legal)]


class Players:
    """The players of a batch, which choose its actions; a player's memory is made at its first choice."""

    def __init__(
        self,
        world: World,
        plan: Plan,
        rows: Mapping[str, NDArray[Any]],
        envs: Sequence[Twin],
        *,
        seed: int,
        drawn_actions: int,
    ) -> None:
        self.world, self.plan, self.rows, self.envs, self.seed = world, plan, rows, envs, seed
        self.drawn_actions = drawn_actions
        self.names = (RANDOM_PLAYER, *world.players)
        self.asked = dict.fromkeys(self.names, 0)
        self.twins: dict[str, list[PlayerTwin]] = {}
        self.met: dict[str, list[int]] = {}

    def choose(self, name: str, begun: Sequence[int], actions: NDArray[np.int32]) -> None:
        """Fill in every env's actions; `begun` numbers each env's episode, from 1."""
        self.asked[name] += 1
        if name == RANDOM_PLAYER:
            for env in range(len(begun)):
                masks = self.rows["masks"][env] if "masks" in self.rows else None
                actions[env] = random_actions(
                    self.seed, env, self.asked[name], actions.shape[1], self.drawn_actions, masks
                )
            return
        if name not in self.twins:
            twin, looks_ahead = self.world.players[name](), name in self.world.looks_ahead
            seen = {array: rows for array, rows in self.rows.items() if array in SEEN}
            self.twins[name] = [
                twin(
                    self.plan,
                    {array: rows[env] for array, rows in seen.items()}
                    | ({"twin": self.envs[env]} if looks_ahead else {}),
                )
                for env in range(len(begun))
            ]
            self.met[name] = [0] * len(begun)
        for env, episode in enumerate(begun):
            if self.met[name][env] != episode:
                self.twins[name][env].restart()
                self.met[name][env] = episode
            actions[env] = self.twins[name][env].choose()

    def counters(self, decisions: int) -> list[tuple[str, int]]:
        """How many decisions each player made; `decisions` are those of one asking."""
        return [(f"decisions.{name}", asked * decisions) for name, asked in self.asked.items()]
