import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support import two_ranks
from torch.futures import Future

import hotloop
from hotloop.core.errors import InputError
from hotloop.train.ranks import ALONE, Command, RankLostError, Ranks, first_line, in_one_piece
from hotloop.train.settings import TrainSettings, check_ranks
from hotloop.train.trainer import Trainer

TOLERANCE = 1e-6
"""Of a gradient's norm: float32 sums in another order."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks found."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    command = [sys.executable, two_ranks.__file__]
    made = [
        subprocess.Popen([*command, str(rank), str(store)], stdout=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    said = [each.communicate()[0] for each in made]
    assert [each.returncode for each in made] == [0, 0]
    return [json.loads(each.splitlines()[-1]) for each in said]


@pytest.mark.parametrize("kernels", ["native", "torch"])
def test_two_ranks_find_the_gradient_of_the_whole_minibatch(told: list[dict[str, Any]], kernels: str) -> None:
    assert max(each[kernels][0] for each in told) < TOLERANCE


@pytest.mark.parametrize("kernels", ["native", "torch"])
def test_ranks_that_learn_from_other_samples_have_the_same_weights(
    told: list[dict[str, Any]], kernels: str
) -> None:
    assert told[0][kernels][1] == told[1][kernels][1]


def test_what_ranks_have_seen_agrees_to_the_bit_and_is_that_of_all(told: list[dict[str, Any]]) -> None:
    assert told[0]["variance"] == told[1]["variance"]
    assert told[0]["moments"] < 1e-5


def test_terms_are_the_mean_over_ranks(told: list[dict[str, Any]]) -> None:
    assert [each["mean"] for each in told] == [0.5, 0.5]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are told apart by Linux")
def test_what_reads_takes_no_core_from_what_sends(told: list[dict[str, Any]]) -> None:
    assert [each["readers"] for each in told] == [[os.SCHED_BATCH]] * 2


def test_alone_nothing_is_waited_for() -> None:
    ALONE.meet()
    assert ALONE.mean({"a": 1.0}) == {"a": 1.0}
    assert ALONE.gather("x") == ["x"]


def test_who_died_is_said_in_one_line() -> None:
    ranks = Ranks(0, 2, lambda: "rank 1 of 2 was ended by SIGKILL")
    with pytest.raises(RankLostError, match="rank 1 of 2 was ended by SIGKILL"), ranks.together():
        raise RuntimeError("Connection closed by peer")


def test_what_torch_says_of_a_closed_line_is_told_without_its_sources() -> None:
    said = (
        "Unable to cast [/a/b/pair.cc:537] Read error [127.0.0.1]:38550: Connection reset. This is typical."
    )
    assert first_line(RuntimeError(said)) == "Read error [127.0.0.1]:38550: Connection reset"
    assert first_line(RuntimeError()) == "RuntimeError"


def test_the_slowest_rank_is_told_once() -> None:
    ranks = Ranks(0, 3)
    ranks.busy_ns = [5, 9, 7]
    assert ranks.slowest() == 1
    assert ranks.busy_ns == [0, 0, 0]


@pytest.mark.parametrize(
    ("keys", "envs", "said"),
    [
        ({"ranks": 3}, 8, "ranks=3 does not divide num_envs=8"),
        ({"ranks": 2, "minibatch_size": 33}, 8, "does not divide minibatch_size=33"),
        ({"ranks": 2, "algorithm": "dqn"}, 8, "is for algorithm=ppo"),
    ],
)
def test_ranks_that_cannot_share_are_refused(keys: dict[str, Any], envs: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_ranks(TrainSettings(**keys), envs)


def test_what_nobody_finishes_is_given_up_once_a_rank_is_dead() -> None:
    ranks = Ranks(0, 2)

    class Endless:
        waits = 0

        def is_completed(self) -> bool:
            return False

        def wait(self, _: object) -> None:
            self.waits += 1
            if self.waits == 2:
                ranks.give_up("rank 1 of 2 was ended by SIGKILL")
            raise RuntimeError("Operation timed out!")

    work = Endless()
    with pytest.raises(RankLostError, match="rank 1 of 2"):
        ranks._finish(work)
    assert work.waits == 2


def test_what_comes_as_its_time_runs_out_has_come_and_what_fails_then_is_said() -> None:
    class Late:
        def __init__(self, why: str) -> None:
            self.why = why

        def is_completed(self) -> bool:
            return True

        def wait(self, timeout: object = None) -> None:
            if timeout or self.why:
                raise RuntimeError("Operation timed out!" if timeout else self.why)

    Ranks(0, 2)._finish(Late(""))
    with pytest.raises(RuntimeError, match="Connection closed"):
        Ranks(0, 2)._finish(Late("Connection closed by peer"))


def test_parts_of_one_piece_are_sent_as_it_lies_and_others_as_a_copy() -> None:
    whole = torch.arange(6.0)
    parts = [part.view(-1, 1) for part in whole.split([2, 4])]
    assert in_one_piece(parts) == (whole, True)
    for some in (parts[:1], [parts[0], torch.ones(4)], [torch.ones(2), torch.ones(4)]):
        found, together = in_one_piece(some)
        assert not together
        assert found.tolist() == torch.cat([part.flatten() for part in some]).tolist()


def test_gradients_that_were_promised_are_given_up_once_a_rank_is_dead() -> None:
    ranks, promise = Ranks(0, 2), Future[Any]()
    ranks._promised[promise] = SimpleNamespace(is_completed=lambda: True)
    ranks.give_up("rank 1 of 2 was ended by SIGKILL")
    assert promise.done()
    with pytest.raises(RankLostError, match="rank 1 of 2"):
        promise.wait()
    ranks.settle()


def test_what_is_kept_is_of_the_last_update_where_the_next_one_is_never_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rank may be missed before the next update has begun."""
    batch = hotloop.make("prospector/short", num_envs=4)
    trainer = Trainer(batch, TrainSettings(num_steps=4, minibatch_size=16, hidden=(8,), torch_threads=1))
    trainer.may_lose = True
    trainer.update()

    def gone(_: Command) -> None:
        raise RankLostError("rank 1 of 2 was ended by SIGKILL")

    monkeypatch.setattr(trainer.ranks, "tell", gone)
    with pytest.raises(RankLostError):
        trainer.update()
    assert trainer.last["steps"] == trainer.steps == 16
