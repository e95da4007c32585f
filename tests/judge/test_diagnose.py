"""Each rule sees the fault it is for, does not see it in the repaired program, and asks for its evidence."""

from dataclasses import replace

import pytest
from support.cases import ENV, at, counted, env, loop, probed, program
from support.records import BENCH, MACHINE, PROFILE

from hotloop.core.errors import Code, InputError, notice
from hotloop.core.record import Record, Resources
from hotloop.core.record.comparison import Ratio
from hotloop.core.record.metadata import PathRan
from hotloop.core.record.profile import Finding, Overhead, Pauses, Table
from hotloop.judge.case import Alternative, Case, speed_up
from hotloop.judge.diagnose import Diagnosis, again, diagnose, since
from hotloop.judge.expect import expect
from hotloop.judge.rules import RULES

GOOD = {"collect": (10, 0.5), "collect/env": (10, 0.28), "collect/policy": (10, 0.2), "learn": (10, 0.48)}
"""A loop in which nothing is wrong: a hundred rows a call, and everything in a row."""

HEALTHY = loop(GOOD)

PROGRAM = program({"step (env.py:3)": (0.6, 0.9), "learn (train.py:9)": (0.3, 0.9)})

PPO = {"supervised_steps": 100, "fade_steps": 100}

NEAR = "near (env.py:3)"

GPU = {"device": "cuda", "mixed_precision": False}

TORCH = ("operator", "calls", "self_cpu_ns", "total_cpu_ns", "self_device_ns")

NATIVE = replace(PROFILE, unaccounted_ns=0)


def with_path(record: Record, **counters: int) -> Record:
    return replace(record, path=replace(record.path, counters=counters))


def trained(record: Record, **variant: object) -> Record:
    return replace(record, kind="train", target=replace(record.target, variant=variant))


def on_threads(threads: int, rest: float) -> Record:
    """A native step on several threads, of which so much is in no phase."""
    phases = tuple(
        replace(phase, share=0.9 - rest if phase.path.endswith("observations") else 0.0, total_ns=1)
        if phase.path.count("/") == 2
        else replace(phase, share=0.9)
        for phase in NATIVE.phases
    )
    return replace(NATIVE, phases=phases, method=replace(NATIVE.method, threads=threads))


