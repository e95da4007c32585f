"""Models that play themselves; without a reset an episode begins with another one made."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from hotloop.core.errors import InputError
from hotloop.core.notices import Notice
from hotloop.core.process import lifeline
from hotloop.envs.foreign.conformance import STEPS, examine
from hotloop.envs.foreign.kinds.single import first_of, five, seeded
from hotloop.envs.foreign.phases import logged
from hotloop.envs.foreign.spec import BROKEN, attribute, awaited, has, raised
from hotloop.envs.foreign.state import settings_of, state_of
from hotloop.envs.foreign.subject import NAMES, Answering

NOTHING = np.zeros(0)

INFOS = "infos"
"""Where what can be seen of a model stands among its answers."""


def agent_count(model: object) -> int:
    """Return how many agents a model has in `agents`, or says it has; 1 if it says nothing of them."""
    agents = attribute(model, "agents")
    if isinstance(agents, int):
        return max(int(agents), 1)
    return len(agents) if isinstance(agents, Sized) and not isinstance(agents, str) else 1


class ModelSubject(Answering):
    """An object whose `step()` needs no action, such as a model of Mesa's.

    Its public attributes are what can be seen of it. It has an end where it says so: by `running`, as those
    models do, or by what its step returns.
    """

    autoreset = "made again after the step that ends it"
    returns_outputs = False

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.again: Callable[[], Any] | None = None
        """Makes another."""
        self.arguments: Mapping[str, object] = {}
        """The keys of its maker."""
        self._fresh = not has(self.env, "reset")
        """Whether it is as it was made, and needs no reset."""
        self._lived = 0
        """Steps of agents."""
        self._shows_agents = self.spec.agents == 1 and has(self.env, "agents")

    def _anew(self) -> Any:
        if self.again is None:
            raise InputError(f"{self.spec.name} has no reset: give a function that makes it")
        super().close()
        self.env = self.again()
        if self.in_spans:
            self._look_inside()
        self._step = logged(self.env.step, self._log, timed=self.in_spans)

    def reset(self) -> None:
        try:
            with lifeline.doing(lifeline.Doing.RESET, lifeline.Doing.STEP):
                begun = None if self._fresh else seeded(self._reset, self.spec.seed)
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self._fresh = True
        self.resets += 1
        self._see(first_of(begun))
        self._answers.begin(self._parts())

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._steps)
        self._lived += agent_count(self.env) if self._shows_agents else self.spec.agents
        try:
            returned = self._step() if actions is None else self._step(actions)
            self._steps, self._fresh = self._steps + 1, False
            self._see(returned)
            if self._given[2] or self._given[3]:
                self._reset()
                self.resets += 1
        except BROKEN as error:
            raise raised(self.spec.name, error) from error

    @property
    def agent_steps(self) -> int:
        return self._lived

    def _see(self, returned: Any) -> None:
        if isinstance(returned, tuple) and len(returned) in (4, 5):
            self._given = five(returned)
            self.observation = self._given[0]
            return
        over = getattr(self.env, "running", True) is False
        self.observation = NOTHING if returned is None else returned
        self._given = (self.observation, 0.0, over, False, {})

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), INFOS: state_of(self.env)}

    @property
    def settings(self) -> frozenset[str]:
        """Fields that hold what the model was made with: arguments of constructors, and the target's keys."""
        return frozenset(f"{INFOS}.{name}" for name in settings_of(self.env, self.arguments))

    def _drawn(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
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
        return examine(self, [None] * STEPS)


class Call:
    """A function with its arguments, as something that steps: a step is a call, until its result is there."""

    __slots__ = ("step",)

    def __init__(self, call: Callable[[], Any]) -> None:
        self.step = awaited(call)


class FunctionSubject(ModelSubject):
    """A function that is measured itself; nothing begins or ends, and what it returns is its answer."""

    autoreset = "never: a step is a call"

    @property
    def agent_steps(self) -> int:
        return self._steps

    def reset(self) -> None:
        self._pulse[lifeline.DOING] = lifeline.Doing.STEP
        self._see(None)
        self._answers.begin(self._parts())

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._steps)
        try:
            self.observation = self._step()
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self._steps += 1

    def _parts(self) -> dict[str, Any]:
        return dict(zip(NAMES, (self.observation, 0.0, False, False, {}), strict=True))

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """It has no interface to keep to."""
        return ()
