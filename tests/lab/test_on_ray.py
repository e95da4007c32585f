import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.cluster import two_raylets

from hotloop.core.errors import ExitCode, SetupError
from hotloop.core.record import Record, read
from hotloop.core.settings import Target
from hotloop.lab.sweep import scale
from hotloop.lab.sweep.cells import Cell
from hotloop.lab.sweep.on_ray import ClusterNode, OnRay, alike, check_versions, cores_of

AXES = {"repeat": 0, "env_steps": 16, "policy": "random", "phases": False, "steps": 1}


def cell(n: int, **keys: str) -> Cell:
    asked = {**AXES, "at": {"seed": str(n)}}
    return Cell(target=Target("grid/toy", {"seed": str(n), **keys}), experiment=scale.EXPERIMENT, asked=asked)


def node(name: str, fingerprint: str = "one", cores: int = 2, **versions: str) -> ClusterNode:
    return ClusterNode(id=name, host=name, fingerprint=fingerprint, cores=cores, versions=versions)


def test_machines_of_one_kind_alone_are_compared_the_most_of_them() -> None:
    nodes = [node("a"), node("b", "two"), node("c", "two")]
    assert [[each.id for each in some] for some in alike(nodes, "one")] == [["b", "c"], ["a"]]
    assert [each.id for each in alike(nodes[:2], "one")[0]] == ["a"]


def test_raylets_on_one_machine_are_one_machine() -> None:
    twice = [replace(node("b", "two"), id=name, host="b") for name in ("b", "c")]
    assert [each.id for each in alike([node("a"), *twice], "one")[0]] == ["a"]


def test_versions_that_differ_are_refused_by_name() -> None:
    with pytest.raises(SetupError, match=r"^b has numpy 1\.0 and this machine 2\.0: install the same"):
        check_versions([node("a", numpy="2.0"), node("b", numpy="1.0")], {"numpy": "2.0"})
    with pytest.raises(SetupError, match="torch none and this machine 2"):
        check_versions([node("a", numpy="2.0")], {"numpy": "2.0", "torch": "2"})


def test_a_cell_reserves_what_it_keeps_busy() -> None:
    assert [cores_of(cell(1)), cores_of(cell(1, threads="4"))] == [1, 4]
    assert cores_of(cell(1, threads="9" * 5_000)) > 10**8
    assert (
        cores_of(Cell(target=Target("grid/toy", {"train.ranks": "3", "threads": "2"}), experiment="x")) == 6
    )


def test_a_cell_that_reserves_more_cores_than_there_are_is_refused() -> None:
    executor = OnRay(ray=None, nodes=[node("a", cores=2)], timed=True)
    [found] = executor.run([cell(1, threads="4")], lambda at, total: None)
    assert found.refused.startswith("it reserves 4 cores and no machine of the cluster has more than 2")
    assert found.code is ExitCode.USAGE


class LosingRay:
    """As much of Ray as runs cells: every worker dies, as often as it is asked."""

    class exceptions:  # noqa: N801 - as Ray spells it
        class RayError(Exception): ...

        class WorkerCrashedError(RayError): ...

        NodeDiedError = LocalRayletDiedError = ObjectLostError = WorkerCrashedError
        TaskUnschedulableError = OutOfMemoryError = ActorDiedError = WorkerCrashedError

    def __init__(self) -> None:
        self.begun: list[str] = []

    def remote(self, _: object) -> "LosingRay":
        return self

    def options(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(remote=self.begin)

    def begin(self, text: str) -> int:
        self.begun.append(text)
        return len(self.begun)

    def wait(self, refs: list[int], **_: object) -> tuple[list[int], list[int]]:
        return refs[:1], refs[1:]

    def get(self, ref: int) -> str:
        raise self.exceptions.WorkerCrashedError

    def cancel(self, ref: int, *, force: bool) -> None: ...


def test_a_cell_whose_workers_are_lost_is_run_again_said_and_given_up_in_the_end() -> None:
    ray, said = LosingRay(), list[str]()
    executor = OnRay(ray=ray, nodes=[node("a")], timed=False, say=said.append)
    found = list(executor.run([cell(1), cell(2)], lambda at, total: None))
    assert len(ray.begun) == 6
    assert [each.refused[:31] for each in found] == ["its worker was lost 3 times: Wo"] * 2
    assert len(said) == 4
    assert said[0] == "the worker of grid/toy seed=1 was lost: it is run again"


def shelved(folder: Path) -> dict[str, object]:
    """Cell to the work that its record counts."""
    return {path.name: read(path).work for path in folder.glob("artifacts/sweeps/*/*.json")}


SWEEP = ("scale", "grid/toy", "agents=2,3", "--repeats", "4", "--steps", "16", "--no-phases")


@pytest.mark.slow
def test_a_sweep_on_two_raylets_loses_nothing_with_a_worker_and_with_a_node(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there, here):
        folder.mkdir()
    program = [
        sys.executable,
        "-P",
        "-c",
        "import sys; from hotloop.cli.main import main; sys.exit(main())",
        *SWEEP,
    ]
    with two_raylets() as (address, cluster):
        run = subprocess.Popen(
            [*program, "--on", address, "--json"],
            cwd=there,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        killed = 0
        while run.poll() is None and not (killed and len(shelved(there)) >= 4):
            if len(shelved(there)) >= 2 and not killed:
                killed = kill_worker()
        cluster.kill_one()
        out, said = run.communicate()
    assert run.returncode == 0, said
    record = Record.from_json(out)
    subprocess.run(program, cwd=here, check=True, capture_output=True)
    assert len(shelved(there)) == 8
    assert shelved(there) == shelved(here)
    assert "run-again" in {each.code for each in record.notices}


def kill_worker() -> int:
    """Kill a process that runs a cell, if there is one; how many."""
    for place in Path("/proc").iterdir():
        with suppress(OSError):
            if place.name.isdecimal() and (place / "cmdline").read_bytes().startswith(
                b"ray::grid/toy agents="
            ):
                os.kill(int(place.name), signal.SIGKILL)
                return 1
    return 0
