"""Two raylets on this machine, for tests that need a cluster."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import raylets


class Raylets:
    """The process that has them."""

    def __init__(self, port: int) -> None:
        self.made = subprocess.Popen(
            [sys.executable, raylets.__file__, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.made.stdin is not None
        assert self.made.stdout is not None
        self.told, self.said = self.made.stdin, self.made.stdout
        assert any(line.strip() == "ready" for line in self.said)

    def kill_one(self) -> None:
        """End the second without a word."""
        self.told.write("kill\n")
        self.told.flush()

    def end(self) -> None:
        self.told.close()
        self.made.wait()
        self.said.close()


@contextmanager
def two_raylets() -> "Iterator[tuple[str, Raylets]]":
    """The address of their cluster, and who kills one; the test is left out where there is no Ray."""
    pytest.importorskip("ray", reason="Ray is not installed: nothing of it is tested")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Raylets(port)
    try:
        yield f"ray://127.0.0.1:{port}", made
    finally:
        made.end()
