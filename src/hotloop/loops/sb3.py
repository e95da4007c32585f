"""Stable-Baselines3: a callback that gives a run the rows of `model.learn`.

    with hotloop.run("ppo-cartpole", every=5) as run:
        model.learn(100_000, callback=RunCallback(run))

The rows follow one another without a gap, so that they add up: `rollout`, with `forward` (observations to
the device, the policy, actions back), `env.step`, `callbacks` of others, `store` in the buffer and `returns`
with advantages in it; `logging`; `learning`. One update is a rollout and the learning after it. The rollout
is a span and has its CPU time: where it waits for its workers, that is seen.

`hotloop bench --mode env_only,rollout,trainer,trainer_eval -- python train.py` runs it as each rung.
"""

import json
import os
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.machine import need
from hotloop.core.settings import ENV_ONLY, EVAL_EVERY, ROLLOUT, RUNG, RUNG_FILE, TRAINER_EVAL
from hotloop.core.spans import mark, span
from hotloop.loops.run import AnyRun

need("stable_baselines3")

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402 - said first what it needs

ROLLOUT_SPAN = span("rollout")

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
        self._rung = Rung.from_environment()

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
        ROLLOUT_SPAN.__enter__()
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
            ROLLOUT_SPAN.__exit__(None, None, None)
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


# Random actions that are drawn before the clock starts, and the stretches that are timed of them.
DRAWN, STRETCHES = 256, 8

EPISODES = 5


class Rung:
    """Times the updates of a training that is made into one rung."""

    def __init__(self, mode: str, file: Path) -> None:
        self.mode, self._file = mode, file
        self._updates: list[tuple[int, int]] = []
        """Env-steps and ns of each."""
        self._steps, self._begin_ns = 0, 0

    @classmethod
    def from_environment(cls) -> Self | None:
        """The rung that `hotloop bench --mode` asks for; None in any other run."""
        mode, file = os.environ.get(RUNG), os.environ.get(RUNG_FILE)
        return cls(mode, Path(file)) if mode and file else None

    def begin(self, model: Any, total: int) -> None:
        """Leave out what the rung has not; with envs alone step them now."""
        if self.mode == ROLLOUT:
            model.train = lambda *_, **__: None
        self._steps, self._begin_ns = model.num_timesteps, now_ns()
        if self.mode == ENV_ONLY:
            self._step_envs(model.env, total)

    def end_update(self, model: Any) -> None:
        """Note an update, with its evaluation where one follows it."""
        if self.mode == ENV_ONLY or model.num_timesteps == self._steps:
            return
        if self.mode == TRAINER_EVAL and len(self._updates) % EVAL_EVERY == EVAL_EVERY - 1:
            evaluate(model)
        self._note(model.num_timesteps - self._steps)
        self._steps = model.num_timesteps

    def finish(self) -> None:
        self._file.write_text(json.dumps(self._updates))

    def _step_envs(self, env: Any, total: int) -> None:
        """Step them by random actions, in a few stretches of the same length."""
        envs = env.num_envs
        calls = max(1, total // envs // STRETCHES)
        drawn = [np.array([env.action_space.sample() for _ in range(envs)]) for _ in range(min(calls, DRAWN))]
        env.reset()
        for _ in range(STRETCHES):
            self._begin_ns = now_ns()
            for actions in islice(cycle(drawn), calls):
                env.step(actions)
            self._note(calls * envs)

    def _note(self, steps: int) -> None:
        now = now_ns()
        self._updates.append((steps, now - self._begin_ns))
        self._begin_ns = now


def evaluate(model: Any) -> None:
    """Play episodes on the training's own envs, which begin anew after it."""
    from stable_baselines3.common.evaluation import evaluate_policy

    evaluate_policy(model, model.env, n_eval_episodes=max(EPISODES, model.n_envs), warn=False)
    model._last_obs = model.env.reset()  # noqa: SLF001 - its next rollout begins there
    model._last_episode_starts = np.ones(model.n_envs, dtype=bool)  # noqa: SLF001
