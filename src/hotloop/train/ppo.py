"""Proximal policy optimisation: advantages, samples, losses, and the passes of minibatches over them.

Arrays are [steps, rows, ...], times first; a row is one agent of one env. Nothing here knows a world.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Doing
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train.actions import NUMBERED, Actions, actions_of, allowed
from hotloop.train.algorithm import DivergedError, Learned, load_optimiser, set_learning_rate
from hotloop.train.imitation import find_teacher, imitation_loss, phase_at
from hotloop.train.kernels.device import take_rows
from hotloop.train.kernels.kernels import Kernels, Number, find_kernels
from hotloop.train.networks import ActorCritic, Memory, Student, default_network, is_by_type, make_student
from hotloop.train.normalize import (
    ObservationScale,
    RewardScale,
    row_shape,
    scales_observations,
    scan,
    with_room,
)
from hotloop.train.opponents import find_opponents
from hotloop.train.ranks import ALONE, STRIDE, Ranks
from hotloop.train.rollout import Collector, Rollout, bootstrap
from hotloop.train.settings import TrainSettings
from hotloop.train.threads import use_fitting
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

if TYPE_CHECKING:
    from hotloop.train.actors import Crew, RayCollector
    from hotloop.train.device.collector import DeviceCollector
    from hotloop.train.device.learner import RecordedLearner


def advantages(
    rewards: Tensor,
    values: Tensor,
    ends: Tensor,
    last_values: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
    turns: Tensor | None = None,
) -> Tensor:
    """Generalised advantage estimates; `ends` is 1 where a step ended its episode, however it ended.

    The rewards of truncated steps already hold what the values promise beyond them. `turns` is -1 where the
    next row is another player's, whose gain is this one's loss.
    """
    goes_on = 1 - ends if turns is None else (1 - ends) * turns
    next_values = torch.cat((values[1:], last_values[None]))
    surprises = rewards + gamma * next_values * goes_on - values
    return scan(surprises, gamma * gae_lambda * goes_on)


def standardised(values: Tensor) -> Tensor:
    """Values with mean 0 and deviation 1; one alone has no deviation, and is its own mean."""
    if values.numel() == 1:
        return torch.zeros_like(values)
    variance, mean = torch.var_mean(values)
    return (values - mean) / (variance.sqrt() + 1e-8)


def policy_loss(ratio: Tensor, advantage: Tensor, clip_coef: float) -> Tensor:
    """The clipped objective: nothing is gained by moving a probability beyond the clip."""
    clipped = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    return -torch.min(ratio * advantage, clipped * advantage).mean()


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Half the mean squared error of the critic."""
    return 0.5 * (values - returns).square().mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What is learned from: [samples, ...], or [steps, rows, ...] for a network with a memory."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor
    masks: Tensor | None = None
    labels: Tensor | None = None
    begins: Tensor | None = None
    lives: Tensor | None = None
    """Which samples are somebody's; nothing is learned from the others."""
    memory: Memory | None = None
    acts: Actions = NUMBERED
    """How actions are read from what a network says."""

    def take(self, indices: Tensor) -> "Samples":
        """Some samples; of a network with a memory some rows, with all their steps."""
        if self.memory is None:
            return replace(self, **{name: take_rows(array, indices) for name, array in self.arrays()})  # type: ignore[arg-type]
        some: dict[str, Any] = {name: array.index_select(1, indices) for name, array in self.arrays()}
        some["memory"] = tuple(part.index_select(0, indices) for part in self.memory)
        return replace(self, **some)

    def inputs(self, indices: Tensor) -> tuple[Tensor, Memory | None, Tensor | None]:
        """What a student is called with to learn from some samples."""
        if self.memory is None:
            return self.observations.index_select(0, indices), None, None
        begins = None if self.begins is None else self.begins.index_select(1, indices)
        hidden, cell = (part.index_select(0, indices) for part in self.memory)
        return self.observations.index_select(1, indices), (hidden, cell), begins

    def numbers(self, indices: Tensor) -> Tensor:
        """Where some samples lie among all, one after the other: those of a row are a row's length apart."""
        if self.memory is None:
            return indices
        steps, rows = self.log_probs.shape
        return (torch.arange(0, steps * rows, rows)[:, None] + indices).flatten()

    def lived(self) -> "Samples":
        """The samples of a network with a memory that are somebody's, one after the other.

        What was seen stays as it is, since nobody looks at it again.
        """
        if self.lives is None:
            return self
        some = {name: array[self.lives] for name, array in self.arrays() if name != "observations"}
        return replace(self, memory=None, **some)  # type: ignore[arg-type]

    def arrays(self) -> Iterator[tuple[str, Tensor]]:
        """Name every array there is, but for the memory."""
        for name in self.__slots__:
            array = getattr(self, name)
            if array is not None and name not in ("memory", "acts"):
                yield name, array


