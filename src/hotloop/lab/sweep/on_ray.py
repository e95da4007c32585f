"""Ray as what runs cells: one cell a task with its cores reserved, on this machine or on a cluster.

Cells that are timed run one at a time on a machine, and only on machines of one kind, since numbers of
unlike ones are never compared; others run side by side wherever there is room. A cell whose worker or whose
machine is lost is run again, and counted. Each record is yielded as soon as it is there.
"""

import json
import platform
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from hotloop.core.cluster import LOCAL, connected, ray_error_text
from hotloop.core.errors import ExitCode, SetupError
from hotloop.core.machine import code, machine, need, state
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.lab.sweep.cells import PARTS, Cell, CellResult, ProcessExecutor, try_cell

TRIES = 3  # Attempts per cell; one that keeps killing its worker is then refused
DIGITS = 9  # Of a number of cores that are read: no machine has as many
SURVEY_S = 120.0  # What machines may take to say what they are: their first worker has to start
LOOK_S = 0.5  # Between two looks at whether machines came or went
# What Ray raises if a worker or its machine went away with a cell
LOST = (
    "WorkerCrashedError",
    "NodeDiedError",
    "LocalRayletDiedError",
    "ObjectLostError",
    "TaskUnschedulableError",
    "OutOfMemoryError",
    "ActorDiedError",
)
TOLD = ("hotloop", "numpy", "torch", "ray")  # Packages that must be the same everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """One raylet, on some machine."""

    id: str
    host: str  # The machine it runs on: several may run on one
    fingerprint: str
    cores: int
    versions: dict[str, str]


@dataclass(slots=True, kw_only=True)
class RayTask:
    """A cell that is under way."""

    cell: Cell
    node: ClusterNode | None  # Where it was sent; None where Ray decides
    tries: int = 1


def describe() -> dict[str, Any]:
    """Return what this machine is and the versions on it."""
    versions = {"python": platform.python_version()}
    for name in TOLD:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    commit, dirty = state(Path(__file__).parent)
    versions["commit"] = commit + ("+" if dirty else "")
    boot = Path("/proc/sys/kernel/random/boot_id")
    host = f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}".strip()
    return {"host": host, "fingerprint": machine()["fingerprint"], "versions": versions}


def run_cell(text: str) -> str:
    """Run a cell on this machine, user code in a process of its own; return its result as JSON."""
    cell = Cell.from_json(text)
    found = (
        next(iter(ProcessExecutor(Path.cwd()).run([cell], silent)))
        if cell.target.is_foreign
        else try_cell(cell)
    )
    record = found.record.to_json() if found.record is not None else None
    return json.dumps({"record": record, "refused": found.refused, "code": int(found.code)})


