"""The log of a batch's steps, native and of the twins alike."""

import numpy as np
import pytest

from hotloop.core import spans
from hotloop.envs.batch import Batch
from hotloop.envs.open import make

HEAD = 4
LIMIT = 5


def batch_of(impl: str, **more: object) -> Batch:
    given = {"num_envs": 3, "agents": 2, "max_steps": LIMIT, "profile": True, "impl": impl} | more
    batch = make("grid/toy", **given)
    batch.reset()
    return batch


def play(batch: Batch, calls: int) -> None:
    for actions in batch.draw(np.random.default_rng(1), calls):
        batch.step(actions)


@pytest.fixture(params=["native", "reference"])
def impl(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_row_a_step_in_order_and_phases_inside_it(impl: str) -> None:
    batch = batch_of(impl)
    batch.keep_log(100)
    play(batch, 4)
    rows = batch.take_log()
    assert rows.shape == (4, HEAD + len(batch.spec.phases))
    begin, end = rows[:, 0], rows[:, 1]
    assert (begin < end).all()
    assert (end[:-1] <= begin[1:]).all()
    assert (rows[:, HEAD:] >= 0).all()
    assert (rows[:, HEAD:].sum(axis=1) <= end - begin).all()


def test_the_log_adds_up_to_the_totals(impl: str) -> None:
    batch = batch_of(impl)
    batch.keep_log(100)
    play(batch, 20)
    rows, totals = batch.take_log(), batch.phase_totals()
    spent = dict(zip(batch.spec.phases, rows[:, HEAD:].sum(axis=0), strict=True))
    steps = (rows[:, 1] - rows[:, 0]).sum()
    for name, ticks in spent.items():
        assert ticks / steps == pytest.approx(totals[name] / totals["step"], abs=1e-3), name


def test_a_row_says_how_many_episodes_ended_and_in_which_env_first(impl: str) -> None:
    batch = batch_of(impl)
    play(batch, 2)
    batch.reset_many([0])
    batch.keep_log(100)
    play(batch, LIMIT)
    rows = batch.take_log()
    assert rows[:, 2].tolist() == [0, 0, 2, 0, 1]
    assert rows[:, 3].tolist() == [-1, -1, 1, -1, 0]


def test_native_and_twins_log_the_same_ends() -> None:
    logs = []
    for each in ("native", "reference"):
        batch = batch_of(each, num_envs=5)
        batch.keep_log(100)
        play(batch, 3 * LIMIT)
        logs.append(batch.take_log()[:, 2:HEAD].tolist())
    assert logs[0] == logs[1]


def test_a_full_log_takes_no_more_until_it_is_taken(impl: str) -> None:
    batch = batch_of(impl)
    batch.keep_log(3)
    play(batch, 5)
    assert len(batch.take_log()) == 3
    play(batch, 2)
    assert len(batch.take_log()) == 2
    assert len(batch.take_log()) == 0


def test_nothing_is_logged_unless_asked_and_profiled(impl: str) -> None:
    asked_not, not_profiled = batch_of(impl), batch_of(impl, profile=False)
    not_profiled.keep_log(10)
    for batch in (asked_not, not_profiled):
        play(batch, 3)
        assert len(batch.take_log()) == 0
    assert not_profiled.mark_ns is None


def test_every_worker_has_its_phases() -> None:
    batch = batch_of("native", threads=2, num_envs=64)
    batch.keep_log(10)
    play(batch, 10)
    rows = batch.take_log()
    assert rows.shape[1] == HEAD + 2 * len(batch.spec.phases)
    each = rows[:, HEAD:].reshape(10, 2, -1).sum(axis=2)
    assert (each[:, 0] <= rows[:, 1] - rows[:, 0]).all()


def test_native_rows_are_on_the_clock_of_spans() -> None:
    batch = batch_of("native")
    batch.keep_log(1)
    before = spans.moment()[0]
    play(batch, 1)
    ((begin, end, *_),) = batch.take_log()
    assert before <= begin <= end <= spans.moment()[0]


def test_what_a_mark_costs_is_measured(impl: str) -> None:
    cost = batch_of(impl).mark_ns
    assert cost is not None
    assert 0 < cost < 1e6
