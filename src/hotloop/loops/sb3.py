"""Stable-Baselines3: a callback that gives a run the rows of `model.learn`.

    with hotloop.run("ppo-cartpole", every=5) as run:
        model.learn(100_000, callback=RunCallback(run))

The rows follow one another without a gap, so that they add up: `rollout`, with `forward` (observations to
the device, the policy, actions back), `env.step`, `callbacks` of others, `store` in the buffer and `returns`
with advantages in it; `logging`; `learning`. One update is a rollout and the learning after it. The rollout
is a span and has its CPU time: where it waits for its workers, that is seen.

`hotloop bench --mode env_only,rollout,trainer,trainer_eval -- python train.py` runs it as each rung.
"""

from collections.abc import Callable
from typing import Any

from hotloop.core.machine import need
from hotloop.core.spans import mark, span
from hotloop.core.target import ENV_ONLY
from hotloop.loops.run import AnyRun
from hotloop.loops.rungs import Rung

need("stable_baselines3")

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402 - said first what it needs

ROLLOUT = span("rollout")

UNMARKED = "hotloop_unmarked"  # The attribute of a function of ours that has what it took the place of


class RunCallback(BaseCallback):  # type: ignore[misc,unused-ignore]
    """Marks the parts of `learn` and counts its steps and updates; in a list of callbacks it comes last."""

    def __init__(self, run: AnyRun, verbose: int = 0) -> None:
        super().__init__(verbose)
        self._run = run
        self._steps = 0
        self._rollouts = 0
        self._collects = False
        self._replaced: list[tuple[Any, str]] = []
        self._rung = Rung.asked()

    def _on_training_start(self) -> None:
        model: Any = self.model
        if self._rung is not None:
            self._rung.begin(model, self.locals["total_timesteps"])
            return
        buffer = getattr(model, "rollout_buffer", None) or getattr(model, "replay_buffer", None)
        self._replace(model.env, "step", "forward", "env.step")
        self._replace(buffer, "add", None, "store")
        self._replace(model.logger, "dump", None, "logging")
        self._steps, self._rollouts = self.num_timesteps, 0
        mark("setup")

    def _on_rollout_start(self) -> None:
        if self._rung is not None:
            self._rung.end_update(self.model)
            return
        if self._rollouts:
            self._end_update()
        self._rollouts += 1
        mark("setup")
        ROLLOUT.__enter__()
        self._collects = True

    def _on_step(self) -> bool:
        if self._rung is not None:
            return self._rung.mode != ENV_ONLY
        mark("callbacks")
        return True

    def _on_rollout_end(self) -> None:
        if self._rung is not None:
            return
        mark("returns")
        self._end_rollout()

    def _on_training_end(self) -> None:
        if self._rung is not None:
            self._rung.end_update(self.model)
            self._rung.finish()
            return
        if self._collects:
            mark("callbacks")  # one of them ended it
        self._end_rollout()
        self._end_update()
        for owner, name in self._replaced:
            delattr(owner, name)
        self._replaced.clear()

    def _end_rollout(self) -> None:
        if self._collects:
            ROLLOUT.__exit__(None, None, None)
        self._collects = False

    def _end_update(self) -> None:
        mark("learning")
        self._run.count(updates=1, steps=self.num_timesteps - self._steps)
        self._steps = self.num_timesteps

    def _replace(self, owner: Any, name: str, before: str | None, after: str) -> None:
        """Mark the calls of one object's method; nothing of it is saved with the model."""
        method = getattr(owner, name, None)
        if method is None:
            return
        setattr(owner, name, marked(getattr(method, UNMARKED, method), before, after))
        self._replaced.append((owner, name))


def marked(method: Callable[..., Any], before: str | None, after: str) -> Callable[..., Any]:
    """The method, with the time up to its call charged to one name and its own to another."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            mark(before)
        answer = method(*args, **kwargs)
        mark(after)
        return answer

    setattr(call, UNMARKED, method)
    return call
