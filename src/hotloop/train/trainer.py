"""The training loop: collect, estimate advantages, learn, again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.errors import DeviceError, InputError
from hotloop.core.files import free_path, write_new
from hotloop.core.isolate import lifeline
from hotloop.core.isolate.lifeline import Doing
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train import checkpoint
from hotloop.train.device.collector import DeviceCollector
from hotloop.train.device.graphs import use_own_stream
from hotloop.train.device.learner import RecordedLearner
from hotloop.train.imitation import Phase, PhaseName, find_teacher, phase_at
from hotloop.train.kernels.kernels import USUAL_THREADS, use_threads
from hotloop.train.kernels.native import find_kernels, torch_threads
from hotloop.train.networks import default_network
from hotloop.train.normalise import ObservationScale, RewardScale
from hotloop.train.opponents import find_opponents
from hotloop.train.policy import make_student
from hotloop.train.ppo import DivergedError, Learner, Samples, advantages, samples_of
from hotloop.train.rollout import Collector, Rollout, bootstrap, row_shape, stagger
from hotloop.train.settings import AUTO, TrainSettings, check_sizes
from hotloop.train.threads import fit_threads
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

ADAM_EPSILON = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one rollout and the learning from it came to."""

    index: int
    """From 0, counted over the whole life of a run."""
    steps: int
    """Env-steps of the run so far, these included."""
    agent_steps: int
    """Of those who lived, over the whole life of a run."""
    phase: PhaseName
    losses: Mapping[str, float]
    """Of every term of the objective, approx_kl, clip_fraction and grad_norm: means over all minibatches."""
    learning_rate: float
    agreement: float | None
    """Share of labels that were the student's most likely action; None while the teacher is off."""


