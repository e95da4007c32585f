"""The ranks and actors of a training: the rank that leads, those that follow, and who collects for it.

Once one rank is gone no other is left, and none is waited for, whatever is under way.
"""

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
from hotloop.core.cluster import LOCAL, check_address, place_of, ray_error_text
from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.machine import need, usable_cores
from hotloop.core.process.worker import start
from hotloop.core.settings import Target
from hotloop.core.time_tree import TimeTree
from hotloop.envs.batch import Batch
from hotloop.lab.sweep.on_ray import OnRay, on_ray
from hotloop.lab.training.settings import RunSettings
from hotloop.train.settings import AUTO, HERE
from hotloop.train.windows import WindowEpisodes, windows_of

if TYPE_CHECKING:
    from hotloop.train.actors import ActorPool
    from hotloop.train.ranks import Ranks

SEED = 42


def share_of(settings: RunSettings, rank: int, size: int) -> RunSettings:
    """What one rank is made from: its envs, its part of each minibatch, its cores, and a seed of its own."""
    if size == 1:
        return settings
    from hotloop.train.ranks import STRIDE

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
def start_ranks(settings: RunSettings, resume: Path | None = None) -> "Iterator[Ranks]":
    """Rank 0 of a training, the others following until the end; alone by default."""
    need("torch")
    from hotloop.train import ranks as ranking

    if settings.train.ranks == 1:
        yield ranking.ALONE
        return
    ranking.check_free()
    with others_of(settings) as others:
        found = ranking.Ranks(0, others.size, others.who_died)
        with lead_ranks(settings, resume, others, found):
            yield found


@contextmanager
def others_of(settings: RunSettings) -> "Iterator[OtherRanks]":
    """Who follows: what torchrun started, processes of this machine, or tasks of Ray."""
    size, there, where = settings.train.ranks, from_torchrun(), settings.train.ranks_on
    if there is not None:
        if there[1] != size:
            raise InputError(
                f"train.ranks={size} and torchrun started {there[1]}: give train.ranks={there[1]}"
            )
        yield OtherRanks(size)
    elif where == HERE:
        yield Processes(size)
    else:
        with on_ray(check_address(where), timed=False, carry=settings.carried) as ray:
            yield RayRanks(size, ray, where, cores=max(1, settings.train.torch_threads))


@contextmanager
def lead_ranks(
    settings: RunSettings, resume: Path | None, others: "OtherRanks", found: "Ranks"
) -> Iterator[None]:
    """Start who follows, tell them what is trained, and let them go at the end."""
    from hotloop.train import ranks as ranking

    try:
        others.start()
        ranking.join(0, others.size, others.store)
        if settings.train.device == "cuda":
            ranking.use_own_gpu(0)
        others.watch(found)
        with found.together():
            ranking.broadcast((settings, resume.read_bytes() if resume else None), leads=True)
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
    from hotloop.train import ranks as ranking

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if store is not None:
        store.set(here(rank), socket.gethostname())
    ranking.join(rank, size, store)
    ranks = ranking.Ranks(rank, size)
    settings, content = ranking.broadcast(None, leads=False)
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
    from hotloop.train.ranks import Command
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
            ranks.gather((windows.close(), dict(batch.counters)))
        else:
            trainer.content()
    batch.close()


def windows_together(
    ranks: "Ranks", mine: WindowEpisodes, batch: Batch
) -> tuple[WindowEpisodes, dict[str, int]]:
    """The episodes and the counters of all ranks."""
    from hotloop.train.ranks import Command

    if not ranks.several:
        return mine, dict(batch.counters)
    ranks.tell(Command.WINDOW)
    every = ranks.gather((mine, dict(batch.counters)))
    counted: dict[str, int] = {}
    for _, counters in every:
        for name, count in counters.items():
            counted[name] = counted.get(name, 0) + count
    return add_windows([window for window, _ in every]), counted


def add_windows(windows: Sequence[WindowEpisodes]) -> WindowEpisodes:
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


def name_slowest_rank(times: TimeTree, ranks: "Ranks") -> TimeTree:
    """The account of a window whose row of waiting names the slowest rank."""
    from hotloop.train.ranks import WAITING

    if not ranks.several:
        return times
    slowest = f"{WAITING}, most on rank {ranks.slowest()}"
    return times.renamed(lambda path: path.replace(WAITING, slowest))


