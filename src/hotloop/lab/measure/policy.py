"""Where a measurement's actions come from: random play, a player, a tape, or a policy in the loop."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from itertools import cycle, islice
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hotloop.core.errors import InputError, Notice, unknown
from hotloop.core.machine import need
from hotloop.core.record.profile import Draw
from hotloop.core.settings import names_callable
from hotloop.core.spans import span
from hotloop.core.turn_clock import repeat
from hotloop.envs import callables, tapes
from hotloop.envs.batch import Batch
from hotloop.envs.callables import parameters_of, required_of
from hotloop.envs.foreign.inside import BROKEN, ENV_STEP, raised
from hotloop.envs.foreign.single import SeveralSubject
from hotloop.envs.foreign.subject import ForeignSubject
from hotloop.envs.foreign.training import EXPECTED, TrainingView
from hotloop.envs.open import open_target
from hotloop.envs.subject import Proxy, Subject

if TYPE_CHECKING:
    from hotloop.train.evaluation import PolicyRunner

RANDOM = "random"

LEARNING = "learning policy"  # Who plays in a training, as a record says it

RUN, CHECKPOINT = "run:", ".pt"

POLICY = "policy"  # The row of a tree that choosing actions is

FEWEST_BATCHES = 16

MOST_BYTES = 16 << 20  # Of actions drawn at a time; a round that needs more goes through them again

TAPE = "tape:"

REPLAYED = " (replayed tape)"  # After the name of a player whose actions were recorded ahead of the clock
LIVE = "live:"  # Before the name of a player who is to choose inside the loop, where its own time is a row

# Rows of the tree: the two parts of choosing an action, where a policy has methods of these names.
FORWARD, SELECT = "forward", "select"

# Arguments that a policy may have beside the observation, and what they are called by a subject.
TOLD = {"action_mask": "action_mask", "action_masks": "action_mask", "info": "info", "agent": "agent"}

# Required arguments of a policy that takes an info beside the observation, whatever it calls them.
OBS_AND_INFO = 2

EXAMINED = 16  # Calls of a policy's that an env is looked at for, after its measurement

# NumPy's legacy generators take 32 bits, and several envs count on from the first one's seed.
MOST_SEEDS = 1 << 31

AT_ONCE = 64  # Calls whose random actions are drawn together

Actions = Any  # The actions of one call, as the subject takes them; for a batch a contiguous int32 array
Choose = Callable[[Subject], Any]  # From what a subject shows to an action


class Play(Protocol):
    """Where a measurement gets its actions from."""

    policy: str  # What a record says of it

    def draw(self, calls: int) -> Sequence[Actions]:
        """Return the actions of the next calls, to be cycled through if there are fewer."""
        ...

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Take back the last ones of a draw, which were not played; random ones are forgotten."""
        return

    def close(self) -> None:
        """Close what was opened to choose actions."""
        return


def play_of(policy: str, subject: Subject) -> Play:
    """The random play of a subject, or that of one of a batch's players."""
    if policy == RANDOM and subject.draws_legal:
        return RandomPlay(subject)
    if policy.startswith(TAPE):
        return TapePlay(policy, tapes.read_for(Path(policy.removeprefix(TAPE)), subject))
    if is_live(policy):
        return AheadPlay(reopen(subject), load(policy), policy)
    if policy not in subject.players:
        raise InputError(
            f"{subject.spec.name} has no player {policy!r}: it is random, tape:FILE or module:callable"
        )
    return AheadPlay(reopen(subject), lambda ahead: ahead.choose(policy), policy)


def acting(policy: str, subject: Subject) -> Iterator[Actions]:
    """What a policy does call after call, each time asked of the subject as it is then."""
    if policy.startswith(TAPE):
        yield from cycle(tapes.read_for(Path(policy.removeprefix(TAPE)), subject))
    choose = load(policy) if is_live(policy) else None
    play = RandomPlay(subject) if policy == RANDOM and subject.draws_legal else None
    while True:
        if play:
            yield from (subject.settle(each) for each in play.draw(AT_ONCE)[:AT_ONCE])
        else:
            yield copy(choose(subject) if choose else subject.choose(policy))


