from dataclasses import replace

from support.drawn import lines, text
from support.records import BENCH, PROFILE, bench_with

from hotloop.core.record import SpeedTarget
from hotloop.core.record.comparison import Validation
from hotloop.report.kinds.bench import bench
from hotloop.report.section import Sections, Span, Table


def row(sections: Sections, first: str) -> str:
    """The line that begins with a word, its blanks made single."""
    (line,) = (line for line in lines(sections) if line.startswith(first))
    return line


def test_a_bench_is_one_row_a_target_with_interval_and_spread() -> None:
    drawn = bench([BENCH, bench_with([1.0, 2.0, 1.0])])
    rows = [" ".join(line.split()) for line in text(drawn).splitlines() if line.startswith(" grid/toy")]
    assert rows == [
        "grid/toy native 8.00 M [7.80 M, 8.20 M] 1.9% excellent, MAD 1.2% 4.00 M",
        "grid/toy native 2.00 no interval 43.3% unstable, MAD 0.0% 1.00",
    ]


def test_a_bench_names_its_machine_commit_path_and_method() -> None:
    drawn = text(bench([BENCH]))
    for fact in ("Example CPU", "0123abcd", "native 100.0%", "8 pairs"):
        assert fact in drawn


def test_each_of_several_targets_has_its_path() -> None:
    other = replace(BENCH, target=replace(BENCH.target, name="grid/arena"))
    drawn = text(bench([BENCH, other]))
    for target in ("grid/toy", "grid/arena"):
        assert f"{target}: native 100.0%" in drawn


def test_one_round_has_no_spread() -> None:
    assert "one round" in row(bench([bench_with([4.0])]), "grid/toy")


def test_falling_back_is_said_in_the_headline() -> None:
    fell_back = replace(BENCH, target=replace(BENCH.target, impl="reference"))
    assert "reference (fell back)" in row(bench([fell_back]), "grid/toy")


def test_a_bench_without_rounds_says_so() -> None:
    assert row(bench([bench_with([])]), "grid/toy") == "grid/toy native no rounds"


def test_a_speed_that_was_not_reached_is_bad_and_one_that_was_is_not() -> None:
    short = SpeedTarget(env_steps_per_s=8.0e6, floor=3.9e6, enforced=True, met=False)
    said = "8.00 M env-steps/s: the median is 50.0% below; floor 3.90 M"
    assert ("target", Span(said, "bad", strong=True)) in bench([replace(BENCH, goal=short)])[1].rows  # type: ignore[union-attr]
    met = replace(short, env_steps_per_s=2.0e6, met=True)
    (told,) = [line for line in lines(bench([replace(BENCH, goal=met)])) if line.startswith("target 2.00 M")]
    assert "100.0% above" in told


def test_a_shadow_says_what_it_compared_in_words_of_no_world() -> None:
    shadowed = replace(BENCH, validation=Validation(comparisons=1_000, mismatches=0, timing_ratio=9.01))
    assert row(bench([shadowed]), "shadow") == (
        "shadow 1,000 comparisons against encoder=original, 0 mismatches; "
        "the reference takes 9.01 times as long"
    )


def test_phases_stand_under_the_clean_rounds_with_what_the_instrument_cost() -> None:
    drawn = lines(bench([replace(BENCH, phases=PROFILE.phases, overhead=PROFILE.overhead)]))
    at = drawn.index("grid/toy instrumented passes, after the clean rounds")
    assert any(line.startswith("observations 0.160") for line in drawn[at:])
    assert drawn[-1] == "instrument takes 1.012 [1.001, 1.020] times as long as the clean passes"


def test_a_spread_is_as_good_or_bad_as_it_is() -> None:
    steady, wild = bench([BENCH])[0], bench([bench_with([1.0, 2.0, 1.0])])[0]
    assert isinstance(steady, Table)
    assert isinstance(wild, Table)
    assert steady.rows[0][4] == Span("1.9% excellent, MAD 1.2%", "good")
    assert wild.rows[0][4] == Span("43.3% unstable, MAD 0.0%", "bad", strong=True)


def test_the_speed_of_an_env_with_one_agent_is_the_env_s() -> None:
    one = replace(BENCH, work=replace(BENCH.work, agent_steps=BENCH.work.env_steps))
    drawn = text(bench([one]))
    assert "env-steps/s" in drawn
    assert "agent-steps/s" not in drawn
    assert "agent-steps/s" in text(bench([BENCH]))
