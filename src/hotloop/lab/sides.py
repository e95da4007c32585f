"""Sides: what takes turns in a comparison, and counts its work."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from hotloop.envs.subject import Subject
from hotloop.lab.play import Play, play, play_of
from hotloop.lab.rounds import calls_for

RUN_IN = 10
"""One in so many calls of a turn is made before its clock starts: the side before left its own caches."""


NO_PHASES: Mapping[str, int] = MappingProxyType({})


class Turn(NamedTuple):
    """One timed stretch of one side."""

    ns: int
    env_steps: int
    phases: Mapping[str, int] = NO_PHASES
    """Nanoseconds in each, and in `step` as a whole; empty where nothing is timed."""

    @property
    def ns_per_env_step(self) -> float:
        return self.ns / self.env_steps


class Side(Protocol):
    """Something that can run a round of n env-steps, or more by a part of a call, and count its work."""

    name: str

    def turn(self, env_steps: int) -> Turn:
        """Run and time that many, after a short stretch that nobody times."""

    def counters(self) -> Mapping[str, int]: ...

    def close(self) -> None: ...


class SubjectSide:
    """A subject and who plays it; two sides of one seed are played alike."""

    def __init__(self, name: str, subject: Subject, policy: str) -> None:
        self.name = name
        self.subject = subject
        self.script: Play = play_of(policy, subject)
        subject.reset()

    def turn(self, env_steps: int) -> Turn:
        calls = calls_for(env_steps, self.subject)
        run_in = -(-calls // RUN_IN)
        play(self.subject, self.script.draw(run_in), run_in)
        drawn, before = self.script.draw(calls), self.subject.phase_totals()
        ns = play(self.subject, drawn, calls)
        phases = {name: total - before[name] for name, total in self.subject.phase_totals().items()}
        return Turn(ns, calls * self.subject.spec.num_envs, phases)

    def counters(self) -> Mapping[str, int]:
        return self.subject.counters

    def close(self) -> None:
        self.script.close()
        self.subject.close()
