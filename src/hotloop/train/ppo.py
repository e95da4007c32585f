"""Proximal policy optimization, top to bottom: collect, bootstrap, gae, minibatches, loss, update.

Arrays are [steps, rows, ...], times first; a row is one agent of one env. Nothing here knows a world.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train.actions import actions_of, allowed
from hotloop.train.algorithm import DivergedError, Update, fit_threads, load_optimiser, set_learning_rate
from hotloop.train.arithmetic import Kernels, Number, find_kernels, use_threads
from hotloop.train.device.kernels import take_rows
from hotloop.train.imitation import find_teacher, imitation_loss, phase_at
from hotloop.train.networks import ActorCritic, Memory, Student, default_network, is_by_type, make_student
from hotloop.train.normalize import ObservationScale, RewardScale, row_shape, scales_observations, scan
from hotloop.train.opponents import find_opponents
from hotloop.train.ranks import ALONE, STRIDE, Ranks
from hotloop.train.rollout import Collector, Experience, Rollout
from hotloop.train.settings import TrainSettings
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

if TYPE_CHECKING:
    from hotloop.train.actors import ActorPool, RayCollector
    from hotloop.train.device.collector import DeviceCollector
    from hotloop.train.device.learner import RecordedLearner

ADAM_EPSILON = 1e-5


class PPO:
    """Learns from every rollout once, while it is of the present policy; `DQN` has the same face."""

    draws = True

    def __init__(
        self,
        batch: Batch,
        settings: TrainSettings,
        device: torch.device,
        watchers: Sequence[Watcher],
        ranks: Ranks = ALONE,
        actor_pool: "ActorPool | None" = None,
    ) -> None:
        self.batch, self.settings, self.device, self.ranks = batch, settings, device, ranks
        self.actor_pool = actor_pool
        self.learned = 0
        """How often this process learned: from rollouts here, from minibatches with DQN."""
        spec, shape, rows = batch.spec, row_shape(batch), batch.spec.num_envs * batch.spec.agents
        self.by_type = is_by_type(spec, settings)
        network = default_network(spec, shape, settings).to(device)
        self.network: nn.Module = network
        # What is recorded as a graph has no place where ranks would average its gradients.
        fixed = network.has_fixed_shapes and not spec.has_empty_rows and not ranks.several
        make_kernels = partial(
            find_kernels, settings, spec.num_actions, fixed_shapes=fixed, acts=spec.layout.acts
        )
        obs = torch.zeros(rows, *shape, dtype=getattr(torch, spec.layout.observation.dtype))
        obs = nn.functional.pad(obs, (0, 1)) if self.by_type else obs
        self.threads = fit_threads(network, obs, settings, lambda copy: make_kernels().adopt(copy, settings))
        use_threads(self.threads.threads)
        self.kernels = make_kernels()
        self.kernels.adopt(network, settings)
        # What is recorded is compiled as a whole, with what stands around the network.
        self.student = make_student(
            network, replace(settings, compile=False) if self.kernels.records else settings
        )
        active = scales_observations(spec.layout, settings)
        self.observation_scale = ObservationScale(shape, device, active=active, ranks=ranks)
        self.reward_scale = RewardScale(
            rows, device, gamma=settings.gamma, active=settings.norm_reward, ranks=ranks
        )
        self.acting = torch.Generator(device).manual_seed(settings.seed + STRIDE * ranks.rank)
        self.shuffling = torch.Generator(device if self.kernels.records else "cpu").manual_seed(settings.seed)
        self.teacher = find_teacher(batch, settings)
        self.opponents = find_opponents(batch, network, settings)
        self.collector = self.make_collector(watchers)
        self.collector.memory = network.first_memory(rows, device)
        self.optimiser = torch.optim.Adam(
            network.parameters(),
            lr=torch.tensor(settings.learning_rate, device=device)
            if self.kernels.records
            else settings.learning_rate,
            eps=ADAM_EPSILON,
            fused=True,
            capturable=device.type == "cuda",
        )
        self.learner = self.make_learner()

    def make_collector(self, watchers: Sequence[Watcher]) -> "Collector | DeviceCollector | RayCollector":
        """Return what steps the envs: this process, beside a GPU or on it, or actors."""
        batch, settings = self.batch, self.settings
        if self.actor_pool is not None:
            from hotloop.train.actors import RayCollector

            rows, acts = batch.spec.num_envs * batch.spec.agents, actions_of(batch.spec.layout.acts)
            return RayCollector(self.actor_pool, settings, self.network, self.observation_scale, rows, acts)
        parts: dict[str, Any] = {
            "device": self.device,
            "scale": self.observation_scale,
            "kernels": self.kernels,
            "generator": self.acting,
            "watchers": watchers,
        }
        if isinstance(batch, DeviceBatch):
            from hotloop.train.device.collector import DeviceCollector

            return DeviceCollector(batch, settings=settings, **parts)
        kind = Collector
        if self.device.type != "cpu":
            from hotloop.train.device import apart

            kind = apart.SplitCollector
        collector = kind(batch, steps=settings.num_steps, by_type=self.by_type, **parts)
        collector.opponents = self.opponents
        return collector

    def make_learner(self) -> "PPOLearner | RecordedLearner":
        """Return what goes over minibatches: recorded as CUDA graphs if the kernels are."""
        parts: dict[str, Any] = {
            "network": self.network,
            "student": self.student,
            "optimiser": self.optimiser,
            "settings": self.settings,
            "generator": self.shuffling,
        }
        if self.kernels.records:
            from hotloop.train.device.learner import RecordedLearner

            return RecordedLearner(**parts, device=self.device)
        if self.ranks.several:
            parts["student"] = shared(self.network, self.settings, self.ranks, all_used=not self.by_type)
        return PPOLearner(**parts, kernels=self.kernels, ranks=self.ranks)

    def advance(self, steps: int) -> Update:
        """Collect a rollout and learn from it; `steps` are the run's env-steps before it."""
        phase = phase_at(steps, self.settings)
        rate = set_learning_rate(self.optimiser, self.settings, steps)
        self.opponents.begin(self.network)
        self.ranks.begin()
        rollout = self.collect(steps)
        with lifeline.doing(Activity.OURS), span("learn"):
            samples = self.prepare(rollout)
            mark("advantages")
            terms = self.learner.learn(samples, phase.imitating)
        self.learned += 1
        if self.actor_pool is not None:
            terms = terms | {"staleness": self.actor_pool.last_staleness}
        return Update(
            phase=phase.name,
            agent_steps=rollout.agent_steps * self.ranks.size,
            losses=terms | self.opponents.shares_won(),
            learning_rate=rate,
            agreement=rollout.agreement,
        )

    def collect(self, steps: int) -> Rollout:
        """Return one rollout, labeled by the teacher while it has a say."""
        labelled = phase_at(steps, self.settings).imitating
        return self.collector.collect(self.student, self.teacher if labelled else None)

    @torch.no_grad()
    def prepare(self, rollout: Rollout) -> "Samples":
        """Return the samples of a rollout: rewards are scaled and made advantages; flat without a memory."""
        settings = self.settings
        rewards = self.reward_scale.scale(rollout.rewards, rollout.dones, rollout.alive)
        advantages = gae(
            bootstrap(self.student, rollout, rewards, settings.gamma),
            rollout.values,
            rollout.dones,
            rollout.last_values,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            turns=rollout.turns,
        )
        experience: dict[str, Any] = {each.name: getattr(rollout, each.name) for each in fields(Experience)}
        samples = Samples(**experience, advantages=advantages, returns=advantages + rollout.values)
        if rollout.memory is not None:
            return replace(samples, begins=rollout.begins)
        flat = {name: array.flatten(0, 1) for name, array in samples.arrays()}
        return replace(samples, **flat)  # type: ignore[arg-type]

    def state(self) -> dict[str, Any]:
        collector = self.collector
        return {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "observation_scale": self.observation_scale.state(),
            "reward_scale": self.reward_scale.state(),
            "acting": self.acting.get_state(),
            "shuffling": self.shuffling.get_state(),
            "memory": None if collector.memory is None else list(collector.memory),
            "begins": collector.begins,
            "opponents": self.opponents.state(),
        }

    def restore(self, content: Mapping[str, Any], *, same_episodes: bool) -> None:
        """Take a state over; `same_episodes` says whether the envs go on where they were."""
        load_optimiser(self.optimiser, content["optimiser"])
        self.observation_scale.restore(content["observation_scale"])
        self.reward_scale.restore(content["reward_scale"])
        self.acting.set_state(content["acting"])
        self.shuffling.set_state(content["shuffling"])
        memory, device = content["memory"], self.device
        self.collector.memory = None if memory is None else (memory[0].to(device), memory[1].to(device))
        self.collector.begins.copy_(content["begins"])
        self.opponents.restore(content["opponents"])
        if not same_episodes:
            self.collector.begins.fill_(True)
            self.reward_scale.running.zero_()


