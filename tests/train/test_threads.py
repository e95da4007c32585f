"""How many threads torch works with where nobody says: judged by what its rounds took together."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

import hotloop
from hotloop.core.settings import apply
from hotloop.train import algorithm as fitting
from hotloop.train.algorithm import Fit, benchmark_thread_counts, fit_threads
from hotloop.train.networks import default_network
from hotloop.train.normalize import row_shape
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer, threads_of

SETTINGS = TrainSettings(num_steps=8, minibatch_size=16, hidden=(16,))

LARGE = replace(SETTINGS, minibatch_size=4_096, hidden=(128,))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def found(settings: TrainSettings, target: str = "prospector") -> Fit:
    batch = hotloop.make(target, num_envs=2, impl="reference")
    shape = row_shape(batch)
    network = default_network(batch.spec, shape, settings)
    return fit_threads(
        network, torch.zeros(2, *shape, dtype=getattr(torch, str(batch.observations.dtype))), settings
    )


def test_what_is_asked_for_is_taken_unmeasured() -> None:
    assert found(replace(LARGE, torch_threads=3)) == Fit(threads=3, why="as asked")
    assert apply(TrainSettings, {"torch_threads": "auto"}).torch_threads == 0


def test_a_small_minibatch_is_one_threads() -> None:
    assert found(SETTINGS).threads == 1
    assert found(SETTINGS).round_ns == {}


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "double_dqn"])
def test_networks_by_type_are_tried_though_nobody_is_of_some_types(
    monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    monkeypatch.setattr(fitting, "USUAL_THREADS", 2)
    monkeypatch.setattr(fitting, "ROUNDS", 1)
    settings = replace(
        LARGE, algorithm=algorithm, networks="type", num_steps=64, minibatch_size=1_600, hidden=(1_024,)
    )
    trainer = Trainer(hotloop.make("farm/dev", num_envs=2, perception=False), settings)
    assert set(trainer.algorithm.threads.round_ns) == {1, 2}


def pretend(monkeypatch: pytest.MonkeyPatch, took: Callable[[int, int], int]) -> list[int]:
    """Let rounds take as long as is said of a count and how often it was tried."""
    asked: list[int] = []

    def timed(count: int, work: Callable[[int], None]) -> int:
        asked.append(count)
        return took(count, asked.count(count))

    monkeypatch.setattr(fitting, "timed", timed)
    monkeypatch.setattr(fitting, "USUAL_THREADS", 6)
    return asked


def test_a_count_that_is_slow_again_and_again_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four are fastest but every fourth time, when a neighbour has the core of one of them."""
    took = {1: 100, 2: 60, 4: 40, 6: 50}
    asked = pretend(monkeypatch, lambda count, time: 900 if count == 4 and time % 4 == 3 else took[count])
    fit = found(LARGE)
    assert set(asked) == {1, 2, 4, 6}
    assert fit.threads == 6
    assert fit.round_ns[4] > 100
    assert fit.text.startswith("torch works with 6 threads (auto")
    assert "4: 0.00 ms" in fit.text


def test_what_happened_once_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    took = {1: 100, 2: 60, 4: 40, 6: 50}
    pretend(monkeypatch, lambda count, time: 900 if (count, time) == (4, 5) else took[count])
    assert (found(LARGE).threads, found(LARGE).round_ns[4]) == (4, 40)


def test_a_count_that_cannot_win_is_tried_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pretend(monkeypatch, lambda count, _: 10 * count)
    assert benchmark_thread_counts([1, 2], lambda _: None) == {1: 10, 2: 20}
    warm = fitting.WARM_ROUNDS
    assert (asked.count(1), asked.count(2)) == (warm + fitting.ROUNDS, warm + fitting.FEWEST_ROUNDS)


@pytest.mark.parametrize(
    ("target", "more"), [("prospector", {}), ("grid/toy", {}), ("prospector", {"lstm": 8})]
)
def test_measuring_leaves_the_network_and_its_chances_as_they_were(target: str, more: dict[str, int]) -> None:
    settings = replace(SETTINGS, torch_threads=1, **more)
    batches = [hotloop.make(target, num_envs=2) for _ in range(2)]
    plain = Trainer(batches[0], settings)
    tried = Trainer(batches[1], settings)
    state = torch.random.get_rng_state()
    shape = row_shape(batches[1])
    seen = torch.zeros(2, *shape, dtype=getattr(torch, str(batches[1].observations.dtype)))
    fitting.piece_of_work(tried.network, seen, settings)(1)  # type: ignore[arg-type]
    assert torch.equal(torch.random.get_rng_state(), state)
    for trainer in (plain, tried):
        trainer.update()
    for one, other in zip(plain.network.parameters(), tried.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_run_that_goes_on_keeps_its_count() -> None:
    assert threads_of({"torch_threads": 1}) == 1
    assert threads_of({"torch_threads": 100_000}) == 0
    assert threads_of({}) == threads_of(None) == 0
