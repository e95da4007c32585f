"""Contenders: what can be compared, and whether it may be."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Protocol

from hotloop.core.errors import InputError, Notice
from hotloop.core.machine import Sources, code
from hotloop.core.progress import Progress, silent
from hotloop.core.record.metadata import CodeInfo, Instructions
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn, collect_rest
from hotloop.envs.projects import Process, is_apart, open_separately, sources
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.judge.compare import unequal, workload
from hotloop.lab.measure.policy import EXAMINED, RANDOM, acting, draw_timing_seed
from hotloop.lab.measure.resources import count
from hotloop.lab.measure.sides import Side, SubjectSide
from hotloop.lab.measure.target import Opener, check_player, open_subject
from hotloop.lab.validate.equal import USUAL, Agreement, Reach, check_ignored, is_ignored, replay
from hotloop.lab.validate.match import aligned, closeness_between, is_aligned


class Contender(Protocol):
    """Something that sides can be made of, as many as a comparison needs."""

    name: str
    sources: Sources = MappingProxyType({})
    """The files that were loaded of its project; empty where a commit says what they are."""

    @property
    def spec(self) -> Spec: ...

    @property
    def code(self) -> CodeInfo: ...

    @property
    def takes_seed(self) -> bool:
        """Return whether its timed turns may have another seed than its replay."""
        return False

    def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> Side:
        """Return a new one, reset and ready, with its own seed or another."""
        ...

    def agreement(
        self, other: "Contender", reach: Reach = USUAL, policy: str = RANDOM, progress: Progress = silent
    ) -> Agreement:
        """Let both step through one tape, so far; the other may be itself."""
        ...

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        """Count those of an env-step, over as many as the other side was counted over."""
        ...

    def faults(self, policy: str = RANDOM) -> tuple[Notice, ...]:
        """Return what it does that its own interface forbids."""
        return ()

    def close(self) -> None:
        """Close what is open and no side's."""
        return


class TargetContender(Contender):
    """A target opened in this process.

    What is opened to be described is then replayed, examined and measured, each after a reset from its
    seed: of a user environment a comparison needs three. What neither a reset undoes nor the warm-up
    makes up for would be in the times; the replay and the examination are short beside that.
    """

    def __init__(self, target: Target, ignore: Sequence[str] = ()) -> None:
        """`ignore` names fields that need not be alike."""
        self.target, self.ignore = target, tuple(ignore)
        self._opener = Opener()
        self.name = target.words

    @cached_property
    def spec(self) -> Spec:
        subject = self._opener.open(self.target)
        self._opener.keep(self.target, subject, played=False)
        self.sources = sources(self.target)  # before the other side is opened, which could write to them
        return subject.spec

    @cached_property
    def code(self) -> CodeInfo:
        spec = self.spec
        build = asdict(spec.build) if spec.build else None
        return code(build, target=spec.name, sources=self.sources)

    @contextmanager
    def borrowed(self) -> Iterator[Subject]:
        """A subject for something short, which is kept for what comes after."""
        subject = self._opener.open(self.target)
        try:
            yield subject
        finally:
            self._opener.keep(self.target, subject)

    @property
    def takes_seed(self) -> bool:
        return "seed" not in self.target.keys

    def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> Side:
        if is_apart(self.target):
            return RemoteSide(self.name, self.target, policy, profile=profile, ignore=self.ignore, seed=seed)
        is_keyed = seed is not None and not self.target.is_foreign
        target = self.target.with_keys({"seed": seed}) if is_keyed else self.target
        subject = open_subject(target, profile=True) if profile else self._opener.open(target)
        if seed is not None:
            subject.reseed(seed)
        check_player(subject, policy)
        return SubjectSide(self.name, subject, policy, ignore=self.ignore)

    def agreement(
        self, other: Contender, reach: Reach = USUAL, policy: str = RANDOM, progress: Progress = silent
    ) -> Agreement:
        assert isinstance(other, TargetContender)
        with self.borrowed() as ours, other.borrowed() as theirs, aligned(ours, theirs) as (a, b):
            check_player(ours, policy)
            found = replay(
                a,
                b,
                reach=reach,
                policy=policy,
                ignore=self.ignore,
                closeness=closeness_between(a, b),
                progress=progress,
            )
        check_ignored(self.ignore, (*found.fields, *found.left_out))
        return replace(found, shown_as=a.autoreset if is_aligned(a, b) else None)

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


def draw_seed(a: Contender, b: Contender, policy: str) -> int | None:
    """Draw the seed of all timed turns of a run; None if a side's key or a tape decides it."""
    return draw_timing_seed(policy) if a.takes_seed and b.takes_seed else None


def separate_projects(*contenders: Contender) -> AbstractContextManager[None]:
    """Meanwhile no module of one contender's project is another's."""
    return open_separately(*(each.target for each in contenders if isinstance(each, TargetContender)))


def workload_differences(a: Contender, b: Contender, *, allowed: bool) -> tuple[str, ...]:
    """What differs beyond the variant; refused unless that was allowed.

    What another user callable made may answer alike: the replay will tell.
    """
    one, other = a.spec.described, b.spec.described
    alike = one.workload_hash == other.workload_hash or not (one.world and other.world)
    differs = () if alike else (unequal(workload(one), workload(other)),)
    if differs and not allowed:
        raise InputError(
            f"the sides have different workloads ({'; '.join(differs)}): make them equal, or use --unlike"
        )
    return differs


def unlike_widths(a: Contender, b: Contender) -> str:
    """Return the numbers of envs where they differ: other work a call, which only --unlike compares."""
    one, other = a.spec.num_envs, b.spec.num_envs
    return "" if one == other else f"num_envs {one:,} against {other:,}"


class RemoteSide:
    """A side in another process; only one of them runs at a time."""

    def __init__(
        self,
        name: str,
        target: Target,
        policy: str,
        *,
        profile: bool,
        process: Process | None = None,
        ignore: Sequence[str] = (),
        seed: int | None = None,
    ) -> None:
        """In a new process, or in one that was started for it and is closed with it."""
        self.name, self._ignore = name, ignore
        self._process = process or Process(name)
        try:
            collects = gc.isenabled()
            self._side = self._process.new(
                f"{__name__}:open_remote", name, target, policy, profile=profile, collects=collects, seed=seed
            )
        except BaseException:
            self._process.close()
            raise

    @property
    def grain(self) -> int:
        grain: int = self._side.grain
        return grain

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        taken: Turn = self._side.turn(env_steps, run_in)
        return taken

    def show_env_by_env(self, autoreset: str) -> None:
        self._side.show_env_by_env(autoreset)

    def seen(self) -> Mapping[str, str]:
        return {name: told for name, told in self._side.seen().items() if not is_ignored(name, self._ignore)}

    def counters(self) -> Mapping[str, int]:
        counters: Mapping[str, int] = self._side.counters()
        return counters

    def close(self) -> None:
        self._process.close()


class OwnSide(SubjectSide):
    """The side itself, in its process, which leaves no garbage for its next turn."""

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        taken = super().turn(env_steps, run_in)
        collect_rest()
        return taken


def open_remote(
    name: str, target: Target, policy: str, *, profile: bool, collects: bool, seed: int | None = None
) -> OwnSide:
    """Open a side here, with the garbage collector as it is where it is compared."""
    subject = open_subject(target, profile=profile)
    if seed is not None:
        subject.reseed(seed)
    check_player(subject, policy)
    gc.collect()
    gc.freeze()
    if not collects:
        gc.disable()
    return OwnSide(name, subject, policy)
