"""Rounds in which every side runs once, and what the rounds say about two sides."""

import random
import sys
from collections.abc import Iterator, Mapping, Sequence

from hotloop.stats.ratio import Ratio, ratio
from interleaved.sides import Side
from interleaved.stepping import Block

Blocks = Mapping[str, Sequence[Block]]


def orders(count: int, rounds: int, seed: int = 42) -> Iterator[list[int]]:
    """Yield an order for each of an even number of rounds: a shuffled one, then its mirror image."""
    shuffler = random.Random(seed)
    for _ in range(0, rounds, 2):
        order = list(range(count))
        shuffler.shuffle(order)
        yield order
        yield order[::-1]


def run_rounds(sides: Sequence[Side], *, rounds: int, agent_steps: int) -> dict[str, list[Block]]:
    """Measure every side once a round, with as many agent-steps each."""
    blocks: dict[str, list[Block]] = {side.name: [] for side in sides}
    for number, order in enumerate(orders(len(sides), rounds), 1):
        print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
        for index in order:
            blocks[sides[index].name].append(sides[index].measure(agent_steps))
    print(file=sys.stderr)
    return blocks


def speed_ratio(blocks: Blocks, fast: str, slow: str) -> Ratio:
    """Say how many times as fast as `slow` the side `fast` is: the median round and its sign interval."""
    return ratio(_costs(blocks[slow]), _costs(blocks[fast]))


def _costs(blocks: Sequence[Block]) -> list[float]:
    return [block.ns_per_agent_step for block in blocks]
