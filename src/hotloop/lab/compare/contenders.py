"""Contenders: what can be compared, and whether it may be."""

from contextlib import closing
from dataclasses import asdict
from functools import cached_property
from typing import Any, Protocol

from hotloop.core.code import code
from hotloop.core.errors import InputError
from hotloop.core.record import Instructions
from hotloop.core.target import Target
from hotloop.envs.subject import Subject, SubjectSpec
from hotloop.judge.alike import unequal, workload
from hotloop.lab.measure.instructions import count
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.lab.measure.turns import Side, SubjectSide
from hotloop.lab.validate.equal import Agreement, replay_both


class Contender(Protocol):
    """Something that sides can be made of, as many as a comparison needs."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> SubjectSpec: ...

    @property
    def code(self) -> dict[str, Any]: ...

    def side(self, policy: str, *, profile: bool = False) -> Side:
        """A new one, reset and ready."""

    def agreement(self, other: "Contender") -> Agreement:
        """Both step through one tape."""

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        """Of an env-step, over as many as the other side was counted over."""


class TargetContender:
    """A target opened in this process."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.name = target.words

    @cached_property
    def spec(self) -> SubjectSpec:
        with closing(self.open()) as subject:
            return subject.spec

    @cached_property
    def code(self) -> dict[str, Any]:
        return code(asdict(self.spec.build) if self.spec.build else None)

    def open(self, *, profile: bool = False) -> Subject:
        return open_subject(self.target, profile=profile)

    def side(self, policy: str, *, profile: bool = False) -> Side:
        subject = self.open(profile=profile)
        check_player(subject, policy)
        return SubjectSide(self.name, subject, policy)

    def agreement(self, other: Contender) -> Agreement:
        assert isinstance(other, TargetContender)
        return replay_both(self.open(), other.open())

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        return count(self.target, policy=policy, env_steps=env_steps)


def unlikeness(a: Contender, b: Contender, *, allowed: bool) -> tuple[str, ...]:
    """What differs beyond the variant; refused unless that was allowed.

    What somebody else's callable made is like anything that answers alike: the replay will tell.
    """
    one, other = a.spec.described, b.spec.described
    alike = one.workload_hash == other.workload_hash or not (one.world and other.world)
    differs = () if alike else (unequal(workload(one), workload(other)),)
    if differs and not allowed:
        raise InputError(
            f"the sides have different workloads ({'; '.join(differs)}): make them equal, or use --unlike"
        )
    return differs
