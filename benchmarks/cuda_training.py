"""The trainer's rows of docs/cuda.md: how fast training goes where envs and network share a GPU.

python benchmarks/cuda_training.py [--quick] [NAME...]
"""

import argparse
import sys
from contextlib import closing
from time import perf_counter
from typing import Any

import torch

from hotloop.core.settings import Target
from hotloop.core.time_tree import tree_text
from hotloop.envs import cuda
from hotloop.lab.training.settings import read
from hotloop.train.timing import Clock
from hotloop.train.trainer import Trainer
from hotloop.train.windows import windows_of

FAST = "train.mixed_precision=true train.compile=true"
MINER = "prospector device=cuda num_envs=65536 train.num_steps=64 train.minibatch_size=131072"
GUARD = (
    "grid/guard num_envs=1024 train.gamma=0.995 train.ent_coef=0.003 train.num_steps=32 "
    "train.minibatch_size=16384 train.update_epochs=2 train.learning_rate=2e-3 train.embedding=256 "
    "train.hidden=512 train.lstm=512"
)
CARDS = (
    "cards device=cuda num_envs=16384 train.num_steps=64 train.minibatch_size=65536 train.update_epochs=2 "
    "train.learning_rate=1e-3 train.gamma=0.999 train.norm_reward=false"
)
RUNS = {
    "prospector, 4 epochs": f"{MINER} train.update_epochs=4 {FAST}",
    "prospector, 1 epoch": f"{MINER} train.update_epochs=1 {FAST}",
    "prospector, 4 epochs, not compiled": f"{MINER} train.update_epochs=4 train.mixed_precision=true",
    "prospector, 1 epoch, not compiled": f"{MINER} train.update_epochs=1 train.mixed_precision=true",
    "prospector, 4 epochs, float32": f"{MINER} train.update_epochs=4",
    "prospector, 4 epochs, envs on the host": f"{MINER} train.update_epochs=4 train.device=cuda threads=16 "
    "train.mixed_precision=true device=cpu",
    "cards": f"{CARDS} {FAST}",
    "guard": f"{GUARD} device=cuda train.mixed_precision=true",
    "guard, float32": f"{GUARD} device=cuda",
    "guard, envs on the host, torch": f"{GUARD} threads=16 train.device=cuda train.kernels=torch",
}
ROUNDS, LEAST_S = 5, 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which of them; all where none is named")
    parser.add_argument("--quick", action="store_true", help="a single round of few envs, to try it out")
    asked = parser.parse_args()
    why_not = cuda.why_not("prospector")
    if why_not is not None:
        print(f"cuda    SKIPPED: {why_not}")
        return 0
    for name, words in RUNS.items():
        if not asked.names or name in asked.names:
            row(name, words, quick=asked.quick)
    return 0


def row(name: str, words: str, *, quick: bool) -> None:
    """Measure one run: rounds of whole updates, the tree of one window, and how busy the GPU was."""
    target, *keys = words.split()
    told = dict(key.split("=", 1) for key in keys) | ({"num_envs": "4096"} if quick else {})
    settings = read(Target(target, told))
    with closing(settings.open()) as batch:
        windows = windows_of(batch, compiled=settings.train.compile)
        trainer = Trainer(batch, settings.train, watchers=(windows,))
        begin = perf_counter()
        for _ in range(3):
            trainer.update()
        ready = perf_counter() - begin
        count = max(1, round(LEAST_S / run(trainer, 1)))
        speeds = sorted(trainer.steps_per_update * count / run(trainer, count) for _ in range(ROUNDS))
        times = timed(trainer, batch, count)
        busy = share_busy(trainer)
        windows.close()
    middle, agents = speeds[ROUNDS // 2], batch.spec.agents
    print(
        f"{name}: {middle / 1e6:.2f} M env-steps/s, {middle * agents / 1e6:.2f} M agent-steps/s, spread "
        f"{(speeds[-1] - speeds[0]) / middle:.1%}, GPU busy {busy:.1%}, ready after {ready:.1f} s, "
        f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB by torch\n{tree_text(times)}",
        flush=True,
    )
    torch.cuda.reset_peak_memory_stats()


def run(trainer: Trainer, updates: int) -> float:
    """Seconds of so many updates; each ends with its losses on the host."""
    begin = perf_counter()
    for _ in range(updates):
        trainer.update()
    return perf_counter() - begin


def timed(trainer: Trainer, batch: Any, updates: int) -> Any:
    """The tree of a window of updates, by events on the stream."""
    clock = Clock(batch, how="events", device="cuda")
    clock.begin()
    run(trainer, updates)
    return clock.end()


def share_busy(trainer: Trainer) -> float:
    """The share of an update's wall time in which a kernel or a copy ran, by torch's profiler."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        wall = run(trainer, 1)
    found = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    )
    busy, last = 0.0, 0.0
    for start, end in found:
        busy += max(0.0, end - max(start, last))
        last = max(last, end)
    top = profile.key_averages().table(sort_by="self_cuda_time_total", row_limit=14, max_name_column_width=70)
    print(top)
    return busy / 1e6 / wall


if __name__ == "__main__":
    sys.exit(main())
