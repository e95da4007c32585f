"""PPO as the trainer's algorithm: collect a rollout, estimate advantages, learn from it, forget it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Doing
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train.algorithms.algorithm import Learned, load_optimiser, set_learning_rate
from hotloop.train.algorithms.imitation import find_teacher, phase_at
from hotloop.train.algorithms.ppo import Learner, Samples, advantages, samples_of
from hotloop.train.device.apart import ApartCollector
from hotloop.train.device.collector import DeviceCollector
from hotloop.train.device.learner import RecordedLearner
from hotloop.train.kernels.native import find_kernels
from hotloop.train.normalise import ObservationScale, RewardScale, scales_observations
from hotloop.train.opponents import find_opponents
from hotloop.train.policy.actions import actions_of
from hotloop.train.policy.inputs import row_shape, with_room
from hotloop.train.policy.networks import ActorCritic, default_network, is_by_type
from hotloop.train.policy.policy import Student, make_student
from hotloop.train.processes.ranks import ALONE, STRIDE, Ranks
from hotloop.train.rollout import Collector, Rollout, bootstrap
from hotloop.train.settings import TrainSettings
from hotloop.train.threads import use_fitting
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

if TYPE_CHECKING:
    from hotloop.train.processes.actors import Crew, RayCollector

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
            return DeviceCollector(self.batch, settings=self.settings, **parts)
        kind = Collector if self.device.type == "cpu" else ApartCollector
        made = kind(self.batch, steps=self.settings.num_steps, by_type=self.by_type, **parts)
        made.opponents = self.opponents
        return made

    def hired(self, crew: "Crew") -> "RayCollector":
        from hotloop.train.processes.actors import RayCollector

        rows = self.batch.spec.num_envs * self.batch.spec.agents
        made = RayCollector(crew, self.settings, self.network, self.observation_scale, rows)
        made.acts = actions_of(self.batch.spec.layout.acts)
        return made

    def make_learner(self) -> Learner | RecordedLearner:
        parts: dict[str, Any] = {
            "network": self.network,
            "student": self.student,
            "optimiser": self.optimiser,
            "settings": self.settings,
            "generator": self.shuffling,
        }
        if self.kernels.records:
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