WORKER = ("-P", "-m", "hotloop.lab.workers.run", "rank")

START_NS = 180_000_000_000  # What a rank may take to be there
ROOM_S = 60.0  # What a cluster may take to make room for ranks that fit into it
END_S = 5.0  # What ranks may take to end once they are told


class OtherRanks:
    """Those that torchrun started: it watches them itself, and says where they meet."""

    look_s = 0.1  # Between two looks at whether all live
    address = "127.0.0.1"  # Of rank 0, as the others reach it

    def __init__(self, size: int) -> None:
        self.size = size
        self.store: Any = None
        self.lost = False  # Whether one died before the end
        self._first = ""  # What became of the first that died
        self._lock, self._over = Lock(), Event()

    def start(self) -> None:
        """Start them, and wait until all are there; one that dies on the way is said."""

    def gone(self) -> str:
        """Which rank is gone, and how; empty while all live."""
        return ""

    def kill(self) -> None:
        """End all at once."""

    def end(self) -> None:
        """Wait for them to end, and end those that do not."""

    def dead(self) -> str:
        """What became of the first rank that died."""
        with self._lock:
            self._first = self._first or self.gone()
            return self._first

    def wait_until_there(self) -> None:
        until = now_ns() + START_NS
        missing = [here(rank) for rank in range(1, self.size)]
        while not self.store.check(missing):
            dead = self.dead()
            if dead or now_ns() > until:
                from hotloop.train.ranks import RankLostError

                raise RankLostError(dead or f"the ranks are not there after {START_NS // 10**9} s")
            sleep(self.look_s)

    def watch(self, ranks: "Ranks") -> None:
        """Look from a side thread whether all live; once one does not, no other is left or waited for."""

        def look() -> None:
            while not self._over.wait(self.look_s):
                if why := self.dead():
                    self.kill()
                    ranks.give_up(why)
                    return

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
        while not self.dead() and now_ns() < until:
            sleep(self.look_s)
        return self.dead()


