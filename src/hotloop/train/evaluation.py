"""Evaluation apart from training: the policy as it is now, on envs and seeds of its own."""

import os
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.settings import by_role
from hotloop.envs.batch import Batch
from hotloop.envs.callables import may_call
from hotloop.envs.foreign.training import open_trainable
from hotloop.envs.open import make
from hotloop.envs.spec import BatchSpec
from hotloop.envs.tapes import Episode, Episodes
from hotloop.stats.summary import mean_interval
from hotloop.train import checkpoint
from hotloop.train.actions import actions_of
from hotloop.train.algorithm import Policy
from hotloop.train.arithmetic import Kernels, find_kernels, use_threads
from hotloop.train.networks import ByType, default_network, make_student
from hotloop.train.normalize import ObservationScale, ObservationView, row_shape
from hotloop.train.rollout import alive_mask
from hotloop.train.settings import EvalSettings, TrainSettings

MOST_ENVS = 64


ENDLESS_STEPS = 1_000  # The limit of an episode in a world that never ends, unless the settings have one


class PolicyRunner:
    """A policy that plays any batch of the same layout; it only reads what training writes."""

    def __init__(self, policy: Policy, batch: Batch, *, seed: int, greedy: bool = False) -> None:
        self._policy, self._batch, self._greedy = policy, batch, greedy or not policy.draws
        rows, device = batch.spec.num_envs * batch.spec.agents, policy.device
        self._view = ObservationView(batch, by_type=isinstance(policy.network, ByType))
        self._raw = self._view.raw
        scaled = policy.observation_scale.active
        self._in_place = not scaled and device.type == "cpu" and self._view.types is None
        """Whether the network reads the batch's own buffer."""
        dtype = torch.float32 if scaled else self._raw.dtype
        self._scaled = self._raw
        if not self._in_place:
            self._scaled = torch.zeros((rows, *self._view.shape), dtype=dtype, device=device)
        self._masks = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(rows, -1)
        self._memory = policy.network.first_memory(rows, device)
        self._begins = torch.ones(rows, dtype=torch.bool, device=device)
        self._random = torch.Generator(device).manual_seed(seed % 2**63)
        self._alive = alive_mask(batch)
        self._acts = actions_of(batch.spec.layout.acts)
        shape = (rows, *self._acts.shape)
        self._actions = batch.new_actions()
        self._acting = torch.from_numpy(batch.new_actions()).reshape(shape)
        self._chosen = torch.zeros(shape, dtype=self._acts.dtype, device=device)
        self._log_probs = torch.zeros(rows, device=device)
        self.forward_ns = self.select_ns = 0
        """Time in the network, and in choosing by its outputs, since the beginning."""

    @torch.inference_mode()
    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """Return actions for what the batch shows now, in an array that the next call rewrites.

        If `envs` names some, a network without a memory runs for those alone; the others' actions stay.
        """
        policy, rows = self._policy, None
        self._alive.begin(0)
        if envs is not None and self._memory is None and not self._batch.spec.has_empty_rows:
            agents = np.arange(self._batch.spec.agents)
            rows = torch.from_numpy((envs[:, None] * len(agents) + agents).reshape(-1))
        observations = self._raw if rows is None else self._raw.index_select(0, rows)
        if not self._in_place:
            raw, observations = observations, self._scaled[: len(observations)]
            policy.observation_scale.write(raw.to(policy.device), self._view.columns(observations))
            self._view.write_types(observations, rows)
        start_ns = now_ns()
        logits, _, self._memory = self._alive.forward(
            policy.student, observations, self._memory, self._begins
        )
        forward_end_ns = now_ns()
        self._select(logits, rows)
        self.forward_ns += forward_end_ns - start_ns
        self.select_ns += now_ns() - forward_end_ns
        return self._actions

    def _select(self, logits: torch.Tensor, rows: torch.Tensor | None) -> None:
        """Draw from the policy, or take the most likely actions."""
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
        self._alive.end(0)
        self._begins.copy_(over.repeat_interleave(self._batch.spec.agents) | self._alive.changed(0))


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
    finished: list[list[Episode]] = [[] for _ in shares]
    with closing(own_batch(spec, asked, envs)) as batch:
        batch.reset()
        runner = PolicyRunner(policy, batch, seed=asked.seed, greedy=asked.greedy)
        endless = batch.spec.world.is_endless(batch.spec.parameters)
        episodes = Episodes(batch, asked.steps or (ENDLESS_STEPS if endless else 0))
        while any(len(row) < share for row, share in zip(finished, shares, strict=True)):
            ended = episodes.step(runner.choose())
            runner.note([episode.env for episode in ended])
            for episode in ended:
                if len(finished[episode.env]) < shares[episode.env]:
                    finished[episode.env].append(episode)
    return Evaluation(episodes=tuple(episode for row in finished for episode in row))


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


