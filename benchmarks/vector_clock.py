"""A plain clock for two vector envs in turns, with nothing of Hotloop in it.

    python -c "from vector_clock import main; main()" "FILE.py:make key=value" "FILE.py:other" SECONDS

It prints one line of JSON. Its ratios are a turn of A over a turn of B in seconds, one per round.
A turn is a number of calls of step(), with actions drawn before the clock starts. In a round, both sides play
as many calls with the same actions. The side that begins alternates.
"""

import ast
import gc
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

SEED = 7
TURN_S = 0.02
"""Of the slower side."""
WARM_S, LEAST_ROUNDS = 0.5, 6


def opened(words: str) -> Any:
    """Make a vector env by its file, the name of its maker, and key=value words."""
    place, *pairs = words.split()
    path, _, name = place.rpartition(":")
    keys = dict(pair.split("=") for pair in pairs)
    return getattr(module_of(Path(path)), name)(**{key: value_of(word) for key, word in keys.items()})


def module_of(path: Path) -> Any:
    if path.stem not in sys.modules:
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    return sys.modules[path.stem]


def value_of(word: str) -> Any:
    try:
        return ast.literal_eval(word.capitalize() if word in ("true", "false") else word)
    except ValueError:
        return word


def reset(env: Any) -> None:
    if hasattr(env, "env_method"):  # a VecEnv of Stable-Baselines3
        env.seed(SEED)
        env.reset()
        return
    try:
        env.reset(seed=SEED)
    except TypeError:  # EnvPool takes its seed when it is made
        env.reset()


def turn(env: Any, actions: Sequence[Any]) -> float:
    """Return the seconds that one step for each of the actions takes."""
    step = env.step
    begin = perf_counter()
    for action in actions:
        step(action)
    return perf_counter() - begin


def warm(env: Any, actions: Sequence[Any]) -> float:
    """Return the seconds of one call, after a while of them; the first may compile."""
    turn(env, actions[:2])
    times, end = [], perf_counter() + WARM_S
    while len(times) < 3 or perf_counter() < end:
        times.append(turn(env, actions[:8]) / 8)
    return median(times)


def rounds(
    envs: Sequence[Any], actions: Sequence[Any], calls: int, seconds: float
) -> list[tuple[float, float]]:
    """Return the seconds of a turn of A and of B, round by round."""
    found: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    while len(found) < LEAST_ROUNDS or perf_counter() < end:
        first = len(found) * calls
        mine = [actions[(first + call) % len(actions)] for call in range(calls)]
        order = (0, 1) if len(found) % 2 == 0 else (1, 0)
        times = [0.0, 0.0]
        for side in order:
            gc.collect()
            gc.disable()
            times[side] = turn(envs[side], mine)
            gc.enable()
        found.append((times[0], times[1]))
    return found


def main() -> None:
    a, b, seconds = sys.argv[1:4]
    envs = [opened(a), opened(b)]
    random = np.random.default_rng(SEED)
    actions = list(random.integers(0, number_of_actions(envs[0]), (256, envs[0].num_envs)))
    for env in envs:
        reset(env)
    call_s = [warm(env, actions) for env in envs]
    calls = max(1, round(TURN_S / max(call_s)))
    for env in envs:
        reset(env)
    taken = rounds(envs, actions, calls, float(seconds))
    found = {
        "calls": calls,
        "ratios": [of_a / of_b for of_a, of_b in taken],
        "a_us": median(of_a for of_a, _ in taken) / calls * 1e6,
        "b_us": median(of_b for _, of_b in taken) / calls * 1e6,
    }
    print(json.dumps(found), flush=True)
    for env in envs:
        env.close()


def number_of_actions(env: Any) -> int:
    return int(getattr(env, "single_action_space", env.action_space).n)
