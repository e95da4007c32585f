"""Subjects: what an experiment runs, ours or the user's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import Notice
from hotloop.envs.spec import Spec

if TYPE_CHECKING:
    from hotloop.envs.batch import Batch
    from hotloop.envs.foreign.phases import PhaseLog
    from hotloop.envs.foreign.vector import Pipes

RANDOM_ONLY = ("random",)  # The players of a subject that knows none
NATIVE = "native step"  # The row of a step by its own clock: that of our engine, or of a foreign env

Answered = Mapping[str, NDArray[Any]]  # Field to array, its first axis the envs


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumbers:
    """Actions that are whole numbers from a first one on."""

    start: int
    count: int
    shape: tuple[int, ...]  # Of one call's row of a tape
    any_is_taken: bool  # Whether numbers beyond them are actions, too, that the env has an answer to


StepLog: TypeAlias = "Batch | PhaseLog"  # What keeps a row of each step of a subject


class Subject(Protocol):
    """Envs behind one call, stepped through actions made beforehand, that count their own work."""

    @property
    def spec(self) -> Spec: ...

    def reset(self) -> None:
        """Begin an episode in every env, from the seed of the target."""

    def reseed(self, seed: int) -> None:
        """Have the next reset begin from this seed, if it is given one; a batch has that of its keys."""

    def reset_some(self, envs: Sequence[int]) -> None:
        """Begin an episode in some envs; where only all of them can begin anew, they do."""

    @property
    def resets_together(self) -> bool:
        """Whether only all envs can begin anew, and never one of them."""

    def step(self, actions: Any) -> None:
        """Step every env once; one whose episode ended begins its next."""

    def play(self, actions: Iterable[Any]) -> None:
        """Step once with each of them."""

    def wait(self) -> None:
        """Return when the steps that were begun are done; elsewhere than on a GPU they are."""

    def close(self) -> None: ...

    @property
    def restarts(self) -> bool:
        """Whether every reset goes back to the seed; a batch goes on to the next episodes."""

    @property
    def autoreset(self) -> str:
        """When the next episode begins after one that ended."""

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """Random actions for a number of calls, made while no clock runs."""

    @property
    def draws_legal(self) -> bool:
        """Whether what is drawn is legal when its turn comes, whatever came before."""

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        """The same actions, but that one of them which is not legal in its turn gives way to one that is."""

    def settle(self, actions: Any) -> Any:
        """What the drawn actions of a call come to now, and so can be kept, or given to another like it."""

    @property
    def players(self) -> tuple[str, ...]:
        """Names of what can choose actions here; `random` always can."""

    def choose(self, player: str) -> Any:
        """What a player does now, for one call; the next time it is asked rewrites it."""

    @property
    def whole_numbers(self) -> WholeNumbers | None:
        """Its actions, where they can be counted through; else None."""

    def fold(self, actions: Sequence[Any]) -> NDArray[Any]:
        """The actions of calls as [calls, num_envs, ...]; InputError where they are no numbers."""

    def unfold(self, row: NDArray[Any]) -> Any:
        """The actions of one call from a row [num_envs, ...] of a tape."""

    @property
    def observation(self) -> Any:
        """What the next action is chosen from."""

    @property
    def masks(self) -> NDArray[np.bool_] | None:
        """Actions that are legal now, [num_envs, agents, actions]; None if the env does not say."""

    @property
    def told(self) -> Mapping[str, Any]:
        """What a policy may ask for beside the observation, by the name of its argument."""

    def answers(self) -> Answered:
        """What the last call gave back, always under the names that the reset gave."""

    def everything(self) -> Answered:
        """All that the last call gave back, also what a reset does not give."""

    def unseen(self) -> Sequence[str]:
        """Names of values of the last call that cannot be compared, such as bare objects."""

    def generators(self) -> Sequence[Mapping[str, Any]]:
        """Of each env the random generators by name, where they are not part of `everything`."""

    @property
    def spaces(self) -> tuple[object, object]:
        """What it says its observations and actions are; None where it does not."""

    @property
    def single_spaces(self) -> tuple[object, object]:
        """The same of one env."""

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """What it does that its own interface forbids, seen in a reset and a few random steps.

        With `actions`, no random one is played and nothing is reset: it goes on with those. It is the
        measured object that is looked at, so ask when its measurement is over: there are envs whose reset
        does not undo every step.
        """

    @property
    def counters(self) -> dict[str, int]:
        """What ran and how much, counted by the code that did it; `env_steps` is always there."""

    @property
    def resets(self) -> int:
        """Episodes begun."""

    def phase_totals(self) -> dict[str, int]:
        """Nanoseconds in each phase since the beginning; empty where nothing is timed."""

    @property
    def in_spans(self) -> bool:
        """Whether its calls are in spans of its own."""

    def step_log(self) -> "StepLog | None":
        """The batch whose steps its steps are, where there is one and it is timed; perhaps itself."""

    @property
    def logs_itself(self) -> bool:
        """Whether that batch is the subject itself: then the log says which envs were reset."""

    @property
    def workers(self) -> "Pipes | None":
        """The processes that step the envs, where those are looked at."""

    @property
    def can_save(self) -> bool: ...

    def save(self, env: int) -> bytes: ...

    def load(self, env: int, saved: bytes) -> None: ...


class OneByOne:
    """Mixin for subjects that play actions by one call of `step` for each."""

    @property
    def settings(self) -> frozenset[str]:
        """Fields of its answers that hold what it was made with; none, but for models."""
        return frozenset()

    def step(self, actions: Any) -> None:
        raise NotImplementedError

    def play(self, actions: Iterable[Any]) -> None:
        """Step once with each of them."""
        step = self.step
        for each in actions:
            step(each)


class Proxy(OneByOne):
    """A subject in front of another, which has all of `Subject` that it does not override."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @property
    def inner(self) -> Subject:
        """The one right behind."""
        return self._subject

    @property
    def behind(self) -> Subject:
        """The subject itself, behind all that stand in front of it."""
        inner = self._subject
        return inner.behind if isinstance(inner, Proxy) else inner

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def settings(self) -> frozenset[str]:
        return getattr(self._subject, "settings", frozenset())

    def reset(self) -> None:
        self._subject.reset()

    def step(self, actions: Any) -> None:
        self._subject.step(actions)

    def close(self) -> None:
        self._subject.close()


# All else is read from the subject behind; properties in C, since turns that are timed go through them.
for _name in vars(Subject):
    if not _name.startswith("_") and not hasattr(Proxy, _name):
        setattr(Proxy, _name, property(attrgetter(f"_subject.{_name}")))


class SubjectGroup(Proxy):
    """Subjects of one kind that each call goes through, one after another; in all else the first one."""

    whole_numbers = None

    def __init__(self, subjects: Sequence[Subject]) -> None:
        super().__init__(subjects[0])
        self.subjects: Sequence[Subject] = list(subjects)

    def reset(self) -> None:
        for subject in self.subjects:
            subject.reset()

    def wait(self) -> None:
        for subject in self.subjects:
            subject.wait()

    def close(self) -> None:
        for subject in self.subjects:
            subject.close()

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        return list(zip(*(subject.draw(random, calls) for subject in self.subjects), strict=True))

    @property
    def counters(self) -> dict[str, int]:
        rows = [subject.counters for subject in self.subjects]
        return {name: sum(row.get(name, 0) for row in rows) for name in rows[0]}
