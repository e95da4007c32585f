"""One of two ranks that hold what they find together against what one process finds with all samples.

`python two_ranks.py RANK FILE`: prints what rank RANK found, as JSON.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import hotloop
from hotloop.train import ranks as ranking
from hotloop.train.normalize import Moments
from hotloop.train.ppo import shared
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

ENVS, STEPS = 8, 16


def main(rank: int, path: str) -> None:
    ranking.join(rank, 2, dist.FileStore(path, 2))
    ranks = ranking.Ranks(rank, 2)
    found: dict[str, Any] = {kernels: learned(ranks, kernels) for kernels in ("native", "torch")}
    rows = torch.arange(60, dtype=torch.float32).reshape(20, 3).sqrt()
    whole, half, merged = (Moments((3,), torch.device("cpu")) for _ in range(3))
    whole.add(rows)
    half.add(rows[rank * 7 : 7 + rank * 13])
    ranks.merge(half, merged)
    found["moments"] = float((whole.variance - merged.variance).abs().max())
    found["readers"] = readers()
    told = {"mean": ranks.mean({"loss": float(rank)})["loss"], "variance": merged.variance.tolist(), **found}
    print(json.dumps(told))  # noqa: T201 - it is a program
    ranking.leave()


def readers() -> list[int]:
    """How the threads that gloo reads with are given a core."""
    tasks = list(Path("/proc/self/task").iterdir())
    names = {int(each.name): (each / "comm").read_text().strip() for each in tasks}
    return [os.sched_getscheduler(task) for task, name in names.items() if name == ranking.READER]


def learned(ranks: ranking.Ranks, kernels: str) -> tuple[float, float]:
    """The largest difference of the gradients, over their norm, and the sum of the weights then."""
    settings = TrainSettings(num_steps=STEPS, minibatch_size=ENVS * STEPS, kernels=kernels, torch_threads=1)
    batch = hotloop.make("prospector/short", num_envs=ENVS)
    algorithm = Trainer(batch, settings).algorithm
    samples = algorithm.prepare(algorithm.collect(0))
    every = torch.arange(ENVS * STEPS)
    alone = algorithm.learner
    alone.kernels.objective(alone.student, samples, every, settings, 0.0).backward()
    expected = [each.grad.clone() for each in alone.network.parameters()]
    for each in alone.network.parameters():
        each.grad = None
    student = shared(alone.network, settings, ranks, all_used=True)
    learner = replace(alone, student=student, ranks=ranks)
    mine = every[every % ENVS // (ENVS // 2) == ranks.rank]
    [part], agreed = learner.normalize_across_ranks(samples, [[mine]])
    learner.kernels.objective(student, part, mine, agreed, 0.0).backward()
    assert learner.at_once == (kernels == "native")
    if learner.at_once:
        ranks.average(learner.network.parameters())
    norm = torch.stack([each.norm() for each in expected]).norm()
    apart = [
        (each.grad - want).abs().max()
        for each, want in zip(alone.network.parameters(), expected, strict=True)
    ]
    shares = replace(settings, minibatch_size=len(mine))
    replace(learner, settings=shares).learn(samples.take(mine), 0.0)
    weights = sum(each.double().sum() for each in alone.network.parameters())
    batch.close()
    return float(max(apart) / norm), float(weights)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
