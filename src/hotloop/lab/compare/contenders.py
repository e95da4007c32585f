"""Contenders: what can be compared, and whether it may be."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import cached_property
from itertools import islice
from typing import Protocol

from hotloop.core.code import code
from hotloop.core.errors import InputError
from hotloop.core.notices import Notice
from hotloop.core.record import Code, Instructions
from hotloop.core.target import Target
from hotloop.envs.projects import apart, is_apart
from hotloop.envs.subject import Subject, SubjectSpec
from hotloop.judge.alike import unequal, workload
from hotloop.lab.compare.projects import RemoteSide
from hotloop.lab.measure.instructions import count
from hotloop.lab.measure.policy import EXAMINED, RANDOM, acting
from hotloop.lab.measure.target import Opener, check_player, open_subject
from hotloop.lab.measure.turns import Side, SubjectSide
from hotloop.lab.validate.equal import BOX_NS, Agreement, check_ignored, replay


class Contender(Protocol):
    """Something that sides can be made of, as many as a comparison needs."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> SubjectSpec: ...

    @property
    def code(self) -> Code: ...

    def side(self, policy: str, *, profile: bool = False) -> Side:
        """A new one, reset and ready."""

    def agreement(self, other: "Contender", box_ns: int = BOX_NS, policy: str = RANDOM) -> Agreement:
        """Both step through one tape, for so long; the other may be itself."""

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        """Of an env-step, over as many as the other side was counted over."""

    def faults(self, policy: str = RANDOM) -> tuple[Notice, ...]:
        """What it does that its own interface forbids."""

    def close(self) -> None:
        """Close what is open and in nobody's hands."""


class TargetContender:
    """A target opened in this process.

    What is opened to be described is then replayed, examined and measured, each after a reset from its
    seed: of somebody's environment a comparison needs three. What neither a reset undoes nor the warm-up
    makes up for would be in the times; the replay and the examination are short beside that.
    """

    def __init__(self, target: Target, ignore: Sequence[str] = ()) -> None:
        """`ignore` names fields that need not be alike."""
        self.target, self.ignore = target, tuple(ignore)
        self._opener = Opener()
        self.name = target.words

    @cached_property
    def spec(self) -> SubjectSpec:
        subject = self._opener.open(self.target)
        self._opener.keep(self.target, subject, played=False)
        return subject.spec

    @cached_property
    def code(self) -> Code:
        return code(asdict(self.spec.build) if self.spec.build else None, target=self.spec.name)

    @contextmanager
    def lent(self) -> Iterator[Subject]:
        """A subject for something short, which is kept for what comes after."""
        subject = self._opener.open(self.target)
        try:
            yield subject
        finally:
            self._opener.keep(self.target, subject)

    def side(self, policy: str, *, profile: bool = False) -> Side:
        if is_apart(self.target):
            return RemoteSide(self.name, self.target, policy, profile=profile, ignore=self.ignore)
        subject = open_subject(self.target, profile=True) if profile else self._opener.open(self.target)
        check_player(subject, policy)
        return SubjectSide(self.name, subject, policy, ignore=self.ignore)

    def agreement(self, other: Contender, box_ns: int = BOX_NS, policy: str = RANDOM) -> Agreement:
        assert isinstance(other, TargetContender)
        with self.lent() as ours, other.lent() as theirs:
            check_player(ours, policy)
            found = replay(ours, theirs, box_ns=box_ns, policy=policy, ignore=self.ignore)
        check_ignored(self.ignore, (*found.fields, *found.left_out))
        return found

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        return count(self.target, policy=policy, env_steps=env_steps)

    def faults(self, policy: str = RANDOM) -> tuple[Notice, ...]:
        subject = self._opener.open(self.target)
        try:
            if policy == RANDOM or not subject.restarts:
                return subject.faults()
            subject.reset()
            return subject.faults(islice(acting(policy, subject), EXAMINED))
        finally:  # a batch has none, and has not been stepped to see that
            self._opener.keep(self.target, subject, played=subject.restarts)

    def close(self) -> None:
        self._opener.close()


def kept_apart(*contenders: Contender) -> AbstractContextManager[None]:
    """Meanwhile no module of one contender's project is another's."""
    return apart(*(each.target for each in contenders if isinstance(each, TargetContender)))


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
