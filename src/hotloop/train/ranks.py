"""Ranks: processes that train one network together, each with envs and a share of each minibatch of its own.

Rank 0 is the run: it decides, writes and tells. The others follow: they are told what comes next, take part
in it, and say what became of it when they are asked. Gradients are averaged by torch.distributed while they
are found; statistics are merged in the order of ranks, so that they are the same everywhere to the bit.
"""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from threading import Lock
from time import sleep
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.futures import Future

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError, InputError
from hotloop.train.timing import span

if TYPE_CHECKING:
    from hotloop.train.normalize import Moments


# The row of a run's tree: from the end of a rank's rollout to that of the last one.
WAITING = "waiting on others"


# Collective timeout; a dead rank is detected immediately by its closed connection.
PATIENCE = timedelta(minutes=30)


LOOK = timedelta(milliseconds=100)  # Between two looks at whether a rank is gone, while all are waited for


# What torch may take to see that a line is closed, and between two looks at whether it has.
SETTLE_NS, SETTLE_S = 5_000_000_000, 500e-6


READER = "gloo_tcp_loop"  # What gloo calls the thread that reads from all lines


STRIDE = 1_000_003  # Between the seeds of two ranks


class Command(IntEnum):
    """What comes next."""

    UPDATE = 0
    COLLECT = 1
    WINDOW = 2  # Say what episodes came to, and what was counted
    SAVE = 3  # Give what a checkpoint has of each rank
    END = 4


class RankLostError(HotloopError):
    """Another rank is gone: the update under way cannot be finished."""


