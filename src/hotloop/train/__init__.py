"""Training: PPO, imitation before it, DQN, and what they are made of.

`trainer` is the loop; `ppo` and `dqn` are what it learns by, `algorithm` what both have in common. `rollout`
collects with `networks` (or `option_network`) and `actions`, `opponents` play the other seat, `imitation`
labels, `normalize` scales. `arithmetic` chooses actions, finds losses and moves weights, `device` has all of
it on a GPU, `ranks` and `actors` on several processes and machines. `windows` watch the envs, add up episodes
and write logs, `evaluation` plays apart, `timing` marks every part. Around them `settings` and `checkpoint`.

OpenMP's threads are asked to sleep while they wait, before torch is imported here for the first time: ones
that spin would take the cores from other threads with work, such as those of the envs. They look around for
a moment first, as our own pool's do: an update is thousands of short operations, and one that had to wake a
thread each time took two to five times as long.
"""

import importlib
import os
from functools import cache
from typing import Any

SPINS = "10000"  # Turns of GNU OpenMP's waiting loop before it sleeps

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
os.environ.setdefault("KMP_BLOCKTIME", "0")


@cache
def load_kernels() -> Any:
    """Return the native module for the host, or the error that importing it raised; needs no torch."""
    try:
        return importlib.import_module("hotloop.train._kernels")
    except ImportError as error:
        return error
