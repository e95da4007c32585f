import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import BENCH, MACHINE, PROFILE, TIMES, bench_with

import hotloop
from hotloop.core.errors import Code, ExitCode, notice
from hotloop.core.record import Record, SpeedTarget
from hotloop.core.record.comparison import Comparison, Outcome, Validation
from hotloop.core.record.profile import WALL, Overhead, Phase, Repeated, RerunResult, SlowStep, describe_times
from hotloop.core.time_tree import ENVIRONMENT
from hotloop.judge.compare import compare_stored
from hotloop.judge.judge import RULES, judge
from hotloop.lab.profile.calls import step_times

SOURCE = Path(hotloop.__file__).parent

STEADY = [4.0e6, 4.1e6, 3.9e6, 4.05e6, 3.95e6, 4.0e6]


def codes(record: Record) -> list[str]:
    return [notice.code for notice in judge(record).notices]


def test_steady_rounds_on_a_quiet_machine_pass_without_a_word() -> None:
    judged = judge(bench_with(STEADY))
    assert (judged.verdict, judged.exit_code, judged.notices) == ("pass", ExitCode.FINE, ())


def test_rounds_that_vary_by_more_than_a_fifth_are_unstable() -> None:
    judged = judge(bench_with([1.0, 2.0, 1.1, 2.1, 1.2, 1.9]))
    assert (judged.verdict, judged.exit_code) == ("cannot tell", ExitCode.UNSTABLE)
    assert [notice.code for notice in judged.notices] == ["unstable"]


def test_a_mismatch_outranks_everything_else() -> None:
    unstable = bench_with([1.0, 2.0, 1.1, 2.1, 1.2, 1.9], partial=True)
    judged = judge(replace(unstable, validation=Validation(comparisons=100, mismatches=1)))
    assert (judged.verdict, judged.exit_code) == ("fail", ExitCode.MISMATCH)
    assert judged.notices[0].code == "mismatch"
    clean = judge(replace(bench_with(STEADY), validation=Validation(comparisons=100, mismatches=0)))
    assert (clean.verdict, clean.exit_code) == ("pass", ExitCode.FINE)


def test_fewer_than_six_rounds_are_said_to_give_no_interval() -> None:
    assert codes(bench_with(STEADY[:5])) == ["too-few-rounds"]


def test_an_interrupted_run_cannot_tell_whatever_it_found() -> None:
    for values in ([], STEADY):
        judged = judge(bench_with(values, partial=True))
        assert (judged.verdict, judged.exit_code) == ("cannot tell", ExitCode.INTERRUPTED)
        assert [notice.code for notice in judged.notices] == ["partial"]


def test_rounds_that_get_slower_and_slower_drift() -> None:
    assert "drift" in codes(bench_with([4.0e6 - 1e4 * k for k in range(20)]))


def test_a_cold_first_round_is_named() -> None:
    values = [4.0e6 + 1e4 * (k % 3) for k in range(20)]
    assert "warmup" in codes(bench_with([2.0e6, *values]))


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"load": 2.1}, "busy-machine"),
        ({"steal_share": 0.02}, "stolen-time"),
        ({"limits": {"cpus": 0.5}}, "cpu-limit"),
        ({"governor": "powersave"}, "governor"),
        ({"clocksource": "hpet"}, "slow-clock"),
    ],
)
def test_a_machine_that_is_not_quiet_is_named(facts: dict[str, object], code: str) -> None:
    assert codes(bench_with(STEADY, machine=MACHINE | facts)) == [code]


def test_steps_that_left_the_fast_path_are_named() -> None:
    mixed = replace(BENCH.path, ran={"native": 0.75, "reference": 0.25})
    assert codes(replace(BENCH, path=mixed)) == ["path-mixed"]


def test_uncommitted_code_is_named() -> None:
    assert codes(replace(BENCH, code=BENCH.code | {"dirty": True})) == ["dirty"]


def test_five_percent_in_no_phase_is_allowed_and_more_is_named() -> None:
    assert codes(PROFILE) == []
    assert codes(replace(PROFILE, unaccounted_ns=101)) == ["unaccounted"]


