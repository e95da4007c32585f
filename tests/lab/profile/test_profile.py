from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from support.profiles import profile

from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.record import Record
from hotloop.core.record.profile import PYTHON, STEP, WALL
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.lab.measure.policy import Actions
from hotloop.lab.profile import profile as module
from hotloop.lab.profile.profile import PAIRS, split_steps
from hotloop.report.kinds.times import step_lines

SMALL = {"num_envs": 8, "agents": 3}
STEPS = PAIRS * 16


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WARMUP", 40)


def totals(record: Record) -> dict[str, int]:
    return {phase.path: phase.total_ns for phase in record.phases}


@pytest.mark.parametrize("impl", ["auto", "reference"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_phases_add_up(impl: str, threads: int) -> None:
    record = profile(Target("grid/toy", SMALL | {"impl": impl, "threads": threads}), STEPS)
    rows = totals(record)
    inside = [ns for path, ns in rows.items() if path.startswith(f"{STEP}/")]
    assert record.unaccounted_ns is not None
    assert sum(inside) + record.unaccounted_ns == rows[STEP]
    assert rows[PYTHON] + rows[STEP] == rows[WALL]
    assert rows[WALL] == sum(record.values["instrumented_wall_ns"])


def test_a_log_is_a_phase_of_its_own_beside_the_step(tmp_path: Path) -> None:
    keys = {"num_envs": 1, "perception": False, "log": str(tmp_path), "threads": 2}
    record = profile(Target("farm/dev", keys), PAIRS)
    rows = totals(record)
    assert rows[f"{WALL}/log"] > 0
    assert rows[PYTHON] > 0
    assert rows[PYTHON] + rows[f"{WALL}/log"] + rows[STEP] == rows[WALL]
    [logged] = [phase for phase in record.phases if phase.path == f"{WALL}/log"]
    assert sum(logged.rounds_ns) == logged.total_ns
    names = [line.name for line in step_lines(record) if not line.in_step]
    assert names == ["log", "Python and binding", WALL]


def test_every_phase_of_the_world_and_autoreset_have_a_row() -> None:
    record = profile(Target("grid/toy", SMALL), STEPS)
    names = [path.removeprefix(f"{STEP}/") for path in totals(record) if path.startswith(f"{STEP}/")]
    assert names == [
        *("reset", "events", "actions", "on_tick", "aoe", "collectives", "observations", "rewards"),
        *("truncation", "autoreset"),
    ]


def test_throughput_is_that_of_the_clean_passes() -> None:
    record = profile(Target("grid/toy", SMALL), STEPS)
    speeds = [16 * 1e9 / ns for ns in record.values["clean_wall_ns"]]
    assert record.values["env_steps_per_s"] == pytest.approx(speeds)


def test_the_warmup_is_in_no_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WARMUP", 100 * STEPS)
    assert totals(profile(Target("grid/toy", SMALL), STEPS))[PYTHON] > 0


def test_what_the_instrument_cost_is_its_time_over_the_clean_time(monkeypatch: pytest.MonkeyPatch) -> None:
    play, turn, spread = module.play, module.StepView.turn, cycle([0, 1, 2])

    def clean(batch: Batch, actions: list[Actions], calls: int) -> int:
        play(batch, actions, calls)
        return 1_000

    def watched(view: module.StepView, watch: Any, actions: list[Actions]) -> int:
        turn(view, watch, actions)
        return 1_100 + next(spread)

    monkeypatch.setattr(module, "play", clean)
    monkeypatch.setattr(module.StepView, "turn", watched)
    overhead = profile(Target("grid/toy", SMALL), STEPS).overhead
    assert overhead is not None
    assert overhead.ratio == pytest.approx(1.101)
    assert overhead.ci95 == pytest.approx((1.1, 1.102))


def test_pairs_alternate_in_order_and_both_sides_play_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bytes]] = []
    real = module.play

    def watch(batch: Batch, actions: list[Actions], calls: int) -> int:
        seen.append((batch.spec.settings.profile, b"".join(map(bytes, actions[:calls]))))
        return real(batch, actions, calls)

    monkeypatch.setattr(module, "play", watch)
    profile(Target("grid/toy", SMALL), STEPS)
    assert [timed for timed, _ in seen] == [False, True, True, False] * (PAIRS // 2)
    assert all(seen[i][1] == seen[i + 1][1] for i in range(0, len(seen), 2))
    assert len({played for _, played in seen}) == PAIRS


def test_an_instrument_that_changes_the_work_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Batch.counters.fget
    assert real is not None

    def cheat(batch: Batch) -> dict[str, int]:
        return real(batch) | {"tokens": int(batch.spec.settings.profile)}

    monkeypatch.setattr(Batch, "counters", property(cheat))
    with pytest.raises(SetupError, match=r"changed the work done \(tokens\)"):
        profile(Target("grid/toy", SMALL), STEPS)


def test_steps_are_those_of_each_side_split_into_pairs() -> None:
    assert (split_steps(1_000).count, split_steps(1_000).iterations, split_steps(1_000).box_iterations) == (
        20,
        50,
        False,
    )
    assert split_steps(1).iterations == 1
    assert split_steps(None).box_iterations
    assert profile(Target("grid/toy", SMALL), STEPS).work.env_steps == STEPS


def test_no_steps_and_the_profile_key_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        profile(Target("grid/toy", SMALL), 0)
    with pytest.raises(InputError, match="profile="):
        profile(Target("grid/toy", {"profile": "0"}))


def test_an_interrupted_profile_keeps_its_whole_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    real, passes = module.play, iter(range(100))

    def stop(batch: Batch, actions: list[Actions], calls: int) -> int:
        if next(passes) == 7:
            raise KeyboardInterrupt
        return real(batch, actions, calls)

    monkeypatch.setattr(module, "play", stop)
    record = profile(Target("grid/toy", SMALL), STEPS)
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert len(record.values["clean_wall_ns"]) == 3
    assert record.work.env_steps == 3 * 16
    assert record.phases
    assert record.overhead is None


def test_a_profile_interrupted_before_its_first_pair_has_no_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(batch: Batch, actions: list[Actions], calls: int) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "play", stop)
    record = profile(Target("grid/toy", SMALL), STEPS)
    assert (record.partial, record.phases, record.unaccounted_ns) == (True, (), None)