def shared(network: nn.Module, settings: TrainSettings, ranks: Ranks, *, all_used: bool) -> Student:
    """Return the network as ranks learn with it; one that learns at once has nothing to overlap."""
    if isinstance(network, ActorCritic) and network.learns_at_once:
        ranks.same(network.parameters())
        return network
    return make_student(ranks.wrap(network, all_used=all_used), settings)


def bootstrap(student: Student, rollout: Rollout, rewards: Tensor, gamma: float) -> Tensor:
    """Return rewards to which, in truncated steps, the discounted values beyond them are added."""
    cuts = rollout.cuts
    if not cuts:
        return rewards
    obs, memory, begins = torch.cat([cut.observations for cut in cuts]), None, None
    if cuts[0].memory is not None:
        hidden, cell = (
            torch.cat(parts) for parts in zip(*(cut.memory for cut in cuts if cut.memory), strict=True)
        )
        memory, begins = (hidden, cell), torch.zeros(1, len(obs), dtype=torch.bool, device=obs.device)
    values = student(obs if memory is None else obs[None], memory, begins)[1].reshape(-1)
    steps, rows = torch.cat([cut.steps for cut in cuts]), torch.cat([cut.rows for cut in cuts])
    return rewards.index_put((steps, rows), gamma * values, accumulate=True)


