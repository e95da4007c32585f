"""Targets at a commit or in another Python: each side lives in a process of its own, commanded over pipes."""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import InputError
from hotloop.core.machine import UNKNOWN
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.core.process.worker import Worker
from hotloop.core.progress import Progress, silent
from hotloop.core.record.metadata import CodeInfo, Described, Instructions
from hotloop.core.turn_clock import Turn
from hotloop.envs.callables import lent
from hotloop.envs.spec import Spec
from hotloop.lab.compare.contenders import Contender
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.resources import Where, count
from hotloop.lab.measure.sides import Side
from hotloop.lab.validate.equal import USUAL, Agreement, Reach

if TYPE_CHECKING:
    from hotloop.lab.compare.commits import Checkout

WORKER = Path(__file__).parents[1] / "workers" / "worker.py"

# Because a commit may be older than the instrument, and than its players.
WHOLE = "commits and environments are compared whole, under random play: give no --policy and no --profile"

NOT_COUNTED = (
    "instructions of {name} are not counted: a build may give it a Python without this Hotloop; "
    "leave out --instructions"
)


def check_asked(policy: str, *, beyond_speed: bool) -> None:
    """Refuse what a commit cannot be asked."""
    if policy not in (RANDOM, LEARNING) or beyond_speed:
        raise InputError(WHOLE)


class CommitContender(Contender):
    """A target at a commit; two of them are said to differ in their code, so nothing else may differ."""

    def __init__(self, checkout: "Checkout", facts: Mapping[str, Any] | None = None) -> None:
        """`facts` are those of a side that is open already."""
        self.checkout = checkout
        if facts is None:
            with closing(checkout.open()) as side:
                facts = side.facts
        self._facts = facts
        self.name = f"{checkout.target.name} at {checkout.commit.name}"

    @property
    def spec(self) -> Spec:
        facts, checkout = self._facts, self.checkout
        seed = checkout.settings["seed"]
        described = (
            Described(**facts["target"])  # as the commit's own Hotloop describes it
            if facts["target"] is not None
            else Described(
                name=checkout.target.name,
                world=None,
                impl=facts["impl"],
                device="cpu",
                params=checkout.target.keys | {"seed": seed},
                workload_hash="",
                variant={"num_envs": facts["num_envs"]},
            )
        )
        return Spec(
            name=checkout.target.name,
            impl=facts["impl"],
            requested="auto",
            num_envs=facts["num_envs"],
            agents=facts["agents"],
            threads=int((facts["target"] or {}).get("variant", {}).get("threads", 1)),
            seed=seed,
            described=described,
            same_work=checkout.target,
        )

    @property
    def code(self) -> CodeInfo:
        build = self._facts["build"] or {}
        return {
            "version": self._facts["versions"].get("hotloop", "unknown"),
            "commit": self.checkout.commit.sha or UNKNOWN,
            "dirty": self.checkout.commit.dirty,
            "compiler": build.get("compiler"),
            "flags": build.get("flags"),
        }

    @property
    def packages(self) -> dict[str, str]:
        """Return the versions of Python and of the packages that its process has loaded."""
        packages: dict[str, str] = self._facts["packages"]
        return packages

    @property
    def takes_seed(self) -> bool:
        keys = self.checkout.target.keys
        return "seed" not in keys and not any(key.startswith("train.") for key in keys)

    def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> Side:
        check_asked(policy, beyond_speed=profile)
        return self.checkout.open(seed)

    def agreement(
        self, other: Contender, reach: Reach = USUAL, policy: str = RANDOM, progress: Progress = silent
    ) -> Agreement:
        """Both replay the same steps, each in its own process, and answer hashes of all that they show."""
        assert isinstance(other, CommitContender)
        with closing(self.checkout.open()) as a, closing(other.checkout.open()) as b:
            return replay_both(a, b, reach)

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        checkout = self.checkout
        if not checkout.can_count:
            raise InputError(NOT_COUNTED.format(name=self.name))
        where = Where(folder=checkout.place, environment=checkout.runner[1])
        return count(checkout.target, policy=policy, env_steps=env_steps, where=where)


class ProcessSide:
    """A target in a worker process; see worker.py for the commands and answers between them."""

    def __init__(
        self,
        name: str,
        python: Path,
        folder: Path,
        settings: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.worker = Worker(
            name,
            [str(python), str(WORKER), json.dumps(settings)],
            {**(os.environ if environment is None else environment), **lent()},
            folder,
        )
        try:
            self.facts: dict[str, Any] = self._answer(Activity.MAKE)
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

    def replay(self, reach: Reach) -> "ReplayedHashes":
        """Play afresh from the seed, so far: field to hash, after the reset and after every step."""
        command = asdict(reach) | {"most_ns": reach.most_ns and reach.most_ns // 2}  # half for each side
        return ReplayedHashes(**self._ask(replay=command))

    def close(self) -> None:
        self.worker.close()

    def _ask(self, **command: object) -> dict[str, Any]:
        self.worker.tell(command)
        return self._answer()

    def _answer(self, doing: Activity = Activity.TURN) -> dict[str, Any]:
        with lifeline.doing(doing):
            return self.worker.answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedHashes:
    """What the worker of one side replayed."""

    steps: list[dict[str, str]]  # Field to hash, after the reset and after every step
    enough_at: int | None  # The step from which on they suffice; None if there were too few
    ns: int  # Time after the first step


def replay_both(a: ProcessSide, b: ProcessSide, reach: Reach) -> Agreement:
    """Let both sides replay the same steps, one after the other, and compare their hashes."""
    one, other = a.replay(reach), b.replay(reach)
    fields: dict[str, None] = {}
    both = list(zip(one.steps, other.steps, strict=False))
    steps, difference = len(both) - 1, None
    for step, (ours, theirs) in enumerate(both):
        fields |= dict.fromkeys((*ours, *theirs))
        differing = [field for field in fields if ours.get(field) != theirs.get(field)]
        if differing:
            first, *others = differing
            only = "A" if first in ours else "B"
            what = f"{first} differ" if first in ours and first in theirs else f"only {only} answers {first}"
            where = f"step {step}" if step else "the reset"
            difference = f"{where}: {what}" + (f" (and {', '.join(others)})" if others else "")
            steps = step
            break
    enough_at = max((each.enough_at if each.enough_at is not None else steps + 1) for each in (one, other))
    is_enough = difference is not None or enough_at <= steps
    envs = a.facts["num_envs"]
    return Agreement(
        steps=steps,
        envs=envs,
        comparisons=(steps + 1) * envs * a.facts["agents"],
        fields=tuple(fields),
        difference=difference,
        all_envs=envs,
        too_few=None if is_enough else reach.missing(steps, one.ns + other.ns),
    )
