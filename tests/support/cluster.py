"""Two raylets on this machine, for tests that need a cluster."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import raylets


class Raylets:
    """The process that has them."""

    def __init__(self, port: int) -> None:
        self.trouble = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in end()
        self.made = subprocess.Popen(
            [sys.executable, raylets.__file__, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.trouble,
            text=True,
        )
        assert self.made.stdin is not None
        assert self.made.stdout is not None
        self.told, self.said = self.made.stdin, self.made.stdout
        if not any(line.strip() == "ready" for line in self.said):
            self.trouble.seek(0)
            why = self.trouble.read()[-2_000:]
            self.end()
            pytest.fail(f"two raylets did not start: {why}")

    def kill_one(self) -> None:
        """End the second without a word."""
        self.told.write("kill\n")
        self.told.flush()

    def end(self) -> None:
        self.told.close()
        self.made.wait()
        self.said.close()
        self.trouble.close()


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