class Processes(OtherRanks):
    """Those of this machine."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.workers: list[subprocess.Popen[bytes]] = []
        self.said: list[IO[str]] = []

    def start(self) -> None:
        from hotloop.train.ranks import server

        self.store = server()
        for rank in range(1, self.size):
            heard = tempfile.TemporaryFile("w+", prefix="hotloop-rank-")  # noqa: SIM115 - closed in end()
            where = {"host": self.address, "port": self.store.port, "parent": os.getpid()}
            told = {"rank": rank, "size": self.size, **where}
            self.said.append(heard)
            self.workers.append(
                start(  # in a group of its own: Ctrl-C is for rank 0 to hear
                    [sys.executable, *WORKER, json.dumps(told)],
                    stdin=subprocess.DEVNULL,
                    stdout=heard,
                    stderr=heard,
                )
            )
        self.wait_until_there()

    def gone(self) -> str:
        """Those that ended because another died tell less, and come last."""
        codes = [(rank, worker.poll()) for rank, worker in enumerate(self.workers, 1)]
        over = sorted((code > 0, rank, code) for rank, code in codes if code is not None)
        if not over:
            return ""
        _, rank, code = over[0]
        return f"rank {rank} of {self.size} {self.how(rank, code)}"

    def how(self, rank: int, code: int) -> str:
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        said = self.said[rank - 1]
        said.seek(0)
        last = next((line.strip() for line in reversed(said.readlines()) if line.strip()), "")
        return f"ended with {code}: {last}".removesuffix(": ")

    def kill(self) -> None:
        """End all at once, and the processes they started: a line that one of those holds stays open."""
        for worker in self.workers:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.pid, signal.SIGKILL)

    def end(self) -> None:
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
            sleep(OtherRanks.look_s)
        sleep(END_S)
        os._exit(ExitCode.FAULT)

    Thread(target=look, name="hotloop-parent", daemon=True).start()


class RayRanks(OtherRanks):
    """Those of a cluster: one task a rank, its cores reserved, spread over the machines."""

    look_s = 0.5

    def __init__(self, size: int, there: OnRay, where: str, *, cores: int) -> None:
        super().__init__(size)
        self.ray, self.nodes, self.cores = there.ray, there.nodes, cores
        self.address = self.address if where == LOCAL else address_seen_by(*place_of(where))
        self.tasks: list[Any] = []
        self.room: Any = None

    def start(self) -> None:
        from hotloop.train.ranks import server

        self.make_room()
        self.store = server()
        strategies = need("ray.util.scheduling_strategies")
        for rank in range(1, self.size):
            place = strategies.PlacementGroupSchedulingStrategy(self.room, rank - 1)
            # Once: a rank that fails ends its process, whose open lines the others would wait at.
            task = self.ray.remote(max_calls=1)(follow_there).options(
                num_cpus=self.cores, max_retries=0, name=f"rank {rank}", scheduling_strategy=place
            )
            self.tasks.append(task.remote(rank, self.size, self.address, self.store.port))
        self.wait_until_there()

    def make_room(self) -> None:
        """Reserve the cores of all ranks at once, so that none waits for a place while others wait for it."""
        wanted, most = self.size - 1, sum(node.cores // self.cores for node in self.nodes)
        if wanted > most:
            raise SetupError(
                f"{wanted} ranks of {self.cores} cores do not fit: the cluster has room for {most}; "
                "use fewer train.ranks or train.torch_threads, or more machines"
            )
        groups = need("ray.util.placement_group")
        self.room = groups.placement_group([{"CPU": self.cores}] * wanted, strategy="SPREAD")
        if not self.room.wait(ROOM_S):
            raise SetupError(
                f"the cluster made no room for {wanted} ranks within {ROOM_S:.0f} s: is it busy?"
            )

    def gone(self) -> str:
        """What is told by those that ended because another died is less, and comes last."""
        if not self.tasks:
            return ""
        errors = self.ray.exceptions
        try:
            over, _ = self.ray.wait(self.tasks, num_returns=len(self.tasks), timeout=0)
            found = {self.tasks.index(task) + 1: self.why(task) for task in over}
        except (errors.RayError, ConnectionError) as error:
            return f"the cluster is gone: {ray_error_text(error)}"
        told = sorted((why.startswith("another rank"), rank, why) for rank, why in found.items())
        return f"rank {told[0][1]} of {self.size} is gone: {told[0][2]}" if told else ""

    def why(self, task: Any) -> str:
        """What became of a task that is over."""
        errors = self.ray.exceptions
        try:
            self.ray.get(task)
        except errors.RayTaskError as error:
            return str(error.cause if isinstance(error.cause, Exception) else ray_error_text(error))
        except errors.NodeDiedError:
            return "its machine is lost"
        except errors.RayError as error:
            return f"its process is lost ({type(error).__name__})"
        return "it ended"

    def kill(self) -> None:
        for task in self.tasks:
            with suppress(self.ray.exceptions.RayError, ConnectionError, ValueError):
                self.ray.cancel(task, force=True)

    def end(self) -> None:
        with suppress(self.ray.exceptions.RayError, ConnectionError, ValueError):
            self.ray.wait(self.tasks, num_returns=len(self.tasks), timeout=END_S)
            self.kill()
            if self.room is not None:
                need("ray.util.placement_group").remove_placement_group(self.room)


def address_seen_by(host: str, port: int) -> str:
    """This machine's address on the way to another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((host, port))
        return str(way.getsockname()[0])


def follow_there(rank: int, size: int, host: str, port: int) -> None:
    """Be a rank on whichever machine this is."""
    from hotloop.train.ranks import client

    follow(rank, size, client(host, port))


def here(rank: int) -> str:
    """What a rank sets where they meet, once it is there."""
    return f"rank {rank}"


@contextmanager
def hire_actors(settings: RunSettings) -> "Iterator[ActorPool | None]":
    """Who collects for a training elsewhere; None where it collects itself."""
    train = settings.train
    if train.collect == HERE:
        yield None
        return
    with on_ray(check_address(train.collect), timed=False, carry=settings.carried) as there:
        from hotloop.train.actors import ActorPool

        yield ActorPool(
            ray=there.ray,
            target=settings.target,
            actors=train.actors,
            cores=[node.cores for node in there.nodes],
            staleness=train.staleness,
        )
