"""One rank of a training: the first, which leads, those after it, which follow, and what all of them say."""

import os
import signal
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.cluster import check_address
from hotloop.core.errors import InputError
from hotloop.core.machine import usable_cores
from hotloop.core.packages import need
from hotloop.core.target import Target
from hotloop.core.time_tree import TimeTree
from hotloop.envs.batch import Batch
from hotloop.lab.on_ray import on_ray
from hotloop.lab.training.followers import Others, Processes, Tasks, here
from hotloop.lab.training.settings import RunSettings
from hotloop.train.settings import AUTO, HERE
from hotloop.train.windows import WindowEpisodes, windows_of

if TYPE_CHECKING:
    from hotloop.train.processes.ranks import Ranks

SEED = 42


def share_of(settings: RunSettings, rank: int, size: int) -> RunSettings:
    """What one rank is made from: its envs, its part of each minibatch, its cores, and a seed of its own."""
    if size == 1:
        return settings
    from hotloop.train.processes.ranks import STRIDE

    keys = dict(settings.target.keys)
    keys["num_envs"] = int(str(keys["num_envs"])) // size
    keys["seed"] = int(str(keys.get("seed", SEED))) + STRIDE * rank
    train = settings.train
    threads = train.torch_threads
    if threads == AUTO:
        threads = max(1, (usable_cores() or 1) // size) if train.ranks_on == HERE else 1
    shared = replace(train, minibatch_size=train.minibatch_size // size, torch_threads=threads)
    return replace(settings, target=Target(settings.target.name, keys), train=shared)


@contextmanager
def started(settings: RunSettings, resume: Path | None = None) -> "Iterator[Ranks]":
    """Rank 0 of a training, the others following until the end; alone where nobody else was asked for."""
    need("torch")
    from hotloop.train.processes import ranks as ranking

    if settings.train.ranks == 1:
        yield ranking.ALONE
        return
    ranking.check_free()
    with others_of(settings) as others:
        found = ranking.Ranks(0, others.size, others.who_died)
        with led(settings, resume, others, found):
            yield found


@contextmanager
def others_of(settings: RunSettings) -> "Iterator[Others]":
    """Who follows: what torchrun started, processes of this machine, or tasks of Ray."""
    size, there, where = settings.train.ranks, from_torchrun(), settings.train.ranks_on
    if there is not None:
        if there[1] != size:
            raise InputError(
                f"train.ranks={size} and torchrun started {there[1]}: give train.ranks={there[1]}"
            )
        yield Others(size)
    elif where == HERE:
        yield Processes(size)
    else:
        with on_ray(check_address(where), timed=False, carry=settings.carried) as ray:
            yield Tasks(size, ray, where, cores=max(1, settings.train.torch_threads))


@contextmanager
def led(settings: RunSettings, resume: Path | None, others: "Others", found: "Ranks") -> Iterator[None]:
    """Start who follows, tell them what is trained, and let them go at the end."""
    from hotloop.train.processes import ranks as ranking

    try:
        others.start()
        ranking.join(0, others.size, others.store)
        if settings.train.device == "cuda":
            ranking.use_own_gpu(0)
        others.watch(found)
        with found.together():
            ranking.sent((settings, resume.read_bytes() if resume else None), leads=True)
        yield
        others.look_away()
        found.tell(ranking.Command.END)
    finally:
        lost = others.look_away()
        if lost:
            others.kill()
            found.settle()
        with suppress(RuntimeError):
            ranking.leave(lost=lost)
        others.end()


def from_torchrun() -> tuple[int, int] | None:
    """This process's rank and how many there are, where torchrun started it; None elsewhere."""
    told = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    return (int(told[0]), int(told[1])) if told[0] and told[1] else None


def follow(rank: int, size: int, store: Any = None) -> None:
    """Be one of the ranks after the first until rank 0 ends the run."""
    from hotloop.train.processes import ranks as ranking

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if store is not None:
        store.set(here(rank), socket.gethostname())
    ranking.join(rank, size, store)
    ranks = ranking.Ranks(rank, size)
    settings, content = ranking.sent(None, leads=False)
    if settings.train.device == "cuda":
        ranking.use_own_gpu(rank)
    with tempfile.TemporaryDirectory(prefix="hotloop-rank-") as folder:
        resume = Path(folder) / "checkpoint.pt" if content else None
        if resume is not None:
            resume.write_bytes(content)
        serve(share_of(settings, rank, size), ranks, resume, Path(folder))
    ranking.leave()


def serve(settings: RunSettings, ranks: "Ranks", resume: Path | None, folder: Path) -> None:
    """Do what rank 0 says."""
    from hotloop.train.processes.ranks import Command
    from hotloop.train.trainer import Trainer

    batch = settings.open()
    windows = windows_of(batch, compiled=settings.train.compile)
    watchers = (windows,)
    trainer = Trainer(batch, settings.train, watchers=watchers, resume=resume, folder=folder, ranks=ranks)
    while (command := ranks.hear()) is not Command.END:
        if command is Command.UPDATE:
            trainer.update()
        elif command is Command.COLLECT:
            trainer.algorithm.collect(trainer.steps)
        elif command is Command.WINDOW:
            ranks.collected((windows.close(), counters_of(batch)))
        else:
            trainer.content()
    batch.close()


def counters_of(batch: Batch) -> dict[str, int]:
    return dict(batch.counters)


def windows_together(
    ranks: "Ranks", mine: WindowEpisodes, batch: Batch
) -> tuple[WindowEpisodes, dict[str, int]]:
    """The episodes and the counters of all ranks."""
    from hotloop.train.processes.ranks import Command

    if not ranks.several:
        return mine, counters_of(batch)
    ranks.tell(Command.WINDOW)
    every = ranks.collected((mine, counters_of(batch)))
    counted: dict[str, int] = {}
    for _, counters in every:
        for name, count in counters.items():
            counted[name] = counted.get(name, 0) + count
    return added([window for window, _ in every]), counted


def added(windows: Sequence[WindowEpisodes]) -> WindowEpisodes:
    """What the same stretch of steps came to on several ranks."""
    episodes = sum(each.episodes for each in windows)
    least = [each.return_min for each in windows if each.return_min is not None]
    most = [each.return_max for each in windows if each.return_max is not None]
    names = dict.fromkeys(name for each in windows for name in each.infos)
    return WindowEpisodes(
        env_steps=sum(each.env_steps for each in windows),
        episodes=episodes,
        return_sum=fsum(each.return_sum for each in windows),
        return_min=min(least, default=None),
        return_max=max(most, default=None),
        length_sum=sum(each.length_sum for each in windows),
        infos={
            name: fsum(each.infos.get(name, 0.0) * each.episodes for each in windows) / episodes
            for name in names
        },
        sampled=windows[0].sampled,
    )


def named(times: TimeTree, ranks: "Ranks") -> TimeTree:
    """The account of a window whose row of waiting names the slowest rank."""
    from hotloop.train.processes.ranks import WAITING

    if not ranks.several:
        return times
    slowest = f"{WAITING}, most on rank {ranks.slowest()}"
    return times.renamed(lambda path: path.replace(WAITING, slowest))
