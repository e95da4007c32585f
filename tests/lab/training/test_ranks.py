import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import psutil
import pytest
import torch.distributed as dist

from hotloop.core.clock import now_ns
from hotloop.core.settings import Target
from hotloop.core.time_tree import TimeTree
from hotloop.lab.training.ranks import Processes, add_windows, from_torchrun, name_slowest_rank, share_of
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import TrainSide, untimed
from hotloop.train.ranks import STRIDE, RankLostError, Ranks
from hotloop.train.trainer import Trainer
from hotloop.train.windows import WindowEpisodes

WORDS = [
    "num_envs=8",
    "train.num_steps=8",
    "train.minibatch_size=32",
    "train.update_epochs=1",
    "train.ranks=2",
]

THREE = [
    "num_envs=12",
    "train.num_steps=8",
    "train.minibatch_size=48",
    "train.update_epochs=4",
    "train.ranks=3",
]

SETTINGS = untimed(read(Target.typed("prospector/short", WORDS)))


def test_shares_are_even_and_have_seeds_of_their_own() -> None:
    first, second = (share_of(SETTINGS, rank, 2) for rank in (0, 1))
    assert [each.target.keys["num_envs"] for each in (first, second)] == [4, 4]
    assert second.target.keys["seed"] - first.target.keys["seed"] == STRIDE
    assert first.train.minibatch_size == 16
    assert share_of(SETTINGS, 0, 1) is SETTINGS


def test_a_record_tells_the_envs_of_all_ranks_and_the_same_workload_as_one() -> None:
    share = share_of(SETTINGS, 0, 2).open()
    whole = read(Target.typed("prospector/short", [*WORDS[:-1], "train.ranks=1"]))
    one = whole.open()
    two, alone = SETTINGS.described(share), whole.described(one)
    share.close()
    one.close()
    assert two.variant["num_envs"] == alone.variant["num_envs"] == 8
    assert two.workload_hash == alone.workload_hash


@pytest.mark.parametrize(
    ("words", "travels"),
    [([], False), (["train.network=my_net.py:Net"], True), (["train.collect=ray://head:1"], False)],
)
def test_the_folder_travels_with_somebodys_code_alone(words: list[str], *, travels: bool) -> None:
    settings = read(Target.typed("prospector/short", ["num_envs=8", "minibatch_size=512", *words]))
    assert settings.carried == (Path.cwd() if travels else None)


def test_torchrun_is_found_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert from_torchrun() is None
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert from_torchrun() == (1, 4)


def window(episodes: int, mean_return: float) -> WindowEpisodes:
    return WindowEpisodes(
        env_steps=10,
        episodes=episodes,
        return_sum=episodes * mean_return,
        return_min=mean_return if episodes else None,
        return_max=mean_return if episodes else None,
        length_sum=3 * episodes,
        infos={"profit": mean_return} if episodes else {},
    )


def test_episodes_of_all_ranks_count_alike() -> None:
    found = add_windows([window(1, 2.0), window(3, 6.0), window(0, 0.0)])
    assert (found.env_steps, found.episodes, found.mean_return) == (30, 4, 5.0)
    assert (found.return_min, found.return_max, found.infos) == (2.0, 6.0, {"profit": 5.0})
    assert add_windows([window(0, 0.0)]).mean_return is None


def test_the_row_of_waiting_names_the_slowest_rank() -> None:
    ranks = Ranks(0, 2)
    ranks.busy_ns = [1, 2]
    waiting = TimeTree(path="rollout/waiting on others", calls=1, total_ns=5)
    rollout = TimeTree(path="rollout", calls=1, total_ns=6, children=(waiting,))
    found = name_slowest_rank(TimeTree(total_ns=9, children=(rollout,)), ranks)
    assert [row.path for row in found.rows] == ["rollout", "rollout/waiting on others, most on rank 1"]


def others_of(side: TrainSide) -> Processes:
    found = side.trainer.ranks._who_died.__self__  # type: ignore[attr-defined]
    assert isinstance(found, Processes)
    return found


def kill_in_gradients(side: TrainSide, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rank 1 be killed once rank 0 is about to give it its gradients."""
    found, given = others_of(side).workers[0], dist.all_gather

    def killed(every: Any, mine: Any, **how: Any) -> Any:
        if mine.is_floating_point():
            found.kill()
        return given(every, mine, **how)

    monkeypatch.setattr(dist, "all_gather", killed)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["between updates", "in the gradients"])
def test_a_rank_that_is_killed_costs_the_update_under_way_and_one_alone_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    side = TrainSide("two", SETTINGS)
    try:
        side.update()
        assert side.trainer.steps == 64
        side.trainer.save(tmp_path)
        if moment == "between updates":
            others_of(side).workers[0].kill()
        else:
            kill_in_gradients(side, monkeypatch)
        with pytest.raises(RankLostError, match=r"^rank 1 of 2 was ended by SIGKILL$"):
            side.run(3)
        last = side.trainer.save_last(tmp_path / "last")
    finally:
        with pytest.raises(RankLostError):
            side.close()
    for path in (next(tmp_path.glob("*.pt")), last):
        alone = share_of(SETTINGS, 0, 1)
        batch = alone.open()
        assert Trainer(batch, alone.train, resume=path).steps in (64, 128)
        batch.close()


@pytest.mark.long
@pytest.mark.parametrize("moment", range(12))
def test_a_rank_that_is_killed_at_any_moment_ends_the_run_in_one_line(moment: int) -> None:
    side = TrainSide("three", untimed(read(Target.typed("prospector/short", [*THREE]))))
    lost = 1 + moment % 2
    try:
        side.update()
        began_ns = now_ns()
        Timer(Random(moment).uniform(0.0, 0.2), others_of(side).workers[lost - 1].kill).start()
        with pytest.raises(RankLostError, match=rf"^rank {lost} of 3 was ended by SIGKILL$"):
            side.run(100_000)
    finally:
        with pytest.raises(RankLostError):
            side.close()
    assert now_ns() - began_ns < 30e9


@pytest.mark.slow
def test_ranks_end_with_the_process_that_started_them() -> None:
    program = (
        "import os, subprocess, sys\n"
        "started = [sys.executable, '-c', sys.argv[1], str(os.getpid())]\n"
        "print(subprocess.Popen(started, stdout=subprocess.DEVNULL).pid)"
    )
    follows = (
        "from hotloop.lab.training import others; import sys, threading\n"
        "others.END_S = 0.0; others.leave_with(int(sys.argv[1])); threading.Event().wait()"
    )
    made = subprocess.run([sys.executable, "-c", program, follows], stdout=subprocess.PIPE, check=True)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(made.stdout)).wait(60)