def samples_of(kept: Rollout, advantage: Tensor) -> Samples:
    """Everything a rollout has to teach."""
    arrays = {
        "observations": kept.observations,
        "actions": kept.actions,
        "log_probs": kept.log_probs,
        "advantages": advantage,
        "returns": advantage + kept.values,
        "masks": kept.masks,
        "labels": kept.labels,
        "lives": kept.lives,
    }
    if kept.memory is not None:
        return Samples(**arrays, begins=kept.begins, memory=kept.memory, acts=kept.acts)  # type: ignore[arg-type]
    flat = {name: None if array is None else array.flatten(0, 1) for name, array in arrays.items()}
    return Samples(**flat, acts=kept.acts)  # type: ignore[arg-type]


def losses(student: Student, part: Samples, settings: TrainSettings, imitating: Number) -> dict[str, Tensor]:
    """Every term of the objective and their sum; `imitating` 1 is imitation alone, 0 is PPO alone.

    A tensor stands for what lies between.
    """
    known = None if isinstance(imitating, Tensor) else imitating
    logits, values, _ = student(part.observations, part.memory, part.begins)
    if part.memory is not None and part.lives is not None:
        logits, values, part = logits[part.lives], values[part.lives], part.lived()
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
    log_probs, entropies = part.acts.read(logits, part.actions)
    logratio = log_probs - part.log_probs
    ratio = logratio.exp()
    advantage = standardised(part.advantages) if settings.norm_adv else part.advantages
    with torch.no_grad():
        approx_kl = (ratio - 1 - logratio).mean()
        clip_fraction = ((ratio - 1).abs() > settings.clip_coef).float().mean()
    return {
        "policy": policy_loss(ratio, advantage, settings.clip_coef),
        "entropy": entropies.mean(),
        "approx_kl": approx_kl,
        "clip_fraction": clip_fraction,
    }


def minibatches(samples: Samples, settings: TrainSettings, generator: torch.Generator) -> Iterator[Tensor]:
    """Shuffled indices for one pass over all samples that are somebody's."""
    recurrent = samples.memory is not None
    count = samples.log_probs.shape[1] if recurrent else samples.log_probs.shape[0]
    size = settings.minibatch_size // settings.num_steps if recurrent else settings.minibatch_size
    if samples.lives is not None:
        return of_the_living(samples.lives, size, generator)
    order = torch.randperm(count, generator=generator).to(samples.actions.device)
    return iter(torch.split(order, size))