def test_several_threads_are_said_to_split_uncleanly() -> None:
    tree = step_times(TIMES, wall_ns=2_500, env_steps=10, threads=2)
    method = replace(PROFILE.method, threads=2)
    rest_ns = tree["step"].self_ns
    record = replace(PROFILE, method=method, phases=describe_times(tree), unaccounted_ns=rest_ns)
    assert codes(record) == ["threads-split"]


def test_a_heavy_instrument_is_named() -> None:
    assert codes(replace(PROFILE, overhead=Overhead(ratio=1.2, ci95=None, mark_ns=None))) == ["overhead"]


def test_notices_of_the_run_come_first() -> None:
    first = judge(bench_with(STEADY[:5])).notices[0]
    assert judge(bench_with([1.0, 2.0] * 3, notices=(first,))).notices[0] == first


def against(*outcomes: Outcome) -> tuple[Comparison, ...]:
    compared = compare_stored(bench_with(STEADY * 2), bench_with(STEADY * 2))
    return tuple(replace(compared, outcome=outcome) for outcome in outcomes)


@pytest.mark.parametrize(
    ("outcomes", "code", "verdict"),
    [
        (["same", "faster"], ExitCode.FINE, "pass"),
        (["faster", "cannot tell"], ExitCode.CANNOT_TELL, "cannot tell"),
        (["cannot tell", "slower", "faster"], ExitCode.REGRESSION, "fail"),
    ],
)
def test_the_gravest_comparison_decides(outcomes: list[Outcome], code: ExitCode, verdict: str) -> None:
    judged = judge(bench_with(STEADY, comparisons=against(*outcomes)))
    assert (judged.exit_code, judged.verdict) == (code, verdict)


@pytest.mark.parametrize(
    ("enforced", "met", "code"),
    [
        (True, False, ExitCode.REGRESSION),
        (True, True, ExitCode.FINE),
        (False, False, ExitCode.FINE),
    ],
)
def test_a_missed_goal_is_said_and_fails_where_it_is_enforced(
    enforced: bool, met: bool, code: ExitCode
) -> None:
    goal = SpeedTarget(env_steps_per_s=5.0e6, floor=None, enforced=enforced, met=met)
    judged = judge(bench_with(STEADY, goal=goal))
    assert judged.exit_code == code
    assert [notice.code for notice in judged.notices] == ([] if met else ["below-target"])


def test_mismatch_regression_cannot_tell_and_unstable_rank_in_this_order() -> None:
    record = bench_with([1.0, 2.0, 1.1, 2.1, 1.2, 1.9])
    assert judge(record).exit_code == ExitCode.UNSTABLE
    record = replace(record, comparisons=against("cannot tell"))
    assert judge(record).exit_code == ExitCode.CANNOT_TELL
    record = replace(record, comparisons=against("cannot tell", "slower"))
    assert judge(record).exit_code == ExitCode.REGRESSION
    record = replace(record, validation=Validation(comparisons=1, mismatches=1))
    assert judge(record).exit_code == ExitCode.MISMATCH


UNSTEADY = bench_with(
    [1.0, 2.0, 1.1, 2.1, 1.2],
    machine=MACHINE | {"load": 2.1, "steal_share": 0.02},
    code=BENCH.code | {"dirty": True},
    notices=(notice(Code.SHORTENED, iterations=1, warmup=1),),
    phases=PROFILE.phases,
    unaccounted_ns=500,
    overhead=Overhead(ratio=1.2, ci95=None, mark_ns=None),
    goal=SpeedTarget(env_steps_per_s=5.0e6, floor=None, enforced=True, met=False),
    validation=Validation(comparisons=100, mismatches=1),
)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("kind", RULES)
def test_to_judge_again_changes_nothing(kind: str, partial: bool) -> None:
    once = judge(replace(UNSTEADY, kind=kind, partial=partial))
    assert judge(once) == once
    assert judge(Record.from_json(once.to_json())) == once
    assert once.notices[0].code == "shortened"
    assert len(set(once.notices)) == len(once.notices)