class Trainer:
    """Trains a network on a batch, one update at a time."""

    def __init__(
        self,
        batch: Batch,
        settings: TrainSettings,
        *,
        watchers: Sequence[Watcher] = (),
        resume: Path | None = None,
        folder: Path = Path("train_dir"),
    ) -> None:
        check_sizes(settings, batch.spec.num_envs * batch.spec.agents)
        self.batch, self.settings, self.folder = batch, settings, folder
        self.device = find_device(settings.device)
        check_together(batch, self.device)
        if self.device.type == "cuda":
            self.share_stream()
        self.teacher = find_teacher(batch, settings)
        self.steps = self.agent_steps = self.updates = self.learned = 0
        self.began_anew = resume is None
        """Whether every env begins an episode now, rather than in the middle of one."""
        content = None if resume is None else checkpoint.read(resume)
        with enough_memory():
            self.make_parts(watchers, settings.torch_threads or threads_of(content))
        if resume is None or content is None:
            batch.reset()
            stagger(batch, settings.stagger)
        else:
            self.restore(resume, content)

    def make_parts(self, watchers: Sequence[Watcher], threads: int) -> None:
        batch, settings, device = self.batch, self.settings, self.device
        shape, rows = row_shape(batch), batch.spec.num_envs * batch.spec.agents
        network = default_network(batch.spec, shape, settings).to(device)
        self.network: nn.Module = network
        seen = torch.zeros(rows, *shape, dtype=getattr(torch, batch.spec.layout.observation.dtype))
        self.threads = fit_threads(network, seen, replace(settings, torch_threads=threads))
        use_threads(self.threads.threads)
        fixed = network.has_fixed_shapes and not batch.spec.has_empty_rows
        self.kernels = find_kernels(
            settings, batch.spec.num_actions, fixed_shapes=fixed, acts=batch.spec.layout.acts
        )
        # What is recorded is compiled as a whole, with what stands around the network.
        whole = replace(settings, compile=False) if self.kernels.records else settings
        self.student = make_student(self.network, whole)
        same_threads = settings.device == "cpu" and batch.spec.threads == torch.get_num_threads()
        batch.lend(torch_threads() if same_threads else 0)
        layout = batch.spec.layout
        scales = settings.norm_obs and layout.observation.kind == "vector" and not layout.parts
        self.observation_scale = ObservationScale(shape, device, active=scales)
        self.reward_scale = RewardScale(rows, device, gamma=settings.gamma, active=settings.norm_reward)
        self.acting = torch.Generator(device).manual_seed(settings.seed)
        self.shuffling = torch.Generator(device if self.kernels.records else "cpu").manual_seed(settings.seed)
        self.opponents = find_opponents(batch, self.network, settings)
        self.collector = self.make_collector(watchers)
        self.collector.memory = self.network.first_memory(rows, device)
        self.optimiser = torch.optim.Adam(
            self.network.parameters(),
            lr=torch.tensor(settings.learning_rate, device=device)
            if self.kernels.records
            else settings.learning_rate,
            eps=ADAM_EPSILON,
            fused=True,
            capturable=device.type == "cuda",
        )
        self.learner = self.make_learner()

    def make_collector(self, watchers: Sequence[Watcher]) -> Collector | DeviceCollector:
        parts: dict[str, Any] = {
            "device": self.device,
            "scale": self.observation_scale,
            "kernels": self.kernels,
            "generator": self.acting,
            "watchers": watchers,
        }
        if isinstance(self.batch, DeviceBatch):
            return DeviceCollector(self.batch, settings=self.settings, **parts)
        return Collector(self.batch, steps=self.settings.num_steps, opponents=self.opponents, **parts)

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
        return Learner(**parts, kernels=self.kernels)

    def share_stream(self) -> None:
        """Let torch and the envs work on one stream, one that can be recorded."""
        stream = use_own_stream()
        if isinstance(self.batch, DeviceBatch):
            self.batch.use_stream(stream)

    @property
    def counters(self) -> dict[str, int]:
        """How often this process learned, by the kernels it learned with."""
        return {f"updates.{self.kernels.name}": self.learned}

    @property
    def steps_per_update(self) -> int:
        return self.batch.spec.num_envs * self.settings.num_steps

    @property
    def finished(self) -> bool:
        return self.steps >= self.settings.total_timesteps

    def update(self) -> Update:
        """Collect one rollout, and learn from it."""
        phase = phase_at(self.steps, self.settings)
        teacher = self.teacher if phase.imitating else None
        rate = self.set_learning_rate()
        if self.opponents is not None:
            self.opponents.begin(self.network)
        with enough_memory():
            kept = self.collector.collect(self.student, teacher)
            with lifeline.doing(Doing.OURS), span("learn"):
                samples = self.prepare(kept)
                mark("advantages")
                losses = self.learn(samples, phase)
        self.steps += self.steps_per_update
        self.agent_steps += kept.agent_steps
        self.updates += 1
        self.learned += 1
        return Update(
            index=self.updates - 1,
            steps=self.steps,
            agent_steps=self.agent_steps,
            phase=phase.name,
            losses=losses if self.opponents is None else losses | self.opponents.told(),
            learning_rate=rate,
            agreement=kept.agreement,
        )

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

    def learn(self, samples: Samples, phase: Phase) -> dict[str, float]:
        try:
            return self.learner.learn(samples, phase.imitating)
        except DivergedError as error:
            evidence = {**error.evidence, "update": self.updates, "steps": self.steps}
            path = free_path(self.folder / f"diverged-{self.updates}.pt")
            write_new(path, checkpoint.packed(evidence))
            raise DivergedError(
                f"update {self.updates}, {error.where}; the minibatch and the network are in {path}: "
                "look at them with torch.load, or lower learning_rate",
                error.evidence,
            ) from None

    def set_learning_rate(self) -> float:
        settings = self.settings
        left = 1 - self.steps / settings.total_timesteps if settings.anneal_lr else 1.0
        rate = settings.learning_rate * max(left, 0.0)
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)  # the recorded steps read it where it is
            else:
                group["lr"] = rate
        return rate

    def save(self, folder: Path) -> Path:
        """Write a checkpoint that is whole or absent; players of the batch begin to remember anew."""
        return checkpoint.write(folder, self.steps, self.content())

    def content(self) -> dict[str, Any]:
        collector = self.collector
        return {
            "format": checkpoint.FORMAT,
            "identity": checkpoint.identity(self.batch, row_shape(self.batch)),
            "target": self.batch.spec.name,
            "settings": asdict(self.settings),
            "steps": self.steps,
            "agent_steps": self.agent_steps,
            "updates": self.updates,
            "torch_threads": self.threads.threads,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "observation_scale": self.observation_scale.state(),
            "reward_scale": self.reward_scale.state(),
            "acting": self.acting.get_state(),
            "shuffling": self.shuffling.get_state(),
            "memory": None if collector.memory is None else list(collector.memory),
            "begins": collector.begins,
            "opponents": None if self.opponents is None else self.opponents.state(),
            "envs": checkpoint.save_envs(self.batch),
        }

    def restore(self, path: Path, content: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        checkpoint.check_fits(
            path, content["identity"], checkpoint.identity(self.batch, row_shape(self.batch))
        )
        self.load_network(path, content["network"])
        try:
            self.take(content)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
            raise InputError(f"{path} is damaged: {checkpoint.first_line(error)}") from None

    def take(self, content: Mapping[str, Any]) -> None:
        """Put everything but the network into the state of a checkpoint."""
        self.load_optimiser(content["optimiser"])
        self.observation_scale.restore(content["observation_scale"])
        self.reward_scale.restore(content["reward_scale"])
        self.acting.set_state(content["acting"])
        self.shuffling.set_state(content["shuffling"])
        memory = content["memory"]
        self.collector.memory = None if memory is None else (self.there(memory[0]), self.there(memory[1]))
        self.collector.begins.copy_(content["begins"])
        if self.opponents is not None:
            self.opponents.restore(content["opponents"])
        if not checkpoint.load_envs(self.batch, content["envs"]):
            self.collector.begins.fill_(True)
            self.reward_scale.running.zero_()
            self.began_anew = True
        self.steps, self.updates = content["steps"], content["updates"]
        self.agent_steps = content.get("agent_steps", self.steps * self.batch.spec.agents)

    def load_optimiser(self, state: dict[str, Any]) -> None:
        """Take over what it has gathered; how it runs is this run's own business."""
        [mine] = self.optimiser.param_groups
        kept = {name: mine[name] for name in ("lr", "capturable", "fused")}
        self.optimiser.load_state_dict(state)
        self.optimiser.param_groups[0].update(kept)

    def load_network(self, path: Path, weights: Mapping[str, Tensor]) -> None:
        try:
            self.network.load_state_dict(weights)
        except RuntimeError as error:
            raise InputError(
                f"{path} has another network ({checkpoint.first_line(error)}): "
                "give the same hidden, embedding and lstm"
            ) from None

    def there(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device)


def threads_of(content: Mapping[str, Any] | None) -> int:
    """What a run had that goes on, since its numbers depend on it to the last bit; AUTO elsewhere."""
    kept = 0 if content is None else content.get("torch_threads", 0)
    return kept if isinstance(kept, int) and 0 < kept <= USUAL_THREADS else AUTO


@contextmanager
def enough_memory() -> Iterator[None]:
    """Say what to do where a GPU's memory does not suffice."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        asked = str(error).partition(". GPU")[0].removeprefix("CUDA out of memory. ")
        raise DeviceError(
            f"the GPU's memory is too small for this training ({asked}): "
            "use fewer num_envs, shorter rollouts (num_steps) or a smaller minibatch_size"
        ) from None


def check_together(batch: Batch, device: torch.device) -> None:
    """Refuse envs whose arrays are tensors where the network cannot read them."""
    if not isinstance(batch, DeviceBatch):
        return
    if batch.spec.has_empty_rows:
        raise InputError(
            f"{batch.spec.target} has rows that are nobody's, and how many changes: add host_views=true"
        )
    there: Any = batch.observations
    if there.device.type != device.type:
        raise InputError(
            f"the envs are on {there.device.type} and the network on {device.type}: "
            "give train.device=cuda, or add host_views=true"
        )


def find_device(name: str) -> torch.device:
    """The device a network lives on; refused where the machine has none."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device=cuda: torch finds no CUDA device here; use device=cpu")
    return torch.device(name)
