"""Measure a training in several processes against the same one in one process with one thread.

    ./.venv/bin/python benchmarks/ranks.py [--ranks 2] [--seeds 6] [--rounds 20] [--quick]

Both train the same network on as many envs with the same minibatches, one thread a process, and take turns of
whole updates. Beside the time that passes stands the CPU time of the busiest process: its ratio is what ranks
bring where every process has a core for itself; where others use the machine, too, that of the time is less.
A third side is as many processes with a share of the work each that do not talk to each other: what they are
faster than one process is what the machine lets ranks be at most, since cores that are all busy share caches,
memory and clock.
Then both learn the env of `actors.py`, which is soon learnt, anew with as many seeds, and their returns are
compared; --seeds 0 leaves that out, and is done in some minutes.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean, median
from typing import Any

import psutil

import actors
import benchmark
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.judge.sweep import learning_check
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import TrainContender, TrainSide, untimed
from hotloop.stats.summary import ratio

TARGET = "prospector"
KEYS = {
    "num_envs": "256",
    "train.num_steps": "64",
    "train.minibatch_size": "4096",
    "train.torch_threads": "1",
}
CASES = {
    "the usual network": {},
    "layers of 256": {"train.hidden": "256,256"},
    "minibatches of 16,384": {"train.minibatch_size": "16384"},
}
"""What is trained: ranks bring more where there is more to compute between two messages."""
LEARN_STEPS = 8_192
QUICK_STEPS = 1_024
WARM, UPDATES = 3, 2
"""Updates before the first round, and in a turn."""


def target(ranks: int, **keys: object) -> Target:
    return Target(TARGET, {**KEYS, "train.ranks": str(ranks), **keys})


def name_of(ranks: int) -> str:
    return "one process" if ranks == 1 else f"{ranks} ranks"


def apart(ranks: int) -> str:
    return f"{ranks} that do not talk"


def share(ranks: int, keys: Mapping[str, str]) -> dict[str, str]:
    """The keys of one process that has its part of the work, and nobody to share it with."""
    whole = {**KEYS, **keys}
    parts = ("num_envs", "train.minibatch_size")
    return whole | {name: str(int(whole[name]) // ranks) for name in parts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One turn: what passed, and what every process computed."""

    turn: Turn
    cpu_ns: tuple[int, ...]
    """Of rank 0 and of those after it, all their threads."""

    @property
    def busiest_ns(self) -> int:
        return max(self.cpu_ns)


def cpu_ns(process: psutil.Process) -> int:
    used = process.cpu_times()
    return int((used.user + used.system) * 1e9)


def one_turn(side: TrainSide, others: Sequence[psutil.Process]) -> Update:
    before = [cpu_ns(each) for each in others]
    turn = side.turn(UPDATES * side.grain)
    after = [cpu_ns(each) for each in others]
    gained = (late - early for early, late in zip(before, after, strict=True))
    return Update(turn=turn, cpu_ns=(turn.cpu_ns or 0, *gained))


@contextmanager
def neighbours(ranks: int, keys: Mapping[str, str]) -> Iterator[list[psutil.Popen]]:
    """The others of those that do not talk, at rest."""
    command = [sys.executable, __file__, "--apart", json.dumps(share(ranks, keys))]
    made = [psutil.Popen(command, stdout=subprocess.PIPE) for _ in range(ranks - 1)]
    try:
        for each in made:
            each.stdout.readline()  # it is warm
            each.suspend()
        yield made
    finally:
        for each in made:
            each.kill()
            each.wait()


def train_apart(keys: Mapping[str, str]) -> None:
    """Be one of them until somebody ends it, at the latest whoever started it."""
    parent = os.getppid()
    with closing(TrainSide("apart", untimed(read(Target(TARGET, keys))))) as side:
        side.run(WARM)
        print("warm", flush=True)
        while os.getppid() == parent:
            side.run(1)


def turn_beside(side: TrainSide, others: Sequence[psutil.Popen], ranks: int) -> Update:
    """A turn of one of those that do not talk, while the others work; what it makes they make, too."""
    for each in others:
        each.resume()
    found = one_turn(side, [])
    for each in others:
        each.suspend()
    made = found.turn._replace(env_steps=ranks * found.turn.env_steps)
    return replace(found, turn=made)


