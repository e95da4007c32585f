from dataclasses import replace

import pytest
from support.records import BENCH, MACHINE

from hotloop.core.errors import InputError
from hotloop.core.record import METHOD, Record
from hotloop.core.record.metadata import Work
from hotloop.core.settings import Target
from hotloop.judge.compare import check_alike, conditions_of, differences, different_work
from hotloop.lab.bench import bench
from hotloop.lab.measure.loop import Rounds

MINE = conditions_of(BENCH)


def with_work(**counts: int | dict[str, int]) -> Record:
    """A record of a million env-steps by 50 envs."""
    work = Work(**{"env_steps": 1_000_000, "agent_steps": 2_000_000} | counts)  # type: ignore[arg-type]
    target = replace(BENCH.target, variant={"num_envs": 50})
    return replace(BENCH, target=target, work=work)


def test_variant_and_code_may_differ() -> None:
    target = replace(BENCH.target, impl="reference", variant={"num_envs": 7})
    assert differences(MINE, conditions_of(replace(BENCH, target=target, code={"commit": "another"}))) == ()


def test_what_differs_is_named_with_both_values() -> None:
    target = replace(BENCH.target, params={"agents": 3}, workload_hash="ba9876543210")
    machine = MACHINE | {"fingerprint": "ba9876543210", "cores": 8}
    method = replace(BENCH.method, policy="teacher", version=1)
    other = replace(BENCH, kind="profile", target=target, machine=machine, method=method)
    assert differences(MINE, conditions_of(other)) == (
        "machine (cores 4 against 8)",
        "workload (agents 2 against 3)",
        "kind (bench against profile)",
        f"method (version {METHOD} against version 1)",
        "policy (random against teacher)",
    )


def test_a_hash_is_named_where_nothing_else_differs() -> None:
    machine = MACHINE | {"fingerprint": "ba9876543210"}
    (told,) = differences(MINE, conditions_of(replace(BENCH, machine=machine)))
    assert told == "machine (fingerprint 0123456789ab against ba9876543210)"


def test_a_value_that_is_longer_than_a_line_is_cut() -> None:
    target = replace(BENCH.target, workload_hash="x" * 5000)
    (told,) = differences(MINE, conditions_of(replace(BENCH, target=target)))
    assert told == f"workload (hash {BENCH.target.workload_hash} against {'x' * 79}…)"


def test_an_unfinished_baseline_is_refused_before_anything_is_measured() -> None:
    check_alike(BENCH, MINE)
    with pytest.raises(InputError, match="was interrupted"):
        check_alike(replace(BENCH, partial=True), MINE)
    with pytest.raises(InputError, match=r"unlike: policy \(random against teacher\)"):
        check_alike(BENCH, replace(MINE, policy="teacher"))


@pytest.mark.parametrize("counter", ["agent_steps", "resets", "decisions", "updates", "tokens", "rows"])
def test_every_counter_is_looked_at(counter: str) -> None:
    a, b = with_work(**{counter: 3_000_000}), with_work(**{counter: 2_000_000})
    assert different_work(a, b, 0.01) == f"{counter} 3 against 2 an env-step"
    assert different_work(a, a, 0.01) is None


def test_a_mechanic_that_fires_on_one_side_only_is_named() -> None:
    a, b = with_work(coverage={"move": 5, "loot": 300}), with_work(coverage={"move": 5})
    assert different_work(a, b, 0.01) == "loot 0.0003 against 0 an env-step"


@pytest.mark.parametrize(
    ("a", "b", "is_alike"),
    [
        (1_000_000, 1_009_000, True),  # within the tolerance
        (1_000_000, 1_020_000, False),
        (100_000, 102_000, True),  # chance
        (100_000, 104_000, False),
        (0, 50, True),  # one of each env
        (0, 200, False),
    ],
)
def test_chance_the_edges_of_the_window_and_the_tolerance_are_allowed(a: int, b: int, is_alike: bool) -> None:
    assert (different_work(with_work(tokens=a), with_work(tokens=b), 0.01) is None) is is_alike


def test_one_workload_counts_the_same_and_nearly_the_same_over_other_lengths() -> None:
    keys = {"num_envs": 64, "agents": 3}

    def run(rounds: int, iterations: int, warmup: int) -> Record:
        return bench(Target("grid/toy", keys), Rounds(count=rounds, iterations=iterations, warmup=warmup))

    first = run(8, 3_200, 640)
    assert run(8, 3_200, 640).work == first.work
    for other in (run(8, 6_400, 640), run(20, 3_200, 640), run(8, 3_200, 6_400)):
        assert different_work(first, other, 0.01) is None
