import pytest

import hotloop
from hotloop.core.errors import SetupError
from hotloop.lab.measure.loop import Tally
from hotloop.lab.measure.record import describe_path, describe_work


def test_a_target_is_split_into_what_changes_results_and_what_must_not() -> None:
    target = hotloop.make("grid/toy", agents=5, num_envs=2, seed=7, impl="reference").spec.described
    assert (target.name, target.world, target.impl) == ("grid/toy", "grid", "reference")
    assert target.params.items() >= {"agents": 5, "seed": 7}.items()
    assert target.variant.items() >= {"num_envs": 2, "impl": "reference", "threads": 1}.items()
    assert not target.params.keys() & target.variant.keys()


def test_variants_leave_the_workload_hash_alone_and_workloads_do_not() -> None:
    hashes = [
        hotloop.make("grid/toy", num_envs=num_envs, agents=agents).spec.described.workload_hash
        for num_envs, agents in ((2, 5), (3, 5), (2, 6))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_tally_counts_from_begin_to_the_last_note() -> None:
    counters = {"env_steps": 5}
    tally = Tally(lambda: dict(counters))
    counters["env_steps"] = 10
    tally.begin()
    counters |= {"env_steps": 17, "resets": 2}
    tally.note()
    counters["env_steps"] = 99
    assert tally.gained == {"env_steps": 7, "resets": 2}


def test_work_names_the_mechanics_that_fired() -> None:
    work = describe_work({"env_steps": 4, "agent_steps": 8, "tokens": 9, "coverage.move": 3})
    assert (work.env_steps, work.agent_steps, work.resets, work.tokens) == (4, 8, 0, 9)
    assert work.coverage == {"move": 3}


def test_the_path_is_what_the_counters_say_not_what_was_asked_for() -> None:
    counters = {"env_steps": 4, "native_steps": 3, "reference_steps": 1}
    assert describe_path("auto", counters).ran == {"native": 0.75, "reference": 0.25}


@pytest.mark.parametrize("native_steps", [0, 3])
def test_native_that_was_not_native_throughout_fails(native_steps: int) -> None:
    counters = {"env_steps": 4, "native_steps": native_steps, "reference_steps": 4 - native_steps}
    with pytest.raises(SetupError, match=f"{native_steps / 4:.1%} of the steps"):
        describe_path("native", counters)


def test_a_run_that_made_no_step_has_no_path() -> None:
    assert describe_path("native", {"env_steps": 0}).ran == {}


def test_native_that_is_claimed_has_to_have_run_and_the_counters_are_named() -> None:
    counters = {"env_steps": 4, "native_steps": 1, "reference_steps": 3}
    told = r"claimed but 25\.0% .* \(the counters say native_steps 1, reference_steps 3 of 4\)"
    with pytest.raises(SetupError, match=told):
        describe_path("auto", counters, claimed="native")
    assert describe_path("auto", counters, claimed="reference").ran == {"native": 0.25, "reference": 0.75}


def test_updates_and_rows_are_counted_where_somebody_counts_them() -> None:
    work = describe_work({"env_steps": 4, "updates": 3, "rows": 2})
    assert (work.updates, work.rows) == (3, 2)
