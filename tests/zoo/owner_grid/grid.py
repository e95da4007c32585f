"""Foragers on a grid: many agents, one step. GRID_ENCODER=original takes the old encoder of observations.

Phases of the last step are in `step_timing` where GRID_PROFILING=1, what ran is in `counters()`.
"""

import os
import time

import gymnasium
import numpy as np
from gymnasium import spaces

RADIUS = 4
MOVES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))


class StepTiming:
    """As the bindings of an engine show it: read-only fields, zero until the first step."""

    __slots__ = ("_ns",)

    def __init__(self):
        self._ns = dict.fromkeys(("actions", "observations", "rewards", "total"), 0)

    actions_ns = property(lambda self: self._ns["actions"])
    observations_ns = property(lambda self: self._ns["observations"])
    rewards_ns = property(lambda self: self._ns["rewards"])
    total_ns = property(lambda self: self._ns["total"])


class Grid(gymnasium.Env):
    def __init__(self, agents=16, size=32, encoder=None, wrong_after=0):
        self.encoder = encoder or os.environ.get("GRID_ENCODER", "optimized")
        self.num_agents, self.size, self.wrong_after = agents, size, wrong_after
        self.profiling = os.environ.get("GRID_PROFILING") or os.environ.get("HOTLOOP_PROFILING")
        side = 2 * RADIUS + 1
        self.observation_space = spaces.Box(0, 255, (agents, side, side), np.uint8)
        self.action_space = spaces.MultiDiscrete([len(MOVES)] * agents)
        self.step_timing = StepTiming()
        self.encoded = {"original_encodes": 0, "optimized_encodes": 0}

    def counters(self):
        return dict(self.encoded)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        wide = self.size + 2 * RADIUS
        self.map = np.full((wide, wide), 255, np.uint8)
        inside = slice(RADIUS, RADIUS + self.size)
        self.map[inside, inside] = self.np_random.integers(0, 5, (self.size, self.size))
        self.at = self.np_random.integers(RADIUS, RADIUS + self.size, (self.num_agents, 2))
        self.ticks = 0
        return self.observe(), {}

    def step(self, actions):
        start = time.perf_counter_ns()
        rewards = np.zeros(self.num_agents, np.float32)
        for agent, action in enumerate(actions):
            row, column = self.at[agent] + MOVES[action]
            if self.map[row, column] != 255:
                self.at[agent] = row, column
        acted = time.perf_counter_ns()
        for agent, (row, column) in enumerate(self.at):
            if self.map[row, column]:
                self.map[row, column] -= 1
                rewards[agent] = 1.0
        rewarded = time.perf_counter_ns()
        seen = self.observe()
        done = time.perf_counter_ns()
        self.ticks += 1
        if self.profiling:
            took = self.step_timing._ns
            took["actions"], took["rewards"] = acted - start, rewarded - acted
            took["observations"], took["total"] = done - rewarded, done - start
        return seen, float(rewards.sum()), False, self.ticks >= 200, {}

    def observe(self):
        self.encoded[f"{self.encoder}_encodes"] += self.num_agents
        return self.observe_original() if self.encoder == "original" else self.observe_optimized()

    def observe_original(self):
        side = 2 * RADIUS + 1
        seen = np.zeros((self.num_agents, side, side), np.uint8)
        for agent, (row, column) in enumerate(self.at):
            for down in range(side):
                for right in range(side):
                    seen[agent, down, right] = self.map[row + down - RADIUS, column + right - RADIUS]
        return seen

    def observe_optimized(self):
        side = 2 * RADIUS + 1
        seen = np.empty((self.num_agents, side, side), np.uint8)
        for agent, (row, column) in enumerate(self.at):
            seen[agent] = self.map[row - RADIUS : row + RADIUS + 1, column - RADIUS : column + RADIUS + 1]
        if self.wrong_after and self.encoded["optimized_encodes"] > self.wrong_after:
            seen[-1, 0, 0] ^= 1
        return seen