def draw_timing_seed(policy: str = RANDOM) -> int | None:
    """Draw a seed that no run before had; None of a tape, which is legal under the seed it was recorded with.

    A side that keeps results on disk would find those of the last run under a seed that stays the same.
    """
    return None if policy.startswith(TAPE) else SystemRandom().randrange(MOST_SEEDS)


class RandomPlay(Play):
    """Uniformly random actions for one shape of batch, of those the world draws from; a seed decides them.

    Every round draws its own: the same actions round after round would push an agent the same way each
    time, until all of them stood at a wall.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.policy: str = getattr(subject, "policy", RANDOM)  # players in both seats choose by themselves
        self._random = np.random.default_rng(subject.spec.seed)

    def draw(self, calls: int) -> Sequence[Actions]:
        """Draw the actions of a number of calls, or fewer of them to cycle through where they are large."""
        spec = self._subject.spec
        bytes_a_call = spec.num_envs * spec.agents * np.dtype(np.int32).itemsize
        batches = max(FEWEST_BATCHES, min(calls, MOST_BYTES // bytes_a_call))
        return self._subject.draw(self._random, batches)


class AheadPlay(Play):
    """Actions of a policy that reads the state: recorded ahead of the clock, replayed under it.

    A subject of its own, with the seeds of the measured one, is played and so is always in the state that
    the measured one comes to when it steps through the same actions.
    """

    def __init__(self, ahead: Subject, choose: Callable[[Subject], Actions], player: str) -> None:
        self.policy = f"{player}{REPLAYED}"
        self._choose = choose
        self._left: list[Actions] = []
        self._ahead = ahead
        self._ahead.reset()

    def draw(self, calls: int) -> Sequence[Actions]:
        """Exactly as many as asked for: such a tape cannot be cycled through."""
        while len(self._left) < calls:
            self._left.append(copy(self._choose(self._ahead)))
            self._ahead.step(self._left[-1])
        drawn, self._left = self._left[:calls], self._left[calls:]
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Keep them for the next draw, since the measured subject has not seen them."""
        self._left = [*actions, *self._left]

    def close(self) -> None:
        self._ahead.close()


class TapePlay(Play):
    """The actions of a tape, from its beginning; a run that is longer goes through it again."""

    def __init__(self, policy: str, actions: Sequence[Actions]) -> None:
        self.policy = policy
        self._actions = actions
        self._next = 0

    def draw(self, calls: int) -> Sequence[Actions]:
        drawn = [self._actions[(self._next + call) % len(self._actions)] for call in range(calls)]
        self._next = (self._next + calls) % len(self._actions)
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        self._next = (self._next - len(actions)) % len(self._actions)


def reopen(subject: Subject) -> Subject:
    """Another subject of the same workload, with the same seed."""
    another = open_target(subject.spec.same_work)
    another.reseed(subject.spec.seed)
    return another


def is_live(policy: object) -> bool:
    """Whether a policy chooses in the loop: a trained run, `live:PLAYER` or a user callable."""
    if not isinstance(policy, str) or is_trained(policy):
        return True
    return names_callable(policy) and not policy.startswith(TAPE)


def names_code(policy: object) -> bool:
    """Return whether a policy is a user callable, which may not run because a file names it."""
    own = isinstance(policy, str) and (is_trained(policy) or policy.startswith(LIVE))
    return is_live(policy) and not own


