"""What all foreign envs have in common as subjects: calls in spans, tapes, spaces, generators.

And what those have that are stepped one at a time: counts and answers.
"""

import inspect
import random as standard
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError, Notice, unknown
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.envs.batch import Batch
from hotloop.envs.callables import last_words
from hotloop.envs.foreign.inside import (
    BROKEN,
    ENV_RESET,
    MASK,
    Pick,
    attribute,
    awaitable_error,
    envs_inside,
    flat,
    has,
    in_span,
    picks,
    raised,
    ready,
    time_inside,
    unwrapped,
)
from hotloop.envs.foreign.outputs import DECLARED, NO_ROWS, check_output, everything, examine, unseen
from hotloop.envs.foreign.phases import PhaseLog, Reported, log_steps, skip_resets
from hotloop.envs.spec import Spec
from hotloop.envs.subject import RANDOM_ONLY, OneByOne, StepLog, WholeNumbers

if TYPE_CHECKING:
    from hotloop.envs.foreign.vector import Pipes

SELECT = "action selection"  # The row of a tree: which of the legal actions a random one is

NAMES = ("observations", "rewards", "terminals", "truncations", "infos")

GENERATORS = (np.random.Generator, np.random.RandomState, standard.Random)


def reseeded(reset: Callable[..., Any]) -> Callable[..., Any]:
    """A reset that gives every episode a seed, one after another from the last that was given."""
    episodes = count()

    def begin(**given: Any) -> Any:
        nonlocal episodes
        episodes = count(given["seed"]) if "seed" in given else episodes
        return reset(**{**given, "seed": next(episodes)})

    return begin