@contextmanager
def on_ray(
    address: str, *, timed: bool, carry: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Iterator["OnRay"]:
    """An executor on a cluster that is connected to meanwhile."""
    with connected(address, carry=carry) as ray:
        here = describe()
        nodes = survey(ray)
        check_versions(nodes, here["versions"])
        chosen, left_out = alike(nodes, here["fingerprint"]) if timed else (nodes, [])
        if left_out:
            kinds = len({node.fingerprint for node in left_out})
            say(f"{len(left_out)} of {len(nodes)} machines are left out: {kinds} other kinds of machine")
        carried = carry is not None and address != LOCAL
        yield OnRay(ray=ray, nodes=chosen, timed=timed, carried=carried, say=say)


def survey(ray: Any) -> list[ClusterNode]:
    """Return every machine of the cluster that has cores, with what it says of itself."""
    alive = {each["NodeID"]: each for each in ray.nodes() if each["Alive"]}
    with_cores = {key: int(each["Resources"].get("CPU", 0)) for key, each in alive.items()}
    ask = ray.remote(describe).options
    asked = {
        key: ask(num_cpus=0, scheduling_strategy=on_node(key)).remote()
        for key, cores in with_cores.items()
        if cores > 0
    }
    try:
        told = dict(zip(asked, ray.get(list(asked.values()), timeout=SURVEY_S), strict=True))
    except ray.exceptions.GetTimeoutError:
        raise SetupError(
            f"the cluster's machines said nothing within {SURVEY_S:.0f} s: is it busy?"
        ) from None
    except ray.exceptions.RayError as error:
        raise SetupError(f"a machine of the cluster cannot run Hotloop: {ray_error_text(error)}") from None
    if not told:
        raise SetupError("the cluster has no machine with a core")
    return [ClusterNode(id=key, cores=with_cores[key], **each) for key, each in told.items()]


def on_node(node: str) -> Any:
    """Return the strategy that runs a task on one node."""
    strategies = need("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)


def check_versions(nodes: Sequence[ClusterNode], here: dict[str, str]) -> None:
    """Refuse machines whose code is not the one that asks."""
    for node in nodes:
        for name in dict.fromkeys((*here, *node.versions)):
            there, ours = node.versions.get(name, "none"), here.get(name, "none")
            if there != ours:
                raise SetupError(
                    f"{node.host.partition(' ')[0]} has {name} {there} and this machine {ours}: "
                    "install the same on every machine"
                )


def alike(nodes: Sequence[ClusterNode], here: str) -> tuple[list[ClusterNode], list[ClusterNode]]:
    """Return the machines of the most frequent kind, of this one's if that is as many; and the others."""
    hosts = Counter(fingerprint for fingerprint, _ in {(each.fingerprint, each.host) for each in nodes})
    kind = max(hosts, key=lambda each: (hosts[each], each == here, each))
    return [n for n in nodes if n.fingerprint == kind], [n for n in nodes if n.fingerprint != kind]


def cores_of(cell: Cell) -> int:
    """Return the number of cores that a cell keeps busy."""
    keys = cell.target.keys
    count = 1
    for key in ("threads", "train.ranks"):
        word = str(keys.get(key, "1"))
        count *= max(int(word[:DIGITS]), 1) if word.isdecimal() else 1
    return count


@dataclass(slots=True, kw_only=True)
class OnRay:
    """Runs cells as Ray's tasks."""

    ray: Any
    nodes: list[ClusterNode]
    timed: bool
    carried: bool = False  # Whether the project's code was sent, so that no worker knows its commit
    tries: int = TRIES
    say: Callable[[str], None] = lambda _: None
    under_way: dict[Any, RayTask] = field(default_factory=dict)

    @property
    def fingerprints(self) -> frozenset[str]:
        return frozenset(node.fingerprint for node in self.nodes)

    def run(self, cells: Sequence[Cell], progress: Progress) -> Iterator[CellResult]:
        most = max(node.cores for node in self.nodes)
        waiting = deque(RayTask(cell=cell, node=None) for cell in cells if cores_of(cell) <= most)
        finished = 0
        for cell in cells:
            if (cores := cores_of(cell)) > most:
                finished += 1
                why = f"it reserves {cores} cores and no machine of the cluster has more than {most}"
                why = f"{why}: ask for fewer threads"
                yield CellResult(cell=cell, record=None, refused=why, code=ExitCode.USAGE)
        try:
            while waiting or self.under_way:
                self.send(waiting)
                for found in self.fetched(waiting):
                    finished += 1
                    progress(finished * PARTS, len(cells) * PARTS)
                    yield found
        finally:
            self.cancel()

    def send(self, waiting: deque[RayTask]) -> None:
        """Give cells to machines that are free; if nothing is timed, Ray itself knows which are."""
        if not self.timed:
            while waiting:
                self.start(waiting.popleft(), None)
            return
        for node in self.free():
            if waiting:
                self.start(waiting.popleft(), node)

    def free(self) -> list[ClusterNode]:
        """Return one raylet of each idle machine; SetupError if no machine is left."""
        there = {each["NodeID"] for each in self.ask_cluster(self.ray.nodes) if each["Alive"]}
        alive = [node for node in self.nodes if node.id in there]
        if not alive:
            raise SetupError("no machine of the cluster is left: what is done is kept, --resume goes on")
        self.nodes[:] = alive
        busy = {task.node.host for task in self.under_way.values() if task.node}
        chosen: dict[str, ClusterNode] = {}
        for node in alive:
            if node.host not in busy:
                chosen.setdefault(node.host, node)
        for node in chosen.values():  # the next time it is another one's turn
            self.nodes.remove(node)
            self.nodes.append(node)
        return list(chosen.values())

    def start(self, task: RayTask, node: ClusterNode | None) -> None:
        """Send a cell; a timed one reserves all of its machine."""
        task.node = node
        cell = task.cell
        where: Any = on_node(node.id) if node else "SPREAD"
        cores = node.cores if node else cores_of(cell)
        sent = self.ray.remote(run_cell).options(
            num_cpus=cores, max_retries=0, name=cell.target.words, scheduling_strategy=where
        )
        self.under_way[self.ask_cluster(lambda: sent.remote(cell.to_json()))] = task

    def fetched(self, waiting: deque[RayTask]) -> Iterator[CellResult]:
        """Yield the results of cells that ended; lost ones wait again."""
        ready, _ = self.ask_cluster(
            lambda: self.ray.wait(list(self.under_way), num_returns=1, timeout=LOOK_S)
        )
        for ref in ready:
            task = self.under_way.pop(ref)
            why = ""
            try:
                yield self.read(task, self.ray.get(ref))
                continue
            except tuple(getattr(self.ray.exceptions, name) for name in LOST) as error:
                why = ray_error_text(error)
            except self.ray.exceptions.RayError as error:
                yield refused(task, ray_error_text(error))
                continue
            task.tries += 1
            if task.tries > self.tries:
                yield refused(task, f"its worker was lost {self.tries} times: {why}")
            else:
                self.say(f"the worker of {task.cell.target.words} was lost: it is run again")
                waiting.append(task)

    def read(self, task: RayTask, text: str) -> CellResult:
        """Return the result of a cell from its JSON; carried code has the commit of this machine."""
        plain = json.loads(text)
        if plain["record"] is None:
            why, number = plain["refused"], ExitCode(plain["code"])
            return CellResult(cell=task.cell, record=None, refused=why, code=number, tries=task.tries)
        record = Record.from_json(plain["record"])
        if self.carried and "project" in record.code:
            now = code(None, target=record.target.name)
            record = replace(record, code={**record.code, "project": now["project"]})
        return CellResult(cell=task.cell, record=record, tries=task.tries)

    def ask_cluster(self, what: Callable[[], Any]) -> Any:
        """Return what the cluster answers; SetupError in one line if it is gone."""
        try:
            return what()
        except (ConnectionError, self.ray.exceptions.RayError) as error:
            raise SetupError(
                f"the cluster is gone ({ray_error_text(error)}): what is done is kept, --resume goes on"
            ) from None

    def cancel(self) -> None:
        """End what is under way."""
        for ref in self.under_way:
            with suppress(ConnectionError, self.ray.exceptions.RayError, ValueError):
                self.ray.cancel(ref, force=True)
        self.under_way.clear()


def refused(task: RayTask, why: str) -> CellResult:
    """Return the result of a cell that Ray could not run."""
    return CellResult(cell=task.cell, record=None, refused=why, code=ExitCode.FAULT, tries=task.tries)
