"""An env in the style of users: a walk whose observation is costly, and two versions of it that differ."""

import gymnasium
import numpy as np


class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1000, 1000, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    work = 20

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = np.zeros(2, np.float32), 0
        return self.look(), {}

    def step(self, action):
        self.steps += 1
        self.at += self.np_random.integers(-1, 2, 2) * action
        return self.look(), self.reward(), False, self.steps >= 50, {}

    def look(self):
        for _ in range(self.work):
            self.at += 0
        return self.at.copy()

    def reward(self):
        return float(abs(self.at).sum())


class Slow(Walk):
    work = 200


class Uneven(Walk):
    """Every second 500 steps are slower by far."""

    total = 0

    def look(self):
        Uneven.total += 1
        self.work = 20 if Uneven.total // 500 % 2 else 1000
        return super().look()


class Wrong(Walk):
    def reward(self):
        return super().reward() + (self.steps == 7)
