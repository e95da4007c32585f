from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import faulty_targets

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.envs.open import open_target
from hotloop.lab.validate import bundle
from hotloop.lab.validate.equal import closeness_of
from hotloop.lab.validate.shadow import Shadowed, Shadowing, comparisons_of, shadow

FILE = Path(faulty_targets.__file__)


def toy(**keys: object) -> Batch:
    return hotloop.make("grid/toy", **{"num_envs": 2, "agents": 3, "max_steps": 9} | keys)


def stepped(shadowing: Shadowing, steps: int) -> Shadowing:
    for actions in shadowing.candidate.draw(np.random.default_rng(0), steps):
        shadowing.step(actions)
    return shadowing


def begun(reference: Any, candidate: Any, **more: Any) -> Shadowing:
    shadowing = Shadowing(reference, candidate, **more)
    shadowing.reset()
    return shadowing


class Cheat(Batch):
    """Writes its own answers over those of the reference, so that whoever looks later sees them equal."""

    def __init__(self, made: Batch, victim: Batch) -> None:
        super().__init__(made._engine, made.spec)
        made.close()
        self.victim = victim

    def step(self, actions: Any) -> None:
        super().step(actions)
        self.rewards[:] = 5
        self.victim.rewards[:] = 5


class Counting(Batch):
    """Counts its steps."""

    def __init__(self, made: Batch) -> None:
        super().__init__(made._engine, made.spec)
        made.close()
        self.calls = 0

    def step(self, actions: Any) -> None:
        super().step(actions)
        self.calls += 1


def test_equal_sides_are_compared_at_every_step_and_reset() -> None:
    shadowing = stepped(begun(toy(impl="reference"), toy(encoder="original")), 20)
    shadowing.reset_many([1])
    assert shadowing.difference is None
    assert shadowing.comparisons == (1 + 20 + 1) * 2 * 3
    checked = shadowing.validation()
    assert (checked.mismatches, checked.mode, checked.against) == (0, "bytes", "grid/toy")
    assert checked.timing_ratio is not None
    assert "digest" in checked.fields
    assert checked.left_out == ()


def test_a_second_reset_begins_the_next_episodes_of_both() -> None:
    shadowing = stepped(begun(toy(), toy(threads=2)), 5)
    shadowing.reset()
    assert stepped(shadowing, 5).difference is None
    assert shadowing.played.resets == [(5, 0), (5, 1)]


def test_a_narrow_reference_shadows_the_first_envs() -> None:
    shadowing = stepped(begun(toy(num_envs=1), toy(num_envs=5)), 12)
    shadowing.reset_many([0, 4])
    shadowing.reset_many([3])
    assert stepped(shadowing, 12).difference is None
    assert shadowing.envs == 1
    with pytest.raises(InputError, match="the candidate must have at least as many"):
        Shadowing(toy(num_envs=3), toy(num_envs=2))


def test_snapshots_are_taken_before_the_other_side_moves() -> None:
    reference = toy()
    shadowing = stepped(begun(reference, Cheat(toy(), reference)), 1)
    assert shadowing.difference is not None
    assert (shadowing.difference.field, shadowing.difference.b) == ("rewards", "5.0")


def test_a_buffer_compared_with_itself_proves_nothing() -> None:
    batch = toy()
    with pytest.raises(InputError, match="both sides show the same memory as terminals"):
        begun(batch, batch)


def test_after_a_difference_only_the_candidate_is_stepped() -> None:
    reference, candidate = Counting(toy()), Counting(toy(seed=7))
    shadowing = stepped(begun(reference, candidate), 4)
    assert shadowing.difference is not None
    assert (shadowing.difference.step, shadowing.comparisons) == (0, 6)
    assert (reference.calls, candidate.calls) == (0, 4)