class ForeignSubject(OneByOne, ABC):
    """An env that is not ours; a kind of env says what a reset, a step and a draw are."""

    restarts = resets_together = True
    can_save = logs_itself = False
    players = RANDOM_ONLY
    workers: "Pipes | None" = None
    autoreset: str = "by itself"

    def __init__(
        self,
        env: Any,
        spec: Spec,
        *,
        timed: bool,
        looks: Callable[[Any], Any] | None = None,
        reseed: bool = False,
    ) -> None:
        """Take over an env that is made.

        Args:
            env: The user's env.
            spec: What is known of it.
            timed: Whether its calls are in spans.
            looks: From the env to what reports its phases and counters, if the user names such a function.
            reseed: Whether every episode is given a seed, rather than the first one alone.
        """
        self.env, self.spec, self.in_spans = env, spec, timed
        self._reported = Reported(lambda: self.env, looks)
        if timed:
            self._look_inside()
        inside = attribute(unwrapped(env), "_batch")
        self._batch = inside if isinstance(inside, Batch) else None
        """That of one of our own adapters, which has a log."""
        logs = timed and self._batch is None and self._reported.has_phases
        self._log = PhaseLog(self._reported) if logs else None
        self._step = log_steps(env.step, self._log, timed=timed)
        reset = in_span(ENV_RESET, attribute(env, "reset") or self._anew, timed=timed)
        reset = reseeded(reset) if reseed else reset
        self._reset = skip_resets(reset, self._log)
        self._pick = in_span(SELECT, self._settled, timed=timed)
        self._chance = np.random.default_rng(spec.seed)
        self._pulse = lifeline.pulse
        self.resets = self._calls = 0
        self.observation: Any = None

    def _look_inside(self) -> None:
        """Set what is inside the env apart, before its calls are put into spans."""
        time_inside(self.env, encoders=not self._reported.has_phases)

    def _anew(self) -> Any:
        """What begins an episode of something without a reset."""
        raise InputError(f"{self.spec.name} has no reset")

    @abstractmethod
    def reset(self) -> None: ...

    def _seeded_reset(self) -> Any:
        """Return what a reset with the seed gives."""
        return seeded(self._reset, self.spec.seed)

    def _run_reset(self, begin: Callable[[], Any] | None = None) -> Any:
        """Return what a reset from the seed gives, or the given beginning; TheirError if it raises."""
        try:
            with lifeline.doing(Activity.RESET, Activity.STEP):
                return self._seeded_reset() if begin is None else begin()
        except BROKEN as error:
            raise raised(self.spec.name, error) from error

    def reseed(self, seed: int) -> None:
        self.spec = self.spec.with_seed(seed)
        self._chance = np.random.default_rng(seed)

    def reset_some(self, envs: Sequence[int]) -> None:
        """Begin all of them anew, if any: a foreign env knows only its whole reset."""
        if len(envs):
            self.reset()

    @abstractmethod
    def step(self, actions: Any) -> None: ...

    last: tuple[Any, ...] = ()  # What the last call gave, as it was given

    def wait(self) -> None:
        """Return when JAX and a GPU, which compute behind their caller, have what the last call gave."""
        ready((self.last, self.observation))

    # Whether an observation of an unknown class is refused; what a model's step returns may be anything.
    returns_outputs = True

    def check_outputs(self) -> None:
        """Refuse values of the last call that would be computed only when they are read."""
        for name, value in self._outputs().items():
            declared = self.returns_outputs and name in DECLARED
            check_output(f"{name} of {self.spec.name}", value, declared=declared)

    def _outputs(self) -> Mapping[str, Any]:
        """Return what the last call gave back by name, as it was given."""
        return {**dict(zip(NAMES, self.last, strict=False)), "next_observations": self.observation}

    draws_legal = True

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """Actions of its space; where it says which are legal, each is settled when its turn comes."""
        return self.legal(random, self._draw_space(random, calls))

    @abstractmethod
    def _draw_space(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """Actions of its space."""

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        return actions if self._mask() is None else picks(random, actions, self._rows)

    _lived: int | None = None  # Agent-steps so far, where agents come and go
    _rows: int | None = None  # Chances that a call takes; None where it takes one

    def settle(self, actions: Any) -> Any:
        return self._settled(actions) if type(actions) is Pick else actions

    def _settled(self, pick: Pick) -> Any:
        """What a pick comes to by what is legal now."""
        return pick.drawn

    def _mask(self) -> Any:
        """Which actions are legal now, as the env says it; None where it does not."""
        return None

    @property
    def counters(self) -> dict[str, int]:
        """What the env counts itself, and what is counted of it here.

        Every timed turn ends with a look at these, so here its last outputs are checked, beside the clock.
        """
        self.check_outputs()
        return {**self._reported.counters(), **self._counted()}

    @property
    def env_steps(self) -> int:
        return self._calls * self.spec.num_envs

    @property
    def agent_steps(self) -> int:
        return self.env_steps * self.spec.agents if self._lived is None else self._lived

    def _counted(self) -> dict[str, int]:
        """Return what is counted here of an env: steps, agent-steps and resets."""
        steps = self.env_steps
        return {
            "foreign_steps": steps,
            "env_steps": steps,
            "agent_steps": self.agent_steps,
            "resets": self.resets,
        }

    @abstractmethod
    def answers(self) -> Mapping[str, NDArray[Any]]: ...

    def everything(self) -> Mapping[str, NDArray[Any]]:
        self.check_outputs()
        return self._everything()

    def _everything(self) -> Mapping[str, NDArray[Any]]:
        """All of the last call's answers as arrays."""
        return self.answers()

    def unseen(self) -> Sequence[str]:
        return ()

    def choose(self, player: str) -> Any:
        if player not in self.players:
            then = f"{self.spec.name} is played by random, tape:FILE or module:callable"
            raise unknown("player", player, self.players, then)
        return self.settle(self.draw(self._chance, 1)[0])

    @property
    def spaces(self) -> tuple[object, object]:
        """Its spaces, where it has one for all; a method that is asked by agent is none."""
        found = (attribute(self.env, name) for name in ("observation_space", "action_space"))
        observation, action = (None if callable(space) else space for space in found)
        return observation, action

    @property
    def single_spaces(self) -> tuple[object, object]:
        return self.spaces

    @property
    def whole_numbers(self) -> WholeNumbers | None:
        return None

    @property
    def masks(self) -> NDArray[np.bool_] | None:
        mask = self._mask()
        return None if mask is None else flat(mask).reshape(self.spec.num_envs, 1, -1)

    @property
    def told(self) -> Mapping[str, Any]:
        mask = self._mask()
        return {} if mask is None else {MASK: mask}

    def fold(self, actions: Sequence[Any]) -> NDArray[Any]:
        if not actions:
            return np.zeros((0, self.spec.num_envs), np.int32)
        try:
            # without the names of agents, in their order
            rows = np.array([list(each.values()) if isinstance(each, dict) else each for each in actions])
        except ValueError:
            rows = np.array(None)
        if rows.dtype.kind not in "iufb":
            raise InputError(
                f"the actions of {self.spec.name} do not make one array of numbers: they cannot be kept"
            )
        return self._by_env(rows)

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Actions [calls, ...] as [calls, num_envs, ...]."""
        return rows[:, None]

    def unfold(self, row: NDArray[Any]) -> Any:
        return plain_action(row[0])

    def generators(self) -> Sequence[Mapping[str, Any]]:
        """What each env keeps as attributes of its own."""
        inner = unwrapped(self.env)
        inside = envs_inside(inner)
        envs = [unwrapped(each) for each in ([inner] if inside is None else inside)]
        held = (vars(each) if has(each, "__dict__") else {} for each in envs)
        return [{name: each for name, each in own.items() if isinstance(each, GENERATORS)} for own in held]

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        return examine(self, actions)

    def phase_totals(self) -> dict[str, int]:
        if self._batch is not None:
            return self._batch.phase_totals()
        return {} if self._log is None else self._log.totals

    def step_log(self) -> "StepLog | None":
        """That of the batch inside one of our own adapters, or of what the env says itself."""
        return self._log if self._batch is None else self._batch.step_log()

    def save(self, env: int) -> bytes:
        raise InputError(f"{self.spec.name} is not one of our batches: its envs cannot be saved")

    def load(self, env: int, saved: bytes) -> None:
        raise InputError(f"{self.spec.name} is not one of our batches: it takes no saved state")

    def close(self) -> None:
        close_env(self.env)


class OneEnvSubject(ForeignSubject):
    """An env that is asked call by call."""

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._names: tuple[str, ...] = ()
        """Of what the last reset gave: a comparison asks for all of them, and for no others, every time."""
        self.last: tuple[Any, ...] = (None, 0.0, False, False, {})
        """The last observation, reward, terminated, truncated and info."""

    def answers(self) -> Mapping[str, NDArray[Any]]:
        now = everything(self._parts())
        return {name: now.get(name, NO_ROWS) for name in self._names}

    def _note_names(self) -> None:
        """Note the names of what the env gives at its reset; infos that come and go are left out."""
        self._names = tuple(everything(self._parts()))

    def _everything(self) -> Mapping[str, NDArray[Any]]:
        """All of the last call's answers, also those that a reset does not give."""
        return everything(self._parts())

    def unseen(self) -> Sequence[str]:
        return unseen(self._parts())

    def _parts(self) -> dict[str, Any]:
        """What was given, by name."""
        return dict(zip(NAMES, self.last, strict=True))


def close_env(env: Any) -> None:
    """Close an env; one that raises then has been measured all the same."""
    close = attribute(env, "close")
    if not callable(close):
        return
    with lifeline.doing(Activity.CLOSE):
        try:
            close()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises, it is over
            lifeline.unclosed.append(last_words(error))


def to_plain(given: tuple[Any, ...], env: object) -> tuple[Any, ...]:
    """What one agent was given, its reward a float; a flag that is no truth value stays what it is."""
    seen, reward, ended, cut, info = given
    ended, cut = (bool(flag) if isinstance(flag, (bool, np.bool_)) else flag for flag in (ended, cut))
    return seen, reward_of(reward, env), ended, cut, info


def reward_of(reward: Any, env: object) -> float:
    try:
        return float(reward)
    except (TypeError, ValueError, OverflowError):
        what = type(reward).__name__ if reward is None or not np.ndim(reward) else f"{np.shape(reward)}"
        raise InputError(
            f"step returned a reward that is {what}: expected a number; an env of several agents has "
            f"num_agents, one of several envs num_envs ({place_of(env)})"
        ) from None


def place_of(env: object) -> str:
    """Where the step of an env is written."""
    step = getattr(type(unwrapped(env)), "step", None)
    code = getattr(inspect.unwrap(step) if step else None, "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in step" if code else "its step"


def plain_action(value: NDArray[Any]) -> Any:
    """A whole number by itself is what Gymnasium's own sampling gives: NumPy's int64."""
    return np.int64(value) if value.ndim == 0 and value.dtype.kind in "iu" else value


def split_reset(given: Any) -> tuple[Any, Any]:
    """Return the observation and the infos of what reset returned: a pair, or the observation alone."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        return given
    return given, {}


def seeded(reset: Any, seed: int) -> Any:
    """Reset with a seed; an env that takes none is reset without."""
    try:
        begun = reset(seed=seed)
    except TypeError as error:
        if "seed" not in str(error):
            raise
        begun = reset()
    if inspect.isawaitable(begun):
        raise awaitable_error("reset returned", begun)
    return begun
