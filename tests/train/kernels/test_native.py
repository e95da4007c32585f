"""Who does the trainer's arithmetic, and with whose threads."""

import pytest

import hotloop
from hotloop.core.errors import SetupError
from hotloop.train import arithmetic as native
from hotloop.train.arithmetic import find_kernels, torch_threads
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

_kernels = pytest.importorskip("hotloop.train._kernels")


def test_the_native_ones_run_where_they_can() -> None:
    assert find_kernels(TrainSettings(), 69).name.startswith("native")
    assert find_kernels(TrainSettings(kernels="torch"), 69).name == "torch"
    assert find_kernels(TrainSettings(device="cuda"), 69).name == "graphs"
    assert find_kernels(TrainSettings(), 1_025).name == "torch"


@pytest.mark.parametrize(
    ("settings", "actions", "why"),
    [
        (TrainSettings(kernels="native", device="cuda"), 5, "the network lives on cuda"),
        (TrainSettings(kernels="native"), 1_025, "at most 1024 actions, and there are 1025"),
    ],
)
def test_asking_for_them_where_they_cannot_run_is_refused(
    settings: TrainSettings, actions: int, why: str
) -> None:
    with pytest.raises(SetupError, match=why):
        find_kernels(settings, actions)


def test_without_a_compiled_module_torch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load_kernels", lambda: ImportError("no such file"))
    assert find_kernels(TrainSettings(), 5).name == "torch"
    with pytest.raises(SetupError, match="the native module is not there"):
        find_kernels(TrainSettings(kernels="native"), 5)


def test_torch_s_own_threads_are_found() -> None:
    assert torch_threads() != 0
    assert _kernels.find_openmp("/nowhere") == 0


def test_a_batch_does_the_same_with_threads_that_were_lent() -> None:
    def play(lent: list[int]) -> list[int]:
        batch = hotloop.make("grid/toy", num_envs=9, threads=2, impl="native")
        batch.reset()
        for threads in lent:
            batch.lend(threads)
            for _ in range(5):
                batch.step(batch.choose("random"))
        return [*batch.digest().tolist(), *batch.observations.flatten().tolist()]

    assert play([torch_threads(), 0, torch_threads()]) == play([0, 0, 0])


@pytest.mark.parametrize(("threads", "lent"), [(2, True), (1, False)])
def test_a_trainer_lends_its_threads_to_a_batch_of_as_many(
    monkeypatch: pytest.MonkeyPatch, threads: int, lent: bool
) -> None:
    batch = hotloop.make("grid/toy", num_envs=4, threads=threads, impl="native")
    given: list[int] = []
    monkeypatch.setattr(batch, "lend", given.append)
    Trainer(batch, TrainSettings(num_steps=4, minibatch_size=16, torch_threads=2))
    assert given == [torch_threads() if lent else 0]
