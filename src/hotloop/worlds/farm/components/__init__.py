"""Parts of the farm that are measured by themselves; headers of their names have the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

from hotloop.core.settings import parameter
from hotloop.core.world import LoggedRun, Plan, RunLog, World
from hotloop.worlds.farm import COUNTERS, Parameters, layout, plan, run_log
from hotloop.worlds.farm import world as farm
from hotloop.worlds.farm.actions import SHARE_RANGE, Weighted, gather, move, near
from hotloop.worlds.farm.ledger import NOT_ITS_TURN, NUMBERS, Number
from hotloop.worlds.farm.observe import FOOD, place, shown_food
from hotloop.worlds.farm.twin import Farm


def alone(
    name: str,
    *,
    usual: Mapping[str, object],
    more: Callable[[Any], Plan] = lambda _: {},
    **declared: Any,
) -> World:
    """A component: a part of the farm as a small world of its own, of a population that is held.

    `usual` are its parameters beside that, `more` what its plan has beyond the farm's, and `declared` what it
    says of itself.
    """
    shared = {"layout": layout, "counters": COUNTERS, "players": farm.players, "episode": farm.episode}
    return World(
        name=f"{farm.name}/{name}",
        part_of=farm.name,
        presets={"usual": {"held": True, **usual}},
        plan=lambda chosen: {**plan(chosen), "component": name, **more(chosen)},
        kept_by=farm.kept_by,
        **{"parameters": Parameters, "log": run_log, **shared, **declared},
    )


class Waiting(Farm):
    """Time goes by, and with it everybody's luck."""

    def wait(self) -> None:
        self.state.tick += 1
        self.lived += len(self.indexed)
        self.show_agents()


DECISION = alone(
    "decision",
    summary="Nothing happens, so that what a player or a trained policy takes to decide is all there is.",
    phases=("wait",),
    twin=lambda: Waiting,
    usual={"agents": 1000},
)


class Indexed(Farm):
    """No agent acts: all go one way and query their neighbors."""

    def moves(self) -> None:
        self.state.tick += 1
        self.lived += len(self.indexed)
        for slot in self.indexed:
            agent = self.state.agents[slot]
            move(self, slot)
            agent.x, agent.y = agent.to_x, agent.to_y

    def build(self) -> None:
        self.update_index()

    def radius(self) -> None:
        """How many others are within reach, as luck."""
        for slot in self.indexed:
            self.out["luck"][slot] = sum(1 for _ in near(self, slot, SHARE_RANGE))

    def nearest(self) -> None:
        """How near the nearest other is, squared, as the reward; -1 where none is within reach."""
        for slot in self.indexed:
            away, _ = min(near(self, slot, SHARE_RANGE), default=(-1.0, -1))
            self.out["rewards"][slot] = away


INDEX = alone(
    "index",
    summary="Everybody moves, the index is built, and everybody asks who is within 30 and who is nearest.",
    phases=("moves", "build", "radius", "nearest"),
    twin=lambda: Indexed,
    usual={"agents": 1000, "perception": False},
)


FIRST_STEPS = 2  # Played before, so that actions and states are as they are in life


@dataclass(frozen=True, slots=True, kw_only=True)
class RowParameters(Parameters):
    """What a farm can be made with, and what of it is written down."""

    only_states: bool = parameter(
        False, role="workload", help="Write agents' states and the steps, and no other table."
    )


class StillFarm:
    """A farm that stands still after a few steps; no agent is born or dies while its log is measured."""

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

    def __init__(self, parameters: Parameters, run: LoggedRun) -> None:
        self._folder = TemporaryDirectory(prefix="hotloop-log-")
        log = run_log(replace(parameters, log=self._folder.name), run)
        assert log is not None
        self._log: RunLog = log
        self.begin, self.note, self.flush, self.counters = log.begin, log.note, log.flush, log.counters

    def close(self) -> None:
        self._log.close()
        self._folder.cleanup()


def log_of(parameters: Parameters, run: LoggedRun) -> RunLog | None:
    """Where it is asked for, else in a folder that is gone afterwards."""
    return run_log(parameters, run) if parameters.log != HERE else Temporary(parameters, run)


HERE = "a temporary folder"

LOG = alone(
    "log",
    summary="One step of everybody is written down again and again; only_states=true writes no other table.",
    phases=("wait",),
    twin=lambda: StillFarm,
    usual={"agents": 500, "perception": False, "log": HERE},
    parameters=RowParameters,
    more=lambda chosen: {"only_states": int(chosen.only_states)},
    log=log_of,
    has_native=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters(Parameters):
    """What a farm can be made with, and how it is looked at."""

    layered: bool = parameter(
        False, role="variant", help="Draw one layer of everybody after another, so that each is timed."
    )


class Seeing(Farm):
    """No agent acts: all observe."""

    def whole(self) -> None:
        self.lived += len(self.indexed)
        self.perception()

    def food(self) -> None:
        """The twin draws all layers at once; here and below there is nothing left to do."""

    def empty(self) -> None: ...

    def planes(self) -> None: ...

    def borders(self) -> None: ...

    def landmarks(self) -> None: ...

    def others(self) -> None: ...

    def goal(self) -> None: ...


PERCEPTION = alone(
    "perception",
    summary="Everybody looks around; layered=true draws one layer after another, so that each has its time.",
    phases=("whole", "food", "empty", "planes", "borders", "landmarks", "others", "goal"),
    twin=lambda: Seeing,
    usual={"agents": 1000},
    parameters=LayerParameters,
    more=lambda chosen: {"layered": int(chosen.layered)},
)


class Growing(Farm):
    """All gather and look at the food; no agent eats."""

    def gathering(self) -> None:
        self.state.tick += 1
        self.lived += len(self.indexed)
        for slot in self.indexed:
            failure = gather(self, slot)
            self.count(f"failed.{failure}" if failure else "gather")

    def regrowth(self) -> None:
        self.regrow()

    def windows(self) -> None:
        """The food that everybody sees, in its channel; nothing else is shown."""
        if not self.plan["perception"]:
            return
        plane, side = shown_food(self), 2 * self.plan["radius"] + 1
        rows = self.out["observations"]
        shown = rows.reshape(len(rows), -1, side, side)
        for slot, agent in self.living():
            column, row = place(self, agent)
            shown[slot, FOOD] = plane[row : row + side, column : column + side]


RESOURCES = alone(
    "resources",
    summary="Everybody gathers, nodes regrow, and everybody looks at the food, in memory or in a file.",
    phases=("gathering", "regrowth", "windows"),
    twin=lambda: Growing,
    usual={"agents": 1000},
)


components = (DECISION, INDEX, LOG, PERCEPTION, RESOURCES)
