"""Envs stepped one at a time: Gymnasium's, objects with reset and step, models that play themselves."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError, Notice
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import STEPS
from hotloop.envs.foreign.inside import (
    BROKEN,
    Pick,
    Sample,
    attribute,
    awaitable_error,
    discrete,
    has,
    mask_in,
    mask_method,
    raised,
    sampler,
    settled,
)
from hotloop.envs.foreign.outputs import EXAMINED_STEPS, examine, settings_of, state_of
from hotloop.envs.foreign.phases import log_steps
from hotloop.envs.foreign.subject import (
    NAMES,
    ForeignSubject,
    OneEnvSubject,
    place_of,
    reward_of,
    split_reset,
    to_plain,
)
from hotloop.envs.spec import Spec
from hotloop.envs.subject import SubjectGroup, WholeNumbers

Given = tuple[Any, Any, Any, Any, Any]  # Observation, reward, terminated, truncated, info

RETURNS = "(observation, reward, terminated, truncated, info), or (observation, reward, done, info)"


class SingleSubject(OneEnvSubject):
    """One env; when an episode ends, the next begins in the same call and is counted."""

    autoreset = "after the step that ends an episode"

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        self._begun: Any = None
        """The infos of the reset that the last call ended with; None where it did not."""
        super().__init__(env, spec, **how)
        self._sample: Sample | None = None
        self._masks = mask_method(env)
        self._many = spec.agents > 1

    def reset(self) -> None:
        given = self._run_reset()
        self._begun, self.resets = None, self.resets + 1
        seen, info = split_reset(given)
        self.last = (seen, 0.0, False, False, info)
        self._note_names()

    def step(self, actions: Any) -> None:
        self.play((actions,))

    def play(self, actions: Iterable[Any]) -> None:
        """Written for speed: an env may take no more than a few microseconds."""
        pulse, step, many, steps = self._pulse, self._step, self._many, self._calls
        try:
            for chosen in actions:
                pulse[STEPS] = steps
                given = step(self._pick(chosen) if type(chosen) is Pick else chosen)
                if type(given) is not tuple or len(given) != 5:
                    given = five(given)
                self.last = given
                self._calls = steps = steps + 1
                ended = np.logical_or(given[2], given[3]).all() if many else given[2] or given[3]
                if ended:
                    self._seen, self._begun = split_reset(self._reset())
                    self.resets += 1
                elif self._begun is not None:
                    self._begun = None
            pulse[STEPS] = steps  # a fork of this process that came back fails here at the latest
        except BROKEN as error:
            lifeline.end_copy(pulse)
            check_given(self.last, self.env)
            raise raised(self.spec.name, error, masked=self._mask() is not None) from error

    @property
    def observation(self) -> Any:
        """What the last step showed, or the reset that it ended with."""
        return self.last[0] if self._begun is None else self._seen

    @observation.setter
    def observation(self, seen: Any) -> None:
        self._seen = seen

    def _draw_space(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        if self._sample is None:
            self._sample = sampler(self.env, self.spec.name)
        return self._sample(random, calls)

    def _settled(self, pick: Pick) -> Any:
        mask = self._mask()
        return pick.drawn if mask is None else settled(*pick, mask, getattr(self.env, "action_space", None))

    def _mask(self) -> Any:
        info = self.last[4] if self._begun is None else self._begun
        mask = mask_in(info, self.observation)
        return mask if mask is not None or self._masks is None or not self.resets else self._masks()

    @property
    def counters(self) -> dict[str, int]:
        """And a look at the last reward, which is nothing to count where it is no number."""
        if not self._many:
            reward_of(self.last[1], self.env)
        return super().counters

    @property
    def told(self) -> Mapping[str, Any]:
        return {**super().told, "info": self.last[4] if self._begun is None else self._begun}

    @property
    def whole_numbers(self) -> WholeNumbers | None:
        actions = discrete(self.env)
        if actions is None:
            return None
        return WholeNumbers(start=actions[0], count=actions[1], shape=(1,), any_is_taken=False)

    def _outputs(self) -> Mapping[str, Any]:
        return {**super()._outputs(), "next_infos": self._begun}

    def _parts(self) -> dict[str, Any]:
        given = self.last if self._many else to_plain(self.last, self.env)
        parts = dict(zip(NAMES, given, strict=True))
        return {**parts, "next_observations": self.observation, "next_infos": self._begun or {}}


def five(given: Any) -> Given:
    """What a step returned in the form of today; the old one, with a single `done`, is understood too."""
    if isinstance(given, tuple) and len(given) == 5:
        return given
    if isinstance(given, tuple) and len(given) in (3, 4):
        seen, reward, done, *info = given
        return seen, reward, done, False, info[0] if info else {}
    if inspect.isawaitable(given):
        raise awaitable_error("step returned", given)
    what = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
    raise InputError(f"step returned {what}: expected {RETURNS}")


def check_given(given: Given, env: Any) -> None:
    """Refuse flags that are no truth values: one env has one end."""
    for name, flag in (("terminated", given[2]), ("truncated", given[3])):
        if not isinstance(flag, (bool, np.bool_, int, float)) and np.ndim(flag):
            raise InputError(
                f"step returned {name} as an array of {np.shape(flag)}: expected True or False; an env of "
                f"several agents has num_agents, one of several envs num_envs ({place_of(env)})"
            )


NOTHING = np.zeros(0)

INFOS = "infos"  # Where what can be seen of a model stands among its answers


def agent_count(model: object) -> int:
    """Return how many agents a model has in `agents`, or says it has; 1 if it says nothing of them."""
    agents = attribute(model, "agents")
    if isinstance(agents, int):
        return max(int(agents), 1)
    return len(agents) if isinstance(agents, Sized) and not isinstance(agents, str) else 1


class ModelSubject(OneEnvSubject):
    """An object whose `step()` needs no action, such as a model of Mesa's.

    Its public attributes are what can be seen of it. It has an end where it says so: by `running`, as those
    models do, or by what its step returns.
    """

    autoreset = "made again after the step that ends it"
    returns_outputs = False
    _lived: int = 0

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.again: Callable[[], Any] | None = None
        """Makes another."""
        self.arguments: Mapping[str, object] = {}
        """The keys of its maker."""
        self._fresh = not has(self.env, "reset")
        """Whether it is as it was made, and needs no reset."""
        self._shows_agents = self.spec.agents == 1 and has(self.env, "agents")

    def _anew(self) -> Any:
        if self.again is None:
            raise InputError(f"{self.spec.name} has no reset: give a function that makes it")
        super().close()
        self.env = self.again()
        if self.in_spans:
            self._look_inside()
        self._step = log_steps(self.env.step, self._log, timed=self.in_spans)

    def reset(self) -> None:
        begun = None if self._fresh else self._run_reset()
        self._fresh = True
        self.resets += 1
        self._see(split_reset(begun)[0])
        self._note_names()

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        self._lived += agent_count(self.env) if self._shows_agents else self.spec.agents
        try:
            returned = self._step() if actions is None else self._step(actions)
            self._calls, self._fresh = self._calls + 1, False
            self._see(returned)
            if self.last[2] or self.last[3]:
                self._reset()
                self.resets += 1
        except BROKEN as error:
            raise raised(self.spec.name, error) from error

    def _see(self, returned: Any) -> None:
        if isinstance(returned, tuple) and len(returned) in (4, 5):
            self.last = five(returned)
            self.observation = self.last[0]
            return
        over = getattr(self.env, "running", True) is False
        self.observation = NOTHING if returned is None else returned
        self.last = (self.observation, 0.0, over, False, {})

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), INFOS: state_of(self.env)}

    @property
    def settings(self) -> frozenset[str]:
        """Fields that hold what the model was made with: arguments of constructors, and the target's keys."""
        return frozenset(f"{INFOS}.{name}" for name in settings_of(self.env, self.arguments))

    def _draw_space(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        return [None] * calls

    def fold(self, actions: Sequence[Any]) -> Any:
        played = any(each is not None for each in actions)
        return super().fold(actions) if played else np.zeros((len(actions), 1, 0), np.int8)

    def unfold(self, row: Any) -> Any:
        return super().unfold(row) if row.size else None

    @property
    def told(self) -> Mapping[str, Any]:
        return {}

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """Seen in going on, so that no other one has to be made."""
        return examine(self, [None] * EXAMINED_STEPS)


class FunctionSubject(ModelSubject):
    """A function that is measured itself; nothing begins or ends, and what it returns is its answer."""

    autoreset = "never: a step is a call"

    @property
    def agent_steps(self) -> int:
        return self._calls

    def reset(self) -> None:
        self._pulse[lifeline.DOING] = lifeline.Activity.STEP
        self._see(None)
        self._note_names()

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        try:
            self.observation = self._step()
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self._calls += 1

    def _parts(self) -> dict[str, Any]:
        return dict(zip(NAMES, (self.observation, 0.0, False, False, {}), strict=True))

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """It has no interface to keep to."""
        return ()


class SeveralSubject(SubjectGroup):
    """Subjects of one kind; seeds are one after another, and each plays its own actions."""

    subjects: Sequence[ForeignSubject]
    resets_together = False

    def __init__(self, subjects: Sequence[Any]) -> None:
        super().__init__(subjects)
        first = self.subjects[0].spec
        self._all = first.with_envs(len(self.subjects), agent_names=())
        self.reseed(first.seed)

    def reseed(self, seed: int) -> None:
        self._all = self._all.with_seed(seed)
        for env, subject in enumerate(self.subjects):
            subject.reseed(seed + env)

    @property
    def spec(self) -> Spec:
        return self._all

    def reset_some(self, envs: Sequence[int]) -> None:
        for env in envs:
            self.subjects[env].reset()

    def step(self, actions: Any) -> None:
        for subject, own in zip(self.subjects, actions, strict=True):
            subject.step(own)

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        rows = zip(*actions, strict=True)
        own = (each.legal(random, row) for each, row in zip(self.subjects, rows, strict=True))
        return list(zip(*own, strict=True))

    def settle(self, actions: Any) -> Any:
        return tuple(each.settle(own) for each, own in zip(self.subjects, actions, strict=True))

    def choose(self, player: str) -> Any:
        return tuple(subject.choose(player) for subject in self.subjects)

    def fold(self, actions: Sequence[Any]) -> NDArray[Any]:
        rows = zip(*actions, strict=True)
        return np.concatenate(
            [each.fold(list(row)) for each, row in zip(self.subjects, rows, strict=True)], axis=1
        )

    def unfold(self, row: NDArray[Any]) -> Any:
        return tuple(each.unfold(row[env : env + 1]) for env, each in enumerate(self.subjects))

    @property
    def observation(self) -> Any:
        return [subject.observation for subject in self.subjects]

    @property
    def masks(self) -> NDArray[np.bool_] | None:
        told = [subject.masks for subject in self.subjects]
        masks = [each for each in told if each is not None]
        return np.concatenate(masks) if len(masks) == len(told) else None

    @property
    def told(self) -> Mapping[str, Any]:
        each = [subject.told for subject in self.subjects]
        return {name: [told.get(name) for told in each] for name in each[0]}

    def answers(self) -> Mapping[str, NDArray[Any]]:
        return together([subject.answers() for subject in self.subjects])

    def everything(self) -> Mapping[str, NDArray[Any]]:
        return together([subject.everything() for subject in self.subjects])

    def unseen(self) -> Sequence[str]:
        return sorted({name for subject in self.subjects for name in subject.unseen()})

    def generators(self) -> Sequence[Mapping[str, Any]]:
        return [each for subject in self.subjects for each in subject.generators()]

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """Those of the first; the others are like it."""
        return self.subjects[0].faults(None if actions is None else [own[0] for own in actions])

    @property
    def resets(self) -> int:
        return sum(subject.resets for subject in self.subjects)

    def phase_totals(self) -> dict[str, int]:
        rows = [subject.phase_totals() for subject in self.subjects]
        return {name: sum(row.get(name, 0) for row in rows) for name in rows[0]}

    @property
    def env(self) -> Any:
        return self.subjects[0].env


def together(rows: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Fields of one shape in all envs with an axis of envs; of others each env's own."""
    joined: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        each = [row.get(name) for row in rows]
        found = [part for part in each if part is not None]
        if len(found) == len(rows) and len({(part.shape, part.dtype) for part in found}) == 1:
            joined[name] = np.concatenate(found)
        else:
            joined |= {f"{name}.{env}": part for env, part in enumerate(each) if part is not None}
    return joined
