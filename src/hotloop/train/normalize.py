"""Running scales of observations and of returns."""

import torch
from torch import Tensor

from hotloop.core.world import Layout
from hotloop.envs.batch import Batch
from hotloop.train.ranks import ALONE, Ranks
from hotloop.train.settings import TrainSettings

CLIP = 10.0  # Scaled values stay within plus and minus this


EPSILON = 1e-8


def scales_observations(layout: Layout, settings: TrainSettings) -> bool:
    """Whether what agents see is scaled: vectors that are one thing, where that is asked for."""
    return settings.norm_obs and layout.observation.kind == "vector" and not layout.parts


class Moments:
    """Mean and variance of all that was added, in float64; one pair for each column."""

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.count = torch.zeros((), dtype=torch.float64, device=device)
        self.mean = torch.zeros(shape, dtype=torch.float64, device=device)
        self.variance = torch.ones(shape, dtype=torch.float64, device=device)

    def add(self, rows: Tensor) -> None:
        """Add rows [count, *shape], in two passes: torch's one pass down columns takes ten times as long."""
        mean = rows.mean(dim=0)
        self.merge(rows.shape[0], mean.double(), (rows - mean).square_().mean(dim=0).double())

    def merge(self, count: int | Tensor, mean: Tensor, variance: Tensor) -> None:
        """Add what others have counted; in place, so that a GPU can do it again without being told how."""
        total = self.count + count
        apart = mean - self.mean
        spread = self.variance * self.count + variance * count + apart**2 * self.count * count / total
        self.mean += apart * count / total
        self.variance.copy_(spread / total)
        self.count.copy_(total)

    def clear(self) -> None:
        """Forget all that was added."""
        self.count.zero_()
        self.mean.zero_()
        self.variance.fill_(1)

    def state(self) -> dict[str, Tensor]:
        return {"count": self.count, "mean": self.mean, "variance": self.variance}

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in state.items():
            getattr(self, name).copy_(value)


class ObservationScale:
    """Scales vector observations; what it has seen of a rollout counts from the next one on."""

    def __init__(
        self, shape: tuple[int, ...], device: torch.device, *, active: bool, ranks: Ranks = ALONE
    ) -> None:
        self.active, self.ranks = active, ranks
        self.moments = Moments(shape, device)
        self.fresh = Moments(shape, device)
        self.shift = torch.zeros(shape, device=device)
        self.scale = torch.ones(shape, device=device)

    def look(self, raw: Tensor) -> None:
        """Count observations [rows, ...] for the next rollout."""
        if self.active:
            self.fresh.add(raw)

    def write(self, raw: Tensor, out: Tensor) -> None:
        """Scale observations into their place."""
        if not self.active:
            out.copy_(raw)
        elif out.dtype == torch.float32:
            torch.addcmul(self.shift, raw, self.scale, out=out)
            out.clamp_(-CLIP, CLIP)
        else:
            out.copy_(torch.addcmul(self.shift, raw, self.scale).clamp_(-CLIP, CLIP))

    def adopt(self) -> None:
        """Scale from now on by what was seen since the last time, which must be something."""
        self.ranks.meet()
        if not self.active:
            return
        self.ranks.merge(self.fresh, self.moments)
        self.fresh.clear()
        deviation = torch.sqrt(self.moments.variance + EPSILON)
        self.scale.copy_(1 / deviation)
        self.shift.copy_(-self.moments.mean / deviation)

    def state(self) -> dict[str, Tensor]:
        return {**self.moments.state(), "scale": self.scale, "shift": self.shift}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.scale.copy_(state["scale"])
        self.shift.copy_(state["shift"])
        self.moments.restore({name: state[name] for name in self.moments.state()})