FAULTS: dict[str, tuple[Record, Record]] = {
    "path": (with_path(ENV, native_steps=1_000), with_path(ENV, native_steps=4_000)),
    "start": (program({"importing modules": (0.7, 0.9)}), program({"importing modules": (0.1, 0.9)})),
    "teacher-on": (
        loop({**GOOD, "learn": (10, 0.3), "teacher": (10, 0.18)}, params=PPO),
        loop({**GOOD, "teacher": (2, 0.01)}, params=PPO),
    ),
    "teacher": (
        loop({**GOOD, "learn": (10, 0.18), "expert labels": (10, 0.3)}),
        loop({**GOOD, "expert labels": (10, 0.01)}),
    ),
    "eval": (
        loop({**GOOD, "learn": (10, 0.28), "evaluate": (10, 0.2)}),
        loop({**GOOD, "evaluate": (1, 0.01)}),
    ),
    "logging": (
        program({"step (env.py:3)": (0.6, 0.9), "Logger.info (train.py:9)": (0.3, 0.9)}),
        program({"step (env.py:3)": (0.6, 0.9), "Logger.info (train.py:9)": (0.01, 0.9)}),
    ),
    "commits": (at("self.db.commit()"), at("self.commits += 1")),
    "query": (at("db.execute('select 1').fetchall()"), at("self.asked += 1")),
    "inserts": (
        loop({**GOOD, "learn": (10, 0.28), "buffer.add": (1_000, 0.2)}),
        loop({**GOOD, "learn": (10, 0.46), "buffer.add": (10, 0.02)}),
    ),
    "index": (
        with_path(
            env({"env.step": (1_000, 0.9), "env.step/rebuild": (1_000, 0.4)}), rebuilds=1_000, queries=10
        ),
        with_path(env({"env.step": (1_000, 0.9), "env.step/rebuild": (10, 0.01)}), rebuilds=10, queries=10),
    ),
    "skew": (
        env({"env.step": (1_000, 0.9), "env.step/from the first to the last": (1_000, 0.4)}),
        env({"env.step": (1_000, 0.9), "env.step/from the first to the last": (1_000, 0.02)}),
    ),
    "barriers": (on_threads(4, 0.4), on_threads(4, 0.02)),
    "copies": (
        loop({**GOOD, "learn": (10, 0.28), "to cpu": (10, 0.2)}, variant={"device": "cuda"}),
        loop({**GOOD, "to cpu": (10, 0.01)}, variant={"device": "cuda"}),
    ),
    "store": (
        loop({**GOOD, "learn": (10, 0.28), "store": (10, 0.2)}),
        loop({**GOOD, "learn": (10, 0.46), "store": (10, 0.02)}),
    ),
    "small-batch": (
        loop({**GOOD, "collect/policy": (1_000, 0.2)}),
        loop({**GOOD, "collect/policy": (10, 0.2)}),
    ),
    "python": (
        env({"env.step": (1_000, 0.9), "env.step/envs.step": (4_000, 0.5)}),
        env({"env.step": (1_000, 0.9)}),
    ),
    "calls": (counted(ENV, NEAR, 50_000, 0.6), counted(ENV, NEAR, 1_000, 0.6)),
    "resets": (
        env({"env.step": (1_000, 0.5), "env.reset": (900, 0.4)}),
        env({"env.step": (1_000, 0.9), "env.reset": (90, 0.04)}),
    ),
    "garbage": (
        loop(GOOD, pauses=Pauses(collections=90, total_ns=90_000_000, longest_ns=2_000_000)),
        loop(GOOD, pauses=Pauses(collections=9, total_ns=900_000, longest_ns=100_000)),
    ),
    "allocation": (
        probed(
            ENV,
            "memory",
            {"allocations_per_env_step": 900.0, "allocated_bytes_per_env_step": 1e5, "growth_bytes_low": 0.0},
        ),
        probed(
            ENV,
            "memory",
            {"allocations_per_env_step": 9.0, "allocated_bytes_per_env_step": 1e3, "growth_bytes_low": 0.0},
        ),
    ),
    "precision": (
        loop({**GOOD, "learn/forward": (10, 0.2), "learn/backward": (10, 0.28)}, variant=GPU),
        loop(
            {**GOOD, "learn/forward": (10, 0.2), "learn/backward": (10, 0.28)},
            variant={**GPU, "mixed_precision": True},
        ),
    ),
    "idle-core": (
        loop(GOOD, busy=(0.9, 0.1), variant={"num_workers": 1}),
        loop(GOOD, busy=(3.0, 0.1), variant={"num_workers": 1}),
    ),
    "crowd": (
        program({"step (env.py:3)": (0.9, 0.9)}, resources=Resources(cpu_share=4.0, ready_share=8.0)),
        program({"step (env.py:3)": (0.9, 0.9)}, resources=Resources(cpu_share=4.0, ready_share=0.1)),
    ),
    "waiting": (
        program({"step (env.py:3)": (0.4, 0.9), "fetch (io.py:3)": (0.5, 0.02)}),
        program({"step (env.py:3)": (0.4, 0.9), "fetch (io.py:3)": (0.5, 0.9)}),
    ),
    "decay": (loop(GOOD, slowing=2.0), loop(GOOD, slowing=1.0)),
    "growth": (loop(GOOD, memory=range(100, 200, 5)), loop(GOOD, memory=(50, 90, *(100,) * 18))),
    "unaccounted": (
        loop({"collect": (10, 0.5), "learn": (10, 0.2)}),
        loop({"collect": (10, 0.5), "learn": (10, 0.48)}),
    ),
}
"""Rule to a program with its fault, and to the same program repaired; most are somebody else's code."""


def named(found: Diagnosis) -> list[str]:
    return [each.rule for each in found.candidates]


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_diagnosed_and_the_repaired_program_has_none(rule: str) -> None:
    faulty, repaired = FAULTS[rule]
    assert named(diagnose(faulty))[0] == rule
    assert rule not in named(diagnose(repaired))


