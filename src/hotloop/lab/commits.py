"""A commit as a contender: sides of it live in processes of their own, with its own code."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.notices import Notice
from hotloop.core.record import Instructions, Target
from hotloop.envs.native import Build
from hotloop.lab.contenders import Contender
from hotloop.lab.equality import STEPS, Agreement
from hotloop.lab.play import RANDOM
from hotloop.lab.process import first_difference
from hotloop.lab.refs import Checkout
from hotloop.lab.sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSpec:
    """What the worker of a commit said about the target it opened."""

    name: str
    impl: str
    requested: str
    num_envs: int
    agents: int
    threads: int
    seed: int
    described: Target
    build: Build | None = None
    notices: tuple[Notice, ...] = ()
    decided_by: Mapping[str, str] = field(default_factory=dict)


WHOLE = "commits are compared whole, under random play: give no --policy, no --profile, no --instructions"
"""Because a commit may be older than the instrument, and than its players."""


def check_asked(policy: str, *, beyond_speed: bool) -> None:
    """Refuse what a commit cannot be asked."""
    if policy != RANDOM or beyond_speed:
        raise InputError(WHOLE)


class CommitContender:
    """A target at a commit; who compares two of them says that the code differs, so nothing else may."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        with closing(checkout.open()) as side:
            self._facts = side.facts
        self.name = f"{checkout.asked['target']} at {checkout.commit.name}"

    @property
    def spec(self) -> CommitSpec:
        facts, asked = self._facts, self.checkout.asked
        return CommitSpec(
            name=str(asked["target"]),
            impl=facts["impl"],
            requested="auto",
            num_envs=facts["num_envs"],
            agents=facts["agents"],
            threads=int((facts["target"] or {}).get("variant", {}).get("threads", 1)),
            seed=asked["seed"],
            described=self._target(),
        )

    @property
    def code(self) -> dict[str, Any]:
        build = self._facts["build"] or {}
        return {
            "version": self._facts["versions"].get("hotloop", "unknown"),
            "commit": self.checkout.commit.sha,
            "dirty": False,
            "compiler": build.get("compiler"),
            "flags": build.get("flags"),
        }

    def side(self, policy: str, *, profile: bool = False) -> Side:
        check_asked(policy, beyond_speed=profile)
        return self.checkout.open()

    def agreement(self, other: Contender) -> Agreement:
        """Both replay the same steps, each in its own process, and tell hashes of every answer."""
        assert isinstance(other, CommitContender)
        with closing(self.checkout.open()) as a, closing(other.checkout.open()) as b:
            difference = first_difference(a, b, STEPS)
        spec = self.spec
        compared = (STEPS + 1) * spec.num_envs * spec.agents
        return Agreement(steps=STEPS, envs=spec.num_envs, comparisons=compared, difference=difference)

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        raise InputError(WHOLE)

    def _target(self) -> Target:
        """As the commit's own Hotloop describes it; what it cannot say is what was asked for."""
        told = self._facts["target"]
        if told is not None:
            return Target(**told)
        asked = self.checkout.asked
        return Target(
            name=str(asked["target"]),
            world=None,
            impl=self._facts["impl"],
            device="cpu",
            params=dict(asked["given"]) | {"seed": asked["seed"]},
            workload_hash="",
            variant={"num_envs": self._facts["num_envs"]},
        )
