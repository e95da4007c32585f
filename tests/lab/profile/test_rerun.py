from dataclasses import replace
from pathlib import Path

import pytest
from support.profiles import profile

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record import Record
from hotloop.core.record.profile import RerunResult, Slow
from hotloop.core.settings import Target
from hotloop.lab.profile import slow as module
from hotloop.lab.profile.profile import PAIRS
from hotloop.lab.profile.slow import FRESH, LOADED_TIMES, SAVED, repeated, rerun

STEPS = PAIRS * 100
PAUSE = {"at": 1_014, "seconds": 0.2}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 100)


def slow_of(record: Record) -> Slow:
    assert record.slow is not None
    return record.slow


def again_of(record: Record) -> RerunResult:
    assert record.again is not None
    return record.again


def paused() -> tuple[Record, int]:
    """A profile of an env that pauses, and the rank of that step."""
    record = profile(Target("support.stalling:make", PAUSE), STEPS)
    (step,) = [step for step in slow_of(record).steps if step.wall_ns >= 200_000_000]
    return record, step.rank


def test_a_pause_is_slow_again_where_the_env_pauses_again() -> None:
    record, rank = paused()
    replayed = rerun(Record.from_json(record.to_json()), rank)
    again = again_of(replayed)
    assert again.slow.step == 1_014
    assert len(again.wall_ns) == module.FRESH_TIMES
    assert min(again.wall_ns) >= 200_000_000
    assert (again.outcome, again.how, again.same_way) == ("slow again", FRESH, True)
    assert again.phases["wall/env.step"] >= 0.9 * again.phases["wall"]
    assert (replayed.kind, replayed.verdict, replayed.exit_code) == ("replay", "slow again", ExitCode.FINE)
    assert replayed.work.env_steps >= 1_014


def test_what_the_machine_did_is_not_slow_again() -> None:
    record, rank = paused()
    slow = slow_of(record)
    innocent = replace(slow, given={}, steps=tuple(slow.steps))
    target = replace(record.target, params={"seed": 42}, workload_hash=hash_of_innocent())
    replayed = rerun(replace(record, slow=innocent, target=target), rank)
    assert again_of(replayed).outcome == "not slow again"
    assert again_of(replayed).same_way is True


def hash_of_innocent() -> str:
    return profile(Target("support.stalling:make", {}), PAIRS).target.workload_hash


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "given", "policy", "how"),
    [
        ("grid/toy", {"num_envs": "4", "agents": "3", "max_steps": "30"}, "random", SAVED),
        ("grid/toy", {"num_envs": 2, "agents": 3, "impl": "reference"}, "random", SAVED),
        ("grid/guard", {"num_envs": 2}, "teacher", SAVED),
        ("grid/toy", {"num_envs": 1, "agents": 1}, "support.stalling:idle", FRESH),
        ("gym:CartPole-v1", {}, "random", FRESH),
        ("gym:CartPole-v1", {"num_envs": 2}, "random", FRESH),
        ("gym:hotloop/grid-toy-v0", {"seed": 7}, "random", FRESH),
        ("support.stalling:make", {}, "support.stalling:third", FRESH),
        ("pettingzoo:classic.tictactoe_v3", {}, "random", FRESH),
    ],
)
def test_every_kind_of_run_comes_to_the_same_state_again(
    target: str, given: dict[str, object], policy: str, how: str
) -> None:
    record = profile(Target(target, given), 400, policy=policy)
    slow = slow_of(record)
    assert len({step.check for step in slow.steps}) > 1, "a state that never changes proves nothing"
    for listed in (slow.steps, slow.resets, slow.warmup):
        if listed:
            again = again_of(rerun(record, listed[0].rank))
            assert (again.same_way, again.how) == (True, how)
            assert again.slow == listed[0]
            assert len(again.wall_ns) == (LOADED_TIMES if how == SAVED else module.FRESH_TIMES)


def test_a_tape_is_played_again(tmp_path: Path) -> None:
    tape = tmp_path / "run.tape"
    profile(Target("support.theirs:make", {}), 400, tape=tape)
    record = profile(Target("support.theirs:make", {}), 400, policy=f"tape:{tape}")
    assert again_of(rerun(record, 1)).same_way is True
    tape.unlink()
    with pytest.raises(InputError, match="cannot read the tape"):
        rerun(record, 1)


def test_a_run_that_goes_another_way_cannot_be_told() -> None:
    record = profile(Target("support.stalling:drift", {}), 400)
    replayed = rerun(record, 1)
    assert again_of(replayed).same_way is False
    assert again_of(replayed).outcome == "cannot tell"
    assert replayed.exit_code == ExitCode.CANNOT_TELL


def test_other_actions_are_noticed() -> None:
    record = profile(Target("grid/toy", {"num_envs": 2, "agents": 3}), 400)
    slow = slow_of(record)
    other = tuple((asked + 1, played, times) for asked, played, times in slow.draws)
    replayed = rerun(replace(record, slow=replace(slow, draws=other)), 1)
    assert again_of(replayed).same_way is False


def test_another_machine_and_version_are_said() -> None:
    record = profile(Target("grid/toy", {"num_envs": 2, "agents": 3}), 400)
    there = replace(
        record,
        machine={**record.machine, "fingerprint": "elsewhere", "cpu": "Other CPU"},
        code={**record.code, "version": "0.0.1", "commit": "f" * 40, "dirty": False},
    )
    unlike = again_of(rerun(there, 1)).unlike
    assert any(line.startswith("another machine: Other CPU then") for line in unlike)
    assert any(line.startswith("another version: 0.0.1 then") for line in unlike)
    assert any(line.startswith("another commit: ffffffffffff then") for line in unlike)


def test_settings_that_have_changed_are_refused() -> None:
    record = profile(Target("grid/toy", {"num_envs": 2, "agents": 3}), 400)
    other = replace(record, slow=replace(slow_of(record), given={"num_envs": 2, "agents": 4}))
    with pytest.raises(InputError, match=r"grid/toy is not what .* ran: it had agents=3"):
        rerun(other, 1)


def test_what_is_not_there_is_refused() -> None:
    record = profile(Target("grid/toy", {"num_envs": 2, "agents": 3}), 400)
    with pytest.raises(InputError, match=r"there is no slow step #99: .* has #1 to #20"):
        rerun(record, 99)
    with pytest.raises(InputError, match="keeps no slow steps"):
        rerun(replace(record, slow=None))
    with pytest.raises(InputError, match="keeps no slow steps"):
        rerun(replace(record, kind="bench"))
    nothing = replace(slow_of(record), steps=(), resets=(), warmup=())
    with pytest.raises(InputError, match="broken off before it saw a step"):
        rerun(replace(record, slow=nothing))


def test_an_interrupted_replay_keeps_the_times_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    record = profile(Target("support.theirs:make", {}), 400)
    real, looks = module.look, iter(range(10))

    def stop(*given: object, **more: object) -> None:
        if next(looks) == 1:
            raise KeyboardInterrupt
        real(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "look", stop)
    replayed = rerun(record, 1)
    assert (replayed.partial, replayed.exit_code) == (True, ExitCode.INTERRUPTED)
    assert len(again_of(replayed).wall_ns) == 1


def test_half_of_what_was_too_long_is_slow_again() -> None:
    assert repeated(100.0, [50.0, 49.0, 51.0], True) == "slow again"
    assert repeated(100.0, [49.0, 10.0, 51.0], True) == "not slow again"
    assert repeated(100.0, [90.0], False) == "cannot tell"
    assert repeated(-5.0, [90.0], True) == "cannot tell"
    assert repeated(100.0, [], None) == "cannot tell"
