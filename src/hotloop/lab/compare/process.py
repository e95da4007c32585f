"""Sides that live in processes of their own, each with its own Python, commanded over pipes."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.isolate import lifeline
from hotloop.core.isolate.lifeline import Doing
from hotloop.core.isolate.worker import EndedError, Worker
from hotloop.envs.instances import lent
from hotloop.lab.measure.turns import Turn

WORKER = Path(__file__).parents[1] / "workers" / "worker.py"


class ProcessSide:
    """A target in a worker process; see worker.py for what is said between them."""

    def __init__(
        self,
        name: str,
        python: Path,
        folder: Path,
        asked: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.worker = Worker(
            [str(python), str(WORKER), json.dumps(asked)],
            {**(os.environ if environment is None else environment), **lent()},
            folder,
        )
        try:
            self.facts: dict[str, Any] = self._answer(Doing.MAKE)
        except BaseException:
            self.close()
            raise

    @property
    def grain(self) -> int:
        envs: int = self.facts["num_envs"]
        return envs

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        self.begin_turn(env_steps, run_in)
        return self.end_turn()

    def begin_turn(self, env_steps: int, run_in: int | None = None) -> None:
        """Let the worker begin without waiting for it, so that several can run at the same time."""
        self._tell(turn=env_steps, run_in=run_in)

    def end_turn(self) -> Turn:
        turn = Turn(**self._answer())
        lifeline.pulse[lifeline.STEPS] += turn.env_steps
        return turn

    def seen(self) -> dict[str, str]:
        return self._ask(seen=True)

    def counters(self) -> dict[str, int]:
        return self._ask(counters=True)

    def replay(self, steps: int, box_ns: int | None = None) -> list[dict[str, str]]:
        """Play afresh from the seed, for so long: field to hash, after the reset and after every step."""
        told: list[dict[str, str]] = self._ask(replay=steps, box_ns=box_ns)["steps"]
        return told

    def close(self) -> None:
        self.worker.close()

    def _ask(self, **command: object) -> dict[str, Any]:
        self._tell(**command)
        return self._answer()

    def _tell(self, **command: object) -> None:
        try:
            self.worker.tell(command)
        except EndedError as error:
            raise self._refusal(error) from None

    def _answer(self, doing: Doing = Doing.TURN) -> dict[str, Any]:
        try:
            with lifeline.doing(doing):
                answer = self.worker.answer()
        except EndedError as error:
            raise self._refusal(error) from None
        if "error" in answer:
            raise InputError(f"{self.name}: {answer['error']}")
        return answer

    def _refusal(self, error: EndedError) -> InputError:
        return InputError(f"{self.name}: the program {error.how}; it said: {error.last_words}")


def first_difference(a: ProcessSide, b: ProcessSide, steps: int) -> str | None:
    """Where two sides first answer differently when both replay the same steps; None where nowhere."""
    return replay_both(a, b, steps)[1]


def replay_both(
    a: ProcessSide, b: ProcessSide, steps: int, box_ns: int | None = None
) -> tuple[int, str | None]:
    """How far two sides replayed the same steps, and where they first answered differently."""
    both = list(zip(a.replay(steps, box_ns), b.replay(steps, box_ns), strict=box_ns is None))
    for step, (ours, theirs) in enumerate(both):
        fields = [*ours, *(field for field in theirs if field not in ours)]
        differing = [field for field in fields if ours.get(field) != theirs.get(field)]
        if differing:
            where = f"step {step}" if step else "the reset"
            return step, f"{where}: {_named(differing[0], ours, theirs)}{_others(differing)}"
    return len(both) - 1, None


def _named(field: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    if field in ours and field in theirs:
        return f"{field} differ"
    return f"only {'A' if field in ours else 'B'} answers {field}"


def _others(differing: Sequence[str]) -> str:
    return f" (and {', '.join(differing[1:])})" if len(differing) > 1 else ""
