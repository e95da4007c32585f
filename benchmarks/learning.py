"""Train, and hold what was learned against the world's players and random play, on seeds of its own.

./.venv/bin/python benchmarks/learning.py prospector [--seconds 1200] [key=value ...]
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from hotloop.core.settings import apply, describe, parse_pairs
from hotloop.envs.targets import make
from hotloop.train.evaluation import EvalSettings, evaluate
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer
from hotloop.train.windows import Windows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("pairs", nargs="*")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--episodes", type=int, default=256)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_intermixed_args()
    pairs = parse_pairs(arguments.pairs)
    known = {info.name for info in describe(TrainSettings)}
    mine = {k.removeprefix("train."): v for k, v in pairs.items() if k.removeprefix("train.") in known}
    theirs = {k: v for k, v in pairs.items() if k.removeprefix("train.") not in known}
    batch = make(arguments.target, **theirs)
    settings = apply(TrainSettings, mine)
    windows = Windows(batch)
    trainer = Trainer(batch, settings, watchers=[windows])
    start = last = perf_counter()
    history = []
    while not trainer.finished and perf_counter() - start < arguments.seconds:
        update = trainer.update()
        now = perf_counter()
        if now - last > arguments.every:
            window = windows.close()
            row = {
                "s": round(now - start, 1),
                "steps": update.steps,
                "sps": round(update.steps / (now - start)),
                "phase": update.phase,
                "return": window.mean_return,
                "length": window.mean_length,
                "agreement": update.agreement,
                **{k: round(v, 4) for k, v in update.losses.items()},
                **{k: v for k, v in window.infos.items() if k in ("net_profit", "survival")},
            }
            history.append(row)
            print(json.dumps(row), flush=True)
            last = now
    wall = perf_counter() - start
    found = {}
    for greedy in (False, True):
        e = evaluate(
            trainer, batch.spec, EvalSettings(episodes=arguments.episodes, greedy=greedy, steps=4000)
        )
        found["greedy" if greedy else "sampled"] = {
            "return": e.mean_return,
            "interval": e.interval,
            "length": e.mean_length,
            "outcomes": dict(e.outcomes),
        }
    result = {
        "target": arguments.target,
        "pairs": arguments.pairs,
        "wall_s": wall,
        "steps": trainer.steps,
        "found": found,
        "history": history,
    }
    print(json.dumps({k: v for k, v in result.items() if k != "history"}), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(result))
    batch.close()


if __name__ == "__main__":
    main()
