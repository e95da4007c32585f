"""The player of the other seat while a network learns: itself, an earlier self, or one of the world.

Both seats are played from outside, and a row is for the seat whose turn it is. In each game the learner has
one; the other is given to one of the opponents, drawn anew for every game. What the learner chose is learned
from; if it plays itself, that is everything. Values and advantages change their sign with the seat, for what
one wins the other loses.
"""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hotloop.core.errors import InputError, unknown
from hotloop.core.settings import by_role
from hotloop.envs.batch import Batch
from hotloop.train.settings import TrainSettings
from hotloop.train.timing import mark

if TYPE_CHECKING:
    from hotloop.train.rollout import Rollout

SELF, PAST = "self", "past"  # The learner as it is now; one of its earlier selves, another in every rollout
OPPONENTS_STREAM = 0x6F70706F  # Sets the draws of opponents apart from those of weights and actions


class NoOpponents:
    """See `Opponents`: the learner has every row."""

    def begin(self, network: nn.Module) -> None:
        """Before a rollout: from time to time the learner joins its earlier selves, one of whom plays."""

    def answer(self, step: int, observations: Tensor, acting: NDArray[Any]) -> None:
        """Replace the learner's choices by the opponents' wherever it is their turn."""

    def note(self, step: int) -> None:
        """After a step: note whose turn is next, and results and new seats of games that ended."""

    def finish(self, rollout: "Rollout") -> None:
        """Write into a rollout which steps are the learner's, and where the turn changed."""

    def shares_won(self) -> dict[str, float]:
        """Return the learner's share of the games that ended, by opponent; earlier games count half."""
        return {}

    def state(self) -> dict[str, Any] | None:
        return None

    def restore(self, state: Any) -> None: ...


class Opponents(NoOpponents):
    """The other seats of a batch."""

    def __init__(self, batch: Batch, network: nn.Module, settings: TrainSettings) -> None:
        contest = batch.spec.world.contest
        assert contest is not None
        self.batch, self.settings, self.names = batch, settings, settings.opponents
        self._seat = batch.infos[contest.seat]
        self._seat_rewards = batch.infos[contest.seat_rewards]
        envs, steps = batch.spec.num_envs, settings.num_steps
        self.random = np.random.Generator(np.random.PCG64([settings.seed, OPPONENTS_STREAM]))
        self.learner = self.random.integers(2, size=envs)
        """The learner's seat in each env."""
        self.opponent = self.random.integers(len(self.names), size=envs)
        """Who has the other, by its place among the names."""
        self.mine = np.zeros((steps, envs), np.bool_)
        """Whether the learner chose."""
        self.seats = np.zeros((steps + 1, envs), np.int32)
        """Who had to choose, and who has to after the last step."""
        self.results = np.zeros((len(self.names), 2))
        """Points of the learner, 1 for a win and a half for a draw, and games; old ones count less."""
        self.past: list[dict[str, Tensor]] = []
        self.earlier = deepcopy(network).requires_grad_(False)
        self.rollouts = 0

    def begin(self, network: nn.Module) -> None:
        settings = self.settings
        if PAST in self.names and self.rollouts % settings.past_every == 0:
            weights = {name: each.detach().clone() for name, each in network.state_dict().items()}
            self.past = [*self.past, weights][-settings.past_kept :]
        if self.past:
            self.earlier.load_state_dict(self.past[self.random.integers(len(self.past))])
        self.rollouts += 1

    @torch.no_grad()
    def answer(self, step: int, observations: Tensor, acting: NDArray[Any]) -> None:
        self.seats[step] = self._seat
        theirs = self._seat != self.learner
        chooses = np.where(theirs, self.opponent, -1)
        self.mine[step] = True
        for place, name in enumerate(self.names):
            rows = np.flatnonzero(chooses == place)
            if name == SELF or not rows.size:
                continue
            self.mine[step, rows] = False
            acting[rows] = self.chosen(name, rows, observations)
        mark("opponents")

    def chosen(self, name: str, rows: NDArray[np.intp], seen: Tensor) -> NDArray[Any]:
        """What one of them chooses in some envs."""
        if name != PAST:
            return self.batch.choose(name)[rows]
        assert self.batch.masks is not None
        logits = self.earlier(seen[torch.from_numpy(rows)], None, None)[0].numpy()
        noise = self.random.gumbel(size=logits.shape)
        legal = self.batch.masks.reshape(len(self.learner), -1)[rows]
        chosen: NDArray[Any] = np.where(legal, logits + noise, -np.inf).argmax(-1)[:, None]
        return chosen

    def note(self, step: int) -> None:
        self.seats[step + 1] = self._seat
        over = np.flatnonzero(self.batch.terminals | self.batch.truncations)
        if not over.size:
            return
        points = (1 + self._seat_rewards[over, self.learner[over]]) / 2
        np.add.at(self.results, self.opponent[over], np.stack((points, np.ones(len(over))), -1))
        self.learner[over] = self.random.integers(2, size=len(over))
        self.opponent[over] = self.random.integers(len(self.names), size=len(over))

    def finish(self, rollout: "Rollout") -> None:
        rollout.alive = torch.from_numpy(self.mine)
        same_seat = self.seats[1:] == self.seats[:-1]
        rollout.turns = torch.from_numpy(np.where(same_seat, np.float32(1), np.float32(-1)))

    def shares_won(self) -> dict[str, float]:
        shares = {
            f"won.{name}": float(points / games)
            for name, (points, games) in zip(self.names, self.results, strict=True)
            if games and name != SELF
        }
        self.results /= 2
        return shares

    def state(self) -> dict[str, Any]:
        return {
            "past": self.past,
            "learner": torch.from_numpy(self.learner.copy()),
            "opponent": torch.from_numpy(self.opponent.copy()),
            "random": {
                name: str(number) for name, number in self.random.bit_generator.state["state"].items()
            },
            "rollouts": self.rollouts,
        }

    def restore(self, state: Any) -> None:
        self.past, self.rollouts = list(state["past"]), int(state["rollouts"])
        self.learner[:] = state["learner"].numpy()
        self.opponent[:] = state["opponent"].numpy() % len(self.names)  # fewer may be asked for now
        numbers = {name: int(number) for name, number in state["random"].items()}
        self.random.bit_generator.state = {**self.random.bit_generator.state, "state": numbers}


def find_opponents(batch: Batch, network: nn.Module, settings: TrainSettings) -> NoOpponents:
    """Return the opponents of the settings; without any, the world plays the other seat."""
    names, contest = settings.opponents, batch.spec.world.contest
    if not names:
        return NoOpponents()
    typed = f"opponents={','.join(names)}"
    if contest is None:
        raise InputError(f"{typed}: {batch.spec.name} is played against nobody; leave opponents out")
    values = by_role(batch.spec.parameters, "workload")
    if any(values[key] != value for key, value in contest.both_outside.items()):
        keys = " ".join(f"{key}={value}" for key, value in contest.both_outside.items())
        raise InputError(f"{typed}: the other seat is played inside a step; add {keys}")
    if settings.device != "cpu":
        raise InputError(f"{typed}: opponents choose on the CPU; use device=cpu")
    known = (SELF, PAST, *batch.players)
    for name in names:
        if name not in known:
            raise unknown("opponent", name, known, f"the opponents are {', '.join(known)}")
    return Opponents(batch, network, settings)
