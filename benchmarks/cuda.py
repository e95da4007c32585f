"""The table of docs/cuda.md: how fast worlds step on this GPU, and which share of its bandwidth that is.

python benchmarks/cuda.py [--quick] [TARGET...]
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from time import perf_counter

import numpy as np

from hotloop.envs import cuda
from hotloop.envs.open import make

SIZES = {
    "prospector": (4096, 65_536, 262_144, 524_288, 1_048_576),
    "grid/toy": (4096, 32_768, 131_072, 524_288, 1_048_576),
    "grid/arena": (32_768, 131_072),
    "grid/guard": (32_768, 131_072),
    "cards": (4096, 65_536, 262_144),
    "farm/dev": (1024, 8192),
}
ROUNDS, LEAST_S, ACTIONS, WARM_UP = 5, 0.25, 16, 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="which of them; all where none is named")
    parser.add_argument("--quick", action="store_true", help="the smallest size of each, to try it out")
    asked = parser.parse_args()
    why_not = cuda.why_not("prospector")
    if why_not is not None:
        print(f"cuda    SKIPPED: {why_not}")
        return 0
    found, bandwidth = cuda.device(), cuda.copy_bandwidth()
    assert not isinstance(found, str)
    print(f"{found.name}, copies {bandwidth / 1e12:.2f} TB/s, {cuda.build()}")
    print(
        f"{'target':<12}{'envs':>10}{'M steps/s':>12}{'M agent-steps/s':>18}{'spread':>9}{'resets/step':>14}"
    )
    for target, sizes in SIZES.items():
        if asked.targets and target not in asked.targets:
            continue
        for num_envs in sizes[:1] if asked.quick else sizes:
            row(target, num_envs)
    return 0


def row(target: str, num_envs: int) -> None:
    """Measure one size: rounds of at least a quarter of a second, synchronised at both ends."""
    with closing(make(target, num_envs=num_envs, device="cuda")) as batch:
        batch.reset()
        actions = batch.draw(np.random.default_rng(1), ACTIONS)
        run(batch, actions, WARM_UP)
        calls = max(1, int(WARM_UP * LEAST_S / run(batch, actions, WARM_UP)))
        before = batch.counters
        speeds = sorted(num_envs * calls / run(batch, actions, calls) for _ in range(ROUNDS))
        after = batch.counters
    steps = after["env_steps"] - before["env_steps"]
    middle, agents = speeds[ROUNDS // 2], (after["agent_steps"] - before["agent_steps"]) / steps
    spread = (speeds[-1] - speeds[0]) / middle
    resets = (after["resets"] - before["resets"]) / steps
    speed = f"{middle / 1e6:>12,.1f}{middle * agents / 1e6:>18,.1f}{spread:>9.1%}"
    print(f"{target:<12}{num_envs:>10,}{speed}{resets:>14.5f}", flush=True)


def run(batch: object, actions: Sequence[object], calls: int) -> float:
    """Seconds of a number of calls."""
    step, wait = batch.step, batch.wait  # type: ignore[attr-defined]
    wait()
    begin = perf_counter()
    for call in range(calls):
        step(actions[call % len(actions)])
    wait()
    return perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
