from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, RenderableType
from support.records import BENCH, PROFILE, bench_with

from hotloop.core.notices import Code, notice
from hotloop.report.terminal import BAR_CELLS, bar, draw_bench, draw_notices, draw_profile


def text(view: RenderableType) -> str:
    console = Console(file=StringIO(), width=160, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(view)
    return captured.get()


def row(view: RenderableType, first: str) -> str:
    """The line that begins with a word, its blanks made single."""
    (line,) = (line for line in text(view).splitlines() if line.strip().startswith(first))
    return " ".join(line.split())


def test_a_bench_is_one_row_a_target_with_interval_and_spread() -> None:
    drawn = draw_bench([BENCH, bench_with([1.0, 2.0, 1.0])])
    rows = [" ".join(line.split()) for line in text(drawn).splitlines() if line.startswith(" grid/toy")]
    assert rows == [
        "grid/toy native 8.00 M [7.80 M, 8.20 M] 1.9% excellent, MAD 1.2% 4.00 M",
        "grid/toy native 2.00 no interval 43.3% unstable, MAD 0.0% 1.00",
    ]


def test_a_bench_names_its_machine_commit_path_and_method() -> None:
    drawn = text(draw_bench([BENCH]))
    for fact in ("Example CPU", "0123abcd", "native 100.0%", "8 pairs"):
        assert fact in drawn


def test_each_of_several_targets_has_its_path() -> None:
    other = replace(BENCH, target=replace(BENCH.target, name="grid/arena"))
    drawn = text(draw_bench([BENCH, other]))
    for target in ("grid/toy", "grid/arena"):
        assert f"{target}: native 100.0%" in drawn


def test_one_round_has_no_spread() -> None:
    assert "one round" in row(draw_bench([bench_with([4.0])]), "grid/toy")


def test_falling_back_is_said_in_the_headline() -> None:
    fell_back = replace(BENCH, target=replace(BENCH.target, impl="reference"))
    assert "reference (fell back)" in row(draw_bench([fell_back]), "grid/toy")


def test_a_bench_without_rounds_says_so() -> None:
    assert row(draw_bench([bench_with([])]), "grid/toy") == "grid/toy native no rounds"


def test_a_profile_has_a_bar_beside_each_phase_and_sums_without() -> None:
    drawn = draw_profile(PROFILE)
    assert row(drawn, "observations") == "observations 0.160 80.0 80.0% 64.0% " + bar(0.64)
    assert row(drawn, "unaccounted") == "unaccounted 0.010 5.0 5.0% 4.0% " + bar(0.04)
    assert row(drawn, "native step") == "native step 0.200 100.0 100.0% 80.0%"
    assert row(drawn, "Python and binding") == "Python and binding 0.050 25.0 20.0% " + bar(0.2)
    assert row(drawn, "wall") == "wall 0.250 125.0 100.0%"


def test_a_profile_prints_the_clean_speed_and_what_the_instrument_cost() -> None:
    drawn = text(draw_profile(PROFILE))
    assert "8.00 M agent-steps/s [7.80 M, 8.20 M]" in drawn
    assert "1.012 [1.001, 1.020]" in drawn


def test_a_profile_without_a_finished_pair_says_so() -> None:
    assert "no pair of passes was finished" in text(draw_profile(replace(PROFILE, phases=(), overhead=None)))


def test_a_notice_is_said_once_and_with_its_targets_where_it_does_not_hold_for_all() -> None:
    both, one = notice(Code.DIRTY), notice(Code.TOO_FEW_ROUNDS, rounds=2)
    other = replace(BENCH, target=replace(BENCH.target, name="grid/arena"), notices=(both, one))
    drawn = text(draw_notices([replace(BENCH, notices=(both,)), other]))
    assert drawn.splitlines() == [
        f"! {both.text}; {both.remedy}",
        f"! grid/arena: {one.text}; {one.remedy}",
    ]


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, ""), (0.5, "█" * (BAR_CELLS // 2)), (1.0, "█" * BAR_CELLS), (1 / BAR_CELLS / 2, "▌")],
)
def test_a_bar_is_as_long_as_its_share(share: float, shown: str) -> None:
    assert bar(share) == shown
    assert bar(-0.1) == ""