class Ranks:
    """This process among those that train together; alone it does nothing."""

    def __init__(self, rank: int = 0, size: int = 1, who_died: Callable[[], str] = str) -> None:
        """`who_died` says which rank is gone once one is known to be."""
        self.rank, self.size = rank, size
        self._who_died = who_died
        self._gone = ""
        """Why the other ranks are not waited for any more."""
        self._promised: dict[Future[Any], Any] = {}
        """Gradients that are under way, and who brings them."""
        self._left: list[Any] = []
        """What was under way when it was given up."""
        self._lock = Lock()
        self._room = torch.empty(0, 0)
        """For the gradients of two."""
        self._began_ns = now_ns()
        self.busy_ns = [0] * size
        """What each took for its rollouts since the last `slowest`."""

    @property
    def several(self) -> bool:
        return self.size > 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def tell(self, command: Command) -> None:
        """Say to all what comes next."""
        if self.several and self.leads:
            with self.together():
                self._finish(dist.broadcast(torch.tensor([int(command)]), 0, async_op=True))

    def hear(self) -> Command:
        """What comes next, from rank 0."""
        told = torch.zeros(1, dtype=torch.int64)
        with self.together():
            self._finish(dist.broadcast(told, 0, async_op=True))
        return Command(int(told[0]))

    def begin(self) -> None:
        """A rollout begins."""
        self._began_ns = now_ns()

    def meet(self) -> None:
        """Wait until all have ended their rollouts, and learn how long each took."""
        if not self.several:
            return
        mine = torch.tensor([now_ns() - self._began_ns])
        with span(WAITING), self.together():
            every = [torch.zeros_like(mine) for _ in range(self.size)]
            self._finish(dist.all_gather(every, mine, async_op=True))
        self.busy_ns = [had + int(took[0]) for had, took in zip(self.busy_ns, every, strict=True)]

    def slowest(self) -> int:
        """The rank that took longest since this was asked last."""
        found = max(range(self.size), key=self.busy_ns.__getitem__)
        self.busy_ns = [0] * self.size
        return found

    def sum_over_ranks(self, numbers: Tensor) -> Tensor:
        """The sum over all ranks."""
        with self.together():
            self._finish(dist.all_reduce(numbers, async_op=True))
        return numbers

    def mean(self, terms: Mapping[str, float]) -> dict[str, float]:
        """The mean of every term over all ranks, which name the same ones."""
        if not self.several:
            return dict(terms)
        total = self.sum_over_ranks(torch.tensor(list(terms.values()), dtype=torch.float64))
        return dict(zip(terms, (total / self.size).tolist(), strict=True))

    def merge(self, own: "Moments", into: "Moments") -> None:
        """Add what every rank has counted, in their order."""
        if not self.several:
            into.merge(own.count, own.mean, own.variance)
            return
        mine = torch.cat([part.reshape(-1).cpu() for part in (own.count, own.mean, own.variance)])
        every = [torch.zeros_like(mine) for _ in range(self.size)]
        with self.together():
            self._finish(dist.all_gather(every, mine, async_op=True))
        width = own.mean.numel()
        for one in every:
            mean, variance = (part.reshape(own.mean.shape) for part in (one[1 : 1 + width], one[1 + width :]))
            into.merge(one[0], mean.to(own.mean.device), variance.to(own.mean.device))

    def gather(self, mine: Any) -> list[Any]:
        """What every rank has to give, in their order; of others than rank 0 nothing."""
        if not self.several:
            return [mine]
        every: list[Any] | None = [None] * self.size if self.leads else None
        with self.together():
            dist.gather_object(mine, every)
        return every or []

    def wrap(self, network: nn.Module, *, all_used: bool) -> nn.Module:
        """The network as it is learned with: gradients are averaged over ranks while they are found."""
        if not self.several:
            return network
        made = nn.parallel.DistributedDataParallel
        known = inspect.signature(made).parameters
        buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        options: dict[str, Any] = {buffers: False, "find_unused_parameters": not all_used}
        with self.together():
            wrapped = made(network, gradient_as_bucket_view=True, **options)
        if next(network.parameters()).device.type == "cpu":
            wrapped.register_comm_hook(None, self.begin_average)
        return wrapped

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average gradients over ranks that were found all at once; what lies together is not copied."""
        found = [each.grad for each in parameters if each.grad is not None]
        whole, together = in_one_piece(found)
        if self.size == 2 and self._room.shape[1] != whole.numel():
            self._room = whole.new_empty(2, whole.numel())
        every = list(self._room)
        with self.together():
            self._finish(self._sent(whole, every))
        (torch.add(*every, out=whole) if every else whole).div_(self.size)
        if not together:
            for each, part in zip(found, torch.split(whole, [each.numel() for each in found]), strict=True):
                each.copy_(part.view_as(each))

    def same(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give rank 0's weights to all."""
        with self.together():
            for each in parameters:
                self._finish(dist.broadcast(each.detach(), 0, async_op=True))
                increment_version(each)

    def begin_average(
        self,
        _: None,
        bucket: dist.GradBucket,  # type: ignore[name-defined]  # DDP looks at how it is annotated
    ) -> Future[Tensor]:
        """Begin to average some gradients over ranks; a promise is kept, or given up for lost."""
        promise: Future[Any] = Future()
        mine = bucket.buffer()
        every = [torch.empty_like(mine) for _ in range(2)] if self.size == 2 else []
        work = self._sent(mine, every)
        with self._lock:
            self._promised[promise] = work

        def keep(found: Future[Any]) -> None:
            with self._lock:
                if self._promised.pop(promise, None) is None:
                    return
            try:
                found.value()
            except RuntimeError as error:
                promise.set_exception(error)
                return
            promise.set_result((torch.add(*every, out=mine) if every else mine).div_(self.size))

        work.get_future().add_done_callback(keep)
        if self._gone:
            self.give_up(self._gone)
        return promise

    def _sent(self, mine: Tensor, every: list[Tensor]) -> Any:
        """Begin to add what all have, in place, or to put it into `every`.

        Two ranks send each other all they have, which is one message each instead of the two of a ring.
        """
        return dist.all_gather(every, mine, async_op=True) if every else dist.all_reduce(mine, async_op=True)

    def give_up(self, why: str) -> None:
        """Stop waiting for other ranks; another thread may call this."""
        self._gone = why
        with self._lock:
            broken, self._promised = self._promised, {}
        self._left += broken.values()
        for promise in broken:
            promise.set_exception(RankLostError(why))

    def settle(self) -> None:
        """Wait until what was given up has failed by itself: the lines of those that are gone are closed."""
        until = now_ns() + SETTLE_NS
        while now_ns() < until and not all(work.is_completed() for work in self._left):
            sleep(SETTLE_S)

    def _finish(self, work: Any) -> None:
        """Wait for what all take part in; a rank that is gone is not waited for, whatever its line says."""
        while True:
            try:
                work.wait(LOOK)
            except RuntimeError:
                if work.is_completed():
                    work.wait()  # says what became of it, unless it has just come
                elif self._gone:
                    self._left.append(work)
                    raise RankLostError(self._gone) from None
                else:
                    continue
            return

    @contextmanager
    def together(self) -> Iterator[None]:
        """Say in one line that another rank is gone, where one is."""
        try:
            yield
        except (RuntimeError, ConnectionError) as error:
            if not self.several:
                raise
            why = self._gone or self._who_died() or f"another rank is gone: {first_line(error)}"
            raise RankLostError(why) from None