def speeds(ranks: int, rounds: int, keys: Mapping[str, str]) -> dict[str, Any]:
    """One process, so many ranks and as many that do not talk, in turns of some updates."""
    with ExitStack() as stack:
        print("starting", name_of(ranks), file=sys.stderr)
        asked = {name_of(each): target(each, **keys) for each in (1, ranks)}
        asked[apart(ranks)] = Target(TARGET, share(ranks, keys))
        sides = [
            stack.enter_context(closing(TrainSide(name, untimed(read(each))))) for name, each in asked.items()
        ]
        followers = psutil.Process().children()
        resting = stack.enter_context(neighbours(ranks, keys))
        for side in sides:
            side.run(WARM)
        alone, together, beside = sides
        turns = {
            alone.name: partial(one_turn, alone, []),
            together.name: partial(one_turn, together, followers),
            beside.name: partial(turn_beside, beside, resting, ranks),
        }
        taken = benchmark.in_turns(turns, rounds)
    one, many, most = (taken[side.name] for side in sides)
    return {
        "most": ratio([each.turn.ns for each in one], [each.turn.ns for each in most]),
        "sides": {name: benchmark.side_values([each.turn for each in rows]) for name, rows in taken.items()},
        "busiest_ms": {name: busiest_ms(rows) for name, rows in taken.items()},
        "disturbed": {name: disturbed(rows) for name, rows in taken.items()},
        "ratio": ratio([each.turn.ns for each in one], [each.turn.ns for each in many]),
        "cpu_ratio": ratio([each.busiest_ns for each in one], [each.busiest_ns for each in many]),
    }


def busiest_ms(rows: Sequence[Update]) -> float:
    """CPU time of the busiest process in one update."""
    return median(each.busiest_ns for each in rows) / UPDATES / 1e6


def disturbed(rows: Sequence[Update]) -> float:
    """Return the share of the turns in which another process took a core from rank 0."""
    return sum(each.turn.disturbed for each in rows) / len(rows)


def returns(ranks: int, seeds: int, env_steps: int) -> dict[str, Any]:
    """What one process and so many ranks have learnt after as many env-steps, seed by seed."""
    found: dict[str, list[float]] = {}
    for each in (1, ranks):
        keys = {"wait_ms": 0, "train.ranks": str(each), "train.eval.episodes": 16}
        found[name_of(each)] = [
            fmean(
                TrainContender(
                    actors.target("here", actors.ENVS, **keys, seed=seed, **{"train.seed": seed})
                ).returns_after(env_steps)
            )
            for seed in range(1, seeds + 1)
        ]
        print(f"{name_of(each)}: {found[name_of(each)]}", file=sys.stderr)
    told = learning_check(env_steps, found[name_of(1)], found[name_of(ranks)])
    return {"returns": found, "learnt": asdict(told)}


def page(cases: Mapping[str, Mapping[str, Any]], ranks: int) -> str:
    rows = [
        [
            f"{way}, {network}",
            *benchmark.rate_cells(side),
            f"{case['busiest_ms'][way]:.0f}",
            f"{case['disturbed'][way]:.0%}",
        ]
        for network, case in cases.items()
        for way, side in case["sides"].items()
    ]
    header = ["way", *benchmark.RATE_HEADER, "CPU ms an update, busiest process", "turns disturbed"]
    lines = [
        (
            f"{TARGET}, {network}, speed of {ranks} ranks / of one process: "
            f"{benchmark.ratio_text(case['ratio'])} by the time that passed, "
            f"{benchmark.ratio_text(case['cpu_ratio'])} by the CPU time of the busiest process, which is "
            f"what a core for each gives; of {apart(ranks)} {benchmark.ratio_text(case['most'])}, "
            f"which is what the machine gives. {benchmark.resolution(case['ratio'])}"
        )
        for network, case in cases.items()
    ]
    return "\n\n".join([benchmark.table(header, rows), *lines])


def learning_page(learning: Mapping[str, Any], ranks: int) -> str:
    told = learning["learnt"]
    beyond = f"{told['difference']:+.2f}"
    if told["low"] is not None:
        beyond += f" [{told['low']:+.2f}, {told['high']:+.2f}]"
    rows = [[way, *(f"{value:.2f}" for value in each)] for way, each in learning["returns"].items()]
    seeds = [f"seed {number}" for number in range(1, len(rows[0]))]
    return "\n\n".join(
        [
            benchmark.table(["mean return", *seeds], rows),
            f"After {told['env_steps']:,} env-steps; {ranks} ranks beyond one process: {beyond}.",
        ]
    )


def main() -> None:
    parser = benchmark.parser(__doc__, rounds=20)
    parser.add_argument("--ranks", type=int, default=2, help="processes, each with one thread (default 2)")
    parser.add_argument("--seeds", type=int, default=6, help="trainings of each side; 0 leaves them out")
    parser.add_argument("--apart", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        train_apart(json.loads(arguments.apart))
        return
    ranks = arguments.ranks
    if ranks > len(benchmark.usable_cores()):
        raise SystemExit(f"{ranks} ranks need as many cores, and {len(benchmark.usable_cores())} are there")
    rounds = benchmark.rounds_asked(arguments)
    cases = {network: speeds(ranks, rounds, keys) for network, keys in CASES.items()}
    seeds = min(arguments.seeds, 1) if arguments.quick else arguments.seeds
    steps = QUICK_STEPS if arguments.quick else LEARN_STEPS
    benchmark.publish(f"ranks-{ranks}", page(cases, ranks), {"cases": cases}, arguments)
    if seeds:
        learning = returns(ranks, seeds, steps)
        text = learning_page(learning, ranks)
        benchmark.publish(f"ranks-{ranks}-learning", text, {"learning": learning}, arguments)


if __name__ == "__main__":
    main()