HARNESS = "Hotloop's own loop took 7.0% of the time"


def test_a_heavy_instrument_and_hotloops_own_loop_are_notes_and_no_advice() -> None:
    heavy = diagnose(replace(ENV, overhead=Overhead(ratio=1.6, ci95=(1.4, 1.7), mark_ns=30.0)))
    assert heavy.is_healthy
    assert heavy.notes[0] == HARNESS
    assert heavy.notes[1].startswith("profiling took 1.60x the time")
    light = diagnose(replace(ENV, overhead=Overhead(ratio=1.2, ci95=(0.98, 1.7), mark_ns=30.0)))
    assert light.notes == (HARNESS,)
    assert "everything else" not in [each.name for each in light.bounds]


def test_every_rule_but_the_measured_one_has_its_program() -> None:
    assert {rule.name for rule in RULES} == {*FAULTS, "rival", "instrument"}


@pytest.mark.parametrize("record", [HEALTHY, ENV, PROGRAM, NATIVE], ids=["loop", "env", "program", "world"])
def test_a_healthy_one_gets_no_advice(record: Record) -> None:
    found = diagnose(record)
    assert found.is_healthy
    assert found.bounds[0].share == max(bound.share for bound in found.bounds)


@pytest.mark.parametrize("rule", [name for name, (_, repaired) in FAULTS.items() if name != "store"])
def test_a_repaired_program_gets_no_other_advice_either(rule: str) -> None:
    assert diagnose(FAULTS[rule][1]).is_healthy


def test_a_loop_that_does_one_thing_after_another_is_not_told_of_its_other_cores() -> None:
    found = diagnose(loop(GOOD, busy=(0.9, 0.1)))
    assert found.is_healthy
    assert "idle-core" in [gap.rule for gap in found.gaps]
    assert diagnose(loop(GOOD, busy=(0.9, 0.1), variant={"num_workers": 8})).is_healthy


def test_envs_of_somebodys_own_in_a_training_are_given_to_workers() -> None:
    variant = {"threads": 1, "vector": "sync", "torch_threads": 8}
    rows = {"rollout": (10, 0.5), "rollout/environment": (10, 0.49), "learn": (10, 0.48)}
    record = trained(loop(rows, busy=(0.9, 0.1)), **variant)
    theirs = replace(record, target=replace(record.target, impl="foreign"))
    (found,) = diagnose(theirs).candidates
    assert (found.rule, found.keys) == ("idle-core", {"vector": "async"})
    ours = replace(record, target=replace(record.target, impl="native"))
    assert [each.keys for each in diagnose(ours).candidates] == [{"threads": "4"}]


def test_threads_that_were_measured_to_be_the_best_are_left_alone() -> None:
    rows = {**GOOD, "learn/forward": (10, 0.2), "learn/backward": (10, 0.28)}
    asked = {"threads": 8, "torch_threads": 1}
    assert named(diagnose(loop(rows, busy=(0.9, 0.1), variant=asked))) == ["idle-core"]
    measured = {**asked, "torch_threads_by": "measured"}
    assert diagnose(loop(rows, busy=(0.9, 0.1), variant=measured)).is_healthy


def test_what_a_change_buys_is_amdahls_law_with_the_interval_of_the_rounds() -> None:
    assert speed_up(0.04, 3.0) == pytest.approx(1 / (1 - 0.04 * 2 / 3))
    (found,) = diagnose(FAULTS["resets"][0]).candidates
    assert found.gain == pytest.approx(1 / 0.6)
    assert found.interval is not None
    assert found.interval[0] <= found.gain <= found.interval[1]


def test_a_row_is_told_as_part_of_what_is_above_it_and_of_everything() -> None:
    first = diagnose(PROFILE).bounds[0]
    assert (first.name, first.said) == ("observations", "80% of step = 64.0% of the time")


SAMPLES = Table(
    title="Hot functions",
    columns=("function", "own_share", "total_share", "cpu_share"),
    rows=(
        ("Env.step (env.py:9)", 0.2, 0.95, 1.0),
        ("near (env.py:3)", 0.6, 0.7, 1.0),
        ("log (env.py:20)", 0.01, 0.01, 1.0),
    ),
)


