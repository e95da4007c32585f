"""PufferLib's snake, opened by a worker in an environment of its own: a batch of worlds, one C call a step.

Its observation is the 11x11 window of bytes around the head, copied; it has no tokens. It stands for what a
window costs when nothing has to be encoded.
"""

import binding  # type: ignore[import-not-found]
import numpy as np

from peer_batch import PeerBatch, PeerSpec

VISION = 5
MOVES = 4
# One in 56 cells, as in the package's own default of 4,096 on 640x360.
FOOD_DENSITY = 4096 / (640 * 360)
RULES = {
    "vision": VISION,
    "leave_corpse_on_death": True,
    "reward_food": 0.1,
    "reward_corpse": 0.1,
    "reward_death": -1.0,
    "max_snake_length": 1024,
    "cell_size": 32,
}


def batch(worlds: int, agents: int, edge: int) -> PeerBatch:
    observations = np.zeros((worlds, agents, 2 * VISION + 1, 2 * VISION + 1), np.int8)
    actions = np.zeros((worlds, agents), np.int32)
    rewards = np.zeros((worlds, agents), np.float32)
    terminals = np.zeros((worlds, agents), bool)
    truncations = np.zeros((worlds, agents), bool)
    place = {
        "width": edge,
        "height": edge,
        "num_snakes": agents,
        "num_food": round(edge * edge * FOOD_DENSITY),
    }
    buffers = (observations, actions, rewards, terminals, truncations)
    envs = [
        binding.env_init(*rows, seed, **place, **RULES)
        for seed, rows in enumerate(zip(*buffers, strict=True))
    ]
    together = binding.vectorize(*envs)
    binding.vec_reset(together, 0)

    def step(row: object) -> None:
        actions[:] = row
        binding.vec_step(together)

    spec = PeerSpec(num_envs=worlds, agents=agents, num_actions=MOVES)
    return PeerBatch(step, spec, owned=buffers)
