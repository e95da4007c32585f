"""What can be measured in turns: something in this process, a worker process, or several of them together."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from interleaved.stepping import Block

BENCHMARKS = Path(__file__).resolve().parents[1]


class Side(Protocol):
    """One of the things compared."""

    @property
    def name(self) -> str: ...

    def measure(self, agent_steps: int) -> Block: ...


class SideFailure(Exception):
    """A worker process ended or answered nonsense; its own message is on stderr."""


def usable_cores() -> list[int]:
    """List the cores a process may be pinned to; none where the system cannot pin."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def one_core() -> list[int]:
    """Choose the core all sides share: the last, since the first does more of the system's own work."""
    return usable_cores()[-1:]


class ProcessSide:
    """A worker script in a long-lived process, commanded over pipes."""

    def __init__(self, name: str, python: Path, script: Path, settings: Mapping[str, object]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [str(python), str(script), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(BENCHMARKS)},
        )
        self.facts: dict[str, Any] = self._answer()["ready"]

    def measure(self, agent_steps: int) -> Block:
        self.start(agent_steps)
        return self.finish()

    def start(self, agent_steps: int) -> None:
        """Send the command without waiting, so that several workers can run at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"run": agent_steps}) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Block:
        return Block(**self._answer())

    def close(self) -> None:
        """End the worker by closing its pipe; kill it if that is not enough."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SideFailure(f"the worker of {self.name} ended with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Together:
    """Several workers running at the same time, each with its share of the work; their rates are added up."""

    def __init__(self, name: str, workers: Sequence[ProcessSide]) -> None:
        self.name = name
        self._workers = workers

    def measure(self, agent_steps: int) -> Block:
        for worker in self._workers:
            worker.start(agent_steps // len(self._workers))
        blocks = [worker.finish() for worker in self._workers]
        done = sum(block.agent_steps for block in blocks)
        return Block(ns=done / sum(1 / block.ns_per_agent_step for block in blocks), agent_steps=done)
