"""The training loop: collect, learn, again, by whichever algorithm was asked for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hotloop.core.errors import DeviceError, InputError
from hotloop.core.files import free_path, write_new
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train import checkpoint
from hotloop.train.algorithm import DivergedError, Update
from hotloop.train.arithmetic import USUAL_THREADS, torch_threads
from hotloop.train.device.graphs import use_own_stream
from hotloop.train.dqn import DQN
from hotloop.train.normalize import row_shape
from hotloop.train.ppo import PPO
from hotloop.train.ranks import ALONE, STRIDE, Command, Ranks
from hotloop.train.rollout import stagger
from hotloop.train.settings import AUTO, TrainSettings, check_sizes
from hotloop.train.windows import Watcher

if TYPE_CHECKING:
    from hotloop.train.actors import ActorPool


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
        ranks: Ranks = ALONE,
        crew: "ActorPool | None" = None,
    ) -> None:
        self.ranks = ranks
        """Who trains with this one; settings and batch are this one's share."""
        self.may_lose = crew is not None or (ranks.several and ranks.leads)
        """Whether others, on whom an update depends, may be gone in the middle of it."""
        self.last: dict[str, Any] = {}
        """What there was to keep after the last update, where others may be lost in the next."""
        check_sizes(settings, batch.spec.num_envs * batch.spec.agents)
        if ranks.several and (batch.spec.has_empty_rows or settings.opponents):
            why = "agents come and go" if batch.spec.has_empty_rows else "opponents= has rows of others"
            raise InputError(
                f"train.ranks={ranks.size}: {why}, so that shares would be uneven; use train.ranks=1"
            )
        self.batch, self.settings, self.folder = batch, settings, folder
        if settings.device == "cuda" and not torch.cuda.is_available():
            raise InputError("device=cuda: torch finds no CUDA device here; use device=cpu")
        self.device = torch.device(settings.device)
        check_together(batch, self.device)
        if self.device.type == "cuda":
            stream = use_own_stream()  # torch's and the envs': one that can be recorded
            if isinstance(batch, DeviceBatch):
                batch.use_stream(stream)
        self.steps = self.agent_steps = self.updates = 0
        self.began_anew = resume is None
        """Whether every env begins an episode now, rather than in the middle of one."""
        content = None if resume is None else checkpoint.read(resume)
        fitted = replace(settings, torch_threads=settings.torch_threads or threads_of(content))
        with enough_memory():
            self.algorithm: PPO | DQN = (
                PPO(batch, fitted, self.device, watchers, ranks, crew)
                if settings.algorithm == "ppo"
                else DQN(batch, fitted, self.device, watchers)
            )
        self.network, self.student = self.algorithm.network, self.algorithm.student
        self.observation_scale, self.draws = self.algorithm.observation_scale, self.algorithm.draws
        self.kernels, self.threads = self.algorithm.kernels, self.algorithm.threads
        same_threads = settings.device == "cpu" and batch.spec.threads == torch.get_num_threads()
        batch.lend(torch_threads() if same_threads else 0)
        if resume is None or content is None:
            batch.reset()
            stagger(batch, settings.stagger)
        else:
            self.restore(resume, content)

    @property
    def counters(self) -> dict[str, int]:
        """How often this process learned, by the kernels it learned with."""
        return {f"updates.{self.kernels.name}": self.algorithm.learned}

    @property
    def steps_per_update(self) -> int:
        """Of all ranks."""
        return self.batch.spec.num_envs * self.settings.num_steps * self.ranks.size

    @property
    def finished(self) -> bool:
        return self.steps >= self.settings.total_timesteps

    def update(self) -> Update:
        """Collect one rollout, and learn from it."""
        if self.may_lose:  # before others are told: one that is gone may be missed there already
            self.note_last()
        self.ranks.tell(Command.UPDATE)
        update = self.advance()
        self.steps += self.steps_per_update
        self.agent_steps += update.agent_steps
        self.updates += 1
        return replace(update, index=self.updates - 1, steps=self.steps, agent_steps=self.agent_steps)

    def note_last(self) -> None:
        """Keep what there is to keep after the last update, unless that is done."""
        if self.last.get("updates") != self.updates:
            self.last = checkpoint.clone_tensors(self.state_without_envs())

    def collect(self) -> None:
        """Collect one rollout that nothing is learned from."""
        self.ranks.tell(Command.COLLECT)
        self.algorithm.collect(self.steps)

    def advance(self) -> Update:
        """Let the algorithm do its part; where it diverges, keep what it takes to see why."""
        try:
            with enough_memory():
                return self.algorithm.advance(self.steps)
        except DivergedError as error:
            evidence = {**error.evidence, "update": self.updates, "steps": self.steps}
            path = free_path(self.folder / f"diverged-{self.updates}.pt")
            write_new(path, checkpoint.to_bytes(evidence))
            raise DivergedError(
                f"update {self.updates}, {error.where}; the minibatch and the network are in {path}: "
                "look at them with torch.load, or lower learning_rate",
                error.evidence,
            ) from None

    def save(self, folder: Path) -> Path:
        """Write a checkpoint that is whole or absent; players of the batch begin to remember anew."""
        self.ranks.tell(Command.SAVE)
        return checkpoint.write(folder, self.steps, self.content())

    def save_last(self, folder: Path, *, to_disk: bool = True) -> Path:
        """Write a checkpoint of the last update that was finished; its envs begin anew."""
        rows = checkpoint.join_rows([checkpoint.rows_of(self.last)] * self.ranks.size, self.last)
        content = {**self.last, **rows, "envs": checkpoint.pack_envs([])}
        return checkpoint.write(folder, int(content["steps"]), content, to_disk=to_disk)

    def content(self) -> dict[str, Any]:
        """What a checkpoint has; every rank takes part, and it is rank 0's to write."""
        mine = self.state_without_envs() | {"envs": checkpoint.save_envs(self.batch)}
        if not self.ranks.several:
            return mine
        own = checkpoint.rows_of(mine) | {"envs": mine["envs"], "acting": mine["acting"]}
        every = self.ranks.gather(own)
        if not every:
            return mine
        # As one process with all their envs would have written it.
        envs = {name: torch.cat([each["envs"][name] for each in every]) for name in ("lengths", "bytes")}
        rows, acting_of = checkpoint.join_rows(every, mine), [each["acting"] for each in every]
        return mine | rows | {"envs": envs, "acting_of": acting_of}

    def state_without_envs(self) -> dict[str, Any]:
        """Return what a checkpoint has, all but the envs."""
        whole = replace(self.settings, minibatch_size=self.settings.minibatch_size * self.ranks.size)
        return {
            "format": checkpoint.FORMAT,
            "identity": self.identity(),
            "target": self.batch.spec.name,
            "settings": asdict(whole),
            "steps": self.steps,
            "agent_steps": self.agent_steps,
            "updates": self.updates,
            "torch_threads": self.threads.threads,
            **self.algorithm.state(),
        }

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to fit, of all ranks together."""
        mine = checkpoint.identity(self.batch, row_shape(self.batch))
        ranks = self.ranks
        return mine | {"num_envs": mine["num_envs"] * ranks.size, "seed": mine["seed"] - STRIDE * ranks.rank}

    def restore(self, path: Path, content: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        checkpoint.check_fits(path, content, self.identity(), self.settings)
        try:
            self.network.load_state_dict(content["network"])
        except RuntimeError as error:
            raise InputError(
                f"{path} has another network ({checkpoint.first_line(error)}): "
                "give the same hidden, embedding, lstm and networks"
            ) from None
        try:
            mine = checkpoint.share_of(content, self.ranks)
            same_episodes = checkpoint.load_envs(self.batch, mine["envs"])
            self.began_anew = not same_episodes
            self.algorithm.restore(mine, same_episodes=same_episodes)
            self.steps, self.updates = mine["steps"], mine["updates"]
            self.agent_steps = mine.get("agent_steps", self.steps * self.batch.spec.agents)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
            raise InputError(f"{path} is damaged: {checkpoint.first_line(error)}") from None


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
