import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.records import BENCH

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.target import Target
from hotloop.judge import tune as choosing
from hotloop.lab import tune as lab
from hotloop.lab.axes import Place
from hotloop.lab.cells import Here
from hotloop.lab.tune import Asked, halve, name_of, read, sort, tune

PLACES = [Place(at={"n": str(k)}, keys={"n": str(k)}) for k in range(16)]


def measured(truth: Mapping[str, float], spread: Mapping[str, float], seed: int):
    """Speeds drawn around what is true of each place, and how many were asked for."""
    chance, asked = random.Random(seed), list[tuple[int, int]]()

    def measure(places: Sequence[Place], rung: int, rounds: int) -> dict[str, Record]:
        asked.append((len(places), rounds))
        return {name_of(place): record(place, rounds) for place in places}

    def record(place: Place, rounds: int) -> Record:
        n = place.at["n"]
        speeds = tuple(truth[n] * max(0.01, 1 + chance.gauss(0, spread.get(n, 0.02))) for _ in range(rounds))
        return replace(BENCH, values={ENV_STEPS_PER_S: speeds, "latency_ns": (1.0,), "rss_bytes": (1.0,)})

    return measure, asked


def won(truth: Mapping[str, float], spread: Mapping[str, float], seed: int) -> str:
    measure, _ = measured(truth, spread, seed)
    found = halve(PLACES, measure)
    tried = [
        choosing.tried(each.place.at, each.speeds, rungs=each.rungs, rss_bytes=1.0, latency_ns=1.0)
        for each in found
    ]
    return choosing.winner(tried).at["n"]


def test_every_rung_keeps_the_faster_half_and_measures_it_for_longer() -> None:
    measure, asked = measured({str(k): 100.0 + k for k in range(16)}, {}, seed=1)
    found = halve(PLACES, measure)
    assert asked == [(16, 6), (8, 12), (4, 24), (2, 24)]
    assert max(len(each.speeds) for each in found) == 6 + 12 + 24 + 24


def test_noise_in_one_cell_does_not_make_it_win() -> None:
    truth = {str(k): 100.0 for k in range(16)} | {"3": 95.0, "7": 110.0}
    winners = [won(truth, {"3": 0.4}, seed) for seed in range(20)]
    assert "3" not in winners
    assert winners.count("7") == 20


def test_names_of_other_trainers_are_understood() -> None:
    words = ["n_envs=4,8", "num_workers=1", "rollout_steps=8,16", "num_minibatches=2,4"]
    axes = read(Target.typed("grid/guard", words))
    assert axes.values == {
        "num_envs": ("4", "8"),
        "train.num_steps": ("8", "16"),
        "num_minibatches": ("2", "4"),
    }
    last = lab.target_at(axes, axes.places[-1])
    agents = 8
    assert last.keys == {
        "threads": "1",
        "num_envs": "8",
        "train.num_steps": "16",
        "train.minibatch_size": str(8 * 16 * agents // 4),
    }
    places, skipped = sort(axes)
    assert (len(places), skipped) == (8, [])


def test_what_cannot_be_run_is_skipped_first_with_the_reason() -> None:
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=128,100"]
    axes = read(Target.typed("grid/guard", words))
    places, [skipped] = sort(axes)
    assert len(places) == 1
    assert skipped.at == {"train.minibatch_size": "100"}
    assert "100" in skipped.why


def test_where_nothing_can_be_run_it_is_refused_with_a_reason() -> None:
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=77,100"]
    axes = read(Target.typed("grid/guard", words))
    with pytest.raises(InputError, match=r"none of the 2 combinations can be run: .*77"):
        sort(axes)


def test_a_key_whose_one_value_has_commas_is_no_axis() -> None:
    axes = read(Target.typed("grid/guard", ["num_envs=4,8", "train.num_steps=8", "train.hidden=16,16"]))
    assert list(axes.values) == ["num_envs"]
    assert axes.target.keys["train.hidden"] == "16,16"


def test_how_long_it_takes_is_told_by_all_rungs_and_the_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.updates_of(16, 6) == 16 * 8 + 8 * 14 + 4 * 26 + 2 * 26
    envs = read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2"]))
    assert lab.forecast(envs, Asked(confirm_ns=10**9)) == 2 * lab.CELL_S + 2
    monkeypatch.setattr(lab, "update_s", lambda target: 0.5 if target.keys["num_envs"] == "4" else None)
    training = read(Target.typed("grid/guard", ["num_envs=4,8", "train.num_steps=8"]))
    assert lab.forecast(training, Asked(confirm_ns=10**9)) == 0.5 * lab.updates_of(2, 6) + 2
    assert lab.forecast(training, Asked()) == 0.5 * lab.updates_of(2, 6) + 240


def test_what_cannot_be_run_takes_no_time() -> None:
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=100"]
    assert lab.update_s(Target.typed("grid/guard", words)) is None


def test_both_settings_learn_for_as_long_with_each_seed_and_that_is_said_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, trained = list[str](), list[tuple[object, object]]()

    def learn_one(target: Target, progress: Progress, *, env_steps: int) -> SimpleNamespace:
        trained.append((target.keys["seed"], target.keys["train.seed"]))
        returns = (float(env_steps), float(env_steps) + 2 * ("b" in target.keys))
        return SimpleNamespace(values={lab.RETURN: returns}, partial=False)

    monkeypatch.setattr(lab, "learn_one", learn_one)
    monkeypatch.setattr(lab, "is_same", lambda one, other: one == other)
    monkeypatch.setattr(lab, "training_s", lambda target, env_steps: env_steps * (1 + ("b" in target.keys)))
    present, chosen = Target("t", {"train.a": "1"}), Target("t", {"train.a": "1", "b": "2"})
    asked = Asked(learn_steps=100, seeds=3)
    found = lab.learn(present, chosen, asked, Here(), silent, said.append)
    assert found is not None
    assert (found.difference, len(found.present)) == (1.0, 3)
    assert said == ["learning check: 6 trainings of 100 env-steps, about 900 s"]
    assert trained == [(seed, seed) for seed in (1, 1, 2, 2, 3, 3)]
    assert lab.learn(chosen, chosen, asked, Here(), silent, said.append) is None


def test_what_a_training_takes_is_told_by_its_updates_and_an_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lab, "update_s", lambda _: 0.5)
    monkeypatch.setattr(lab.TrainContender, "evaluation_s", lambda _: 2.0)
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=64"]
    assert lab.training_s(Target.typed("grid/guard", words), 65) == 3 * 0.5 + 2