TRUSTED = "HOTLOOP_TRUST"  # Of the environment: the checkpoint whose network may be called wherever it lies


NOT_A_PLAYERS = ("num_envs", "seed")  # Of what a checkpoint is known by: a player may sit at any batch


@dataclass(slots=True, kw_only=True)
class LoadedPolicy:
    """See `Policy`; read from a checkpoint."""

    network: nn.Module
    student: Any
    observation_scale: ObservationScale
    kernels: Kernels
    device: torch.device
    draws: bool


def seat(path: Path, batch: Batch, *, seed: int, threads: int) -> PolicyRunner:
    """Return a runner of a checkpoint's most likely actions; refuse one trained on other observations."""
    content = checkpoint.read(path)
    now = checkpoint.identity(batch, row_shape(batch))
    for name in NOT_A_PLAYERS:
        del now[name]
    for name, value in now.items():
        if (was := content["identity"].get(name)) != value:
            raise InputError(
                f"{path} was trained with {name}={textwrap.shorten(str(was), 100)}, and {batch.spec.name} "
                f"has {textwrap.shorten(str(value), 100)}: "
                "give the parameters that it was trained with, or train another"
            )
    use_threads(threads)
    return PolicyRunner(load_policy(path, content, batch), batch, seed=seed, greedy=True)


def load_policy(path: Path, content: dict[str, Any], batch: Batch) -> LoadedPolicy:
    """Return the policy of a checkpoint, on the CPU."""
    known = {field.name for field in fields(TrainSettings)}
    given = {name: value for name, value in content["settings"].items() if name in known}
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    settings = TrainSettings(**{**given, "device": "cpu", "compile": False, "kernels": "auto"})
    check_network(path, settings.network)
    shape = row_shape(batch)
    network = default_network(batch.spec, shape, settings)
    scale = ObservationScale(shape, torch.device("cpu"), active=bool(content["observation_scale"]["count"]))
    try:
        network.load_state_dict(content["network"])
        scale.restore(content["observation_scale"])
    except (KeyError, RuntimeError, TypeError) as error:
        raise InputError(
            f"{path} has another network than its settings make: {checkpoint.first_line(error)}"
        ) from None
    kernels = find_kernels(settings, batch.spec.num_actions, acts=batch.spec.layout.acts)
    kernels.adopt(network, settings)
    return LoadedPolicy(
        network=network.requires_grad_(False),
        student=make_student(network, settings),
        observation_scale=scale,
        kernels=kernels,
        device=torch.device("cpu"),
        draws=settings.algorithm == "ppo",
    )


def check_network(path: Path, name: str) -> None:
    """Refuse a checkpoint that would call user code, unless it is of this project."""
    trusted = Path(os.environ.get(TRUSTED) or os.devnull).resolve() == path.resolve()
    if name and not trusted and not may_call(name):
        raise InputError(
            f"{path} would call {name!a}, which is not code of this project: look at it first, "
            f"then set {TRUSTED}={path} to run it all the same"
        )
