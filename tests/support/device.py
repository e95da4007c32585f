"""A device that works behind its queue, on a clock of its own: nothing here takes time."""

from typing import Any


class Device:
    """A stream: work is queued in no time of the host's, and done one after another."""

    def __init__(self) -> None:
        self.host_ms = 0.0
        self.busy_until_ms = 0.0
        self.waits = 0
        self.made = 0
        """Events."""

    def launch(self, ms: float) -> None:
        self.busy_until_ms = max(self.busy_until_ms, self.host_ms) + ms

    def think(self, ms: float) -> None:
        """Work of the host."""
        self.host_ms += ms

    def wait(self) -> None:
        self.waits += 1
        self.host_ms = max(self.host_ms, self.busy_until_ms)

    def event(self) -> Any:
        device, self.made = self, self.made + 1

        class Event:
            at_ms = -1.0

            def record(self) -> None:
                self.at_ms = max(device.busy_until_ms, device.host_ms)

            def query(self) -> bool:
                return self.at_ms <= device.host_ms

            def elapsed_time(self, end: Any) -> float:
                assert self.query(), "an event is read only after the stream has passed it"
                assert end.query(), "an event is read only after the stream has passed it"
                return float(end.at_ms - self.at_ms)

        return Event()
