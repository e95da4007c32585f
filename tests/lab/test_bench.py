import gc

import pytest

from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs import native
from hotloop.envs.batch import Batch
from hotloop.lab.bench import bench
from hotloop.lab.measure import record, sides
from hotloop.lab.measure.loop import Rounds

SHORT = Rounds(count=6, iterations=80, warmup=40)
needs_native = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")

SMALL = {"num_envs": 8, "agents": 3}


def test_there_is_one_raw_value_a_round_and_a_metric_of_each() -> None:
    record = bench(Target("grid/toy", SMALL), SHORT)
    assert {len(values) for values in record.values.values()} == {6}
    assert record.metrics.keys() == {"env_steps_per_s", "agent_steps_per_s", "cpu_share"}
    for env, agent, _ in zip(*record.values.values(), strict=True):
        assert agent == pytest.approx(3 * env)


def test_work_is_that_of_the_measured_rounds_only() -> None:
    record = bench(Target("grid/toy", SMALL), SHORT)
    assert (record.work.env_steps, record.work.agent_steps) == (6 * 80, 6 * 80 * 3)
    assert record.method.warmup == 40
    assert sum(record.work.coverage.values()) == record.work.agent_steps


@pytest.mark.parametrize("impl", [pytest.param("native", marks=needs_native), "reference"])
def test_the_path_names_what_ran(impl: str) -> None:
    record = bench(Target("grid/toy", SMALL | {"impl": impl}), SHORT)
    assert (record.path.requested, record.path.ran) == (impl, {impl: 1.0})


@needs_native
def test_a_native_run_whose_counters_say_otherwise_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(record.STEPS_OF, "native", "reference_steps")
    with pytest.raises(SetupError, match=r"0\.0% of the steps ran natively"):
        bench(Target("grid/toy", SMALL | {"impl": "native"}), SHORT)


def test_the_clean_pass_is_clean_even_where_the_environment_asks_for_profiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOTLOOP_PROFILING", "1")
    record = bench(Target("grid/toy", SMALL), SHORT)
    assert record.target.variant["profile"] is False
    assert record.phases == ()


def test_asking_for_profiling_is_refused() -> None:
    with pytest.raises(InputError, match="every probe off"):
        bench(Target("grid/toy", {"profile": "1"}), SHORT)


def test_the_collector_is_off_while_a_batch_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    step, seen = Batch.step, set[bool]()

    def watch(batch: Batch, actions: sides.Actions) -> None:
        seen.add(gc.isenabled())
        step(batch, actions)

    monkeypatch.setattr(Batch, "step", watch)
    bench(Target("grid/toy", SMALL), SHORT)
    assert seen == {False}


def interrupt(monkeypatch: pytest.MonkeyPatch, at_call: int) -> Record:
    """Run a bench that Ctrl-C ends in the given batch call."""
    step, calls = Batch.step, iter(range(1, 1_000))

    def stop(batch: Batch, actions: sides.Actions) -> None:
        if next(calls) == at_call:
            raise KeyboardInterrupt
        step(batch, actions)

    monkeypatch.setattr(Batch, "step", stop)
    return bench(Target("grid/toy", SMALL), SHORT)


def test_an_interrupted_run_leaves_the_whole_rounds_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    record = interrupt(monkeypatch, at_call=5 + 2 * 10 + 3)
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert len(record.values["env_steps_per_s"]) == 2
    assert record.work.env_steps == 2 * 80


def test_a_run_interrupted_while_warming_up_leaves_a_record_without_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = interrupt(monkeypatch, at_call=2)
    assert (record.partial, record.metrics, record.work.env_steps) == (True, {}, 0)


def test_progress_reaches_the_end() -> None:
    seen: list[tuple[int, int]] = []
    bench(Target("grid/toy", SMALL), SHORT, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (40 + 6 * 80, 40 + 6 * 80)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
