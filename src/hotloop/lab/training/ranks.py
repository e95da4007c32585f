"""The ranks of a training: started here as processes of their own, or found where torchrun started them."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import fsum
from pathlib import Path
from threading import Event, Lock, Thread
from time import sleep
from typing import IO, TYPE_CHECKING, Any

from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.machine import usable_cores
from hotloop.core.packages import need
from hotloop.core.record.times import Times
from hotloop.core.target import Target
from hotloop.envs.batch import Batch
from hotloop.lab.training.settings import RunSettings
from hotloop.train.settings import AUTO
from hotloop.train.windows import WindowEpisodes, windows_of

if TYPE_CHECKING:
    from hotloop.train.processes.ranks import Ranks

WORKER = ("-P", "-m", "hotloop.lab.workers.rank")

START_NS = 180_000_000_000
"""What a rank may take to be there."""

LOOK_S = 0.1
"""Between two looks at whether all live."""

END_S = 5.0
"""What ranks may take to end once they are told."""

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
        threads = max(1, (usable_cores() or 1) // size)
    shared = replace(train, minibatch_size=train.minibatch_size // size, torch_threads=threads)
    return replace(settings, target=Target(settings.target.name, keys), train=shared)


@contextmanager
def started(settings: RunSettings, resume: Path | None = None) -> "Iterator[Ranks]":
    """Rank 0 of a training, the others following until the end; alone where nobody else was asked for."""
    need("torch")
    from hotloop.train.processes import ranks as ranking

    size = settings.train.ranks
    if size == 1:
        yield ranking.ALONE
        return
    ranking.check_free()
    others = Others(size)
    found = ranking.Ranks(0, size, others.who_died)
    there = from_torchrun()
    if there is not None and there[1] != size:
        raise InputError(f"train.ranks={size} and torchrun started {there[1]}: give train.ranks={there[1]}")
    try:
        if there is None:
            others.start()
            ranking.join(0, size, others.store)
        else:
            ranking.join(0, size, None, device=settings.train.device)
        others.watch(found)
        with found.together():
            ranking.sent((settings, resume.read_bytes() if resume else None), leads=True)
        yield found
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


class Others:
    """The processes of the ranks after the first, on this machine."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.store: Any = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.said: list[IO[str]] = []
        self.lost = False
        """Whether one died before the end."""
        self._first = ""
        """What became of the first that died."""
        self._lock, self._over = Lock(), Event()

    def start(self) -> None:
        """Start them, and wait until all are there; one that dies on the way is said."""
        from hotloop.train.processes.ranks import server

        self.store = server()
        for rank in range(1, self.size):
            heard = tempfile.TemporaryFile("w+", prefix="hotloop-rank-")  # noqa: SIM115 - closed in end()
            where = {"host": "127.0.0.1", "port": self.store.port, "parent": os.getpid()}
            told = {"rank": rank, "size": self.size, **where}
            self.said.append(heard)
            self.workers.append(
                subprocess.Popen(
                    [sys.executable, *WORKER, json.dumps(told)],
                    stdin=subprocess.DEVNULL,
                    stdout=heard,
                    stderr=heard,
                    start_new_session=True,  # Ctrl-C is for rank 0 to hear
                )
            )
        self.wait_until_there()

    def wait_until_there(self) -> None:
        until = now_ns() + START_NS
        missing = [here(rank) for rank in range(1, self.size)]
        while not self.store.check(missing):
            dead = self.dead()
            if dead or now_ns() > until:
                from hotloop.train.processes.ranks import RankLostError

                raise RankLostError(dead or f"the ranks are not there after {START_NS // 10**9} s")
            with suppress(subprocess.TimeoutExpired):
                self.workers[0].wait(LOOK_S)

    def watch(self, ranks: "Ranks") -> None:
        """Look from a side thread whether all live; once one does not, no other is left or waited for."""

        def look() -> None:
            while not self._over.wait(LOOK_S):
                if why := self.dead():
                    self.kill()
                    ranks.give_up(why)
                    return

        if self.workers:
            Thread(target=look, name="hotloop-ranks", daemon=True).start()

    def look_away(self) -> bool:
        """Let them end from now on; whether one had died before."""
        if not self._over.is_set():
            self.lost = bool(self.dead())
            self._over.set()
        return self.lost

    def who_died(self) -> str:
        """Which rank is gone and how, as far as that can be known; waits a moment for it to be."""
        until = now_ns() + 2_000_000_000
        while self.workers and not self.dead() and now_ns() < until:
            with suppress(subprocess.TimeoutExpired):
                self.workers[0].wait(LOOK_S)
        return self.dead() if self.workers else ""

    def dead(self) -> str:
        """What became of the first rank that died; those that ended because of it tell less."""
        with self._lock:
            codes = [(rank, worker.poll()) for rank, worker in enumerate(self.workers, 1)]
            over = sorted((code > 0, rank, code) for rank, code in codes if code is not None)
            if over and not self._first:
                _, rank, code = over[0]
                self._first = f"rank {rank} of {self.size} {self.how(rank, code)}"
            return self._first

    def how(self, rank: int, code: int) -> str:
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        said = self.said[rank - 1]
        said.seek(0)
        last = next((line.strip() for line in reversed(said.readlines()) if line.strip()), "")
        return f"ended with {code}: {last}".removesuffix(": ")

    def kill(self) -> None:
        """End all at once, and whoever they started: a line that one of those holds stays open."""
        for worker in self.workers:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.pid, signal.SIGKILL)

    def end(self) -> None:
        """Wait for them to end, and end those that do not."""
        for worker in self.workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(END_S)
            if worker.poll() is None:
                worker.kill()
                worker.wait()
        for each in self.said:
            each.close()


def leave_with(parent: int) -> None:
    """End this process some seconds after the one that started it, whatever it waits for."""

    def look() -> None:
        while os.getppid() == parent:
            sleep(LOOK_S)
        sleep(END_S)
        os._exit(ExitCode.FAULT)

    Thread(target=look, name="hotloop-parent", daemon=True).start()


def here(rank: int) -> str:
    """What a rank sets where they meet, once it is there."""
    return f"rank {rank}"


def follow(rank: int, size: int, store: Any = None) -> None:
    """Be one of the ranks after the first until rank 0 ends the run."""
    from hotloop.train.processes import ranks as ranking

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if store is not None:
        store.set(here(rank), socket.gethostname())
    ranking.join(rank, size, store)
    ranks = ranking.Ranks(rank, size)
    settings, content = ranking.sent(None, leads=False)
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


def named(times: Times, ranks: "Ranks") -> Times:
    """The account of a window whose row of waiting names the slowest rank."""
    from hotloop.train.processes.ranks import WAITING

    if not ranks.several:
        return times
    slowest = f"{WAITING}, most on rank {ranks.slowest()}"
    rows = [replace(row, path=row.path.replace(WAITING, slowest)) for row in times.regions]
    return replace(times, regions=tuple(rows))