def test_present_settings_that_cannot_be_run_are_refused_before_anything_is() -> None:
    words = ["num_envs=4", "train.num_steps=8", "num_minibatches=2,4"]
    with pytest.raises(InputError, match=r"present settings, grid/guard num_envs=4 .* cannot be run: .*4096"):
        tune(read(Target.typed("grid/guard", words)), Asked())


def test_a_winner_that_is_the_present_settings_in_other_words_is_not_compared_with_itself() -> None:
    present = Target.typed("farm/dev", ["num_envs=1", "perception=false"])
    assert lab.is_same(present, present.with_keys({"index": "grid"}))
    assert not lab.is_same(present, present.with_keys({"index": "brute"}))
    foreign = Target("my_env.py:make", {})
    assert not lab.is_same(foreign, foreign.with_keys({"n": "10"}))


def test_one_key_under_two_names_is_refused() -> None:
    with pytest.raises(InputError, match="two names"):
        read(Target.typed("grid/guard", ["num_envs=4,8", "n_envs=2,4"]))


def test_a_search_among_envs_ends_with_a_confirmed_line_to_paste() -> None:
    axes = read(Target.typed("grid/toy", ["agents=2", "num_envs=1,16"]))
    record = tune(axes, Asked(rounds=6, confirm_ns=200_000_000))
    found = record.tuning
    assert found is not None
    assert found.winner == {"num_envs": "16"}
    assert found.present == "grid/toy agents=2"
    assert len(record.comparisons) == 1
    assert record.comparisons[0].b.name == "grid/toy agents=2 num_envs=16"
    assert found.words.startswith("hotloop bench grid/toy agents=2")
    assert record.kind == "tune"


@pytest.mark.parametrize("where", ["confirm", "learn"])
def test_ctrl_c_after_the_search_leaves_a_partial_record_and_learns_nothing(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def stopped(*_: object) -> Record | None:
        if where == "learn":
            return None
        return replace(BENCH, kind="compare", partial=True)

    def learning(*_: object) -> None:
        assert where == "learn", "a confirmation that was interrupted is the last thing done"
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "confirm", stopped)
    monkeypatch.setattr(lab, "learn", learning)
    monkeypatch.setattr(lab, "TURN_NS", 1_000)
    record = tune(read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2"])), Asked(rounds=1))
    assert (record.partial, record.exit_code) == (True, 130)
    assert record.tuning is not None
    assert record.tuning.learnt is None
    assert record.tuning.floor is None
