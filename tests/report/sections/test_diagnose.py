"""What is said of a diagnosis, in the words and order a reader gets."""

from dataclasses import replace

import pytest
from support.cases import env, loop
from support.records import MACHINE, PROFILE

from hotloop.core.record import Record
from hotloop.core.record.comparison import Ratio
from hotloop.judge.diagnose import diagnose, since
from hotloop.judge.expect import Trial, causal, expect
from hotloop.report import markdown
from hotloop.report.kinds import diagnose as sections

SLOW = loop({"env": (10, 0.3), "learn": (10, 0.3), "teacher": (10, 0.38)})

FAST = replace(
    loop({"env": (10, 0.4), "learn": (10, 0.58), "teacher": (10, 0.01)}, speed=1.6), run_id="after"
)


def text(record: Record) -> str:
    return markdown.draw(sections.diagnosis(diagnose(record, file="before.json")))


def test_the_bottleneck_comes_first_with_what_it_would_buy() -> None:
    said = text(SLOW)
    assert "**teacher takes 38.0% of the time [38.0%, 38.0%]: " in said
    assert "| teacher | 38.0% | [38.0%, 38.0%] | 1.23x | 1.61x |" in said


def test_a_change_is_told_with_evidence_remedy_and_check() -> None:
    said = text(SLOW)
    assert "teacher calls**: buys at most 1.61x [1.61x, 1.61x]" in said
    assert "label all envs in one call" in said
    assert "`run it again as before, then: hotloop diagnose --since before.json`" in said


def test_a_healthy_record_is_told_the_lever_and_that_no_problem_is_known() -> None:
    said = text(replace(PROFILE, unaccounted_ns=0))
    assert "observations takes 64.0% of the time" in said
    assert "2x faster there makes everything 1.47x faster, at most 2.78x without it" in said
    assert said.index("observations takes") < said.index("No known problem found in")
    assert "nothing" not in said.lower()


def test_nothing_to_gain_is_only_said_if_no_row_reaches_a_twentieth() -> None:
    small = {f"part {number}": (10, 0.045) for number in range(22)}
    assert "nothing to gain in one place" in text(loop(small))
    assert "nothing to gain" not in text(loop({**small, "part 0": (10, 0.055)}))


def test_skipped_checks_are_counted_beside_those_that_were_made() -> None:
    found = diagnose(env({"env.step": (1_000, 0.95)}))
    assert sections.no_problem(found).endswith(f"; {len(found.gaps)} skipped for lack of data.")
    assert sections.no_problem(replace(found, gaps=(), checks=1)) == "No known problem found in 1 check."


def test_a_rule_without_evidence_says_what_to_run() -> None:
    assert "`hotloop profile --probe memory gym:Their-v0`" in text(env({"env.step": (1_000, 0.95)}))


def test_a_run_that_was_broken_off_is_said_to_be_one() -> None:
    assert "broken off" in text(replace(SLOW, partial=True))


def test_the_page_is_a_checklist_in_the_order_of_gain() -> None:
    page = markdown.draw_page(sections.page(diagnose(SLOW), "today"))
    assert page.index("What to change first") < page.index("Where the time goes")
    assert "teacher calls: buys at most 1.61x" in page


@pytest.mark.parametrize("in_turns", [None, Ratio(estimate=1.6, low=1.5, high=1.7, pairs=20)])
def test_after_a_change_predicted_and_seen_are_said(in_turns: Ratio | None) -> None:
    said = markdown.draw(sections.changed(since(SLOW, FAST, diagnose(SLOW).candidates, in_turns)))
    assert "measured in turns now" in said if in_turns else "by the two records" in said
    assert "predicted  1.61x [1.61x, 1.61x] (teacher calls): as predicted" in said.replace("**", "")
    assert "moved from teacher (38.0%) to learn" in said


def test_a_run_far_below_the_best_is_called_a_likely_fault() -> None:
    best = replace(loop({"env": (10, 0.9)}, speed=4.0, variant={"threads": 4}), run_id="best")
    said = markdown.draw(sections.expected(expect(SLOW, [best], MACHINE["fingerprint"])))
    assert "likely a configuration problem: 25% of what best reached" in said
    assert "threads=None here, 4 in the best" in said


def test_predicted_and_seen_of_delays_stand_side_by_side() -> None:
    hidden = [
        Trial(part="env", own_ns=3.0, base_ns=8.0, delayed_ns=8.0 + n / 1e3, inserted_ns=1.6)
        for n in range(8)
    ]
    said = markdown.draw(sections.causal("python loop.py", causal(hidden)))
    assert "| 1.23x [1.23x, 1.23x] | 1.00x [1.00x, 1.00x] | hidden |" in said
    assert "| env | 37.5% | 8 |" in said
    assert sections.MORE_TURNS not in said
    assert sections.MORE_TURNS in markdown.draw(sections.causal("python loop.py", causal(hidden[:1])))