def test_a_row_that_is_most_of_the_time_is_opened_by_what_samples_met() -> None:
    found = diagnose(probed(ENV, "samples", {"samples": 500}, SAMPLES))
    assert found.bounds[0].name == "env.step"
    assert [each.name for each in found.inside] == ["near (env.py:3)"]
    assert found.inside[0].halved == pytest.approx(1 / (1 - 0.35))
    [gap] = [each for each in found.gaps if each.rule == "calls"]
    assert gap.get.startswith("hotloop profile --probe cprofile ")


def test_a_row_among_others_is_not_opened() -> None:
    assert diagnose(probed(HEALTHY, "samples", {"samples": 500}, SAMPLES)).inside == ()
    assert diagnose(ENV).inside == ()


EXECUTE = "<method 'execute' of 'sqlite3.Connection' objects>"


@pytest.mark.parametrize(("calls", "share", "seen"), [(50_000, 0.2, 1), (1_000, 0.2, 0), (50_000, 0.01, 0)])
def test_statements_that_are_run_one_at_a_time_are_seen_by_their_calls(
    calls: int, share: float, seen: int
) -> None:
    assert named(diagnose(counted(ENV, EXECUTE, calls, share))) == ["inserts"] * seen


def test_candidates_come_in_the_order_of_what_they_buy() -> None:
    rows = {"env": (10, 0.3), "teacher": (10, 0.4), "eval": (10, 0.2), "logging": (10, 0.05)}
    found = diagnose(loop(rows, busy=(1.0, 0.0), cores=2, variant={"threads": 1}))
    assert named(found) == ["teacher", "eval", "idle-core", "logging"]
    gains = [each.gain or 0.0 for each in found.candidates]
    assert gains == sorted(gains, reverse=True)


def test_a_row_is_claimed_by_the_particular_rule_before_the_general_one() -> None:
    record = loop({**GOOD, "learn": (10, 0.28), "replay.insert": (1_000, 0.2)})
    assert named(diagnose(record)) == ["inserts"]


def test_time_is_saved_once_whichever_rows_lie_in_each_other() -> None:
    waits = {"env.step/wait for workers": (1_000, 0.6)}
    within = {"env.step/wait for workers/from the first to the last": (1_000, 0.4)}
    assert named(diagnose(env({"env.step": (1_000, 0.9), **waits, **within}))) == ["skew"]
    assert named(diagnose(env({"env.step": (1_000, 0.9), **waits}))) == ["waiting"]


def test_memory_that_comes_at_the_end_is_no_growth() -> None:
    assert diagnose(loop(GOOD, memory=(*range(100, 118), 150, 160))).is_healthy


def test_a_function_waits_by_what_the_others_work_on_a_busy_machine() -> None:
    crowded = Resources(cpu_share=0.9, ready_share=3.0)
    works = {"step (env.py:3)": (0.4, 0.2)}
    waits = program({**works, "fetch (io.py:3)": (0.5, 0.01)}, resources=crowded)
    assert named(diagnose(waits)) == ["waiting"]
    assert diagnose(program({**works, "fetch (io.py:3)": (0.5, 0.1)}, resources=crowded)).is_healthy


def test_a_function_waits_though_all_its_callers_do() -> None:
    server = program({"main (server.py:9)": (0.9, 0.09), "fetch (io.py:3)": (0.88, 0.05)})
    (table,) = server.findings[0].tables
    callers = replace(table, rows=(("main (server.py:9)", 0.0, 0.9, 0.09), table.rows[1]))
    found = replace(server.findings[0], tables=(callers,))
    assert [each.path for each in diagnose(replace(server, findings=(found,))).candidates] == [
        "fetch (io.py:3)"
    ]


WORKED = {"collect": 0.5, "collect/env": 0.02, "collect/policy": 0.9, "learn": 0.9}
"""Of each row's own time, that it was on a core for."""


def test_a_row_waits_by_the_cpu_time_of_its_spans() -> None:
    found = diagnose(loop(GOOD, worked=WORKED))
    assert named(found) == ["waiting"]
    assert found.candidates[0].path == "wall/collect/env"
    assert "on a core for 2% of it" in found.candidates[0].said
    assert diagnose(loop(GOOD, worked={**WORKED, "collect/env": 0.9})).is_healthy