@pytest.mark.parametrize("kind", RULES)
def test_a_mismatch_is_exit_2_and_ctrl_c_130_whatever_the_kind(kind: str) -> None:
    record = replace(bench_with(STEADY), kind=kind)
    assert judge(record).exit_code == ExitCode.FINE
    assert judge(replace(record, partial=True)).exit_code == ExitCode.INTERRUPTED
    wrong = replace(record, validation=Validation(comparisons=1, mismatches=1))
    assert judge(wrong).exit_code == ExitCode.MISMATCH
    assert judge(replace(wrong, partial=True)).exit_code == ExitCode.MISMATCH


@pytest.mark.parametrize(
    ("kind", "rounds", "done"),
    [
        ("bench", 20, "6 of 20"),
        ("profile", 6, "all"),
        ("compare", 6, "6"),
        ("train", 3, "3"),
        ("validate", 2, "2"),
    ],
)
def test_how_far_a_run_came_is_said_as_its_kind_counts(kind: str, rounds: int, done: str) -> None:
    method = replace(BENCH.method, rounds=rounds)
    record = replace(bench_with(STEADY, partial=True, method=method), kind=kind)
    assert judge(record).notices == (notice(Code.PARTIAL, done=done),)


def test_the_profile_before_does_not_decide_and_a_baseline_does() -> None:
    compared = bench_with(STEADY, comparisons=against("slower"))
    assert judge(replace(compared, kind="profile")).exit_code == ExitCode.FINE
    assert judge(compared).exit_code == ExitCode.REGRESSION


@pytest.mark.parametrize("kind", ["sim", "train", "validate"])
def test_the_spread_of_what_is_no_measurement_is_no_fault(kind: str) -> None:
    judged = judge(replace(bench_with([1.0, 2.0, 1.1, 2.1, 1.2, 1.9]), kind=kind))
    assert (judged.verdict, judged.exit_code, judged.notices) == ("pass", ExitCode.FINE, ())


def test_what_has_no_rounds_is_no_number_that_the_machine_could_spoil() -> None:
    attached = replace(UNSTEADY, kind="profile", values={}, metrics={}, phases=(), overhead=None)
    attached = replace(attached, validation=None, method=replace(BENCH.method, rounds=0))
    assert codes(attached) == ["shortened"]


def test_threads_split_the_phases_of_a_training_s_environment() -> None:
    row = Phase(path=f"{WALL}/{ENVIRONMENT}/actions", calls=1, total_ns=1, mean_ns=1.0, share=1.0)
    record = replace(bench_with(STEADY), kind="train", phases=(row,))
    assert codes(record) == []
    assert codes(replace(record, method=replace(record.method, threads=2))) == ["threads-split"]


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ("slow again", ExitCode.FINE),
        ("not slow again", ExitCode.FINE),
        ("cannot tell", ExitCode.CANNOT_TELL),
    ],
)
def test_the_verdict_of_a_replay_is_whether_the_step_was_slow_again(
    outcome: Repeated, code: ExitCode
) -> None:
    again = RerunResult(
        run_id="a",
        slow=SlowStep(
            rank=1,
            step=5,
            env=None,
            seed=42,
            wall_ns=9,
            phases={},
            resets=0,
            gc_ns=0,
            collections=0,
            check_step=5,
            check="",
        ),
        typical_ns=1.0,
        typical_then_ns=1.0,
        wall_ns=(9,),
        gc_ns=(0,),
        phases={},
        how="",
        same_way=True,
        unlike=(),
        outcome=outcome,
    )
    judged = judge(replace(BENCH, kind="replay", again=again))
    assert (judged.verdict, judged.exit_code) == (outcome, code)


def test_every_kind_of_record_that_is_made_has_its_rules() -> None:
    made = re.compile(r"(?:Recorder\(|^KIND = )\"(\w+)\"", re.MULTILINE)
    kinds = {kind for path in SOURCE.rglob("*.py") for kind in made.findall(path.read_text())}
    assert kinds == set(RULES)


def test_nothing_but_the_judgement_writes_a_verdict_or_an_exit_code() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.name != "judge.py":
            calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            words = [word for call in calls for word in call.keywords if word.arg in {"verdict", "exit_code"}]
            written = [word for word in words if ast.unparse(word.value) != f"record.{word.arg}"]  # handed on
            assert not written, path
