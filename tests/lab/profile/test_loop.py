from pathlib import Path
from types import SimpleNamespace

import pytest
from support.profiles import profile

from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.record.profile import Phase
from hotloop.core.settings import Target
from hotloop.core.time_tree import TimeTree
from hotloop.envs import tapes
from hotloop.envs.foreign.vector import SLOWEST, WAIT
from hotloop.lab.profile.profile import loop_remarks

STEPS = 240


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 100)


def rows(record: Record) -> dict[str, Phase]:
    return {phase.path: phase for phase in record.phases}


def assert_adds_up(record: Record) -> None:
    """Every row's children take no longer than it, and the whole is its children and what is unaccounted."""
    seen = rows(record)
    for path, row in seen.items():
        below = sum(each.total_ns for other, each in seen.items() if other.rpartition("/")[0] == path)
        # Native phases are timed by another clock than the span around them.
        assert below <= row.total_ns * 1.02 + 20_000, path
    top = sum(row.total_ns for path, row in seen.items() if path.count("/") == 1)
    assert top + record.unaccounted_ns == seen["wall"].total_ns
    assert 0 <= record.unaccounted_ns
    assert sum(row.share for path, row in seen.items() if path.count("/") == 1) <= 1.0


@pytest.mark.parametrize(
    ("target", "given", "expected"),
    [
        ("gym:CartPole-v1", {}, {"env.step", "env.step/CartPoleEnv.step", "env.reset"}),
        ("gym:CartPole-v1", {"num_envs": 2}, {"env.step", "env.step/envs.step/CartPoleEnv.step"}),
        ("support.theirs:make", {}, {"env.step", "env.step/physics", "env.reset"}),
        ("support.theirs:plain", {}, {"env.step", "env.reset"}),
        (
            "support.theirs:wrapped",
            {},
            {
                "env.step/Doubled.step/Doubled.step/Env.step/physics",
                "env.reset/Doubled.reset/Doubled.reset/Env.reset",
            },
        ),
        ("pettingzoo:classic.tictactoe_v3", {}, {"env.step", "env.last", "action selection", "env.reset"}),
        ("support.theirs:ours", {}, {"env.step", "env.step/native step"}),
        (
            "gym:hotloop/grid-toy-v0",
            {"num_envs": 2, "vector": "own"},
            {"env.step", "env.step/native step", "env.step/native step/observations"},
        ),
        (
            "gym:hotloop/grid-toy-v0",
            {},
            {"env.step/HotloopEnv.step", "env.step/HotloopEnv.step/native step/observations"},
        ),
    ],
)
def test_the_tree_of_a_loop_adds_up(target: str, given: dict[str, object], expected: set[str]) -> None:
    record = profile(Target(target, given), STEPS)
    assert expected | {"everything else"} <= {path.removeprefix("wall/") for path in rows(record)}
    assert_adds_up(record)
    assert record.overhead is not None
    assert record.metrics["env_steps_per_s"].median > 0
    assert record.work.env_steps >= STEPS * 0.8
    assert record.kind == "profile"


def test_calls_are_counted_where_they_happen() -> None:
    record = profile(Target("support.theirs:make", {}), STEPS)
    seen = rows(record)
    assert seen["wall/env.step"].calls == STEPS
    assert seen["wall/env.step/physics"].calls == STEPS
    assert seen["wall/env.reset"].calls == record.work.resets
    assert record.work.env_steps == STEPS


def test_a_slow_function_is_found_by_its_name() -> None:
    record = profile(Target("support.theirs:slow_encoder", {}), STEPS, time=["Env._encode"])
    seen = rows(record)
    inside, whole = seen["wall/env.step/Env._encode"].p50_ns, seen["wall"].p50_ns
    assert inside is not None
    assert whole is not None
    assert inside > 0.5 * whole  # of the usual call: others on the machine lengthen some of them
    assert not [notice for notice in record.notices if notice.code == "never-called"]