def test_a_span_whose_parts_are_marks_waits_as_a_whole() -> None:
    found = diagnose(loop(GOOD, worked={"collect": 0.02, "learn": 0.9}))
    assert [each.path for each in found.candidates] == ["wall/collect"]


def test_no_rule_fires_without_its_evidence_and_each_says_what_to_run() -> None:
    old = replace(HEALTHY, resources=None)
    gaps = {gap.rule: gap for gap in diagnose(old).gaps}
    assert {"garbage", "idle-core", "crowd", "growth"} <= {*gaps}
    assert all(gap.get and gap.needs for gap in gaps.values())
    found = diagnose(ENV)
    assert "hotloop profile --probe memory gym:Their-v0" in [gap.get for gap in found.gaps]


def test_a_world_is_told_what_its_other_way_would_buy() -> None:
    ratio = Ratio(estimate=8.0, low=7.0, high=9.0, pairs=24)
    other = Alternative(phase="observations", keys={"encoder": "optimized"}, ratio=ratio)
    found = diagnose(PROFILE, [other]).candidates[0]
    assert found.gain == pytest.approx(1 / (1 - 0.64 * 7 / 8))
    assert found.interval == pytest.approx((1 / (1 - 0.64 * 6 / 7), 1 / (1 - 0.64 * 8 / 9)))
    assert found.check == 'hotloop compare "grid/toy" "grid/toy encoder=optimized"'


def test_other_ways_that_nobody_looked_for_are_said_and_a_stranger_has_none() -> None:
    assert "rival" in [gap.rule for gap in diagnose(PROFILE, None).gaps]
    assert "rival" not in [gap.rule for gap in diagnose(PROFILE, ()).gaps]
    assert "rival" not in [gap.rule for gap in diagnose(ENV, None).gaps]


def test_another_way_of_a_phase_buys_what_it_made_of_a_whole_step() -> None:
    there = Ratio(estimate=8.0, low=7.0, high=9.0, pairs=24)
    whole = Ratio(estimate=4.0, low=3.5, high=4.5, pairs=6)
    other = Alternative(phase="observations", keys={"encoder": "optimized"}, ratio=there, whole=whole)
    found = diagnose(PROFILE, [other]).candidates[0]
    assert found.gain == pytest.approx(4.0)
    assert found.interval == pytest.approx((3.5, 4.5))
    assert "8.00 times as fast there and 4.00 times in a whole step" in found.said
    rows = {"env": (10, 0.5), "env/observations": (10, 0.3), "learn": (10, 0.48)}
    found = diagnose(trained(loop(rows)), [other]).candidates[0]
    assert found.gain == pytest.approx(1 / (1 - 0.5 * 3 / 4), rel=1e-6)
    assert found.path == "wall/env/observations"


def test_the_command_that_checks_a_change_says_each_key_once() -> None:
    record = trained(loop(GOOD), encoder="original")
    record = replace(record, target=replace(record.target, keys={"encoder": "original"}))
    assert (
        again(record, "encoder=optimized")
        == "hotloop train own encoder=optimized run=NAME, its other settings as before"
    )


def test_copies_are_also_found_among_the_operators_of_torch() -> None:
    rows = (("aten::mm", 9, 500, 500, 0), ("aten::_to_copy", 9, 400, 400, 100))
    table = Table(title="Operators", columns=TORCH, rows=rows)
    assert "copies" in named(diagnose(probed(trained(HEALTHY, device="cuda"), "torch", {}, table)))


def test_one_of_several_threads_that_does_all_the_work_is_skew() -> None:
    rows = (("main", 9, 0.9), ("worker", 2, 0.2), ("worker", 2, 0.2))
    table = Table(title="CPU time by thread", columns=("thread", "cpu_ns", "cpu_share"), rows=rows)
    assert "skew" in named(diagnose(probed(on_threads(3, 0.02), "threads", {}, table)))


