"""Evaluation apart from training: the policy as it is now, on envs and seeds of its own."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.settings import by_role
from hotloop.envs.batch import Batch
from hotloop.envs.episodes import Episode, Episodes
from hotloop.envs.foreign.training import open_trainable
from hotloop.envs.open import make
from hotloop.envs.spec import BatchSpec
from hotloop.stats.intervals import mean_interval
from hotloop.train.policy.actions import actions_of
from hotloop.train.policy.inputs import Sight
from hotloop.train.policy.networks import ByType
from hotloop.train.rollout import Presence, think_of
from hotloop.train.settings import EvalSettings

MOST_ENVS = 64

ENDLESS_STEPS = 1_000
"""Where a world never ends and nobody says when to stop."""


class Policy(Protocol):
    """What of a trainer is needed to act as it does."""

    @property
    def network(self) -> Any: ...

    @property
    def student(self) -> Any: ...

    @property
    def observation_scale(self) -> Any: ...

    @property
    def kernels(self) -> Any: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def draws(self) -> bool:
        """Whether actions are drawn by what the network says; else the highest is taken."""


class Actor:
    """A trainer's policy as a player of any batch of the same layout; it only reads what training writes."""

    def __init__(self, policy: Policy, batch: Batch, *, seed: int, greedy: bool = False) -> None:
        self._policy, self._batch, self._greedy = policy, batch, greedy or not policy.draws
        rows, device = batch.spec.num_envs * batch.spec.agents, policy.device
        self._sight = Sight(batch, by_type=isinstance(policy.network, ByType))
        self._raw = self._sight.raw
        scaled = policy.observation_scale.active
        self._in_place = not scaled and device.type == "cpu" and self._sight.types is None
        """Whether the network reads the batch's own buffer."""
        seen = torch.float32 if scaled else self._raw.dtype
        room = (rows, *self._sight.shape)
        self._seen = self._raw if self._in_place else torch.zeros(room, dtype=seen, device=device)
        self._masks = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(rows, -1)
        self._memory = policy.network.first_memory(rows, device)
        self._begins = torch.ones(rows, dtype=torch.bool, device=device)
        self._random = torch.Generator(device).manual_seed(seed % 2**63)
        self._lives = Presence(batch, 1) if batch.spec.has_empty_rows else None
        self._acts = actions_of(batch.spec.layout.acts)
        shape = (rows, *self._acts.shape)
        self._actions = batch.new_actions()
        self._acting = torch.from_numpy(batch.new_actions()).reshape(shape)
        self._chosen = torch.zeros(shape, dtype=self._acts.dtype, device=device)
        self._log_probs = torch.zeros(rows, device=device)
        self.forward_ns = self.select_ns = 0
        """In the network, and in choosing by what it says, since the beginning."""

    @torch.inference_mode()
    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """Actions for what the batch shows now; the array is the actor's own, rewritten the next time.

        Where `envs` names some, a network without a memory is asked for those alone; the others' stay.
        """
        if self._lives is not None:
            self._lives.begin(0)
        rows = None if envs is None or self._memory is not None or self._lives else self._rows_of(envs)
        seen = self._look(rows)
        start = now_ns()
        logits = self._think(seen)
        thought = now_ns()
        self._select(logits, rows)
        self.forward_ns += thought - start
        self.select_ns += now_ns() - thought
        return self._actions

    def _rows_of(self, envs: NDArray[np.intp]) -> torch.Tensor:
        agents = np.arange(self._batch.spec.agents)
        return torch.from_numpy((envs[:, None] * len(agents) + agents).reshape(-1))

    def _look(self, rows: torch.Tensor | None) -> torch.Tensor:
        policy = self._policy
        raw = self._raw if rows is None else self._raw.index_select(0, rows)
        if self._in_place:
            return raw
        seen = self._seen[: len(raw)]
        policy.observation_scale.write(raw.to(policy.device), self._sight.columns(seen))
        self._sight.tell_types(seen, rows)
        return seen

    def _select(self, logits: torch.Tensor, rows: torch.Tensor | None) -> None:
        """Draw from the policies, or take what is most likely."""
        policy, count = self._policy, len(logits)
        masks = self._masks if rows is None or self._masks is None else self._masks.index_select(0, rows)
        masks = None if masks is None else masks.to(policy.device)
        chosen = self._chosen[:count]
        if self._greedy:
            chosen.copy_(self._acts.likeliest(logits, masks))
        else:
            policy.kernels.choose(
                logits,
                masks,
                torch.rand(chosen.shape, generator=self._random, device=policy.device),
                acting=self._acting[:count],
                actions=chosen,
                log_probs=self._log_probs[:count],
            )
        places = slice(None) if rows is None else rows.numpy()
        self._actions.reshape(-1, *self._acts.shape)[places] = chosen.cpu().numpy()

    def note(self, ended: Sequence[int]) -> None:
        """After a step: a memory begins anew in the envs whose episode ended, and with every life."""
        over = torch.zeros(self._batch.spec.num_envs, dtype=torch.bool)
        over[list(ended)] = True
        self._begins.copy_(over.repeat_interleave(self._batch.spec.agents))
        if self._lives is not None:
            self._lives.end(0)
            self._begins |= self._lives.ends(0).to(self._begins.device)

    def _think(self, seen: torch.Tensor) -> torch.Tensor:
        if self._memory is None and self._lives is not None:
            return think_of(self._policy.student, seen, self._lives.now().to(seen.device))[0]
        if self._memory is None:
            logits: torch.Tensor = self._policy.student(seen, None, None)[0]
            return logits
        several, _, self._memory = self._policy.student(seen[None], self._memory, self._begins[None])
        only: torch.Tensor = several[0]
        return only


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What the episodes came to."""

    episodes: tuple[Episode, ...]

    @property
    def returns(self) -> tuple[float, ...]:
        return tuple(episode.return_per_agent for episode in self.episodes)

    @property
    def mean_return(self) -> float:
        return fmean(self.returns)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% of the mean return; None where the episodes are too few."""
        return mean_interval(self.returns)

    @property
    def mean_length(self) -> float:
        return fmean(episode.length for episode in self.episodes)

    @property
    def outcomes(self) -> Mapping[str, float]:
        """The world's own measures: means over the episodes."""
        names = self.episodes[0].outcomes
        return {name: fmean(episode.outcomes[name] for episode in self.episodes) for name in names}


