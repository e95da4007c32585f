"""What happens to a ship, one readable line a step."""

from collections.abc import Mapping
from typing import Any

from hotloop.worlds.prospector.actions import ACTIONS, TABLE
from hotloop.worlds.prospector.numbers import FULL, KIND_NAMES, MAX_CARGO, MAX_FUEL, MAX_NODES

GAUGES = (
    ("fuel", 0, MAX_FUEL),
    ("hull", 1, FULL),
    ("heat", 2, FULL),
    ("tool", 3, FULL),
    ("cargo", 4, MAX_CARGO),
    ("alert", 5, FULL),
)
"""Name, place in the observation, maximum."""


class Log:
    """Tells what a ship did, where it is and how it is."""

    def __init__(self, time_max: int) -> None:
        self.time_max = time_max

    def tell(self, shown: Mapping[str, Any]) -> str:
        row, action = shown["observations"][0], int(shown["actions"][0])
        tick = self.time_max - int(shown["time_remaining"])
        kind = KIND_NAMES[int(row[19:22].argmax())]
        name = TABLE[action].name if 0 <= action < ACTIONS else f"unknown action {action}"
        gauges = "  ".join(f"{gauge} {row[at] * most:4.0f}" for gauge, at, most in GAUGES)
        return (
            f"tick {tick:5}  {name:22}{'(invalid) ' if shown['invalid'] else '':10}"
            f"at {round(float(row[22]) * (MAX_NODES - 1)):2} {kind:8} {gauges}  "
            f"credits {float(shown['credits']):8.1f}  reward {float(shown['rewards'][0]):+9.4f}"
        )
