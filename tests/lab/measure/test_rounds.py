from collections.abc import Sequence

import pytest

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.progress import silent
from hotloop.envs.batch import Batch
from hotloop.lab.measure import loop as module
from hotloop.lab.measure.loop import Rounds, fit, shortened_notices, warm_up_subjects
from hotloop.lab.measure.policy import Actions, RandomPlay, play_of
from hotloop.lab.measure.sides import calls_for, play


@pytest.fixture
def batch() -> Batch:
    batch = hotloop.make("grid/toy", num_envs=8)
    batch.reset()
    return batch


def warm(batch: Batch, rounds: Rounds) -> Rounds:
    return warm_up_subjects([batch], RandomPlay(batch), rounds, silent)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"iterations": 0}, {"warmup": -1}])
def test_a_plan_that_measures_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected at least"):
        Rounds(**wrong)


@pytest.mark.parametrize(("env_steps", "calls"), [(0, 0), (1, 1), (8, 1), (9, 2)])
def test_steps_are_rounded_up_to_whole_calls(batch: Batch, env_steps: int, calls: int) -> None:
    assert calls_for(env_steps, batch) == calls


def test_the_plan_that_comes_back_says_what_is_really_run(batch: Batch) -> None:
    ran = warm(batch, Rounds(count=6, iterations=9, warmup=17))
    assert (ran.count, ran.iterations, ran.warmup) == (6, 16, 24)
    assert batch.counters["env_steps"] == 24


def test_no_warmup_is_none(batch: Batch) -> None:
    assert warm(batch, Rounds(warmup=0)).warmup == 0
    assert batch.counters["env_steps"] == 0


def test_all_batches_are_warmed_up_by_the_same_actions(batch: Batch) -> None:
    other = hotloop.make("grid/toy", num_envs=8)
    other.reset()
    warm_up_subjects([batch, other], RandomPlay(batch), Rounds(warmup=80), silent)
    assert (batch.digest() == other.digest()).all()


def test_a_boxed_warmup_ends_when_its_time_is_up(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOXED_WARMUP_NS", 0)
    assert warm(batch, Rounds(warmup=800)).warmup == 8
    assert warm(batch, Rounds(warmup=800, box_warmup=False)).warmup == 800


class Compiling:
    """A batch on a clock of its own, whose first call takes long."""

    def __init__(self, batch: Batch, monkeypatch: pytest.MonkeyPatch, first_ns: int, next_ns: int) -> None:
        self.spec, self._batch, self._costs = batch.spec, batch, iter([first_ns, *[next_ns] * 10_000])
        self.now_ns = 0
        monkeypatch.setattr(module, "now_ns", lambda: self.now_ns)

    def step(self, actions: Actions) -> None:
        self.now_ns += next(self._costs)
        self._batch.step(actions)

    def __getattr__(self, name: str) -> object:
        return getattr(self._batch, name)


@pytest.mark.parametrize(("next_ns", "iterations"), [(1_000_000, 400), (500_000_000, 1)])
def test_a_call_that_compiles_is_not_what_others_take(
    batch: Batch, monkeypatch: pytest.MonkeyPatch, next_ns: int, iterations: int
) -> None:
    compiling = Compiling(batch, monkeypatch, first_ns=9_000_000_000, next_ns=next_ns)
    ran = warm_up_subjects([compiling], RandomPlay(batch), Rounds(warmup=160_000, iterations=80_000), silent)  # type: ignore[list-item]
    assert ran.iterations == 8 * iterations
    assert ran.warmup == 8 * (1 + module.BOXED_WARMUP_NS // next_ns + 1)


def test_boxed_rounds_have_as_many_calls_as_fit_and_always_one() -> None:
    assert fit(100, Rounds(), module.BOXED_ROUND_NS / 50) == 50
    assert fit(10, Rounds(), module.BOXED_ROUND_NS / 50) == 10
    assert fit(100, Rounds(), module.BOXED_ROUND_NS * 3) == 1


def test_rounds_somebody_asked_for_are_not_cut() -> None:
    assert fit(100, Rounds(box_iterations=False), module.BOXED_ROUND_NS * 3) == 100


def test_a_notice_says_so_where_a_slow_target_got_fewer_steps() -> None:
    asked = Rounds(iterations=100, warmup=100)
    assert shortened_notices(asked, Rounds(iterations=104, warmup=100)) == []
    (said,) = shortened_notices(asked, Rounds(iterations=64, warmup=128))
    assert "128" in said.text
    assert "64" in said.text


def test_progress_ends_at_the_end_of_the_warmup(batch: Batch) -> None:
    seen: list[tuple[int, int]] = []
    rounds = Rounds(count=2, iterations=8, warmup=16)
    warm_up_subjects([batch], RandomPlay(batch), rounds, lambda done, total: seen.append((done, total)))
    assert seen == [(8, 32), (16, 32)]


def test_a_warmup_that_ends_early_leaves_the_rest_of_a_tape_for_the_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured, asked = (hotloop.make("grid/guard", num_envs=2) for _ in range(2))
    measured.reset()
    asked.reset()
    script = play_of("teacher", measured)
    monkeypatch.setattr(module, "BOXED_WARMUP_NS", 0)
    assert warm_up_subjects([measured], script, Rounds(warmup=800), silent).warmup == 2
    play(measured, script.draw(30), 30)
    for _ in range(31):
        asked.step(asked.choose("teacher"))
    assert (measured.digest() == asked.digest()).all()


def test_what_drawing_costs_does_not_shorten_the_rounds(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0]

    class Slow(RandomPlay):
        def draw(self, calls: int) -> Sequence[Actions]:
            clock[0] += 10**9
            return super().draw(calls)

    def step(self: Batch, actions: Actions) -> None:
        clock[0] += 10**6

    monkeypatch.setattr(module, "now_ns", lambda: clock[0])
    monkeypatch.setattr(module, "BOXED_ROUND_NS", 10**7)
    monkeypatch.setattr(Batch, "step", step)
    ran = warm_up_subjects([batch], Slow(batch), Rounds(warmup=16, iterations=800), silent)
    assert ran.iterations == 10 * 8


def test_who_asked_for_a_number_of_steps_is_not_told_to() -> None:
    """Only the warm-up was cut: the rounds are as long as was asked for."""
    asked = Rounds(iterations=100, warmup=1_000, box_iterations=False)
    (said,) = shortened_notices(asked, Rounds(iterations=100, warmup=64))
    assert (said.code, "64" in said.text) == ("short-warmup", True)
    assert "ask for" not in said.remedy
