import pytest
from support.sides import DIFFERS, FakeContender, steady

from hotloop.core.errors import ExitCode, SetupError
from hotloop.core.record import Record
from hotloop.core.turn_clock import Turn
from hotloop.lab.compare.compare import MOST_INSTANCES, CompareSettings, compare, instance_count
from hotloop.lab.measure import settle
from hotloop.lab.measure.loop import Length, Plan, Warmup, warm_up

SHORT = CompareSettings(plan=Plan(fewest=10_000, budget_ns=50_000_000))
BRIEF = CompareSettings(plan=Plan(fewest=30, budget_ns=10_000_000_000))
UNSETTLED = CompareSettings(plan=Plan(fewest=30, budget_ns=500_000_000))
"""For what is never settled, and takes all of the time there is."""


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch):
    monkeypatch.setattr("hotloop.lab.compare.compare.warm_up", lambda *_, **__: Warmup(Length(10_000)))


def result(a: FakeContender, b: FakeContender, asked: CompareSettings = BRIEF) -> Record:
    return compare(a, b, asked)


@pytest.mark.parametrize(
    ("b_ns", "outcome", "code"),
    [
        (90.0, "faster", ExitCode.FINE),
        (100.5, "same", ExitCode.FINE),
        (110.0, "slower", ExitCode.REGRESSION),
    ],
)
def test_the_three_verdicts_and_their_codes(b_ns, outcome, code):
    record = result(FakeContender("a", steady(100)), FakeContender("b", steady(b_ns)))
    (comparison,) = record.comparisons
    assert comparison.outcome == outcome
    assert record.exit_code == code
    assert comparison.ratio.estimate == pytest.approx(100 / b_ns, rel=0.002)
    assert comparison.noise.estimate == pytest.approx(1.0, rel=0.002)


def test_a_ratio_on_the_edge_cannot_be_told_and_says_what_would_settle_it():
    def shaky(turn: int) -> float:
        return 101.0 * (1.1 if turn % 2 else 0.91)

    record = result(FakeContender("a", steady(100)), FakeContender("b", shaky), SHORT)
    assert record.comparisons[0].outcome == "cannot tell"
    assert record.exit_code == ExitCode.CANNOT_TELL
    assert record.comparisons[0].more_pairs > 0


@pytest.mark.usefixtures("no_warm_up")
def test_of_a_contender_whose_workers_spin_only_one_instance_is_alive(monkeypatch):
    monkeypatch.setattr("hotloop.lab.compare.compare.warm_up", warm_up)
    alive = []

    def spins(turn: Turn) -> Turn:
        alive.append(sum(not side.closed for side in b.made))
        return turn._replace(polls=True)

    a, b = FakeContender("a", steady(100)), FakeContender("b", steady(110), spoil=spins)
    record = result(a, b, UNSETTLED)
    (comparison,) = record.comparisons
    assert comparison.outcome == "slower"
    assert comparison.noise.estimate == pytest.approx(1.0, rel=0.002)
    assert (len(a.made), len(b.made), set(alive)) == (3, 2, {1})
    assert all(side.closed for each in (a, b) for side in each.made)
    assert len(record.values["a.ns_per_env_step"]) == len(record.values["b2.ns_per_env_step"])


def test_slower_needs_a_second_run_on_new_sides():
    b = FakeContender("b", steady(110))
    record = result(FakeContender("a", steady(100)), b)
    assert len(b.made) == 1 + MOST_INSTANCES
    assert record.comparisons[0].second.estimate == pytest.approx(100 / 110, rel=0.002)
    assert {"second.a.ns_per_env_step", "second.b.ns_per_env_step"} <= record.values.keys()


def test_slower_once_and_not_again_is_no_verdict():
    b = FakeContender("b", steady(110), steady(100))
    record = result(FakeContender("a", steady(100)), b)
    assert record.comparisons[0].outcome == "cannot tell"
    assert record.comparisons[0].why == "the first run found B slower, the second did not"
    assert record.exit_code == ExitCode.CANNOT_TELL