def gae(
    rewards: Tensor,
    values: Tensor,
    dones: Tensor,
    last_values: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
    turns: Tensor | None = None,
) -> Tensor:
    """Return generalized advantage estimates; `dones` is 1 if a step ended its episode, however it ended.

    The rewards of truncated steps are bootstrapped already. `turns` is -1 if the next row is another
    player's, whose gain is this one's loss.
    """
    nextnonterminal = 1 - dones if turns is None else (1 - dones) * turns
    nextvalues = torch.cat((values[1:], last_values[None]))
    delta = rewards + gamma * nextvalues * nextnonterminal - values
    return scan(delta, gamma * gae_lambda * nextnonterminal)


@dataclass(slots=True, kw_only=True)
class Samples(Experience):
    """What is learned from; whole rows of steps for a network with a memory."""

    advantages: Tensor
    returns: Tensor
    begins: Tensor | None = None  # None without a memory

    def take(self, indices: Tensor) -> "Samples":
        """Return some samples; for a network with a memory some rows, with all their steps."""
        if self.memory is None:
            return replace(self, **{name: take_rows(array, indices) for name, array in self.arrays()})  # type: ignore[arg-type]
        some: dict[str, Any] = {name: array.index_select(1, indices) for name, array in self.arrays()}
        some["memory"] = tuple(part.index_select(0, indices) for part in self.memory)
        return replace(self, **some)

    def inputs(self, indices: Tensor) -> tuple[Tensor, Memory | None, Tensor | None]:
        """Return what a network is called with to learn from some samples."""
        if self.memory is None:
            return self.observations.index_select(0, indices), None, None
        begins = None if self.begins is None else self.begins.index_select(1, indices)
        hidden, cell = (part.index_select(0, indices) for part in self.memory)
        return self.observations.index_select(1, indices), (hidden, cell), begins

    def arrays(self) -> Iterator[tuple[str, Tensor]]:
        """Yield every array there is by name, but for the memory."""
        for each in fields(self):
            array = getattr(self, each.name)
            if array is not None and each.name not in ("memory", "acts"):
                yield each.name, array


