import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.cluster import two_raylets

from hotloop.core.cluster import LOCAL
from hotloop.core.errors import SetupError
from hotloop.lab.sweep.on_ray import ClusterNode
from hotloop.lab.training.ranks import OtherRanks, RayRanks, address_seen_by
from hotloop.train.ranks import Ranks


class InlineRay:
    """As much of Ray as is asked about ranks; a task is a function that says what became of it."""

    class exceptions:  # noqa: N801 - as Ray spells it
        class RayError(Exception): ...

        class RayTaskError(RayError):
            cause: Exception

        class NodeDiedError(RayError): ...

    cancelled: list[Any]

    def __init__(self) -> None:
        self.cancelled = []

    def wait(self, tasks: Sequence[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return [task for task in tasks if task is not None], []

    def get(self, task: Callable[[], None]) -> None:
        task()

    def cancel(self, task: Any, *, force: bool) -> None:
        self.cancelled.append(task)


def tasks_of(size: int, cores: int = 1, *, became: Sequence[Any] = ()) -> RayRanks:
    nodes = [ClusterNode(id=name, host=name, fingerprint="", cores=3, versions={}) for name in ("a", "b")]
    made = RayRanks(size, SimpleNamespace(ray=InlineRay(), nodes=nodes), LOCAL, cores=cores)  # type: ignore[arg-type]
    made.tasks = list(became)
    return made


def raising(error: Exception, cause: Exception | None = None) -> Callable[[], None]:
    def task() -> None:
        if cause is not None:
            error.cause = cause  # type: ignore[attr-defined]
        raise error

    return task


def test_ranks_that_do_not_fit_into_the_cluster_are_refused_at_once() -> None:
    with pytest.raises(SetupError, match="3 ranks of 2 cores do not fit: the cluster has room for 2"):
        tasks_of(4, cores=2).make_room()


def test_while_tasks_run_nobody_is_gone() -> None:
    assert tasks_of(3, became=[None, None]).dead() == ""


def test_the_rank_whose_machine_is_lost_is_named_and_not_the_one_that_missed_it() -> None:
    missed = RuntimeError("another rank is gone: Connection closed by peer")
    errors = InlineRay.exceptions
    became = [raising(errors.RayTaskError(), missed), raising(errors.NodeDiedError())]
    assert tasks_of(3, became=became).dead() == "rank 2 of 3 is gone: its machine is lost"


def test_a_rank_that_failed_says_why() -> None:
    became = [raising(InlineRay.exceptions.RayTaskError(), ValueError("no such world"))]
    assert tasks_of(2, became=became).dead() == "rank 1 of 2 is gone: no such world"


def test_once_one_is_gone_the_others_are_ended_and_not_waited_for() -> None:
    others, ranks = tasks_of(3, became=[None, raising(InlineRay.exceptions.RayError())]), Ranks(0, 3)
    others.look_s = 0.001
    others.watch(ranks)
    while not ranks._gone:
        pass
    assert ranks._gone == "rank 2 of 3 is gone: its process is lost (RayError)"
    assert others.ray.cancelled == others.tasks


def test_those_that_ended_when_they_were_told_are_not_lost() -> None:
    others = tasks_of(2, became=[None])
    assert not others.look_away()
    others.tasks = [lambda: None]
    assert not others.look_away()


def test_who_torchrun_started_is_watched_by_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OtherRanks(2).dead() == ""


def test_the_way_to_another_machine_tells_this_ones_address() -> None:
    assert address_seen_by("127.0.0.1", 9) == "127.0.0.1"


NETWORK = """
from pathlib import Path
from torch import nn

class Net(nn.Module):
    def __init__(self, shape, outputs):
        super().__init__()
        self.policy, self.value = nn.LazyLinear(outputs), nn.LazyLinear(1)

    def forward(self, seen):
        flat = seen.flatten(1).float()
        return self.policy(flat), self.value(flat).squeeze(-1)

class Homesick(Net):
    def __init__(self, shape, outputs):
        super().__init__(shape, outputs)
        assert not Path("/proc/self/cmdline").read_text().startswith("ray::"), "far from home"
"""

WORDS = ("prospector/short", "num_envs=16", "num_steps=8", "minibatch_size=64", "train.ranks=4")


@pytest.mark.long
def test_ranks_on_two_raylets_train_and_a_node_that_is_killed_is_said_in_one_line(tmp_path: Path) -> None:
    program = "import sys; from hotloop.cli.main import main; sys.exit(main())"
    train = [sys.executable, "-P", "-c", program, "train", *WORDS]
    with two_raylets() as (address, cluster):
        (tmp_path / "my_net.py").write_text(NETWORK)
        whole = [*train, "total_timesteps=512", "--on", address, "train.network=my_net.py:Net"]
        subprocess.run(whole, cwd=tmp_path, check=True, capture_output=True)
        refused = [*whole[:-1], "train.network=my_net.py:Homesick"]
        away = subprocess.run(refused, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert "far from home" in away.stderr.splitlines()[-1]
        endless = [*train, "total_timesteps=1000000000", "log_every=1", "run=cut", "--on", address]
        cut = subprocess.Popen(
            endless, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert cut.stderr is not None
        assert any(line.startswith("epoch 2") for line in cut.stderr)
        cluster.kill_one()
        _, said = cut.communicate(timeout=60)
    assert said.splitlines()[-1].startswith("hotloop: rank ")
    assert "of 4 is gone: its" in said
    assert list(tmp_path.glob("train_dir/cut/checkpoints/*.pt"))