def test_faster_needs_a_second_run_on_new_sides_as_slower_does():
    b = FakeContender("b", steady(90))
    comparison = result(FakeContender("a", steady(100)), b).comparisons[0]
    assert comparison.outcome == "faster"
    assert comparison.second.estimate == pytest.approx(100 / 90, rel=0.002)
    assert len(b.made) == 1 + MOST_INSTANCES


@pytest.mark.parametrize(("making_ns", "count"), [(1e6, 4), (100e6, 3), (10e9, 2)])
def test_more_instances_are_made_for_the_second_run_where_that_is_quick(making_ns, count):
    assert instance_count(Plan(), making_ns, 1e6) == count


@pytest.mark.parametrize(("turn_s", "count"), [(0.01, 4), (1.0, 4), (1.5, 3), (2.4, 2), (60.0, 2)])
def test_a_second_run_of_slow_sides_has_fewer_instances_and_rounds_enough(turn_s: float, count: int) -> None:
    """Six rounds of all of them fit into half the two minutes that the fewest rounds may take."""
    assert instance_count(Plan(), 1e6, turn_s * 1e9) == count


def test_an_instance_that_differs_by_itself_is_no_verdict():
    """One of the second run's is as fast as A: what the others show may be where their memory lies."""
    b = FakeContender("b", steady(90), steady(90), steady(90), steady(100.5), steady(90))
    comparison = result(FakeContender("a", steady(100)), b).comparisons[0]
    assert (comparison.outcome, comparison.why) == (
        "cannot tell",
        "not every instance of B is faster than every one of A: they differ by themselves",
    )


def test_faster_once_and_not_again_is_no_verdict():
    b = FakeContender("b", steady(90), steady(100))
    comparison = result(FakeContender("a", steady(100)), b).comparisons[0]
    assert (comparison.outcome, comparison.why) == (
        "cannot tell",
        "the first run found B faster, the second did not",
    )


def test_the_same_needs_no_second_run():
    b = FakeContender("b", steady(100))
    assert result(FakeContender("a", steady(100)), b).comparisons[0].second is None
    assert len(b.made) == 1


def test_faster_than_one_instance_of_a_only_is_no_verdict():
    """Instances differ, by where their memory came to lie: what only one of them shows is noise."""
    a = FakeContender("a", steady(103), steady(101.5), steady(101.5), steady(103))  # A, and A again, twice
    comparison = result(a, FakeContender("b", steady(100))).comparisons[0]
    assert comparison.ratio.low > 1.02
    assert (comparison.outcome, comparison.why) == (
        "cannot tell",
        "B is faster than one instance of A, and not than another",
    )


def test_what_differs_from_itself_is_called_that_and_not_unequal():
    a = FakeContender("a", steady(100), agrees=DIFFERS, itself=DIFFERS)
    record = result(a, FakeContender("b", steady(90)))
    assert record.exit_code == ExitCode.CANNOT_TELL
    assert record.comparisons[0].why.startswith("A differs from itself: step 3, rewards[1, 0]")
    assert record.validation.mismatches == 0


def test_different_work_is_told_with_the_ratio_for_as_much_of_it():
    a = FakeContender("a", steady(100), work={"updates": 3.0})
    b = FakeContender("b", steady(50), work={"updates": 2.0})
    comparison = result(a, b).comparisons[0]
    assert comparison.outcome == "cannot tell"
    assert comparison.ratio.estimate == pytest.approx(2.0, rel=0.002)
    assert comparison.per_work.estimate == pytest.approx(4 / 3, rel=0.002)


def test_one_event_more_is_different_work():
    """All sides make the same steps, so nothing is left to chance."""
    a = FakeContender("a", steady(100), work={"tokens": 1.0})
    b = FakeContender("b", steady(100), work={"tokens": 1.000_01})
    assert "different work: tokens" in result(a, b).comparisons[0].why


def test_work_that_goes_on_after_the_step_forbids_a_verdict_and_is_told():
    def late(turn):
        return turn._replace(cpu_ns=turn.ns * 3, late_ns=turn.ns * 2)

    def whole(turn):
        return turn._replace(cpu_ns=turn.ns)

    b = FakeContender("b", steady(10), spoil=late)
    record = result(FakeContender("a", steady(100), spoil=whole), b)
    assert record.comparisons[0].outcome == "cannot tell"
    why = "work goes on after steps have returned: 0% of A's CPU time and 67% of B's"
    assert record.comparisons[0].why == why
    assert record.comparisons[0].cpu is None, "what still ran when its turn ended is in no turn"
    assert "background" not in {each.code for each in record.notices}, "late work is no core of the loop's"


