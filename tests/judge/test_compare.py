import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from support.records import BENCH, MACHINE, bench_with

from hotloop.core.errors import InputError
from hotloop.core.record import CPU_SHARE, Record
from hotloop.core.record.comparison import PhaseRatio, Ratio, Validation
from hotloop.core.record.metadata import Work
from hotloop.judge.compare import ComparisonInput, compare_stored, confirm, deciding_command, side_of, weigh

BASE = bench_with([4.0e6] * 8)
FASTER = Ratio(estimate=1.2, low=1.18, high=1.22, pairs=40)
EQUAL = Ratio(estimate=1.0, low=0.995, high=1.005, pairs=40)
FOUND = ComparisonInput(band=0.02, ratio=FASTER, second=FASTER, others=(FASTER, FASTER), noise=EQUAL)


@pytest.mark.parametrize(
    ("medians", "outcome"), [(1.2, "faster"), (1.165, "faster"), (1.10, "cannot tell"), (1.30, "cannot tell")]
)
def test_medians_of_all_rounds_that_disagree_with_the_undisturbed_pairs_forbid_a_verdict(
    medians: float, outcome: str
) -> None:
    assert weigh(replace(FOUND, medians=medians))[0] == outcome


def at(times_as_fast: float, **changes: object) -> Record:
    return replace(bench_with([4.0e6 * times_as_fast] * 8), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("times", "outcome"),
    [
        (1.03, "faster"),
        (1.021, "faster"),
        (1.019, "same"),
        (1.0, "same"),
        (1 / 1.019, "same"),
        (1 / 1.0202, "slower"),  # as far from the same as 1.0202
        (0.5, "slower"),
    ],
)
def test_the_whole_interval_decides(times: float, outcome: str) -> None:
    compared = compare_stored(BASE, at(times))
    assert compared.outcome == outcome
    assert compared.ratio is not None
    assert compared.ratio.estimate == pytest.approx(times)
    assert compared.ratio.pairs == 0


def test_a_narrower_band_sees_more() -> None:
    assert compare_stored(BASE, at(1.015), band=0.01).outcome == "faster"


def test_an_interval_across_the_edge_of_the_band_cannot_tell() -> None:
    """Twice the spread of the rounds is added to what the medians say."""
    spread = bench_with([4.4e6 * (1 + 0.03 * (-1) ** k) for k in range(20)])
    compared = compare_stored(BASE, spread)
    assert compared.outcome == "cannot tell"
    assert compared.visible is not None
    assert compared.visible > 0.10
    assert (
        compare_stored(BASE, bench_with([value * 1.2 for value in spread.values["env_steps_per_s"]])).outcome
        == "faster"
    )


def test_the_same_is_only_said_where_the_whole_interval_says_so() -> None:
    spread = bench_with([4.0e6 * (1 + 0.03 * (-1) ** k) for k in range(20)])
    compared = compare_stored(BASE, spread)
    assert compared.ratio is not None
    assert (compared.ratio.estimate, compared.outcome) == (pytest.approx(1.0, abs=1e-3), "cannot tell")


def test_a_busy_machine_is_only_believed_what_its_load_cannot_explain() -> None:
    busy = MACHINE | {"load": 3.0}
    compared = compare_stored(BASE, at(0.3, machine=busy))
    assert compared.outcome == "cannot tell"
    assert "a load of 3.0" in compared.why
    assert compare_stored(replace(BASE, machine=busy), at(0.3)).outcome == "cannot tell"
    assert compare_stored(BASE, at(0.2, machine=busy)).outcome == "slower"


@pytest.mark.parametrize(("times", "expected"), [(0.7, "cannot tell"), (1.4, "cannot tell"), (0.5, "slower")])
def test_a_shared_machine_is_only_believed_what_its_neighbours_cannot_explain(times, expected) -> None:
    shared = MACHINE | {"steal_share": 0.03}
    assert compare_stored(BASE, at(times, machine=shared)).outcome == expected
    assert compare_stored(replace(BASE, machine=shared), at(times)).outcome == expected
    assert compare_stored(BASE, at(times)).outcome != "cannot tell"


def shaken(chance: random.Random, times: float, load: float, spread: float) -> Record:
    """A run `times` as long as the usual, on two shared cores beside others, of 20 rounds that vary.

    Runs of one code are up to 1.3 times apart. One round in twenty takes some times as long.
    """
    level = 1.3 ** chance.uniform(-0.5, 0.5)
    queue = 1 + load / 2 * math.exp(chance.gauss(0, 0.2))
    own = [times * level * math.exp(chance.gauss(0, spread)) for _ in range(20)]
    waits = [queue * (chance.choice((3, 6)) if chance.random() < 0.05 else 1) for _ in own]
    speeds = [4.0e6 / (step * wait) for step, wait in zip(own, waits, strict=True)]
    machine = MACHINE | {"usable_cores": 2, "load": load, "steal_share": 0.03}
    made = bench_with(speeds, machine=machine)
    return replace(made, values=made.values | {CPU_SHARE: tuple(0.99 / wait for wait in waits)})


