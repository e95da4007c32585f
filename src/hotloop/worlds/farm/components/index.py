"""The index alone: agents go about, it is built, and everybody asks; index.h has the same."""

from hotloop.core.world import World
from hotloop.worlds.farm import alone
from hotloop.worlds.farm.actions import SHARE_RANGE, move, near
from hotloop.worlds.farm.twin import Farm


class Indexed(Farm):
    """Nobody acts: all go one way and ask who is near."""

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


component: World = alone(
    "index",
    summary="Everybody moves, the index is built, and everybody asks who is within 30 and who is nearest.",
    phases=("moves", "build", "radius", "nearest"),
    twin=lambda: Indexed,
    usual={"agents": 1000, "perception": False},
)
