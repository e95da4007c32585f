"""The log alone: the same step is written down again and again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

from hotloop.core.settings import parameter
from hotloop.core.world import Plan, Run, RunLog, World
from hotloop.worlds.farm import Parameters, alone, run_log
from hotloop.worlds.farm.actions import Weighted
from hotloop.worlds.farm.ledger import NOT_ITS_TURN, NUMBERS, Number
from hotloop.worlds.farm.twin import Farm

FIRST_STEPS = 2  # Played before, so that actions and states are as they are in life


@dataclass(frozen=True, slots=True, kw_only=True)
class RowParameters(Parameters):
    """What a farm can be made with, and what of it is written down."""

    only_states: bool = parameter(
        False, role="workload", help="Write agents' states and the steps, and no other table."
    )


class Written:
    """A farm that stands still after a few steps; nobody is born or dies while its log is measured."""

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None:
        self.plan, self.out = plan, out
        self.chosen: list[int] = []
        self.counters: dict[str, int] = {}
        self.lived = self.tick = 0
        self.farm = Farm(plan, out)

    def restart(self, episode_seed: int) -> None:
        self.tick = 0
        self.farm.restart(episode_seed)
        player = Weighted(self.plan, self.out)
        for _ in range(FIRST_STEPS):
            self.farm.chosen = player.choose()
            for phase in (self.farm.actions, self.farm.rewards, self.farm.environment):
                phase()
        numbers = self.out[NUMBERS]
        numbers[:, Number.TURN_FATE] = 0
        if self.plan["only_states"]:
            numbers[:, Number.TURN_RESULT] = NOT_ITS_TURN

    def wait(self) -> None:
        self.tick += 1
        self.lived += len(self.farm.indexed)

    def digest(self) -> int:
        return self.farm.digest() ^ self.tick

    def save(self) -> bytes:
        return self.farm.save()

    def load(self, saved: bytes) -> None:
        self.farm.load(saved)


class Temporary:
    """A log in a folder that is gone with it."""

    def __init__(self, parameters: Parameters, run: Run) -> None:
        self._folder = TemporaryDirectory(prefix="hotloop-log-")
        log = run_log(replace(parameters, log=self._folder.name), run)
        assert log is not None
        self._log: RunLog = log
        self.begin, self.note, self.flush, self.counters = log.begin, log.note, log.flush, log.counters

    def close(self) -> None:
        self._log.close()
        self._folder.cleanup()


def kept(parameters: Parameters, run: Run) -> RunLog | None:
    """Where it is asked for, else in a folder that is gone afterwards."""
    return run_log(parameters, run) if parameters.log != HERE else Temporary(parameters, run)


HERE = "a temporary folder"

component: World = alone(
    "log",
    summary="One step of everybody is written down again and again; only_states=true writes no other table.",
    phases=("wait",),
    twin=lambda: Written,
    usual={"agents": 500, "perception": False, "log": HERE},
    parameters=RowParameters,
    more=lambda chosen: {"only_states": int(chosen.only_states)},
    log=kept,
    has_native=False,
)
