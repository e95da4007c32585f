import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from support.records import BENCH

from hotloop.core.progress import silent
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.settings import Target
from hotloop.judge import sweep as choosing
from hotloop.lab.sweep.cells import LocalExecutor
from hotloop.lab.sweep.combinations import name_of, read
from hotloop.lab.sweep.scale import SweepPlace
from hotloop.lab.sweep.tune import RungRunner, halve, update_s
from hotloop.options.sweeps import TuneOptions

PLACES = [SweepPlace(at={"n": str(k)}, keys={"n": str(k)}) for k in range(16)]


def measured(truth: Mapping[str, float], spread: Mapping[str, float], seed: int):
    """Speeds drawn around what is true of each place, and how many were asked for."""
    chance, asked = random.Random(seed), list[tuple[int, int]]()

    def measure(places: Sequence[SweepPlace], rung: int, rounds: int) -> dict[str, Record]:
        asked.append((len(places), rounds))
        return {name_of(place): record(place, rounds) for place in places}

    def record(place: SweepPlace, rounds: int) -> Record:
        n = place.at["n"]
        speeds = tuple(truth[n] * max(0.01, 1 + chance.gauss(0, spread.get(n, 0.02))) for _ in range(rounds))
        return replace(BENCH, values={ENV_STEPS_PER_S: speeds, "latency_ns": (1.0,), "rss_bytes": (1.0,)})

    return measure, asked


def won(truth: Mapping[str, float], spread: Mapping[str, float], seed: int) -> str:
    measure, _ = measured(truth, spread, seed)
    found = halve(PLACES, measure)
    tried = [
        choosing.summarize_candidate(
            each.place.at, each.speeds, rungs=each.rungs, rss_bytes=1.0, latency_ns=1.0
        )
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


def test_a_rung_that_the_time_was_too_short_for_lets_nobody_come_further() -> None:
    measure, asked = measured({str(k): 100.0 + k for k in range(16)}, {}, seed=1)
    rungs = list[int]()

    def late(places: Sequence[SweepPlace], rung: int, rounds: int) -> dict[str, Record]:
        rungs.append(rung)
        found = measure(places, rung, rounds)
        return found if rung < 2 else dict([*found.items()][:1])

    found = halve(PLACES, late, over=lambda: len(rungs) == 3)
    assert [count for count, _ in asked] == [16, 8, 4]
    assert sorted({each.rungs for each in found}) == [1, 2]
    assert len([each for each in found if each.rungs == 2]) == 8


def test_a_search_without_time_for_all_says_who_had_no_turn() -> None:
    axes = read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2,3"]))
    sweeping = RungRunner(
        axes, LocalExecutor(), None, silent, over=lambda: True, options=TuneOptions(target="")
    )
    found = halve(axes.places, sweeping, 1, over=lambda: True)
    assert len(found) == 1
    assert found[0].rungs == 1
    assert [each.why for each in sweeping.skipped] == ["the time was over before its turn"] * 2


def test_what_cannot_be_run_takes_no_time() -> None:
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=100"]
    assert update_s(Target.typed("grid/guard", words)) is None


def test_a_combination_says_what_functions_take_that_were_named() -> None:
    keys = {"agents": "3", "train": "false", "buffer": "6,60"}
    maker = Path(__file__).parents[2] / "zoo/ecology.py"
    axes = read(Target(f"{maker}:make", keys, time=("Log.flush",)))
    found = halve(
        axes.places, RungRunner(axes, LocalExecutor(), None, silent, options=TuneOptions(target="")), 2
    )
    parts = {each.place.at["buffer"]: each.tried().parts for each in found}
    assert parts["6"]["Log.flush"] > parts["60"].get("Log.flush", 0.0)
