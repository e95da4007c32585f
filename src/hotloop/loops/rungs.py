"""A training of Stable-Baselines3 as one rung of the ladder: what it leaves out, and how fast it was."""

import json
import os
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.target import ENV_ONLY, EVAL_EVERY, ROLLOUT, RUNG, RUNG_FILE, TRAINER_EVAL

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
    def asked(cls) -> Self | None:
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
