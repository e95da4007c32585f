"""Measure what window metrics cost, from arrays and by a loop over envs, beside a batch that nobody watches.

    ./.venv/bin/python benchmarks/windows.py [--rounds 12] [--quick]

A batch of the prospector under random play is stepped by three sides in turns: with no watcher, with
`hotloop.train.windows.Windows`, and with the adapter for callbacks that want one env at a time, which keeps
the same account in Python. A window is closed every 640 calls. Both accounts are equal, which
tests/train/test_windows.py shows.
"""

from itertools import count
from typing import Any

import numpy as np

import benchmark
import hotloop
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.sides import SubjectSide
from hotloop.train.windows import EnvStep, PerEnv, Windows

TARGET = "prospector/default"
ENVS = 256
CALLS_PER_WINDOW = 640
WARMUP_CALLS = 200
STEPS, QUICK_STEPS = 400_000, 50_000
NOBODY, ARRAYS, LOOP = "nobody", "arrays (Windows)", "a loop over envs (PerEnv)"


class Loop:
    """The account of returns, lengths and infos, one env after another."""

    def __init__(self, batch: Any) -> None:
        self._adapter = PerEnv(self._look)
        self._returns = np.zeros(batch.spec.num_envs).tolist()
        self._lengths = [0] * batch.spec.num_envs
        self._ended: list[tuple[float, int, dict[str, float]]] = []

    def step(self, batch: Any) -> None:
        self._adapter.step(batch)

    def close(self) -> None:
        self._ended.clear()

    def _look(self, seen: EnvStep) -> None:
        env = seen.env
        self._returns[env] += float(seen.rewards[0])
        self._lengths[env] += 1
        if seen.terminal or seen.truncated:
            infos = {name: float(value) for name, value in seen.info.items()}
            self._ended.append((self._returns[env], self._lengths[env], infos))
            self._returns[env], self._lengths[env] = 0.0, 0


def watched(batch: Any, watcher: Any) -> Any:
    """The batch, with somebody called after each of its steps."""
    step, calls = batch.step, count(1)

    def watched_step(actions: Any) -> None:
        step(actions)
        watcher.step(batch)
        if next(calls) % CALLS_PER_WINDOW == 0:
            watcher.close()

    batch.step = watched_step
    return batch


def side(name: str, watcher: type | None) -> SubjectSide:
    """A batch and who watches it, warm."""
    batch = hotloop.make(TARGET, num_envs=ENVS, impl="native")
    made = SubjectSide(name, watched(batch, watcher(batch)) if watcher else batch, RANDOM)
    made.turn(WARMUP_CALLS * ENVS)
    return made


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    benchmark.pin(benchmark.one_core())
    sides = [side(NOBODY, None), side(ARRAYS, Windows), side(LOOP, Loop)]
    steps = QUICK_STEPS if arguments.quick else STEPS
    values = benchmark.measure(sides, rounds=benchmark.rounds_asked(arguments), agent_steps=steps)
    whole = benchmark.speed_ratio(values, ARRAYS, LOOP)
    table = benchmark.table(
        ["who watches", *benchmark.RATE_HEADER],
        [[name, *benchmark.rate_cells(side)] for name, side in values.items()],
    )
    lines = [
        f"{TARGET}, {ENVS} envs, one core, random play.",
        table,
        f"Steps and watching together, arrays / loop: {benchmark.ratio_text(whole)} times as fast. "
        + benchmark.resolution(whole),
    ]
    benchmark.publish("windows", "\n\n".join(lines), {"sides": values, "whole": whole}, arguments)


if __name__ == "__main__":
    main()
