"""Engines that do part of their work in two ways: progress goes to stderr, differences go to a log."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import utc_now
from hotloop.core.files import free_path
from hotloop.core.world import Rival
from hotloop.envs.engine import EngineWrapper, Seeds, ShadowedEngine

FIRST = (1_000, 10_000)

EVERY = 100_000  # Comparisons after which progress is said: at the first ones, then at every so many

FOLDER = Path("artifacts/validation")

TIMES = ("shadow.reference_ticks", "shadow.candidate_ticks")  # The counters of what each of the two ways took


class ShadowEngine(EngineWrapper):
    """A native engine that is looked at after every call; all else is the engine's own."""

    def __init__(self, engine: ShadowedEngine, target: str, rival: Rival) -> None:
        super().__init__(engine)
        self._engine = engine
        self._target = target
        self._rival = rival
        self._next = FIRST[0]
        self._mismatches = 0
        self._logged: dict[int, int] = {}
        self._log: Path | None = None

    def step(self, actions: NDArray[np.int32]) -> None:
        self._engine.step(actions)
        self._look()

    def reset(self, seeds: Seeds) -> None:
        self._engine.reset(seeds)
        self._look()

    def reset_many(self, envs: NDArray[np.int64], seeds: Seeds) -> None:
        self._engine.reset_many(envs, seeds)
        self._look()

    def _look(self) -> None:
        comparisons, mismatches = self._engine.shadow()
        if mismatches != self._mismatches:
            self._mismatches = mismatches
            self._keep()
        if comparisons >= self._next:
            self._next = milestone_after(comparisons)
            ratio = timing_ratio(dict(self._engine.counters()))
            ways = self._rival.reference, self._rival.candidate
            say(progress_line(self._target, comparisons, mismatches, ratio, ways))

    def _keep(self) -> None:
        """Add what is new to the log; only the first mismatches of an env are known by place."""
        arrays = self._engine.arrays()["observations"]
        lines = []
        for env in range(len(arrays)):
            found = self._engine.mismatches(env)
            lines += [line(env, each, arrays.shape[2:]) for each in found[self._logged.get(env, 0) :]]
            self._logged[env] = len(found)
        try:
            self._write(lines)
        except OSError as error:  # the run goes on, and its counters have the mismatches all the same
            say(f"shadow of {self._target}: MISMATCH, and no log of it: {error}")

    def _write(self, lines: list[str]) -> None:
        if self._log is None:
            FOLDER.mkdir(parents=True, exist_ok=True)
            stamp = utc_now().strftime("%Y%m%d-%H%M%S")
            self._log = free_path(FOLDER / f"mismatches-{stamp}-{os.getpid()}.log")
            self._log.touch(exist_ok=False)
            say(f"shadow of {self._target}: MISMATCH, written to {self._log.resolve()}")
            old, new = self._rival.reference, self._rival.candidate
            lines = [
                f"{self._target}: the {old} {self._rival.parameter}'s byte against the {new} one's",
                *lines,
            ]
        with self._log.open("a", encoding="utf-8") as log:
            log.write("".join(f"{each}\n" for each in lines))


def progress_line(
    target: str, comparisons: int, mismatches: int, ratio: float | None, ways: tuple[str, str]
) -> str:
    """How much was compared so far, and how many times as long the first of two ways takes."""
    took = f", {ways[0]} takes {ratio:.2f} times as long as {ways[1]}" if ratio else ""
    return f"shadow of {target}: {comparisons:,} comparisons, {mismatches:,} mismatches{took}"


def milestone_after(comparisons: int) -> int:
    """The next number of comparisons that is worth a word."""
    coming = (each for each in FIRST if each > comparisons)
    return next(coming, (comparisons // EVERY + 1) * EVERY)


def without_times(counters: Mapping[str, int]) -> dict[str, int]:
    """Counters of work alone: what the two encoders took is never the same twice."""
    return {name: count for name, count in counters.items() if name not in TIMES}


def timing_ratio(counters: Mapping[str, int]) -> float | None:
    """How many times as long the reference took as the candidate; None if they were not timed."""
    reference, candidate = (counters.get(name, 0) for name in TIMES)
    return reference / candidate if reference and candidate else None


def line(env: int, found: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """One mismatch in words; `shape` is that of one agent's observation."""
    episode_seed, tick, agent, byte, reference, candidate = found
    place = [env, agent, *(int(at) for at in np.unravel_index(byte, shape))]
    return (
        f"tick {tick}, env {env}, agent {agent}, observations{place}: {reference} against {candidate}, "
        f"episode seed {episode_seed}"
    )


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
