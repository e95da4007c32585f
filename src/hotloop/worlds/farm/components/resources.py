"""What grows alone: it is gathered, regrows and is seen; resources.h has the same."""

from hotloop.core.world import World
from hotloop.worlds.farm import alone
from hotloop.worlds.farm.actions import gather
from hotloop.worlds.farm.observe import FOOD, place, shown_food
from hotloop.worlds.farm.twin import Farm


class Growing(Farm):
    """Everybody gathers and looks at the food; nobody eats."""

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


component: World = alone(
    "resources",
    summary="Everybody gathers, nodes regrow, and everybody looks at the food, in memory or in a file.",
    phases=("gathering", "regrowth", "windows"),
    twin=lambda: Growing,
    usual={"agents": 1000},
)
