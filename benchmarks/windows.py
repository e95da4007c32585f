"""Measure what window metrics cost, from arrays and by a loop over envs, beside a batch that nobody watches.

    ./.venv/bin/python benchmarks/windows.py [--rounds 12] [--quick]

A batch of the prospector under random play is stepped by three sides in turns: with no watcher, with
`hotloop.train.windows.Windows`, and with the adapter for callbacks that want one env at a time, which keeps
the same account in Python. A window is closed every 640 calls. Both accounts are equal, which
tests/train/test_windows.py shows.
"""

from typing import Any

import numpy as np

import hotloop
from hotloop.train.windows import EnvStep, PerEnv, Windows
from interleaved import output
from interleaved.batches import stepper_of
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import one_core
from interleaved.stepping import Block, Stepper, pin

TARGET = "prospector/default"
ENVS = 256
CALLS_PER_WINDOW = 640
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


class WatchedSide:
    """A batch and who watches it."""

    def __init__(self, name: str, watcher: type | None) -> None:
        self.name = name
        self._batch = hotloop.make(TARGET, num_envs=ENVS, impl="native")
        self._stepper: Stepper = stepper_of(self._batch)
        self._watcher = watcher(self._batch) if watcher else None
        self._calls = 0
        if self._watcher:
            self._stepper._step = self._step
        self._stepper.warm_up(200)

    def measure(self, agent_steps: int) -> Block:
        return self._stepper.measure(agent_steps)

    def _step(self, actions: Any) -> None:
        self._batch.step(actions)
        self._watcher.step(self._batch)
        self._calls += 1
        if self._calls % CALLS_PER_WINDOW == 0:
            self._watcher.close()


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    pin(one_core())
    sides = [WatchedSide(NOBODY, None), WatchedSide(ARRAYS, Windows), WatchedSide(LOOP, Loop)]
    steps = QUICK_STEPS if arguments.quick else STEPS
    blocks = run_rounds(sides, rounds=output.rounds_of(arguments), agent_steps=steps)
    values = output.side_values(blocks)
    whole = speed_ratio(blocks, ARRAYS, LOOP)
    table = output.table(
        ["who watches", *output.RATE_HEADER],
        [[name, *output.rate_cells(side)] for name, side in values.items()],
    )
    lines = [
        f"{TARGET}, {ENVS} envs, one core, random play.",
        table,
        f"Steps and watching together, arrays / loop: {output.ratio_text(whole)} times as fast. "
        + output.resolution(whole),
    ]
    output.publish("windows", "\n\n".join(lines), {"sides": values, "whole": whole}, arguments)


if __name__ == "__main__":
    main()
