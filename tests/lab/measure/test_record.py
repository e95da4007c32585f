import pytest

import hotloop
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.record import Recorder, in_rounds, overhead, throughput, work_notices

COUNTERS = {"env_steps": 4, "native_steps": 4, "agent_steps": 8}


def test_throughput_is_steps_over_wall_time_and_agents_count_each() -> None:
    batch = hotloop.make("grid/toy", num_envs=2, agents=3)
    speeds = throughput(batch.spec, 1_000, [1_000_000_000, 2_000_000_000])
    assert speeds == {"env_steps_per_s": [1_000.0, 500.0], "agent_steps_per_s": [3_000.0, 1_500.0]}


def test_where_agents_come_and_go_those_who_lived_count() -> None:
    batch = hotloop.make("farm/dev", num_envs=1)
    speeds = throughput(batch.spec, 1_000, [1_000_000_000], {"env_steps": 10, "agent_steps": 125})
    assert speeds == {"env_steps_per_s": [1_000.0], "agent_steps_per_s": [12_500.0]}


def test_a_record_holds_what_ran_and_how_much_of_it() -> None:
    batch = hotloop.make("grid/toy", num_envs=2, agents=2)
    ran = Rounds(count=1, iterations=4, warmup=0)
    values = {"env_steps_per_s": [5.0], "agent_steps_per_s": [10.0]}
    record = Recorder("bench", batch.spec).record(
        method=in_rounds(batch.spec, ran, "random"), counters=COUNTERS, values=values
    )
    assert (record.kind, record.target.name, record.work.agent_steps) == ("bench", "grid/toy", 8)
    assert record.path.ran == {"native": 1.0}
    assert (record.method.rounds, record.method.iterations, record.method.policy) == (1, 4, "random")
    assert record.metrics["agent_steps_per_s"].median == 10.0
    assert record.run_id.endswith("grid-toy-num_envs-2-agents-2")


def test_what_an_environment_variable_decided_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_OBS_USE_OPTIMIZED", "0")
    (said,) = work_notices(hotloop.make("grid/toy", num_envs=1).spec, {})
    assert "encoder" in said.text
    assert "HOTLOOP_OBS_USE_OPTIMIZED" in said.text


def test_what_a_key_decided_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_OBS_USE_OPTIMIZED", "0")
    assert work_notices(hotloop.make("grid/toy", num_envs=1, encoder="optimized").spec, {}) == []


def test_what_the_instrument_cost_is_the_ratio_of_its_pairs() -> None:
    cost = overhead([(1_000, 1_100)] * 8, 13.0)
    assert cost is not None
    assert (cost.ratio, cost.mark_ns) == (pytest.approx(1.1), 13.0)


def test_pairs_that_are_too_few_say_nothing_of_the_instrument() -> None:
    assert overhead([(1_000, 1_100)] * 5, None) is None