def load(policy: object, *, timed: bool = False, row: str = POLICY) -> Choose:
    """The policy itself, with `timed` in spans: a function of observations, or an object with parts.

    `row` names the span of a whole choice.
    """
    if isinstance(policy, str) and is_trained(policy):
        return Trained(policy, row=row if timed else None)
    region: Callable[[str], Callable[..., Any]] = span if timed else (lambda _: lambda same: same)
    if isinstance(policy, str) and policy.startswith(LIVE):
        player = policy.removeprefix(LIVE)
        asked: Choose = region(row)(lambda subject: subject.choose(player))
        return asked
    made = fresh(callables.find(policy)) if isinstance(policy, str) else policy
    if isinstance(made, type):
        made = made()
    forward, select = getattr(made, FORWARD, None), getattr(made, SELECT, None)
    if callable(forward) and callable(select):
        score, pick = (
            with_requested_arguments(region(FORWARD), forward),
            with_requested_arguments(region(SELECT), select),
        )
        choose: Choose = region(row)(lambda subject: pick(score(subject.observation, subject), subject))
        return choose
    if not callable(made):
        raise InputError(
            f"the policy is a {type(made).__name__}: expected a function from observations to actions, or an "
            "object with forward(obs) and select(output)"
        )
    told = with_requested_arguments(region(row), made)
    return lambda subject: told(subject.observation, subject)


def fresh(found: Any) -> Any:
    """Return a copy of an object of a module, which has seen nothing yet; what cannot be copied as it is."""
    if isinstance(found, type) or inspect.isroutine(found):
        return found
    try:
        return deepcopy(found)
    except (TypeError, ValueError, RuntimeError):
        return found


def with_requested_arguments(
    region: Callable[..., Any], function: Callable[..., Any]
) -> Callable[[Any, Subject], Any]:
    """A function in its region, that is told what its other arguments are named after."""
    timed, known = region(function), parameters_of(function)
    names = {name: what for name, what in TOLD.items() if name in known}
    required = required_of(function)
    if not names and len(required) == OBS_AND_INFO:
        names = {required[1]: "info"}
    if not names:
        return lambda seen, _: timed(seen)

    def called(seen: Any, subject: Subject) -> Any:
        told = subject.told
        return timed(seen, **{name: told.get(what) for name, what in names.items()})

    return called


def name_of(policy: object) -> str:
    """What a record says of a policy."""
    return policy if isinstance(policy, str) else getattr(policy, "__qualname__", type(policy).__name__)


class PolicySubject(Proxy):
    """A subject whose policy chooses each action in the call that steps it."""

    def __init__(self, subject: Subject, choose: Choose) -> None:
        super().__init__(subject)
        self._choose = choose

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """Nothing: what is handed to `step` is not looked at."""
        return [None] * calls

    def step(self, actions: Any) -> None:
        try:
            chosen = self._choose(self._subject)
        except BROKEN as error:
            raise raised("the policy", error) from error
        self._subject.step(chosen)

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """What its policy does now, and then."""
        return self._subject.faults(self._choose(self._subject) for _ in range(EXAMINED))


class RecordingSubject(Proxy):
    """A subject with its step in a span, if it has none itself, that keeps what was played, if asked to."""

    def __init__(self, subject: Subject, *, keep: bool) -> None:
        super().__init__(subject)
        self.played: list[Any] = []
        step = subject.step if subject.in_spans else span(ENV_STEP)(subject.step)

        def kept(actions: Any) -> None:
            chosen = subject.settle(actions)
            self.played.append(copy(chosen))
            step(chosen)

        self.step = kept if keep else step  # type: ignore[method-assign]
        if subject.in_spans and not keep:
            self.play = subject.play  # type: ignore[method-assign]


class Journal(Play):
    """A play that notes each draw: calls that were asked for and calls that were played."""

    def __init__(self, script: Play) -> None:
        self._script = script
        self.policy = script.policy
        self._drawn = 0
        self._draws: list[list[int]] = []

    def draw(self, calls: int) -> Sequence[Actions]:
        """Draw; unless some are put back, as many as were asked for are played, in turns where fewer."""
        drawn = self._script.draw(calls)
        self._drawn = len(drawn)
        self._draws.append([calls, calls])
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Take back the last ones of a draw whose actions were played once each."""
        self._script.put_back(actions)
        self._draws[-1][1] = self._drawn - len(actions)

    def close(self) -> None:
        self._script.close()

    @property
    def draws(self) -> tuple[Draw, ...]:
        """What was drawn so far, equal ones in a row as one."""
        runs: list[Draw] = []
        for asked, played in self._draws:
            times = runs.pop()[2] if runs and runs[-1][:2] == (asked, played) else 0
            runs.append((asked, played, times + 1))
        return tuple(runs)


def play_again(script: Play, draws: Sequence[Draw], calls: int) -> Iterator[Actions]:
    """The actions of the first so many calls of a journal, or of all it has."""

    def all_of() -> Iterator[Actions]:
        for asked, played, times in draws:
            for _ in range(times):
                drawn = script.draw(asked)
                if played < asked:
                    script.put_back(drawn[played:])
                yield from repeat(drawn, played)

    return islice(all_of(), calls)


def is_trained(policy: str) -> bool:
    """Whether a policy is the name of a run or a checkpoint's path."""
    return policy.startswith(RUN) or policy.endswith(CHECKPOINT)


