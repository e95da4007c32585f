from dataclasses import replace

from support.records import PROFILE

from hotloop.core.notices import Code, notice
from hotloop.report.markdown import draw_profile, table


def section(page: str, heading: str) -> list[str]:
    """The lines under a heading."""
    body = page.partition(f"## {heading}\n\n")[2].partition("\n\n")[0]
    return body.splitlines()


def test_the_title_has_the_target_and_the_date() -> None:
    assert draw_profile(PROFILE).splitlines()[0] == "# Profile of grid/toy, 2025-01-02 03:04 UTC"


def test_the_sections_come_in_their_order() -> None:
    headings = [line for line in draw_profile(PROFILE).splitlines() if line.startswith("## ")]
    assert headings == ["## Configuration", "## Results", "## Time Breakdown", "## Notes"]


def test_the_breakdown_is_components_times_and_shares_of_the_wall() -> None:
    assert section(draw_profile(PROFILE), "Time Breakdown") == [
        "| Component | Avg Time | % of Total |",
        "| --- | --- | --- |",
        "| observations | 0.160 µs | 64.0% |",
        "| actions | 0.020 µs | 8.0% |",
        "| autoreset | 0.005 µs | 2.0% |",
        "| reset | 0.004 µs | 1.6% |",
        "| 1 phase under 1% | 0.001 µs | 0.4% |",
        "| unaccounted | 0.010 µs | 4.0% |",
        "| **native step** | 0.200 µs | 80.0% |",
        "| Python and binding | 0.050 µs | 20.0% |",
        "| **wall** | 0.250 µs | 100.0% |",
    ]


def test_results_are_clean_speeds_with_spread_and_the_cost_of_the_instrument() -> None:
    results = section(draw_profile(PROFILE), "Results")
    assert "| agent_steps_per_s (clean) | 8.00 M [7.80 M, 8.20 M], spread 1.9% excellent |" in results
    assert "| Cost of the instrument | 1.012 [1.001, 1.020] |" in results


def test_notices_are_notes() -> None:
    said = notice(Code.DIRTY)
    notes = section(draw_profile(replace(PROFILE, notices=(said,))), "Notes")
    assert notes[-1] == f"- {said.text}: {said.remedy}."


def test_a_profile_without_a_finished_pair_says_so() -> None:
    page = draw_profile(replace(PROFILE, phases=(), overhead=None, metrics={}))
    assert section(page, "Time Breakdown") == ["No pair of passes was finished."]


def test_cells_may_hold_a_bar() -> None:
    assert table(("a",), [("x|y",)])[-1] == r"| x\|y |"
    assert r"`map=a\|b`" in draw_profile(PROFILE)
