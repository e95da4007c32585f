"""Sides: what can be measured, and what one of its turns takes."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Protocol

from hotloop.core.turn_clock import RUN_IN, Turn, TurnClock, collect_rest
from hotloop.envs.env_by_env import EnvByEnv
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Play, play_of
from hotloop.lab.measure.rounds import calls_for
from hotloop.lab.measure.stepping import play
from hotloop.lab.validate.equal import field_hashes, is_ignored
from hotloop.lab.validate.streams import Streams


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