def checkpoint_of(policy: str) -> Path:
    """The file of a policy; InputError where there is no such run, or it has none."""
    from hotloop.lab.training import settings

    if not policy.startswith(RUN):
        if not Path(policy).is_file():
            raise InputError(f"there is no checkpoint {policy}: give a file of train_dir/NAME/checkpoints")
        return Path(policy)
    name, runs = (
        policy.removeprefix(RUN),
        [path.name for path in sorted(settings.ROOT.glob("*")) if path.is_dir()],
    )
    if name not in runs:
        there = f"there are {', '.join(runs)}" if runs else f"train one with hotloop train TARGET run={name}"
        raise unknown("run", name, runs, there)
    return settings.last_checkpoint(settings.find_run(settings.ROOT, name))[0]


class Trained:
    """Chooses what a run finds best, for one batch after another; asked of each as it is then."""

    def __init__(self, policy: str, *, row: str | None = None) -> None:
        """`row` names the span of a choice; None has none."""
        need("torch")
        self._checkpoint = checkpoint_of(policy)
        self._name = policy
        self._subject: Subject | None = None
        self._batch: Batch
        self._mirror: TrainingView | None = None
        """Play a user env, which is no batch."""
        self._actor: PolicyRunner
        self._others: list[Trained] = []
        """At the second and further envs of several that are stepped one after another."""
        self._choose = span(row)(self._ask) if row else self._ask

    def __call__(self, subject: Subject) -> Any:
        return self._choose(subject)

    def sit(self, subject: Subject) -> Batch:
        """Take a seat at a batch, or at a user env as one; refuses what it was not trained on."""
        from hotloop.train.evaluation import seat

        subject = behind(subject)
        if isinstance(subject, SeveralSubject):
            self._others = [Trained(self._name) for _ in subject.subjects[1:]]
            return self.sit(subject.subjects[0])
        if subject is not self._subject:
            if isinstance(subject, Batch):
                batch, self._mirror = subject, None
            elif isinstance(subject, ForeignSubject):
                self._mirror = TrainingView(subject)
                batch = self._mirror.batch
            else:
                name = subject.spec.name
                raise InputError(f"{name}: {EXPECTED}; give a policy of its own, module:callable")
            self._actor = seat(self._checkpoint, batch, seed=batch.spec.seed, threads=batch.spec.threads)
            self._subject, self._batch = subject, batch
        return self._batch

    def _ask(self, subject: Subject) -> Any:
        several = behind(subject)
        if isinstance(several, SeveralSubject):
            if len(self._others) != len(several.subjects) - 1:
                self.sit(several)
            each = zip((self, *self._others), several.subjects, strict=True)
            return tuple(player.choose_for(one) for player, one in each)
        return self.choose_for(subject)

    def choose_for(self, subject: Subject) -> Any:
        """The actions of one subject as it is now."""
        fresh = self._subject is None
        batch = self.sit(subject)
        if self._mirror is None:
            if not fresh:
                self._actor.note(np.flatnonzero(batch.terminals | batch.truncations).tolist())
            return self._actor.choose()
        ended = self._mirror.look()
        if not fresh:
            self._actor.note(ended)
        return self._mirror.own(self._actor.choose())


def behind(subject: Subject) -> Subject:
    """The subject behind those that stand in front of it; several that are one stay together."""
    while isinstance(subject, Proxy) and not isinstance(subject, SeveralSubject):
        subject = subject.inner
    return subject