def test_the_ratio_for_a_cpu_second_stands_beside_the_other():
    def spoil(share):
        return lambda turn: turn._replace(cpu_ns=round(turn.ns * share))

    a = FakeContender("a", steady(100), spoil=spoil(1.0))
    record = result(a, FakeContender("b", steady(50), spoil=spoil(4.0)))
    assert record.comparisons[0].outcome == "faster"
    assert record.comparisons[0].cpu.estimate == pytest.approx(0.5, rel=0.002)
    assert record.metrics["b.cpu_share"].median == pytest.approx(4.0)


def test_sides_that_answer_differently_are_not_timed_and_exit_2():
    b = FakeContender("b", steady(90))
    record = result(FakeContender("a", steady(100), agrees=DIFFERS), b)
    assert record.exit_code == ExitCode.MISMATCH
    assert record.comparisons[0].outcome == "cannot tell"
    assert "step 3, rewards[1, 0]: 0.5 against 0.0" in record.comparisons[0].why
    assert not b.made


def test_a_machine_on_which_a_differs_from_itself_is_not_fit():
    a = FakeContender("a", steady(100), steady(110))  # A, and A again
    record = result(a, FakeContender("b", steady(80)), UNSETTLED)
    assert record.comparisons[0].outcome == "cannot tell"
    assert "A differs from itself by 9.1%" in record.comparisons[0].why


def test_doing_less_is_caught_and_the_counter_named():
    a = FakeContender("a", steady(100), work={"updates": 0.3})
    b = FakeContender("b", steady(70), work={"updates": 0.2})
    record = result(a, b)
    assert record.exit_code == ExitCode.CANNOT_TELL
    assert record.comparisons[0].why.startswith("different work: updates 0.3")


def test_a_path_that_was_not_taken_is_a_fault():
    b = FakeContender("b", steady(70), work={"native_steps": 0.5})
    with pytest.raises(SetupError, match=r"impl=native was asked for but 50\.0% of the steps"):
        result(FakeContender("a", steady(100)), b)


def test_a_mismatch_of_a_shadow_encoder_is_a_mismatch_here_too():
    b = FakeContender("b", steady(90), work={"shadow.comparisons": 2.0, "shadow.mismatches": 0.001})
    record = result(FakeContender("a", steady(100)), b)
    assert record.exit_code == ExitCode.MISMATCH
    assert record.comparisons[0].outcome == "cannot tell"


def test_unlike_sides_are_compared_when_asked_and_the_record_says_so():
    a = FakeContender("a", steady(100), agrees=DIFFERS, work={"tokens": 24.0})
    b = FakeContender("b", steady(50), work={"tokens": 16.0})
    record = result(a, b, CompareSettings(plan=BRIEF.plan, unlike=True))
    assert record.comparisons[0].outcome == "faster"
    assert record.comparisons[0].unlike == ("a against b",)
    assert record.validation is None


def test_an_interrupted_comparison_leaves_the_rounds_there_were():
    def until_interrupted(turn: int) -> float:
        if turn == 9:
            raise KeyboardInterrupt
        return 100.0

    b = FakeContender("b", until_interrupted)
    record = result(FakeContender("a", steady(100)), b)
    assert record.partial
    assert record.exit_code == ExitCode.INTERRUPTED
    assert record.method.rounds == 9
    assert record.values["b.ns_per_env_step"]
    assert all(side.closed for side in b.made)


def test_a_record_of_a_comparison_survives_json():
    record = result(FakeContender("a", steady(100)), FakeContender("b", steady(110)))
    assert Record.from_json(record.to_json()) == record


def test_the_usual_plan_is_less_strict_than_the_thorough_one():
    assert settle.THOROUGH.band < Plan().band == 0.02
    assert settle.THOROUGH.budget_ns > Plan().budget_ns