def evaluate(policy: Policy, spec: BatchSpec, asked: EvalSettings) -> Evaluation:
    """Play episodes with the policy as it is now; each env plays its share, so short ones count no more."""
    turns = -(-asked.episodes // MOST_ENVS)
    envs = -(-asked.episodes // turns)
    shares = [asked.episodes // envs + (env < asked.episodes % envs) for env in range(envs)]
    with closing(own_batch(spec, asked, envs)) as batch:
        batch.reset()
        actor = Actor(policy, batch, seed=asked.seed, greedy=asked.greedy)
        rows = play(actor, Episodes(batch, limit_of(batch, asked.steps)), shares)
    return Evaluation(episodes=tuple(episode for row in rows for episode in row))


def play(actor: Actor, episodes: Episodes, shares: list[int]) -> list[list[Episode]]:
    """The episodes of every env, as many as its share."""
    finished: list[list[Episode]] = [[] for _ in shares]
    while any(len(row) < share for row, share in zip(finished, shares, strict=True)):
        ended = episodes.step(actor.choose())
        actor.note([episode.env for episode in ended])
        for episode in ended:
            if len(finished[episode.env]) < shares[episode.env]:
                finished[episode.env].append(episode)
    return finished


def own_batch(spec: BatchSpec, asked: EvalSettings, num_envs: int) -> Batch:
    """Envs of the same world with seeds of their own."""
    if asked.seed == spec.seed:
        raise InputError(
            f"train.eval.seed={asked.seed} is the seed of the training's own envs: give another one"
        )
    if spec.impl == "foreign":
        return open_trainable(spec.same_work.with_keys({"num_envs": num_envs, "seed": asked.seed}))
    workload = by_role(spec.parameters, "workload")
    return make(
        spec.target, **workload, num_envs=num_envs, seed=asked.seed, impl=spec.impl, threads=spec.threads
    )


def limit_of(batch: Batch, steps: int) -> int:
    """Steps after which an episode is cut off; 0 is never."""
    endless = batch.spec.world.is_endless(batch.spec.parameters)
    return steps or (ENDLESS_STEPS if endless else 0)