def test_a_function_that_is_never_called_is_said() -> None:
    record = profile(Target("support.theirs:make", {}), STEPS, time=["support.theirs.uneven"])
    assert [notice.text for notice in record.notices if notice.code == "never-called"] == [
        "support.theirs.uneven was never called in this process"
    ]


def test_waiting_for_the_slowest_worker_is_shown_apart_from_work() -> None:
    record = profile(Target("support.theirs:uneven", {}), 120)
    seen = rows(record)
    wait, step = seen["wall/env.step/wait for workers"], seen["wall/env.step"]
    skew = seen["wall/env.step/wait for workers/from the first to the last"]
    assert wait.total_ns > 0.5 * step.total_ns
    assert skew.total_ns > 0.5 * wait.total_ns
    (said,) = [notice for notice in record.notices if notice.code == "waiting"]
    assert "mostly worker 2" in said.text
    assert_adds_up(record)


@pytest.mark.parametrize(
    ("policy", "below"),
    [("support.theirs:policy", set()), ("support.theirs:TwoParts", {"policy/forward", "policy/select"})],
)
def test_a_policy_in_the_loop_is_part_of_the_tree(policy: str, below: set[str]) -> None:
    record = profile(Target("support.theirs:make", {}), STEPS, policy=policy)
    seen = rows(record)
    assert seen["wall/policy"].calls == STEPS
    assert below <= {path.removeprefix("wall/") for path in seen}
    assert record.method.policy == f"{policy} (live)"
    assert_adds_up(record)


def test_a_policy_that_raises_says_its_last_words() -> None:
    with pytest.raises(
        InputError, match=r"the policy raised: RuntimeError: no idea .*theirs.py:\d+ in bad_policy"
    ):
        profile(Target("support.theirs:make", {}), STEPS, policy="support.theirs:bad_policy")


@pytest.mark.parametrize(
    "target", ["support.theirs:make", "hotloop.envs.adapters.pettingzoo:parallel_env", "grid/toy"]
)
def test_what_was_played_is_recorded_and_can_be_played_again(target: str, tmp_path: Path) -> None:
    given = {"target": "grid/toy", "agents": 2} if target.endswith("parallel_env") else {}
    file = tmp_path / "run.tape"
    first = profile(Target(target, given), STEPS, tape=file)
    tape = tapes.read(file)
    assert tape.target == target
    assert (
        len(tape.actions) * tape.num_envs
        == first.method.warmup + first.method.rounds * first.method.iterations
    )
    again = profile(Target(target, given), STEPS, policy=f"tape:{file}")
    assert again.method.policy == f"tape:{file}"
    assert again.work.env_steps == first.work.env_steps


def test_the_hosts_clock_around_a_policy_on_a_gpu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "host-timer" not in {each.code for each in profile(Target("support.theirs:make"), STEPS).notices}
    monkeypatch.setattr("hotloop.lab.profile.profile.cuda_runs", lambda: True)
    assert "host-timer" in {each.code for each in profile(Target("support.theirs:make"), STEPS).notices}


def waiting(slowest_ns: int) -> TimeTree:
    """A loop that waits nine tenths of its time, so much of it for the slowest worker."""
    slowest = TimeTree(path=f"env.step/{WAIT}/{SLOWEST}", total_ns=slowest_ns)
    wait = TimeTree(path=f"env.step/{WAIT}", total_ns=90, children=(slowest,))
    return TimeTree(total_ns=100, children=(TimeTree(path="env.step", total_ns=95, children=(wait,)),))


def test_workers_that_are_alike_are_not_told_to_share_evenly() -> None:
    """What they cost then is the way to them, or what they do: nobody is the slowest."""
    subject = SimpleNamespace(workers=SimpleNamespace(slowest=(1, 0.5)))
    assert [said.code for said in loop_remarks(subject, (), waiting(5))] == ["idle-workers"]
    assert [said.code for said in loop_remarks(subject, (), waiting(50))] == ["waiting"]
