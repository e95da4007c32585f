"""Measure the memory of 1,024 worlds of grid/toy beyond the observation buffers, in a fresh process.

    ./.venv/bin/python benchmarks/memory.py [--worlds 1024]

Episodes end after a few steps here, so that the buffer of final observations is in use too; memory that was
never written would not be resident.
"""

from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

import benchmark
import hotloop

EPISODE_STEPS = 10
CALLS = 2 * EPISODE_STEPS + 1
HEADER = ["worlds", "RSS grown by", "observation buffers", "beyond them", "beyond them per world"]


def rss_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def used_batch(actions: NDArray[np.int32]) -> Any:
    """Make, reset and step a batch, so that everything it will ever touch has been touched."""
    worlds, agents = actions.shape
    batch = hotloop.make(
        "grid/toy", num_envs=worlds, impl="native", threads=1, agents=agents, max_steps=EPISODE_STEPS
    )
    batch.reset()
    for _ in range(CALLS):
        batch.step(actions)
    return batch


def measure(worlds: int) -> dict[str, int]:
    """Give what the worlds add to the process; what any batch costs it once is paid before."""
    actions = np.random.default_rng(42).integers(0, 9, (worlds, 20), dtype=np.int32)
    used_batch(actions[:1]).close()
    before = rss_bytes()
    batch = used_batch(actions)
    grown = rss_bytes() - before
    observations = batch.observations.nbytes + batch.final_observations.nbytes
    batch.close()
    return {
        "worlds": worlds,
        "rss_grown_bytes": grown,
        "observation_bytes": observations,
        "beyond_bytes": grown - observations,
    }


def main() -> None:
    options = benchmark.parser(__doc__)
    options.add_argument("--worlds", type=int, default=1_024)
    arguments = options.parse_args()
    values = measure(arguments.worlds)
    sizes = [values[name] for name in ("rss_grown_bytes", "observation_bytes", "beyond_bytes")]
    per_world = f"{values['beyond_bytes'] / values['worlds'] / 1024:.1f} KiB"
    row = [str(values["worlds"]), *[f"{size / 2**20:.1f} MiB" for size in sizes], per_world]
    benchmark.publish("memory", benchmark.table(HEADER, [row]), values, arguments)


if __name__ == "__main__":
    main()
