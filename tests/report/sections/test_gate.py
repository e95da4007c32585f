from dataclasses import replace
from datetime import date
from typing import Any

from support.records import PROFILE

from hotloop.core.project import Budget
from hotloop.core.record.experiments import Estimate
from hotloop.core.record.profile import Finding, Table
from hotloop.judge.checks import downgrade_if_unmeasurable, hold
from hotloop.judge.judge import judge
from hotloop.report import markdown
from hotloop.report.kinds.checks import GateView, bisected, gate, listing

BUDGET = Budget(
    name="speed",
    target="grid/toy",
    metric="env_steps_per_s",
    max_change=0.05,
    against="main",
    owner="sim team",
    reason="rollouts wait",
)
TODAY = date(2026, 6, 1)


def shown(budget: Budget = BUDGET, **found: Any) -> GateView:
    held = hold(budget, TODAY, **found)
    return GateView(name=budget.name, held=held, record=judge(replace(PROFILE, kind="gate", held=held)))


def drawn(*rows: GateView, headline: str = "red") -> str:
    return markdown.draw(gate(rows, headline=headline))


def change(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.01, high=value + 0.01, samples=30)


def test_a_budget_that_is_missed_says_by_how_much_whom_to_ask_and_why_it_is_there() -> None:
    text = drawn(shown(now=[1000.0] * 6, change=change(-0.1)))
    assert "| speed | **missed** | 1,000 env-steps/s | -10.0% [-11.0%, -9.0%] | -5.0% | main |" in text
    assert "the whole interval is beyond it; ask sim team; it is there because: rollouts wait" in text


def test_what_it_is_held_against_is_a_name_in_the_table_and_a_commit_below() -> None:
    text = drawn(shown(now=[1000.0] * 6, change=change(-0.1), against="main, before it (abcdef012345)"))
    assert "| -5.0% | main~1 |" in text
    assert "main, before it (abcdef012345)" in text


def test_a_limit_that_leaves_much_room_has_a_tighter_line_and_its_unit_stands_beside_the_value() -> None:
    floor = replace(BUDGET, max_change=None, against=None, limit=2000.0)
    text = drawn(shown(floor, now=[5000.0] * 6), headline="green")
    assert "| 5,000 env-steps/s |  | ≥ 2,000 |" in text
    assert "speed has room; a tighter line: `limit = 3500`" in text


def test_a_budget_that_is_met_needs_no_words_and_a_gain_has_its_line() -> None:
    text = drawn(shown(now=[1000.0] * 6, change=change(0.2)), headline="green")
    assert "ask" not in text
    assert "speed got better; to hold it: `limit = 975  # in place of max_change and against`" in text


def test_a_target_says_how_far_it_is_and_how_that_went() -> None:
    hoped = replace(BUDGET, max_change=None, against=None, limit=2000.0, enforce=False)
    row = replace(shown(hoped, now=[1000.0] * 6), distances=(-0.7, -0.6, -0.5))
    text = drawn(row)
    assert "not yet (target)" in text
    assert "50.0% short of the target" in text
    assert "-0.5 at the end, -0.7 at the beginning" in text
    assert "reached (target)" in drawn(shown(hoped, now=[3000.0] * 6))


def test_bytes_and_shares_are_drawn_by_their_units() -> None:
    memory = replace(BUDGET, metric="rss_peak_bytes", max_change=None, against=None, limit=2**31)
    assert "≤ 2.00 GiB" in drawn(shown(memory, now=[2.0**30]))
    share = replace(memory, metric="share:step", limit=0.25)
    assert "| 10.0% |  | ≤ 25.0% |" in drawn(shown(share, now=[0.1]))


def test_what_changed_is_drawn_once_for_all_budgets_of_a_target() -> None:
    changed = Table(title="Functions", columns=("function",), rows=(("wrap (env.py)",),))
    found = Finding(probe="difference", facts={}, tables=(changed,))
    row = shown(now=[1000.0] * 6, change=change(-0.1))
    assert row.record is not None
    row = replace(row, record=replace(row.record, findings=(found,)))
    text = drawn(row, row)
    assert text.count("wrap (env.py)") == 1
    assert "speed: what changed is the same" in text


def test_what_could_not_be_measured_says_why() -> None:
    text = drawn(GateView(name=BUDGET.name, held=None, record=None, error="line 3: it is gone"))
    assert "| speed | **error** |" in text
    assert "speed: line 3: it is gone" in text


def test_a_bisection_names_the_commit_or_those_it_may_be() -> None:
    one = markdown.draw(bisected("speed", [("abcdef0123456789", "a change")], [("12", "good", "+0.1%")]))
    assert "speed is missed since **abcdef012345 a change**" in one
    assert "- 12 good: +0.1%" in one
    two = markdown.draw(bisected("speed", [("aaaa", ""), ("bbbb", "")], []))
    assert "one of **aaaa, bbbb**" in two


def test_the_listing_has_limits_as_they_are_written() -> None:
    hoped = replace(BUDGET, name="goal", max_change=None, against=None, limit=7.5, enforce=False)
    text = markdown.draw(listing([BUDGET, hoped]))
    assert "-5.0% of main" in text
    assert "≥ 7.5 (target)" in text


def test_a_goal_about_which_nothing_can_be_told_has_no_distance() -> None:
    goal = replace(BUDGET, max_change=None, against=None, limit=50_000.0, enforce=False)
    row = shown(goal, now=[1000.0] * 6)
    assert row.held is not None
    assert "98.0% short of the target" in drawn(row, headline="green")
    busy = replace(row, held=downgrade_if_unmeasurable(row.held, "the machine had a load of 9.0"))
    text = drawn(busy, headline="green")
    assert "cannot tell (target)" in text
    assert "short of" not in text
    assert "speed, env_steps_per_s: the machine had a load of 9.0" in text


def test_budgets_that_were_weakened_are_named_under_the_table() -> None:
    row = shown(now=[1000.0] * 6, change=change(0.0))
    text = markdown.draw(gate([row], headline="green", weaker=["budget b: removed, since 0123456789ab"]))
    assert "budget b: removed, since 0123456789ab" in text
