"""Training: PPO, imitation before it, and what they are made of.

OpenMP's threads are asked to sleep while they wait, before torch is imported here for the first time: ones
that spin would take the cores from the threads that step the envs.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
