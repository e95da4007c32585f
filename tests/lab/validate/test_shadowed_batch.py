import numpy as np
import pytest

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.lab.validate.shadow import Shadowed, comparisons_of, shadow


def make(**given: object) -> Batch:
    return hotloop.make("prospector/short", **{"num_envs": 12, **given})


def arrays_of(batch: Batch) -> dict[str, np.ndarray]:
    return {name: rows for name, rows in batch.answers().items() if name != "digest"}


def play(shadowed: Shadowed, calls: int) -> None:
    for actions in shadowed.draw(np.random.default_rng(1), calls):
        shadowed.step(actions)


def test_how_much_is_compared_has_names_and_numbers() -> None:
    assert [comparisons_of(word) for word in ("true", "smoke", "soak", "77")] == [None, 10_000, 100_000, 77]
    for word in ("", "0", "-3", "much", "1.5"):
        with pytest.raises(InputError, match="smoke, soak or a number"):
            comparisons_of(word)


def test_the_first_envs_are_compared_and_then_the_batch_goes_on_alone() -> None:
    shadowed = Shadowed(make(), 24)
    shadowed.reset()
    play(shadowed, 5)
    assert shadowed.validation().comparisons == 24
    assert shadowed.counters["env_steps"] == 5 * 12
    assert shadowed.shadowing.reference.counters["env_steps"] == 2 * 8


def test_a_shadowed_batch_is_otherwise_the_batch() -> None:
    batch = make()
    shadowed = Shadowed(batch, None)
    shadowed.reset()
    assert shadowed.spec is batch.spec
    theirs = batch.answers()
    assert all(np.shares_memory(ours, theirs[name]) for name, ours in arrays_of(shadowed).items())
    assert np.array_equal(shadowed.digest(), batch.digest())
    assert shadowed.choose("greedy").shape == (12, 1)


def test_nobody_is_shadowed_who_did_not_ask() -> None:
    batch = make()
    assert shadow(batch, None) == (batch, None)


def test_the_twin_is_not_compared_with_itself() -> None:
    with pytest.raises(InputError, match="impl=reference"):
        Shadowed(make(impl="reference"), None)


def test_envs_that_begin_anew_do_so_in_both() -> None:
    shadowed = Shadowed(make(), 60)
    shadowed.reset()
    play(shadowed, 3)
    shadowed.reset_many(np.array([1, 11]))
    shadowed.reset_many(np.array([], np.int64))
    play(shadowed, 1)
    assert shadowed.shadowing.difference is None
    assert shadowed.counters["resets"] == 12 + 2
    assert shadowed.shadowing.reference.counters["resets"] == 8 + 1
    for way in (shadowed.reset, lambda seeds: shadowed.reset_many([0], seeds)):
        with pytest.raises(InputError, match="leave the seeds out"):
            way([1])


def test_a_difference_is_kept_where_it_can_be_seen_again(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from hotloop.lab.training.run import keep_difference
    from hotloop.lab.validate import bundle

    batch = make()
    shadowed = Shadowed(batch, None)
    shadowed.reset()
    play(shadowed, 3)
    assert keep_difference(shadowed, tmp_path) is None
    batch.rewards[:] = 7
    real, shadowed._batch = batch.step, batch
    batch.step = lambda actions: (real(actions), batch.rewards.__setitem__(5, 7.0))  # type: ignore[assignment]
    play(shadowed, 2)
    assert shadowed.done
    path = keep_difference(shadowed, tmp_path)
    assert path is not None
    found = bundle.read_bundle(path).facts
    assert (found.difference.step, found.difference.field, found.tape) == (4, "rewards", "policy")
