"""What agents see alone, layer by layer or at once; perception.h has the same."""

from dataclasses import dataclass

from hotloop.core.settings import parameter
from hotloop.core.world import World
from hotloop.worlds.farm import Parameters, alone
from hotloop.worlds.farm.twin import Farm


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters(Parameters):
    """What a farm can be made with, and how it is looked at."""

    layered: bool = parameter(
        False, role="variant", help="Draw one layer of everybody after another, so that each is timed."
    )


class Seeing(Farm):
    """Nobody acts: all look around."""

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


component: World = alone(
    "perception",
    summary="Everybody looks around; layered=true draws one layer after another, so that each has its time.",
    phases=("whole", "food", "empty", "planes", "borders", "landmarks", "others", "goal"),
    twin=lambda: Seeing,
    usual={"agents": 1000},
    parameters=LayerParameters,
    more=lambda chosen: {"layered": int(chosen.layered)},
)
