"""Collecting by Ray actors, for envs that are slow by themselves: a game server, a simulator that waits.

Each actor has its share of the envs and a copy of the network. Weights go out by the object store, once for
all actors; rollouts come back the same way. Requests run ahead of learning by as many updates as were
allowed: what is learned from is older by at most so much, and the importance ratio, which PPO clips, shows
what that costs.
An actor that is lost is begun anew by Ray, and its rollout is collected again.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from hotloop.core.errors import HotloopError
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.training import open_trainable
from hotloop.envs.open import make
from hotloop.train.actions import Actions
from hotloop.train.arithmetic import numbers
from hotloop.train.imitation import Teacher
from hotloop.train.networks import Student
from hotloop.train.normalize import Moments, ObservationScale
from hotloop.train.ranks import STRIDE
from hotloop.train.rollout import Rollout, TruncatedSteps
from hotloop.train.settings import HERE, TrainSettings
from hotloop.train.timing import mark, span
from hotloop.train.windows import WindowEpisodes, Windows

WAITING = "waiting on actors"


# Of a rollout, [steps, rows, ...].
ARRAYS = ("observations", "actions", "log_probs", "values", "rewards", "dones", "masks")


RESTARTS = 3  # Of an actor, and tries of a rollout


READY_S = 300.0  # What actors may take to find room in a cluster and to make their envs


SEED = 42


class ActorsLostError(HotloopError):
    """The actors cannot go on."""


@dataclass(slots=True, kw_only=True)
class ActorPool:
    """The actors that collect, and the windows and counters they have sent so far."""

    ray: Any
    target: Target  # Of all envs together
    actors: int
    cores: Sequence[int]  # Of each machine they may run on
    staleness: int
    last_staleness: float = 0.0  # In updates, of the rollout that was learned from last
    windows: list[WindowEpisodes] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

    def take_windows(self) -> list[WindowEpisodes]:
        """Return the episodes since the last call."""
        windows, self.windows = self.windows, []
        return windows

    def note(self, told: Mapping[str, Any]) -> None:
        self.windows.append(told["window"])
        for name, count in told["counters"].items():
            self.counters[name] = self.counters.get(name, 0) + count

    @contextmanager
    def explain_losses(self) -> Iterator[None]:
        """Say in one line why the actors cannot go on."""
        errors = self.ray.exceptions
        try:
            yield
        except (errors.RayError, ConnectionError) as error:
            raise ActorsLostError(self.reason(error)) from None

    def reason(self, error: Exception) -> str:
        errors = self.ray.exceptions
        by_actor = isinstance(error, errors.RayTaskError)
        cause = getattr(error, "cause", None) if by_actor else error
        if isinstance(cause, (errors.ObjectStoreFullError, errors.OutOfDiskError)):
            return (
                "Ray's object store is full: fewer num_envs or num_steps, or a cluster with a larger one; "
                "nothing is lost but the update under way"
            )
        if isinstance(error, errors.GetTimeoutError):
            return (
                f"no room for the actors within {READY_S:.0f} s: is the cluster busy, or an env slow to make?"
            )
        return f"{'an actor cannot collect' if by_actor else 'the actors are gone'}: {last_line(error)}"


def cores_each(machines: Sequence[int], actors: int) -> float:
    """What an actor reserves: a core, or as small a part of one as lets all find room."""
    share = 1.0
    while sum(int(cores / share) for cores in machines) < actors:
        share /= 2
    return share


def last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:200]


class ActorScale(ObservationScale):
    """Scales as the learner says, and only counts observations for it."""

    def adopt(self) -> None:
        """Leave the scale to the learner."""


class Actor:
    """Some envs and a copy of the network, in a process of its own."""

    def __init__(self, name: str, keys: dict[str, Any], settings: TrainSettings) -> None:
        from hotloop.train.ppo import PPO

        self.batch = open_batch(Target(name, keys))
        self.windows = Windows(self.batch)
        self.algorithm = PPO(self.batch, settings, torch.device("cpu"), (self.windows,))
        old = self.algorithm.observation_scale
        self.scale = ActorScale(tuple(old.shift.shape), torch.device("cpu"), active=old.active)
        self.algorithm.collector.scale = self.scale
        self.batch.reset()
        self.counted: dict[str, int] = {}

    def ready(self) -> bool:
        """Whether its envs are made, once it answers."""
        return True

    def collect(self, weights: dict[str, Any], shift: Any, scale: Any, version: int) -> dict[str, Any]:
        """One rollout by these weights, and what was seen and counted on the way."""
        algorithm = self.algorithm
        algorithm.network.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
        self.scale.shift.copy_(torch.tensor(shift))
        self.scale.scale.copy_(torch.tensor(scale))
        kept = algorithm.collector.collect(algorithm.student)
        fresh = {name: part.clone() for name, part in self.scale.fresh.state().items()}
        self.scale.fresh.clear()
        now = dict(self.batch.counters)
        gained = {name: count - self.counted.get(name, 0) for name, count in now.items()}
        self.counted = now
        arrays = {name: numbers(getattr(kept, name)) for name in ARRAYS}
        cuts = [(numbers(cut.steps), numbers(cut.rows), numbers(cut.observations)) for cut in kept.cuts]
        told = {"window": self.windows.close(), "counters": gained, "version": version}
        return {"arrays": arrays, "last": numbers(kept.last_values), "cuts": cuts, "fresh": fresh, **told}


def open_batch(target: Target) -> Batch:
    return open_trainable(target) if target.is_foreign else make(target.name, **target.keys)


def shares(target: Target, actors: int) -> list[dict[str, Any]]:
    """The keys that each actor's envs are made with."""
    envs, seed = int(str(target.keys["num_envs"])), int(str(target.keys.get("seed", SEED)))
    own = {"num_envs": envs // actors}
    return [{**target.keys, **own, "seed": seed + STRIDE * number} for number in range(actors)]


class RayCollector:
    """See `Collector`: the rollout of all actors, the first's rows first."""

    def __init__(
        self,
        crew: ActorPool,
        settings: TrainSettings,
        network: torch.nn.Module,
        scale: ObservationScale,
        rows: int,
        acts: Actions,
    ) -> None:
        self.crew, self.network, self.scale = crew, network, scale
        self.memory = None
        self.begins = torch.ones(rows, dtype=torch.bool)
        self.version = 0
        self.acts = acts
        remote = crew.ray.remote(Actor)
        share = cores_each(crew.cores, crew.actors)
        how = {"num_cpus": share, "max_restarts": RESTARTS, "max_task_retries": RESTARTS}
        with crew.explain_losses():
            self.actors = [
                remote.options(**how).remote(
                    crew.target.name,
                    keys,
                    replace(settings, collect=HERE, torch_threads=1, seed=settings.seed + STRIDE * number),
                )
                for number, keys in enumerate(shares(crew.target, crew.actors))
            ]
            crew.ray.get([actor.ready.remote() for actor in self.actors], timeout=READY_S)
        self.pending: deque[list[Any]] = deque()

    @torch.no_grad()
    def collect(self, student: Student, teacher: Teacher | None = None) -> Rollout:
        """Return the oldest rollouts that were requested; as many as are allowed are requested ahead."""
        crew = self.crew
        with span("rollout"), crew.explain_losses():
            sent = crew.ray.put({name: numbers(part) for name, part in self.network.state_dict().items()})
            scale = (numbers(self.scale.shift), numbers(self.scale.scale))
            while len(self.pending) <= crew.staleness:
                asked = [actor.collect.remote(sent, *scale, self.version) for actor in self.actors]
                self.pending.append(asked)
            mark("weights to actors")
            found = crew.ray.get(self.pending.popleft())
            mark(WAITING)
            kept = self.join_rollouts(found)
            mark("store")
        crew.last_staleness = float(self.version - min(each["version"] for each in found))
        self.version += 1
        return kept

    def join_rollouts(self, found: list[dict[str, Any]]) -> Rollout:
        """Return one rollout of all actors; their observations scale from the next weights on."""
        arrays: dict[str, Any] = {}
        for name in ARRAYS:  # rows beside rows
            parts = [each["arrays"][name] for each in found]
            arrays[name] = None if parts[0] is None else torch.cat(list(map(torch.tensor, parts)), dim=1)
        cuts, first = [], 0
        for each in found:
            cuts += [
                TruncatedSteps(
                    steps=torch.tensor(s),
                    rows=torch.tensor(r) + first,
                    observations=torch.tensor(o),
                    memory=None,
                )
                for s, r, o in each["cuts"]
            ]
            first += each["last"].shape[0]
            self.crew.note(each)
            own = Moments(tuple(self.scale.shift.shape), torch.device("cpu"))
            own.restore(each["fresh"])
            if not float(self.scale.fresh.count):
                self.scale.fresh.restore(each["fresh"])
            elif float(own.count):
                self.scale.fresh.merge(own.count, own.mean, own.variance)
        self.scale.adopt()
        last = torch.cat([torch.tensor(each["last"]) for each in found])
        begins = torch.zeros_like(arrays["dones"], dtype=torch.bool)
        return Rollout(**arrays, begins=begins, last_values=last, cuts=cuts, acts=self.acts)