def test_what_only_one_side_ever_says_is_listed_and_does_not_decide() -> None:
    class Chatty(faulty_targets.Echo):
        def step(self, action: int) -> Any:
            *given, _ = super().step(action)
            return (*given, {"late": 1} if self.steps == 3 else {})

    reference = open_target(Target(f"{FILE}:echo", {}))
    candidate = open_target(Target(f"{FILE}:echo", {}))
    candidate.env = Chatty()  # type: ignore[attr-defined]
    candidate._step, candidate._reset = candidate.env.step, candidate.env.reset  # type: ignore[attr-defined]
    shadowing = stepped(begun(reference, candidate), 5)
    assert shadowing.difference is None
    assert "infos.late" in shadowing.validation().left_out


def test_a_tape_that_grew_long_begins_anew_from_saved_states_and_replays(tmp_path: Path) -> None:
    target = Target(f"{FILE}:wrong_when_old", {"num_envs": 2})
    plain = Target("grid/toy", {"agents": 4, "num_envs": 2, "impl": "native"})
    shadowing = Shadowing(
        open_target(plain),
        open_target(target),
        kept_calls=8,
    )
    shadowing.reset()
    stepped(shadowing, 40)
    assert shadowing.difference is not None
    assert shadowing.difference.step == 30
    made = bundle.bundle_of(shadowing, tape="policy", reference=plain, candidate=target)
    path = bundle.write_bundle(made, tmp_path / "late.bundle")
    kept = bundle.read_bundle(path)
    assert (kept.facts.steps_before, len(kept.actions)) == (24, 6)
    assert kept.start is not None
    again = bundle.play_bundle(kept)
    assert again.difference == shadowing.difference
    assert bundle.from_last_good(kept) == shadowing.difference
    assert bundle.write_bundle(made, tmp_path / "late.bundle") == tmp_path / "late-2.bundle"


def test_our_own_batches_need_no_target() -> None:
    shadowing = stepped(begun(toy(seed=1), toy(seed=2, num_envs=3)), 1)
    made = bundle.bundle_of(shadowing, tape="policy")
    assert made.facts.reference.keys["seed"] == 1
    assert bundle.play_bundle(made).difference == shadowing.difference
    with pytest.raises(InputError, match=r"how .* was made is not known"):
        bundle.target_of(open_target(Target(f"{FILE}:right", {})))


def test_a_looser_mode_leaves_the_state_out_and_says_so() -> None:
    shadowing = begun(toy(), toy(), closeness=closeness_of("ulp:1"), ignore=["infos"])
    assert "digest" in shadowing.left_out
    assert all(not name.startswith("infos.") for name in shadowing.fields)


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"agents": 2}, "agents of 3, the candidate of 2"),
        ({"directions": 4}, "an action space of 9 actions, the candidate of 5 actions"),
        ({"tokens": 50}, r"observations of uint8 \[3, 200, 3\], the candidate of uint8 \[3, 50, 3\]"),
        ({"autoreset": False}, "different autoreset conventions"),
    ],
)
def test_sides_that_cannot_play_one_tape_are_refused(other: dict[str, object], line: str) -> None:
    with pytest.raises(InputError, match=line):
        begun(toy(), toy(**other))


def test_the_timing_ratio_is_of_as_many_envs() -> None:
    for envs, ratio in ((2, 3.0), (6, 9.0)):
        shadowing = begun(toy(), toy(num_envs=envs))
        assert shadowing.timing_ratio is None
        shadowing.reference_ns, shadowing.candidate_ns = 300, 100
        assert shadowing.timing_ratio == ratio


def make(**given: object) -> Batch:
    return hotloop.make("prospector/short", **{"num_envs": 12, **given})


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
    ours = {name: rows for name, rows in shadowed.answers().items() if name != "digest"}
    assert all(np.shares_memory(rows, theirs[name]) for name, rows in ours.items())
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


def test_where_only_all_envs_can_begin_anew_the_tape_says_all() -> None:
    sides = [open_target(Target("support.batches:Batched")) for _ in range(2)]
    shadowing = begun(*sides)
    shadowing.reset_many([3])
    assert [env for _, env in shadowing.played.resets] == list(range(6))
    shadowing.reset_many([])
    assert len(shadowing.played.resets) == 6
