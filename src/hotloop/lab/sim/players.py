"""Who plays in sim: a batch's own players or trained runs, in one seat or in both of a contest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.machine import need
from hotloop.core.target import names_callable
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.inside import BROKEN, raised
from hotloop.lab.measure.policy import TAPE, load
from hotloop.lab.measure.target import check_player
from hotloop.lab.measure.trained import checkpoint_of, is_trained


class Player(Protocol):
    """Chooses the actions of every env of a batch."""

    @property
    def forward_ns(self) -> int:
        """In a network, since the beginning."""

    @property
    def select_ns(self) -> int:
        """In choosing by what it says, or without any."""

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        """Actions of every env, or at least of those that are named."""

    def note(self, ended: Sequence[int]) -> None:
        """After a step: the envs whose episode ended."""


class TapePlayer:
    """What was recorded, step by step."""

    forward_ns = select_ns = 0

    def __init__(self, batch: Batch, path: Path) -> None:
        self._actions = iter(tapes.read_for(path, batch))

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        """The next step's; StopIteration where the tape has ended."""
        actions: NDArray[np.int32] = next(self._actions)
        return actions

    def note(self, ended: Sequence[int]) -> None:
        """It is known already."""


class OwnPlayer:
    """One of the batch's own."""

    def __init__(self, batch: Batch, name: str) -> None:
        check_player(batch, name)
        self._batch, self._name = batch, name
        self.forward_ns = self.select_ns = 0

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        start = now_ns()
        actions = self._batch.choose(self._name)
        self.select_ns += now_ns() - start
        return actions

    def note(self, ended: Sequence[int]) -> None:
        """A batch's players notice by themselves."""


class CallablePlayer:
    """A function from observations to actions, or a model with `forward` and `select`."""

    def __init__(self, batch: Batch, name: str) -> None:
        self._batch, self._name, self._choose = batch, name, load(name)
        self.forward_ns = self.select_ns = 0

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        start, spec = now_ns(), self._batch.spec
        try:
            chosen = np.asarray(self._choose(self._batch), np.int32).reshape(spec.num_envs, spec.agents)
        except BROKEN as error:
            raise raised(f"the player {self._name}", error) from error
        self.select_ns += now_ns() - start
        return chosen

    def note(self, ended: Sequence[int]) -> None:
        """A function sees the next observation."""


class BothSeats:
    """Two players at a batch whose both seats are played from outside."""

    def __init__(self, batch: Batch, first: Player, second: Player) -> None:
        contest = batch.spec.world.contest
        assert contest is not None
        self._seat, self._players = batch.infos[contest.seat], (first, second)
        self._actions = np.zeros((batch.spec.num_envs, batch.spec.agents), np.int32)

    @property
    def forward_ns(self) -> int:
        return sum(player.forward_ns for player in self._players)

    @property
    def select_ns(self) -> int:
        return sum(player.select_ns for player in self._players)

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        for seat, player in enumerate(self._players):
            mine = np.flatnonzero(self._seat == seat)
            if mine.size:
                self._actions[mine] = player.choose(mine)[mine]
        return self._actions

    def note(self, ended: Sequence[int]) -> None:
        for player in self._players:
            player.note(ended)


def find_player(batch: Batch, name: str) -> Player:
    """A player by its name, `run:NAME` for a run's last checkpoint, `tape:FILE` for what was recorded."""
    if name.startswith(TAPE):
        return TapePlayer(batch, Path(name.removeprefix(TAPE)))
    if names_callable(name) and not is_trained(name):
        return CallablePlayer(batch, name)
    if not is_trained(name):
        return OwnPlayer(batch, name)
    need("torch")
    from hotloop.train.evaluation import seat

    return seat(checkpoint_of(name), batch, seed=batch.spec.seed, threads=batch.spec.threads)


def find_players(batch: Batch, first: str, second: str) -> Player:
    """Who chooses all actions; `second` is empty where the world plays the other seat, or there is none."""
    if not second:
        return find_player(batch, first)
    return BothSeats(batch, find_player(batch, first), find_player(batch, second))