def test_a_batch_that_ran_its_twin_is_told_so() -> None:
    mixed = PathRan(requested="native", ran={"native": 0.9, "reference": 0.1})
    assert named(diagnose(replace(NATIVE, path=mixed))) == ["path"]


def test_a_record_without_phases_is_refused_with_what_to_run() -> None:
    with pytest.raises(InputError, match=r"a bench record without phases: .*hotloop profile grid/toy"):
        diagnose(BENCH)
    with pytest.raises(InputError, match="with hotloop"):
        diagnose(replace(HEALTHY, phases=HEALTHY.phases[:1]))


class TestSince:
    """After a change: what was predicted, what came of it, and where the bottleneck is now."""

    BEFORE = loop({**GOOD, "learn": (10, 0.18), "teacher": (10, 0.3)})
    AFTER = replace(
        loop({**GOOD, "teacher": (10, 0.01)}, speed=1.4), run_id="later", created="2025-01-03T00:00:00+00:00"
    )

    def test_a_change_that_did_what_was_predicted(self) -> None:
        found = since(self.BEFORE, self.AFTER, diagnose(self.BEFORE).candidates)
        assert found.seen == pytest.approx(1.4, rel=0.02)
        (outcome,) = found.outcomes
        assert (outcome.symptom, outcome.said) == ("teacher calls", "as predicted")
        assert found.rows[0].name == "teacher"

    def test_a_bottleneck_that_moved_is_said(self) -> None:
        found = since(self.BEFORE, self.AFTER, ())
        assert found.bottleneck is not None
        assert found.moved
        assert [each.name for each in found.bottleneck] == ["teacher", "learn"]

    def test_a_change_that_came_to_less_is_said(self) -> None:
        slower = replace(loop({**GOOD, "teacher": (10, 0.01)}, speed=1.0), run_id="later")
        found = since(self.BEFORE, slower, diagnose(self.BEFORE).candidates)
        assert [each.said for each in found.outcomes] == ["less than predicted"]

    def test_less_than_a_bound_is_as_predicted_and_more_is_not(self) -> None:
        (promised,) = diagnose(self.BEFORE).candidates
        for times, said in ((1.1, "as predicted"), (3.0, "more than predicted")):
            bound = replace(promised, gain=2.0, interval=(1.9, 2.1), at_most=True)
            seen = Ratio(estimate=times, low=times - 0.05, high=times + 0.05, pairs=20)
            (outcome,) = since(self.BEFORE, self.AFTER, [bound], seen).outcomes
            assert outcome.said == said

    def test_what_was_not_changed_is_not_judged(self) -> None:
        again = replace(self.BEFORE, run_id="later")
        assert since(self.BEFORE, again, diagnose(self.BEFORE).candidates).outcomes == ()

    def test_another_target_is_refused(self) -> None:
        with pytest.raises(InputError, match="takes an earlier record of the same"):
            since(self.BEFORE, ENV, ())