def told(times: float, load: float, spread: float, runs: int) -> Counter[str]:
    """What so many runs are called that are held against a baseline, a second run of each included."""
    chance = random.Random(7)
    found = Counter[str]()
    for _ in range(runs):
        base, *later = (shaken(chance, each, load, spread) for each in (1, times, times))
        first, second = (compare_stored(base, each) for each in later)
        found[(confirm(first, second) if first.outcome in ("faster", "slower") else first).outcome] += 1
    return found


@pytest.mark.parametrize("load", [0.0, 2.0, 6.0, 12.0])
@pytest.mark.parametrize("spread", [0.02, 0.1, 0.2, 0.3])
def test_a_busy_machine_invents_no_change_and_hides_no_large_one(load: float, spread: float) -> None:
    nothing, little = (told(times, load, spread, 40) for times in (1.0, 1.3))
    assert nothing["faster"] + nothing["slower"] <= 1
    assert little["faster"] == 0
    assert told(6.4, load, spread, 40)["slower"] >= (36 if spread > 0.2 else 40)


@pytest.mark.parametrize("load", [0.0, 2.0, 6.0, 12.0])
def test_twice_the_time_is_mostly_found_where_rounds_are_steady(load: float) -> None:
    assert told(2.0, load, 0.02, 40)["slower"] > 20


def test_a_load_that_took_the_core_is_no_slower_code() -> None:
    """The later run waited for a core for most of its time, and needed no more CPU time."""
    machine = MACHINE | {"load": 9.0}
    alone = replace(BASE, values=BASE.values | {CPU_SHARE: (0.99,) * 8})
    crowded = at(1 / 6.4, machine=machine)
    waiting = replace(crowded, values=crowded.values | {CPU_SHARE: (0.99 / 6.4,) * 8})
    assert compare_stored(alone, waiting).outcome == "cannot tell"
    working = replace(crowded, values=crowded.values | {CPU_SHARE: (0.99,) * 8})
    assert compare_stored(alone, working).outcome == "slower"


def of_commit(commit: str, *, dirty: bool = False, **changes: object) -> Record:
    return replace(BASE, code={**BASE.code, "commit": commit, "dirty": dirty}, **changes)  # type: ignore[arg-type]


PROGRAM = {"target": replace(BENCH.target, name="python a.py"), "work": Work(runs=8)}


@pytest.mark.parametrize(
    ("a", "b", "command"),
    [
        (of_commit("0" * 40), of_commit("1" * 40), "hotloop compare grid/toy --a-ref 000000000000"),
        (
            of_commit("0" * 40),
            of_commit("0" * 40, dirty=True),
            "hotloop compare grid/toy --a-ref 000000000000",
        ),
        (of_commit("0" * 40), of_commit("0" * 40), "hotloop compare grid/toy grid/toy"),
        (of_commit("0" * 40, dirty=True), of_commit("1" * 40), "hotloop compare OLD grid/toy"),
        (of_commit("unknown"), of_commit("unknown"), "hotloop compare OLD grid/toy"),
        (
            of_commit("unknown"),
            replace(BASE, target=replace(BENCH.target, keys={"threads": 2})),
            "hotloop compare grid/toy 'grid/toy threads=2'",
        ),
        (of_commit("0", **PROGRAM), of_commit("1", **PROGRAM), "hotloop compare -- OLD 'python a.py'"),
    ],
)
def test_a_command_that_decides_is_named(a: Record, b: Record, command: str) -> None:
    assert deciding_command(side_of(a, b), side_of(b, a)).startswith(command)


def test_what_cannot_be_told_names_the_command_that_decides() -> None:
    compared = compare_stored(of_commit("0" * 40), at(1.04, machine=MACHINE | {"load": 9.0}))
    assert compared.outcome == "cannot tell"
    assert "; to decide: hotloop compare grid/toy --a-ref 000000000000;" in compared.why


def test_fewer_than_seven_rounds_cannot_tell() -> None:
    compared = compare_stored(BASE, bench_with([8.0e6] * 6))
    assert (compared.outcome, compared.ratio) == ("cannot tell", None)
    assert compared.why == "6 rounds are too few for an interval: run at least 7"