def of_the_living(lives: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Minibatches of about a size and all alike, however many there are to share out; none of nobody."""
    living = (lives if lives.ndim == 1 else lives.any(0)).nonzero()[:, 0]
    order = living[torch.randperm(len(living), generator=generator).to(living.device)]
    return iter(torch.tensor_split(order, -(-len(living) // size)) if len(living) else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A network, its optimiser, and how it learns."""

    network: nn.Module
    student: Student
    """The network as it is called: compiled, in mixed precision, or as it is."""
    optimiser: torch.optim.Adam
    settings: TrainSettings
    kernels: Kernels
    generator: torch.Generator
    ranks: Ranks = ALONE
    """Who else learns, each from a share of every minibatch."""

    def learn(self, samples: Samples, imitating: float) -> dict[str, float]:
        """Go over the samples as often as asked; the mean of every term over all minibatches."""
        move = self.kernels.mover(self.optimiser, self.settings.max_grad_norm or float("inf"))
        parameters = list(self.network.parameters())
        sums: dict[str, Number] = {}
        count = 0
        orders = [
            list(minibatches(samples, self.settings, self.generator))
            for _ in range(self.settings.update_epochs)
        ]
        scaled, settings = self.agreed(samples, orders)
        for epoch, (part, order) in enumerate(zip(scaled, orders, strict=True)):
            for number, indices in enumerate(order):
                with self.ranks.together():
                    found = self.kernels.objective(self.student, part, indices, settings, imitating)
                    mark("forward")
                    found.backward()
                    if self.at_once:
                        self.ranks.average(parameters)
                mark("backward")
                terms = {**found.terms, "grad_norm": move()}
                check_finite(self.network, terms, samples, indices, epoch=epoch, minibatch=number)
                for name, term in terms.items():
                    sums[name] = sums.get(name, 0) + term
                count += 1
                mark("optimiser")
        return self.ranks.mean({name: float(total) / count for name, total in sums.items()})

    @property
    def at_once(self) -> bool:
        """Whether ranks average what they found once all of it is there."""
        return self.ranks.several and self.student is self.network

    def agreed(
        self, samples: Samples, orders: Sequence[Sequence[Tensor]]
    ) -> tuple[list[Samples], TrainSettings]:
        """The samples of each pass, their advantages scaled by whole minibatches' over all ranks."""
        if not self.ranks.several or not self.settings.norm_adv:
            return [samples] * len(orders), self.settings
        axis = 0 if samples.memory is None else 1
        parts = [[samples.advantages.index_select(axis, each).double() for each in order] for order in orders]
        sums = [
            [part.numel(), float(part.sum()), float(part.square().sum())] for row in parts for part in row
        ]
        counts, totals, squares = self.ranks.added(torch.tensor(sums, dtype=torch.float64)).unbind(1)
        means = totals / counts
        deviations = ((squares - counts * means**2) / (counts - 1)).clamp(min=0).sqrt() + 1e-8
        scales = iter(zip(means, deviations, strict=True))
        found = []
        for order, row in zip(orders, parts, strict=True):
            scaled = samples.advantages.clone()
            for indices, part in zip(order, row, strict=True):
                mean, deviation = next(scales)
                scaled.index_copy_(axis, indices, ((part - mean) / deviation).to(scaled.dtype))
            found.append(replace(samples, advantages=scaled))
        return found, replace(self.settings, norm_adv=False)


def check_finite(
    network: nn.Module,
    terms: dict[str, Number],
    samples: Samples,
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> None:
    """Stop at the first loss or gradient norm that is not finite, and name what it came from."""
    if not math.isfinite(terms["total"] + terms["grad_norm"]):
        raise diverged(network, terms, samples, indices, epoch=epoch, minibatch=minibatch)


def diverged(
    network: nn.Module,
    terms: Mapping[str, Number],
    samples: Samples,
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> DivergedError:
    """What to raise where a minibatch gave a loss or a gradient that is no number."""
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


ADAM_EPSILON = 1e-5


class OnPolicy:
    """See `Algorithm`: every rollout is learned from once, while it is of the present policy."""

    draws = True

    def __init__(
        self,
        batch: Batch,
        settings: TrainSettings,
        device: torch.device,
        watchers: Sequence[Watcher],
        ranks: Ranks = ALONE,
        crew: "Crew | None" = None,
    ) -> None:
        self.batch, self.settings, self.device, self.ranks = batch, settings, device, ranks
        self.crew = crew
        """Who collects elsewhere."""
        self.teacher = find_teacher(batch, settings)
        self.learned = 0
        self.by_type = is_by_type(batch.spec, settings)
        shape, rows = row_shape(batch), batch.spec.num_envs * batch.spec.agents
        network = default_network(batch.spec, shape, settings).to(device)
        self.network: nn.Module = network
        seen = torch.zeros(rows, *shape, dtype=getattr(torch, batch.spec.layout.observation.dtype))
        # What is recorded as a graph has no place where ranks would average its gradients.
        fixed = network.has_fixed_shapes and not batch.spec.has_empty_rows and not ranks.several
        kernels_now = partial(
            find_kernels, settings, batch.spec.num_actions, fixed_shapes=fixed, acts=batch.spec.layout.acts
        )
        self.threads = use_fitting(
            network,
            with_room(seen, by_type=self.by_type),
            settings,
            lambda copy: kernels_now().adopt(copy, settings),
        )
        self.kernels = kernels_now()
        self.kernels.adopt(network, settings)
        # What is recorded is compiled as a whole, with what stands around the network.
        whole = replace(settings, compile=False) if self.kernels.records else settings
        self.student = make_student(self.network, whole)
        active = scales_observations(batch.spec.layout, settings)
        self.observation_scale = ObservationScale(shape, device, active=active)
        self.reward_scale = RewardScale(rows, device, gamma=settings.gamma, active=settings.norm_reward)
        self.observation_scale.ranks = self.reward_scale.ranks = ranks
        self.acting = torch.Generator(device).manual_seed(settings.seed + STRIDE * ranks.rank)
        self.shuffling = torch.Generator(device if self.kernels.records else "cpu").manual_seed(settings.seed)
        self.opponents = find_opponents(batch, self.network, settings)
        self.collector = self.make_collector(watchers)
        self.collector.memory = network.first_memory(rows, device)
        self.optimiser = self.make_optimiser()
        self.learner = self.make_learner()

    def make_optimiser(self) -> torch.optim.Adam:
        rate = self.settings.learning_rate
        return torch.optim.Adam(
            self.network.parameters(),
            lr=torch.tensor(rate, device=self.device) if self.kernels.records else rate,
            eps=ADAM_EPSILON,
            fused=True,
            capturable=self.device.type == "cuda",
        )

    def make_collector(self, watchers: Sequence[Watcher]) -> "Collector | DeviceCollector | RayCollector":
        if self.crew is not None:
            return self.hired(self.crew)
        parts: dict[str, Any] = {
            "device": self.device,
            "scale": self.observation_scale,
            "kernels": self.kernels,
            "generator": self.acting,
            "watchers": watchers,
        }
        if isinstance(self.batch, DeviceBatch):
            from hotloop.train.device.collector import DeviceCollector

            return DeviceCollector(self.batch, settings=self.settings, **parts)
        if self.device.type == "cpu":
            collector = Collector
        else:
            from hotloop.train.device.apart import ApartCollector

            collector = ApartCollector
        made = collector(self.batch, steps=self.settings.num_steps, by_type=self.by_type, **parts)
        made.opponents = self.opponents
        return made

    def hired(self, crew: "Crew") -> "RayCollector":
        from hotloop.train.actors import RayCollector

        rows = self.batch.spec.num_envs * self.batch.spec.agents
        made = RayCollector(crew, self.settings, self.network, self.observation_scale, rows)
        made.acts = actions_of(self.batch.spec.layout.acts)
        return made

    def make_learner(self) -> "Learner | RecordedLearner":
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
        return Learner(**parts, kernels=self.kernels, ranks=self.ranks)

    def advance(self, steps: int) -> Learned:
        phase = phase_at(steps, self.settings)
        rate = set_learning_rate(self.optimiser, self.settings, steps)
        if self.opponents is not None:
            self.opponents.begin(self.network)
        self.ranks.begin()
        kept = self.gather(steps)
        with lifeline.doing(Doing.OURS), span("learn"):
            samples = self.prepare(kept)
            mark("advantages")
            losses = self.learner.learn(samples, phase.imitating)
        self.learned += 1
        if self.crew is not None:
            losses = losses | {"staleness": self.crew.last_staleness}
        return Learned(
            phase=phase.name,
            agent_steps=kept.agent_steps * self.ranks.size,
            losses=losses if self.opponents is None else losses | self.opponents.told(),
            learning_rate=rate,
            agreement=kept.agreement,
        )

    def collect(self, steps: int) -> None:
        self.gather(steps)

    def gather(self, steps: int) -> Rollout:
        """One rollout, labelled by the teacher while it has a say."""
        labelled = phase_at(steps, self.settings).imitating
        return self.collector.collect(self.student, self.teacher if labelled else None)

    @torch.no_grad()
    def prepare(self, kept: Rollout) -> Samples:
        """From rewards to advantages."""
        settings = self.settings
        scaled = self.reward_scale.scale(kept.rewards, kept.ends, kept.lives)
        advantage = advantages(
            bootstrap(self.student, kept, scaled, settings.gamma),
            kept.values,
            kept.ends,
            kept.last_values,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            turns=kept.turns,
        )
        return samples_of(kept, advantage)

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
            "opponents": None if self.opponents is None else self.opponents.state(),
        }

    def restore(self, content: Mapping[str, Any], *, same_episodes: bool) -> None:
        load_optimiser(self.optimiser, content["optimiser"])
        self.observation_scale.restore(content["observation_scale"])
        self.reward_scale.restore(content["reward_scale"])
        self.acting.set_state(content["acting"])
        self.shuffling.set_state(content["shuffling"])
        memory = content["memory"]
        self.collector.memory = None if memory is None else (self.there(memory[0]), self.there(memory[1]))
        self.collector.begins.copy_(content["begins"])
        if self.opponents is not None:
            self.opponents.restore(content["opponents"])
        if not same_episodes:
            self.collector.begins.fill_(True)
            self.reward_scale.running.zero_()

    def there(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device)


def shared(network: nn.Module, settings: TrainSettings, ranks: Ranks, *, all_used: bool) -> Student:
    """The network as ranks learn with it; where it learns at once there is nothing to overlap, or to wrap."""
    if isinstance(network, ActorCritic) and network.learns_at_once:
        ranks.same(network.parameters())
        return network
    return make_student(ranks.wrapped(network, all_used=all_used), settings)
