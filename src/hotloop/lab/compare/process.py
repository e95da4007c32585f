"""Sides that live in processes of their own, each with its own Python, commanded over pipes."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Doing
from hotloop.core.process.worker import Worker
from hotloop.core.turn_clock import Turn
from hotloop.envs.callables import lent
from hotloop.lab.validate.equal import Reach, TooFew

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
            name,
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
        self.worker.tell({"turn": env_steps, "run_in": run_in})

    def end_turn(self) -> Turn:
        turn = Turn(**self._answer())
        lifeline.pulse[lifeline.STEPS] += turn.env_steps
        return turn

    def seen(self) -> dict[str, str]:
        return self._ask(seen=True)

    def counters(self) -> dict[str, int]:
        return self._ask(counters=True)

    def replay(self, reach: Reach) -> "Replay":
        """Play afresh from the seed, so far: field to hash, after the reset and after every step."""
        command = asdict(reach) | {"most_ns": reach.most_ns and reach.most_ns // 2}  # half for each side
        return Replay(**self._ask(replay=command))

    def close(self) -> None:
        self.worker.close()

    def _ask(self, **command: object) -> dict[str, Any]:
        self.worker.tell(command)
        return self._answer()

    def _answer(self, doing: Doing = Doing.TURN) -> dict[str, Any]:
        with lifeline.doing(doing):
            return self.worker.answer()


def first_difference(a: ProcessSide, b: ProcessSide, steps: int) -> str | None:
    """Where two sides first answer differently when both replay the same steps; None where nowhere."""
    return replay_both(a, b, Reach(steps=steps, needed=steps, episodes=False, most_ns=None)).difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the worker of one side replayed."""

    steps: list[dict[str, str]]  # Field to hash, after the reset and after every step
    enough_at: int | None  # The step from which on they suffice; None if there were too few
    ns: int  # Time after the first step


@dataclass(frozen=True, slots=True, kw_only=True)
class HashAgreement:
    """How far two sides replayed the same steps, and where they first answered differently."""

    steps: int
    fields: tuple[str, ...]
    difference: str | None
    too_few: TooFew | None = None


def replay_both(a: ProcessSide, b: ProcessSide, reach: Reach) -> HashAgreement:
    """Let both sides replay the same steps, one after the other."""
    one, other = a.replay(reach), b.replay(reach)
    fields: dict[str, None] = {}
    both = list(zip(one.steps, other.steps, strict=False))
    for step, (ours, theirs) in enumerate(both):
        fields |= dict.fromkeys((*ours, *theirs))
        differing = [field for field in fields if ours.get(field) != theirs.get(field)]
        if differing:
            where = f"step {step}" if step else "the reset"
            said = f"{where}: {_named(differing[0], ours, theirs)}{_others(differing)}"
            return HashAgreement(steps=step, fields=tuple(fields), difference=said)
    steps = len(both) - 1
    enough_at = max((each.enough_at if each.enough_at is not None else steps + 1) for each in (one, other))
    return HashAgreement(
        steps=steps,
        fields=tuple(fields),
        difference=None,
        too_few=None if enough_at <= steps else reach.missing(steps, one.ns + other.ns),
    )


def _named(field: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    if field in ours and field in theirs:
        return f"{field} differ"
    return f"only {'A' if field in ours else 'B'} answers {field}"


def _others(differing: Sequence[str]) -> str:
    return f" (and {', '.join(differing[1:])})" if len(differing) > 1 else ""
