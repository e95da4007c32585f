"""Sides: what can be measured, what one of its turns takes, and what is kept away from the clock."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Literal, Protocol, Self

from hotloop.core.clock import now_ns
from hotloop.core.record.profile import Pauses
from hotloop.core.spans import glance, lap, span
from hotloop.core.turn_clock import RUN_IN, Turn, TurnClock, collect_rest, repeat
from hotloop.envs.env_by_env import EnvByEnv
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Actions, Play, play_of
from hotloop.lab.validate.equal import Streams, field_hashes, is_ignored


def calls_for(env_steps: int, subject: Subject) -> int:
    """The batch calls that make at least this many env-steps."""
    return -(-env_steps // subject.spec.num_envs)


class Side(Protocol):
    """Something live that takes turns of n env-steps, or more by a part of a call, and counts its work."""

    name: str

    @property
    def grain(self) -> int:
        """Env-steps of the shortest turn; every other turn is a multiple of it."""

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        """Time `env_steps` steps after an untimed run-in (default: one tenth)."""

    def seen(self) -> Mapping[str, str]:
        """Return a hash of each field that the side shows now; empty if it is not compared."""
        return {}

    def counters(self) -> Mapping[str, int]: ...

    def close(self) -> None:
        """Close what the side has opened itself."""
        return


class SubjectSide:
    """A subject and its policy; two sides of one seed play the same actions."""

    def __init__(
        self, name: str, subject: Subject, policy: str, *, ignore: Sequence[str] = (), alone: bool = False
    ) -> None:
        """`alone`: no other side takes turns with it, so nothing is shared; its caller resets the subject."""
        self.name, self._ignore = name, ignore
        self.subject = self._shown = subject
        try:
            self.script: Play = play_of(policy, subject)
        except BaseException:
            subject.close()
            raise
        self.from_reset = False
        """Whether each turn begins with a reset, which is not timed."""
        self._alone = alone
        self._clock = TurnClock(None if alone else id(subject))
        # Work from before it became a side; the caller of a side that is alone has not reset it yet.
        self._before = {} if alone else subject.counters
        if not alone:
            # Its own random numbers: the other sides take none of them.
            self._streams = Streams([subject], subject.spec.seed)
            with self._streams.of(subject):
                subject.reset()

    @property
    def grain(self) -> int:
        grain: int = getattr(self.subject, "grain", self.subject.spec.num_envs)
        return grain

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        with nullcontext() if self._alone else self._streams.of(self.subject):
            calls = calls_for(env_steps, self.subject)
            ahead = -(-calls // RUN_IN) if run_in is None else calls_for(run_in, self.subject)
            if ahead:
                play(self.subject, self.script.draw(ahead), ahead)
            actions = self.script.draw(calls)
            if self.from_reset:
                self.subject.reset()
                collect_rest()
            rested = not self._alone and self._clock.rest()
            before = self.subject.phase_totals()
            took = self._clock.time(partial(play, self.subject, actions, calls))
            phases = {name: ns - before.get(name, 0) for name, ns in self.subject.phase_totals().items()}
            return took._replace(env_steps=calls * self.subject.spec.num_envs, phases=phases, rested=rested)

    def show_env_by_env(self, autoreset: str) -> None:
        """Show from now on what a side of another interface shows too."""
        self._shown = EnvByEnv([self.subject], autoreset)

    def seen(self) -> Mapping[str, str]:
        return {
            name: told
            for name, told in field_hashes(self._shown, narrow=self._shown is not self.subject).items()
            if not is_ignored(name, self._ignore)
        }

    def counters(self) -> Mapping[str, int]:
        return {name: count - self._before.get(name, 0) for name, count in self.subject.counters.items()}

    def close(self) -> None:
        self.script.close()
        self.subject.close()


GC = "garbage collection"  # The row of a tree, below whatever was running when the collector was called

# When it is collected: between rounds, outside the clock, or whenever Python would, as in life.
Garbage = Literal["between", "life"]


@contextmanager
def collecting(*, automatic: bool) -> Iterator[None]:
    """Let garbage be collected meanwhile, by itself too if `automatic`, and put each pause into a span.

    What others left for the collector is collected before, so that it is in no turn.
    """
    region = span(GC)

    def note(phase: str, _: Mapping[str, int]) -> None:
        if phase == "start":
            region.__enter__()
        else:
            region.__exit__(None, None, None)

    was_on = gc.isenabled()
    gc.collect(1)
    gc.callbacks.append(note)
    if automatic:
        gc.enable()
    try:
        yield
    finally:
        gc.callbacks.remove(note)
        if not was_on:
            gc.disable()


class PauseClock:
    """Times each collection of garbage for as long as it is entered."""

    def __init__(self) -> None:
        self.pauses = Pauses()
        self._begin_ns = 0

    def __enter__(self) -> Self:
        gc.callbacks.append(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, _: Mapping[str, int]) -> None:
        if phase == "start":
            self._begin_ns = now_ns()
            return
        took_ns, before = now_ns() - self._begin_ns, self.pauses
        self.pauses = Pauses(
            collections=before.collections + 1,
            total_ns=before.total_ns + took_ns,
            longest_ns=max(before.longest_ns, took_ns),
        )


def play(subject: Subject, actions: Sequence[Actions], calls: int) -> int:
    """Step a subject a number of times; returns the wall time in ns."""
    subject.wait()
    begin = now_ns()
    subject.play(repeat(actions, calls))
    subject.wait()
    return now_ns() - begin


class Resets(Protocol):
    """Something that knows how many episodes were begun."""

    @property
    def resets(self) -> int: ...


def play_in_laps(subject: Subject, actions: Sequence[Actions], counted: Resets) -> int:
    """Step a subject and log each turn with the resets so far; returns the wall time in ns."""

    def lapped() -> Iterator[Actions]:
        for each in actions:
            yield each
            lap(counted.resets)

    begin = now_ns()
    lap(counted.resets)
    subject.play(lapped())
    return now_ns() - begin


class Glancing(list[Any]):
    """Actions that are played one after another, with a glance at the core between any two calls."""

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            glance()
            yield each


@contextmanager
def no_collection(garbage: Garbage = "between") -> Iterator[bool]:
    """Keep the garbage collector out of what is measured, unless it is as in life; says whether it was on.

    What is there already is left alone meanwhile, so that `collect_rest` is quick; where user code has frozen
    objects before, they have seen to that, and theirs stay frozen.
    """
    was_on, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.collect()
    if not was_frozen:
        gc.freeze()
    if garbage == "between":
        gc.disable()
    try:
        yield was_on
    finally:
        if not was_frozen:
            gc.unfreeze()
        if was_on:
            gc.enable()