ALONE = Ranks()


def in_one_piece(parts: Sequence[Tensor]) -> tuple[Tensor, bool]:
    """The numbers of all parts one after the other: where they lie, if that is so, or copied."""
    whole = parts[0]._base  # noqa: SLF001 - torch says it nowhere else
    together = whole is not None and all(part._base is whole for part in parts)  # noqa: SLF001
    if whole is not None and together and whole.shape == (sum(part.numel() for part in parts),):
        return whole, True
    return torch.cat([part.reshape(-1) for part in parts]), False


def first_line(error: BaseException) -> str:
    """The first sentence of an error, without the place in torch's sources that it comes from."""
    said = (str(error).splitlines() or [""])[0].removeprefix("Unable to cast ")
    return re.sub(r"^\[[^\]]*\.cc:\d+\] ", "", said).partition(". ")[0][:200] or type(error).__name__


def join(rank: int, size: int, store: Any) -> None:
    """Become one of the ranks; without a store the environment says where they meet, as torchrun tells it."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    meeting: dict[str, Any] = {"init_method": "env://"} if store is None else {"store": store}
    dist.init_process_group(backend, rank=rank, world_size=size, timeout=PATIENCE, **meeting)
    # Keep the thread that gloo reads with from taking a core from the one that it sends with, which holds the
    # lock of their line. The reader looks again at once for as long as it has the core: without this it burns
    # more of it than there is to send. It is a wish, no more.
    tasks = Path("/proc/self/task")
    for task in tasks.iterdir() if tasks.is_dir() else ():
        with suppress(OSError):
            if (task / "comm").read_text().strip() == READER:
                os.sched_setscheduler(int(task.name), os.SCHED_BATCH, os.sched_param(0))


def use_own_gpu(rank: int) -> None:
    """Let a rank have a GPU to itself, where its machine has as many."""
    own = int(os.environ.get("LOCAL_RANK", rank))  # torchrun counts those of a machine
    torch.cuda.set_device(own % torch.cuda.device_count())


def check_free() -> None:
    """Refuse a second training with ranks beside one that is under way in this process."""
    if dist.is_initialized():
        raise InputError(
            "two trainings with train.ranks cannot take turns in one process: give one train.ranks=1"
        )


def leave(*, lost: bool = False) -> None:
    """End the ranks' common work; where one is lost, what is still under way is given up."""
    if not dist.is_initialized():
        return
    group: Any = dist.group.WORLD
    if lost and hasattr(group, "abort"):  # which older ones do not have
        group.abort()
    dist.destroy_process_group()


def broadcast(what: Any, *, leads: bool) -> Any:
    """Return on every rank what rank 0 gives."""
    box = [what if leads else None]
    dist.broadcast_object_list(box, 0)
    return box[0]


def server() -> Any:
    """Where others find rank 0: on a port that is free."""
    store: Any = dist.TCPStore  # type: ignore[attr-defined]  # exported where torch was built with it
    return store("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=PATIENCE)


def client(host: str, port: int) -> Any:
    store: Any = dist.TCPStore  # type: ignore[attr-defined]
    return store(host, port, is_master=False, timeout=PATIENCE)
