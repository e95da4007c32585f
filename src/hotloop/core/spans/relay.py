"""A relay: two who are told of boundaries, one after the other."""

from hotloop.core.spans.python import Boundary


class Relay:
    """Tells both of everything, the first one first."""

    def __init__(self, first: Boundary, then: Boundary) -> None:
        self._first, self._then = first, then

    def open(self, name: str) -> None:
        self._first.open(name)
        self._then.open(name)

    def close(self, name: str) -> None:
        self._first.close(name)
        self._then.close(name)

    def mark(self, name: str) -> None:
        self._first.mark(name)
        self._then.mark(name)

    def start(self) -> None:
        self._first.start()
        self._then.start()