def test_different_work_cannot_be_compared_however_fast_it_was() -> None:
    a, b = (
        replace(at(times), work=Work(env_steps=10_000, agent_steps=20_000, tokens=tokens))
        for times, tokens in ((1.0, 244_000), (2.0, 165_000))
    )
    compared = compare_stored(a, b)
    assert (compared.outcome, compared.why) == (
        "cannot tell",
        "different work: tokens 24.4 against 16.5 an env-step",
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_no_side_with_a_mismatch_is_called_anything(swapped: bool) -> None:
    wrong = at(2.0, validation=Validation(comparisons=9, mismatches=3))
    compared = compare_stored(*((wrong, BASE) if swapped else (BASE, wrong)))
    assert compared.outcome == "cannot tell"
    assert compared.why.startswith("not equal: 3 mismatches")


def test_unlike_records_are_refused_or_said_to_be() -> None:
    other = at(2.0, machine=MACHINE | {"fingerprint": "ba9876543210", "cpu": "Other CPU"})
    with pytest.raises(InputError, match=r"machine \(cpu Example CPU against Other CPU\)"):
        compare_stored(BASE, other)
    compared = compare_stored(BASE, other, unlike=True)
    assert compared.outcome == "faster"
    assert compared.unlike == ("machine (cpu Example CPU against Other CPU)",)


@pytest.mark.parametrize("swapped", [False, True])
def test_an_unfinished_record_is_refused_even_as_unlike(swapped: bool) -> None:
    cut = replace(BASE, partial=True)
    with pytest.raises(InputError, match="was interrupted"):
        compare_stored(*((BASE, cut) if swapped else (cut, BASE)), unlike=True)


def test_a_round_without_a_speed_is_refused() -> None:
    with pytest.raises(InputError, match="a round without a speed"):
        compare_stored(BASE, replace(BASE, values={"env_steps_per_s": (0.0,) * 8}))


def test_a_side_is_called_by_its_label_its_variant_or_its_run() -> None:
    target = replace(BENCH.target, variant=BENCH.target.variant | {"num_envs": 7})
    assert compare_stored(replace(BASE, label="before"), BASE).a.name == "before"
    assert compare_stored(BASE, BASE).a.name == BASE.run_id
    compared = compare_stored(BASE, replace(BASE, target=target))
    assert (compared.a.name, compared.b.name) == ("grid/toy num_envs=5", "grid/toy num_envs=7")


def test_slower_holds_only_where_a_second_run_agrees() -> None:
    slower, same = compare_stored(BASE, at(0.5)), compare_stored(BASE, BASE)
    assert confirm(slower, slower).outcome == "slower"
    doubted = confirm(slower, same)
    assert (doubted.outcome, doubted.ratio, doubted.second) == ("cannot tell", slower.ratio, same.ratio)


def phase(ratio: Ratio, *, control: bool) -> tuple[PhaseRatio, ...]:
    return (PhaseRatio(phase="actions", ratio=ratio, share=0.2, worth=1.04, control=control),)


def test_a_control_that_moved_forbids_a_verdict() -> None:
    outcome, why = weigh(replace(FOUND, phases=phase(FASTER, control=True)))
    assert outcome == "cannot tell"
    assert why == "actions, which the change cannot touch, moved by 20.0%"


@pytest.mark.parametrize("phases", [phase(EQUAL, control=True), phase(FASTER, control=False)])
def test_a_control_that_stood_still_and_a_phase_that_may_move_forbid_nothing(phases):
    assert weigh(replace(FOUND, phases=phases))[0] == "faster"


def test_a_difference_outranks_whatever_was_timed():
    outcome, why = weigh(replace(FOUND, difference="step 3, rewards[0]: 1.0 against 2.0"))
    assert outcome == "cannot tell"
    assert why.startswith("the sides answer differently: step 3")


def test_without_an_interval_nothing_can_be_told():
    assert weigh(replace(FOUND, ratio=None))[0] == "cannot tell"


FEW = ("equality: 12 steps only", "200 take about 900 s (--equal-steps 200), and fewer can be asked for")
LESS = Ratio(estimate=0.5, low=0.45, high=0.55, pairs=18)


def test_few_replayed_steps_forbid_faster_and_same_and_stand_beside_slower() -> None:
    for ratio in (FASTER, EQUAL):
        outcome, why = weigh(replace(FOUND, ratio=ratio, too_few=FEW))
        assert (outcome, why) == ("cannot tell", "; ".join(FEW))
    slower = replace(FOUND, ratio=LESS, second=LESS, others=(LESS, LESS), too_few=FEW)
    outcome, why = weigh(slower)
    assert outcome == "slower"
    assert why.endswith(f"a second run agrees; {FEW[0]}")


def test_envs_that_were_not_compared_forbid_every_verdict() -> None:
    assert weigh(replace(FOUND, uncompared="equality: 3 of 8 envs were compared")) == (
        "cannot tell",
        "equality: 3 of 8 envs were compared",
    )
