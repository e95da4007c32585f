"""A training loop that knows its env and nothing else: a linear policy, improved by chance.

python train.py --encoder optimized --steps 2000
"""

import argparse
import sys

import numpy as np
from grid import MOVES, RADIUS, Grid


class Policy:
    def __init__(self, agents, rng):
        self.rng = rng
        self.weights = rng.normal(0, 0.1, ((2 * RADIUS + 1) ** 2, len(MOVES)))

    def act(self, seen):
        scores = seen.reshape(len(seen), -1) / 255 @ self.weights
        return (scores + self.rng.gumbel(size=scores.shape)).argmax(1)

    def learn(self, gained, best):
        if gained < best:
            self.weights += self.rng.normal(0, 0.02, self.weights.shape)
        for _ in range(40):  # what stands for the gradient steps of a trainer
            self.weights -= 1e-4 * self.weights @ (self.weights.T @ self.weights)


def train(env, steps, seed=0):
    rng = np.random.default_rng(seed)
    policy = Policy(env.num_agents, rng)
    seen, _ = env.reset(seed=seed)
    gained, best = 0.0, 0.0
    for step in range(1, steps + 1):
        seen, reward, ended, cut, _ = env.step(policy.act(seen))
        gained += reward
        if step % 8 == 0:
            policy.learn(gained, best)
        if ended or cut:
            best, gained = max(best, gained), 0.0
            seen, _ = env.reset()
    return best


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--encoder", default="optimized")
    words.add_argument("--steps", type=int, default=2000)
    words.add_argument("--shadow", metavar="HOW_MUCH", help="smoke, soak or a number of comparisons")
    words.add_argument("--wrong-after", type=int, default=0)
    given = words.parse_args()
    env = Grid(encoder=given.encoder, wrong_after=given.wrong_after)
    if given.shadow is None:
        best = train(env, given.steps)
        print(f"steps={given.steps} best={best:g}")
        return 0
    import hotloop

    with hotloop.shadow(env, Grid(encoder="original"), given.shadow) as shadow:
        train(env, given.steps)
    return shadow.exit_code


if __name__ == "__main__":
    sys.exit(main())
