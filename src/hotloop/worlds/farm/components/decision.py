"""Nothing happens: what is left is who decides; decision.h has the same."""

from hotloop.core.world import World
from hotloop.worlds.farm import alone
from hotloop.worlds.farm.twin import Farm


class Waiting(Farm):
    """Time goes by, and with it everybody's luck."""

    def wait(self) -> None:
        self.state.tick += 1
        self.lived += len(self.indexed)
        self.show_agents()


component: World = alone(
    "decision",
    summary="Nothing happens, so that what a player or a trained policy takes to decide is all there is.",
    phases=("wait",),
    twin=lambda: Waiting,
    usual={"agents": 1000},
)