class TestExpectations:
    """What this machine has reached before, and what its memory allows."""

    def test_less_than_half_is_a_likely_fault_with_the_settings_that_differ(self) -> None:
        best = replace(loop(GOOD, speed=3.0, variant={"threads": 4}), run_id="best")
        found = expect(HEALTHY, [best, HEALTHY], MACHINE["fingerprint"])
        assert found.is_short
        assert found.best_run == "best"
        assert found.differing == ("threads=None here, 4 in the best",)

    def test_a_busy_record_makes_no_expectation_and_breaks_none(self) -> None:
        busy = (notice(Code.BUSY_MACHINE, load=12.0, cores=2),)
        best = replace(loop(GOOD, speed=3.0), run_id="best")
        assert expect(HEALTHY, [best], MACHINE["fingerprint"]).is_short
        assert not expect(HEALTHY, [replace(best, notices=busy)], MACHINE["fingerprint"]).is_short
        assert not expect(replace(HEALTHY, notices=busy), [best], MACHINE["fingerprint"]).is_short

    def test_a_table_of_the_record_alone_is_not_shown(self) -> None:
        assert expect(HEALTHY, [HEALTHY], MACHINE["fingerprint"]).table == ()

    def test_one_agent_is_measured_in_env_steps(self) -> None:
        best = replace(ENV, run_id="best")
        (row,) = expect(ENV, [best], MACHINE["fingerprint"]).table
        assert row.unit == "env_steps_per_s"

    @pytest.mark.parametrize(("least", "short"), [(4.0, True), (1.5, False)])
    def test_what_the_owner_expects_is_held_against_what_was_reached(self, least: float, short: bool) -> None:
        reached = HEALTHY.metrics["env_steps_per_s"].median
        ends = (least * reached, 9 * reached)
        facts = {"ppo": list(ends)}
        own = replace(HEALTHY, findings=(Finding(probe="expect", facts=facts),))
        (given,) = expect(own, [], MACHINE["fingerprint"]).given
        assert (given.phase, given.low, given.is_short) == ("ppo", ends[0], short)
        (given,) = expect(HEALTHY, [], MACHINE["fingerprint"], None, {"cpu": {"ppo": ends}}).given
        assert given.is_short is short
        assert expect(HEALTHY, [], MACHINE["fingerprint"], None, {"a100": {"ppo": ends}}).given == ()

    def test_a_slower_run_of_other_work_is_no_yardstick(self) -> None:
        other = replace(loop(GOOD, speed=3.0, params={"agents": 9}), run_id="other")
        found = expect(HEALTHY, [other], MACHINE["fingerprint"])
        assert not found.is_short
        assert [row.records for row in found.table] == [2]

    def test_the_table_has_a_row_a_configuration(self) -> None:
        ppo = replace(HEALTHY, kind="train", run_id="a")
        imitation = replace(
            ppo, run_id="b", target=replace(ppo.target, params={"train.supervised_steps": 10**9})
        )
        gpu = replace(ppo, run_id="c", target=replace(ppo.target, device="cuda"))
        bench = replace(BENCH, target=HEALTHY.target, run_id="d")
        table = expect(HEALTHY, [ppo, imitation, gpu, bench], MACHINE["fingerprint"]).table
        rows = {(row.configuration, row.device) for row in table}
        assert rows == {
            ("PPO", "CPU"),
            ("PPO", "GPU"),
            ("supervised", "CPU"),
            ("env only", "CPU"),
            ("own loop", "CPU"),
        }

    def test_a_record_of_another_machine_is_expected_nothing_of(self) -> None:
        found = expect(HEALTHY, [HEALTHY], "another")
        assert found.refused is not None
        assert "another machine" in found.refused
        assert not found.table

    def test_what_copying_takes_stands_beside_what_the_phase_takes(self) -> None:
        target = replace(PROFILE.target, observation_bytes=100)
        found = expect(replace(PROFILE, target=target), [], MACHINE["fingerprint"], 10e9).memory
        assert found is not None
        assert (found.least_ns, found.phase_ns) == (10.0, 160.0)


def test_a_share_without_rounds_has_no_interval() -> None:
    assert Case(PROFILE).rows[0].part.interval is None


PARTLY = {
    "env.step": (1_000, 0.9),
    "env.step/Slow.step": (1_000, 0.88),
    "env.step/Slow.step/physics": (1_000, 0.02),
}
"""A step of which a span tells the least part."""


def test_what_a_row_takes_beside_those_below_it_is_a_bound_too() -> None:
    first, *others = diagnose(env(PARTLY)).bounds
    assert (first.name, first.path) == ("Slow.step itself", "wall/env.step/Slow.step/itself")
    assert first.share == pytest.approx(0.86)
    assert {each.name: round(each.share, 6) for each in others} == {
        "Slow.step/physics": 0.02,
        "env.step itself": 0.02,
    }


def test_what_changed_in_it_is_said_of_it_whether_or_not_it_has_rows_below_later() -> None:
    for later in (
        {"env.step/Slow.step": (1_000, 0.38), "env.step/Slow.step/physics": (1_000, 0.02)},
        {"env.step/Slow.step": (1_000, 0.36)},
    ):
        found = since(env(PARTLY), env({"env.step": (1_000, 0.4), **later}), ())
        (row,) = [each for each in found.rows if each.name == "Slow.step itself"]
        assert row.after_ns / row.before_ns == pytest.approx(0.36 / 0.86, rel=0.01)
        assert not found.moved
