"""Does training on a GPU learn what training on the host learns? Five seeds a side, identical settings.

python benchmarks/cuda_learning.py [--quick] [prospector | guard | cards]

Prospector: the mean return of all episodes of a run, and that of the policy it ends with, with 95% intervals
of the mean over seeds. Guard: imitation first and then PPO, as docs/training.md trains it, with one seed.
Cards: PPO with one seed; a game won is worth 1 and one lost -1.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from statistics import fmean, stdev
from time import perf_counter

from hotloop.core.settings import Target
from hotloop.envs import cuda
from hotloop.lab.training.settings import read
from hotloop.train.evaluation import evaluate
from hotloop.train.settings import EvalSettings
from hotloop.train.trainer import Trainer
from hotloop.train.windows import windows_of

SEEDS = range(1, 6)
T_95 = 2.776
"""Student's t of four degrees of freedom."""
MINER = "prospector num_envs=1024 train.total_timesteps=3000000"
SIDES = {
    "host": "threads=3 train.torch_threads=3",
    "GPU, float32": "device=cuda",
    "GPU, bfloat16": "device=cuda train.mixed_precision=true",
}
GUARD = (
    "grid/guard device=cuda num_envs=1024 seed=1 train.stagger=1000 train.gamma=0.995 train.ent_coef=0.003 "
    "train.num_steps=32 train.minibatch_size=16384 train.update_epochs=2 train.learning_rate=2e-3 "
    "train.embedding=256 train.hidden=512 train.lstm=512 train.total_timesteps=8814592 "
    "train.supervised_steps=6160384 train.fade_steps=720896 train.seed=1 train.mixed_precision=true"
)

CARDS = (
    "cards device=cuda num_envs=4096 seed=1 train.num_steps=64 train.minibatch_size=32768 "
    "train.update_epochs=2 train.learning_rate=1e-3 train.gamma=0.999 train.ent_coef=0.003 "
    "train.norm_reward=false train.total_timesteps=40000000 train.seed=1 train.mixed_precision=true"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="prospector, guard, cards; all where none is named"
    )
    parser.add_argument("--side", choices=SIDES, help="this side of prospector alone")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the steps, to try it out")
    asked = parser.parse_args()
    why_not = cuda.why_not("prospector")
    if why_not is not None:
        print(f"cuda    SKIPPED: {why_not}")
        return 0
    if not asked.names or "prospector" in asked.names:
        for side in [asked.side] if asked.side else SIDES:
            show_side(side, SIDES[side], quick=asked.quick)
    for name, words in (("guard", GUARD), ("cards", CARDS)):
        if not asked.names or name in asked.names:
            whole, last, wall, low, high = learn((words, 1, asked.quick))
            found = f"the policy {last:.2f} [{low:.2f}, {high:.2f}]"
            print(f"{name}: all episodes {whole:.2f}, {found}, {wall:.0f} s", flush=True)
    return 0


def show_side(side: str, keys: str, *, quick: bool) -> None:
    """Train with every seed: on the host side by side, on the GPU one after the other."""
    jobs = [(f"{MINER} {keys} seed={seed} train.seed={seed}", seed, quick) for seed in SEEDS]
    if side == "host":
        with ProcessPoolExecutor(len(jobs), mp_context=get_context("spawn")) as crew:
            found = list(crew.map(learn, jobs))
    else:
        found = [learn(job) for job in jobs]
    wholes, lasts, walls, *_ = zip(*found, strict=True)
    print(f"{side:<14} all episodes {interval(wholes)}, the policy {interval(lasts)}, {fmean(walls):.1f} s")
    pairs = zip(wholes, lasts, strict=True)
    print("    " + "  ".join(f"{whole:.3f}/{last:.4f}" for whole, last in pairs), flush=True)


def learn(job: tuple[str, int, bool]) -> tuple[float, float, float, float, float]:
    """Train once; the mean return of its episodes, the policy's with its interval, and the seconds."""
    words, _, quick = job
    target, *keys = words.split()
    told = dict(key.split("=", 1) for key in keys)
    if quick:
        told["train.total_timesteps"] = "70000"
        told["train.stagger"] = "0"
    settings = read(Target(target, told))
    with closing(settings.open()) as batch:
        windows = windows_of(batch)
        trainer = Trainer(batch, settings.train, watchers=(windows,))
        begin = perf_counter()
        while not trainer.finished:
            trainer.update()
        wall = perf_counter() - begin
        window = windows.close()
        found = evaluate(
            trainer, batch.spec, EvalSettings(episodes=64, steps=1000 if "grid" in target else 0)
        )
    low, high = found.interval or (found.mean_return, found.mean_return)
    return window.mean_return or 0.0, found.mean_return, wall, low, high


def interval(values: Sequence[float]) -> str:
    """The mean and 95% of it."""
    middle, reach = fmean(values), T_95 * stdev(values) / len(values) ** 0.5
    return f"{middle:9.4f} [{middle - reach:.4f}, {middle + reach:.4f}]"


if __name__ == "__main__":
    sys.exit(main())