class RewardScale:
    """Divides rewards by the deviation of discounted returns, and leaves their mean."""

    def __init__(
        self, rows: int, device: torch.device, *, gamma: float, active: bool, ranks: Ranks = ALONE
    ) -> None:
        self.active, self.gamma, self.ranks = active, gamma, ranks
        self.moments = Moments((), device)
        self.running = torch.zeros(rows, device=device)
        """Each row's discounted return up to now."""

    def scale(self, rewards: Tensor, dones: Tensor, alive: Tensor | None = None) -> Tensor:
        """Return scaled rewards [steps, rows]; `dones` is 1 if a step ended an episode or an agent's life.

        `alive` is True for rows that hold an agent; None for all.
        """
        if not self.active:
            return rewards
        returns = self.returns(rewards, dones)
        counted = returns.flatten() if alive is None else returns[alive]
        if self.ranks.several:
            own = Moments((), self.moments.mean.device)
            own.add(counted)
            self.ranks.merge(own, self.moments)
        else:
            self.moments.add(counted)
        self.running.copy_(returns[-1] * (1 - dones[-1]))
        deviation = torch.sqrt(self.moments.variance + EPSILON).float()
        return (rewards / deviation).clamp(-CLIP, CLIP)

    def returns(self, rewards: Tensor, dones: Tensor) -> Tensor:
        """Return discounted returns up to each step: the recurrence of advantages, forwards in time."""
        goes_on = torch.cat((torch.ones_like(dones[:1]), 1 - dones[:-1]))
        first = torch.cat((rewards[:1] + self.gamma * self.running, rewards[1:]))
        return scan(first.flip(0), (self.gamma * goes_on).flip(0)).flip(0)

    def state(self) -> dict[str, Tensor]:
        return {**self.moments.state(), "running": self.running}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.running.copy_(state["running"])
        self.moments.restore({name: state[name] for name in self.moments.state()})


def scan(values: Tensor, decays: Tensor) -> Tensor:
    """x[t] = values[t] + decays[t] * x[t + 1] along the first axis, by doubling the reach of every x."""
    reach, steps = 1, values.shape[0]
    while reach < steps:
        near, far = values[:-reach], values[reach:]
        values = torch.cat((torch.addcmul(near, decays[:-reach], far), values[-reach:]))
        decays = torch.cat((decays[:-reach] * decays[reach:], decays[-reach:]))
        reach *= 2
    return values


class ObservationView:
    """The rows of a batch; where there is a network a type, a last column has the type."""

    def __init__(self, batch: Batch, *, by_type: bool) -> None:
        shape = (batch.spec.num_envs * batch.spec.agents, *row_shape(batch))
        self.raw = torch.from_numpy(batch.observations).reshape(shape)
        self.final = torch.from_numpy(batch.final_observations).reshape(shape)
        self.types = torch.from_numpy(batch.infos["breeds"]).reshape(-1) if by_type else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        shape = tuple(self.raw.shape[1:])
        return shape if self.types is None else (shape[0] + 1,)

    def now(self, rows: Tensor) -> Tensor:
        """What some agents see, as a copy."""
        return self.typed(self.raw.index_select(0, rows), rows)

    def last(self, rows: Tensor, before: Tensor) -> Tensor:
        """What some agents saw last; their types, which the batch forgot, are in what they saw `before`."""
        seen = self.final.index_select(0, rows)
        return seen if self.types is None else torch.cat((seen, before[:, -1:]), dim=-1)

    def typed(self, seen: Tensor, rows: Tensor) -> Tensor:
        if self.types is None:
            return seen
        types = self.types.index_select(0, rows).to(seen.dtype)
        return torch.cat((seen, types[:, None]), dim=-1)

    def columns(self, seen: Tensor) -> Tensor:
        """Of rows, what was observed: all but the type."""
        return seen if self.types is None else seen[..., :-1]

    def write_types(self, seen: Tensor, rows: Tensor | None = None) -> None:
        """Write the types of all agents, or of some, beside what they see."""
        if self.types is not None:
            seen[..., -1] = self.types if rows is None else self.types.index_select(0, rows)


def row_shape(batch: Batch) -> tuple[int, ...]:
    """What one agent sees; observations are [num_envs, agents, ...], or [num_envs, ...] of one agent."""
    shape = batch.observations.shape
    return shape[2:] if len(shape) > 2 else shape[1:]