def minibatches(samples: Samples, settings: TrainSettings, generator: torch.Generator) -> Sequence[Tensor]:
    """Return shuffled indices for one pass over the samples of living agents.

    Whole rows for a network with a memory. Minibatches are of about one size, however many there are.
    """
    recurrent = samples.memory is not None
    size = settings.minibatch_size // (settings.num_steps if recurrent else 1)
    if samples.alive is None:
        b_inds = torch.arange(samples.log_probs.shape[1 if recurrent else 0], device=samples.actions.device)
    else:
        b_inds = (samples.alive.any(0) if recurrent else samples.alive).nonzero()[:, 0]
    if not len(b_inds):
        return ()
    b_inds = b_inds[torch.randperm(len(b_inds), generator=generator).to(b_inds.device)]
    return torch.tensor_split(b_inds, -(-len(b_inds) // size))


def losses(student: Student, part: Samples, settings: TrainSettings, imitating: Number) -> dict[str, Tensor]:
    """Return every term of the objective and their sum; `imitating` 1 is imitation alone, 0 is PPO alone.

    A tensor stands for what lies between.
    """
    known = None if isinstance(imitating, Tensor) else imitating
    logits, values, _ = student(part.observations, part.memory, part.begins)
    if part.memory is not None and part.alive is not None:
        logits, values = logits[part.alive], values[part.alive]
        living = {name: array[part.alive] for name, array in part.arrays() if name != "observations"}
        part = replace(part, memory=None, **living)  # type: ignore[arg-type]
    logits = allowed(logits, part.masks)
    terms = {"value": value_loss(values, part.returns)}
    total = settings.vf_coef * terms["value"]
    if known is None or known < 1:
        terms |= ppo_terms(logits, part, settings)
        total = total + (1 - imitating) * (terms["policy"] - settings.ent_coef * terms["entropy"])
    if (known is None or known > 0) and part.labels is not None:
        terms["imitation"] = imitation_loss(logits, part.labels, part.acts)
        total = total + imitating * terms["imitation"]
    return {"total": total, **terms}


def ppo_terms(logits: Tensor, part: Samples, settings: TrainSettings) -> dict[str, Tensor]:
    newlogprob, entropy = part.acts.read(logits, part.actions)
    logratio = newlogprob - part.log_probs
    ratio = logratio.exp()
    mb_advantages = standardize(part.advantages) if settings.norm_adv else part.advantages
    with torch.no_grad():
        approx_kl = (ratio - 1 - logratio).mean()
        clipfrac = ((ratio - 1).abs() > settings.clip_coef).float().mean()
    return {
        "policy": policy_loss(ratio, mb_advantages, settings.clip_coef),
        "entropy": entropy.mean(),
        "approx_kl": approx_kl,
        "clip_fraction": clipfrac,
    }


def standardize(values: Tensor) -> Tensor:
    """Return values with mean 0 and deviation 1; a single one has no deviation and becomes 0."""
    if values.numel() == 1:
        return torch.zeros_like(values)
    variance, mean = torch.var_mean(values)
    return (values - mean) / (variance.sqrt() + 1e-8)


def policy_loss(ratio: Tensor, advantages: Tensor, clip_coef: float) -> Tensor:
    """Return the clipped objective: nothing is gained by moving a probability beyond the clip."""
    clipped = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    return -torch.min(ratio * advantages, clipped * advantages).mean()


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Return half the mean squared error of the critic."""
    return 0.5 * (values - returns).square().mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOLearner:
    """A network, its optimizer, and how it learns."""

    network: nn.Module
    student: Student  # The network as it is called: compiled, in mixed precision, or as it is
    optimiser: torch.optim.Adam
    settings: TrainSettings
    kernels: Kernels
    generator: torch.Generator
    ranks: Ranks = ALONE  # The ranks that learn together, each from a share of every minibatch

    def learn(self, samples: Samples, imitating: float) -> dict[str, float]:
        """Go over the samples `update_epochs` times; return the mean of every term over all minibatches."""
        step = self.kernels.mover(self.optimiser, self.settings.max_grad_norm or float("inf"))
        parameters = list(self.network.parameters())
        sums: dict[str, Number] = {}
        epochs = [
            minibatches(samples, self.settings, self.generator) for _ in range(self.settings.update_epochs)
        ]
        scaled, settings = self.normalize_across_ranks(samples, epochs)
        for epoch, (part, order) in enumerate(zip(scaled, epochs, strict=True)):
            for minibatch, mb_inds in enumerate(order):
                with self.ranks.together():
                    objective = self.kernels.objective(self.student, part, mb_inds, settings, imitating)
                    mark("forward")
                    objective.backward()
                    if self.at_once:
                        self.ranks.average(parameters)
                mark("backward")
                terms = {**objective.terms, "grad_norm": step()}
                if not math.isfinite(terms["total"] + terms["grad_norm"]):
                    raise diverged(self.network, terms, samples, mb_inds, epoch=epoch, minibatch=minibatch)
                for name, term in terms.items():
                    sums[name] = sums.get(name, 0) + term
                mark("optimiser")
        count = sum(map(len, epochs))
        return self.ranks.mean({name: float(total) / count for name, total in sums.items()})

    @property
    def at_once(self) -> bool:
        """Whether ranks average gradients once all of them are there."""
        return self.ranks.several and self.student is self.network

    def normalize_across_ranks(
        self, samples: Samples, epochs: Sequence[Sequence[Tensor]]
    ) -> tuple[list[Samples], TrainSettings]:
        """Return the samples of each epoch, their advantages normalized by minibatches over all ranks."""
        if not self.ranks.several or not self.settings.norm_adv:
            return [samples] * len(epochs), self.settings
        axis = 0 if samples.memory is None else 1
        parts = [[samples.advantages.index_select(axis, each).double() for each in order] for order in epochs]
        sums = [
            [part.numel(), float(part.sum()), float(part.square().sum())] for row in parts for part in row
        ]
        counts, totals, squares = self.ranks.sum_over_ranks(torch.tensor(sums, dtype=torch.float64)).unbind(1)
        means = totals / counts
        deviations = ((squares - counts * means**2) / (counts - 1)).clamp(min=0).sqrt() + 1e-8
        scales = iter(zip(means, deviations, strict=True))
        scaled = []
        for order, row in zip(epochs, parts, strict=True):
            advantages = samples.advantages.clone()
            for mb_inds, part in zip(order, row, strict=True):
                mean, deviation = next(scales)
                advantages.index_copy_(axis, mb_inds, ((part - mean) / deviation).to(advantages.dtype))
            scaled.append(replace(samples, advantages=advantages))
        return scaled, replace(self.settings, norm_adv=False)


def diverged(
    network: nn.Module,
    terms: Mapping[str, Number],
    samples: Samples,
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> DivergedError:
    """Return the error for a loss or gradient norm that is not finite, with the first array that is not."""
    arrays = dict(samples.take(indices).arrays())
    there = {**arrays, **{name: torch.as_tensor(term) for name, term in terms.items()}}
    first = next((name for name, array in there.items() if not torch.isfinite(array).all()), "?")
    where = f"epoch {epoch}, minibatch {minibatch}: first in {first}"
    evidence = {
        "epoch": epoch,
        "minibatch": minibatch,
        "first": first,
        "indices": indices,
        "samples": arrays,
        "losses": {name: float(term) for name, term in terms.items()},
        "network": network.state_dict(),
    }
    return DivergedError(where, evidence)
