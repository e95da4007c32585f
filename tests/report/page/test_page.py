"""The page in a real browser: no complaint, no request, and no script of a stranger's."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.records import BENCH
from support.shelves import (
    FLOOR,
    GOAL,
    MARKUP,
    budgeted,
    compared,
    everything,
    fill,
    history,
    measured,
    trained,
)

from hotloop.core.record import FRAMES_SUFFIX, PICTURE, Frame, Frames, write_frames
from hotloop.judge.checks import hold
from hotloop.report.files import read_shelf
from hotloop.report.page import overview
from hotloop.report.page.page import draw_page

TABS = ("overview", "trend", "phases", "comparisons", "flames", "training", "sweeps", "replays", "records")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    (fill(folder / "records", everything()) / "broken.json").write_text('{"schema": 1')
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    shown = [Frame(step=k, picture=PICTURE + pixel, note="the mark" if k == 3 else None) for k in range(5)]
    write_frames(
        folder / "records" / f"x{FRAMES_SUFFIX}", Frames(target="x", title=MARKUP, frames=tuple(shown))
    )
    page = folder / "page.html"
    shelf = replace(read_shelf([folder / "records"]), budgets=(FLOOR, GOAL))
    page.write_text(draw_page(shelf, f"Records {MARKUP}"))
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_tab_is_drawn_without_a_complaint_or_a_request(opened: Any, drawn: Path, scheme: str) -> None:
    seen = opened(drawn, color_scheme=scheme)
    assert seen.page.get_attribute("html", "data-theme") == scheme
    for name in TABS:
        assert seen.tab(name).is_visible()
    seen.tab("trend").locator(".plot[data-drawn=yes] canvas").first.wait_for()
    for name in ("trend", "training", "sweeps"):
        scroll(seen.tab(name))
        undrawn = f"#tab-{name} .plot:not([data-drawn=yes])"
        seen.page.wait_for_function("selector => !document.querySelector(selector)", arg=undrawn)
        assert seen.page.locator(undrawn).count() == 0
    assert seen.complaints == []
    assert seen.requests == [drawn.as_uri()]


def scroll(tab: Any) -> None:
    """As far down as there is something to draw."""
    for place in tab.locator(".plot").all():
        place.scroll_into_view_if_needed()


def test_budgets_stand_in_the_overview_and_their_limits_in_the_trend(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    rows = seen.tab("overview").locator("h2 + .wide tr")
    assert "met" in rows.filter(has_text="toy-floor").inner_text()
    assert "sim team" in rows.filter(has_text="toy-floor").inner_text()
    assert "not held yet" in rows.filter(has_text="toy-goal").inner_text()
    plot = seen.tab("trend").locator(".plot").first.get_attribute("data-plot")
    assert [(line["y"], line["label"]) for line in json.loads(plot)["lines"]] == [
        (4.9e5, "floor 490 k, toy-floor"),
        (9e9, "target 9.00 G, toy-goal"),
    ]
    rows = seen.tab("overview").locator("h2 + .wide tr")
    rows.filter(has_text="toy-floor").click()
    assert "≥ 490,000" in seen.page.locator("dialog").inner_text()


def test_a_sweep_has_its_points_its_law_and_its_map(opened: Any, drawn: Path) -> None:
    sweeps = opened(drawn).tab("sweeps")
    first = sweeps.locator("figure", has_text="agents").first
    told = json.loads(first.locator(".plot").get_attribute("data-plot"))
    measured_points, law = told["series"]
    assert told["powers"]
    assert [value for value in measured_points["values"] if value is not None] == [30, 120, 1020]
    assert len([value for value in law["values"] if value is not None]) > 20
    cells = sweeps.locator("svg.heat g")
    assert cells.count() == 6
    assert cells.last.locator("rect").get_attribute("stroke")
    assert "░" not in sweeps.inner_text()
    assert "bytes" in sweeps.locator("figure", has_text="resident memory").inner_text()


def test_markup_in_names_is_text(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    for name in TABS:
        seen.tab(name)
    seen.tab("records").locator("tr", has_text="onerror").first.click()
    assert "onerror" in seen.page.locator("dialog").inner_text()
    assert seen.page.title() == f"Records {MARKUP}"
    assert seen.page.locator("img:not(.player img)").count() == 0
    assert seen.complaints == []


def test_a_change_of_level_and_what_was_left_out_are_said(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    assert "1 file left out" in seen.tab("overview").inner_text()
    first = seen.tab("trend").locator("figure").first
    assert "since 0000000c" in first.inner_text()
    first.locator(".u-over").hover()
    told = first.locator(".read").inner_text()
    assert "env-steps/s" in told
    assert "[" in told


def test_what_needs_a_look_stands_first_and_opens_its_record(opened: Any, drawn: Path) -> None:
    overview = opened(drawn).tab("overview")
    fell = overview.locator(".looks li", has_text="-50.0% since 0000000c")
    assert "slower" in fell.inner_text()
    row = overview.locator("tr", has_text="-50.0% since 0000000c")
    assert row.locator(".bad").count() == 1
    fell.click()
    assert "bench-0012" in overview.page.locator("dialog").inner_text()


def test_a_budget_that_is_missed_and_a_run_that_is_not_equal_need_a_look(tmp_path: Path) -> None:
    slow = replace(budgeted(), held=hold(FLOOR, date(2026, 1, 2), now=[4e5] * 8))
    wrong = replace(compared(), exit_code=2)
    fixed = measured(1, 1e6)
    broken = replace(measured(0, 1e6), exit_code=2)
    shelf = read_shelf([fill(tmp_path, [slow, wrong, broken, fixed])])
    found = overview.find_attention([], overview.budget_states([FLOOR], shelf.records), shelf.records)
    assert [each.word for each in found] == ["mismatch", "missed"]
    assert "ask sim team" in found[1].told
    assert overview.FINE in overview.draw_attention([], {})
    assert overview.unsure(shelf.records) == ""
    assert "1 unstable" in overview.unsure([*shelf.records, replace(fixed, exit_code=1)])


def test_a_line_of_the_overview_leads_to_its_plot_and_a_point_to_its_record(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    seen.tab("overview").locator("tr a").first.click()
    plot = seen.page.locator("figure.wanted")
    assert plot.get_attribute("id") == "trend-0"
    plot.locator(".plot[data-drawn=yes] canvas").wait_for()
    over, told = plot.locator(".u-over"), json.loads(plot.locator(".plot").get_attribute("data-plot"))
    height = over.bounding_box()["height"]
    over.click(position={"x": 1, "y": height / 2})
    assert not seen.page.locator("dialog").is_visible()
    over.click(position={"x": 1, "y": height * depth(told)})
    assert "bench-0000" in seen.page.locator("dialog").inner_text()


def depth(told: Any) -> float:
    """How far down its plot the first point of a trend is, as a share, where the floor is on it."""
    curve = told["series"][0]
    bottom, top = min(*curve["low"], FLOOR.limit), max(curve["high"])
    return float((top - curve["values"][0]) / (top - bottom) + 0.08) / 1.16


def test_many_plots_are_found_by_what_stands_above_them(opened: Any, tmp_path: Path) -> None:
    names = [f"grid/map{k}" for k in range(8)]
    many = [measured(k, 1e6, target=replace(BENCH.target, name=name)) for k, name in enumerate(names)]
    page = tmp_path / "page.html"
    page.write_text(draw_page(read_shelf([fill(tmp_path / "many", many)]), "many"))
    trend = opened(page).tab("trend")
    trend.locator(".figure-search").fill("map3")
    assert trend.locator("figure:visible").count() == 1


def test_a_record_opens_in_full_and_the_search_finds_it(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    listing = seen.tab("records")
    listing.locator("#record-search").fill("train")
    rows = listing.locator("tr[data-record]")
    assert rows.count() == 1
    rows.first.press("Enter")
    dialog = seen.page.locator("dialog")
    assert "rollout" in dialog.inner_text()
    seen.page.mouse.click(5, 5)
    assert not dialog.is_visible()


def test_flames_zoom_are_searched_and_show_what_changed(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    flames = seen.tab("flames").locator("svg.flames")
    assert flames.count() == 2
    assert "takes more" in flames.nth(1).text_content()
    box = flames.first.locator("g.box").last
    before = box.locator("rect").bounding_box()["width"]
    box.click()
    assert box.locator("rect").bounding_box()["width"] > 1.3 * before
    seen.page.locator(".flame-search").first.fill("look")
    assert flames.first.locator("g.found").count() == 1
    assert seen.complaints == []


def test_a_comparison_is_a_line_with_its_interval(opened: Any, drawn: Path) -> None:
    tab = opened(drawn).tab("comparisons")
    line = tab.locator("svg.forest g")
    assert "On Example CPU (0123456789ab)." in tab.inner_text()
    assert "2025-01-02" in line.text_content()
    assert "1.500 [1.400, 1.600]" in line.text_content()
    assert line.locator("rect.faster").count() == 1


def test_themes_are_chosen_and_a_phone_needs_no_sideways_scrolling(opened: Any, drawn: Path) -> None:
    seen = opened(drawn, width=390, height=800)
    seen.page.click("#theme")
    assert seen.page.get_attribute("html", "data-theme") == "dark"
    for name in TABS:
        seen.tab(name)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_hundreds_of_records_are_one_file_whose_rows_are_made_as_somebody_comes_near(
    opened: Any, tmp_path: Path
) -> None:
    many = [measured(k, 1e6 + k % 7) for k in range(300)]
    page = tmp_path / "page.html"
    page.write_text(draw_page(read_shelf([fill(tmp_path / "many", many)]), "many"))
    seen = opened(page)
    assert "300 records" in seen.tab("overview").inner_text()
    assert page.stat().st_size < 3_000_000
    listing = seen.tab("records")
    rows = listing.locator("tr[data-record]")
    assert rows.count() == 100
    rows.last.scroll_into_view_if_needed()
    listing.page.wait_for_function("() => document.querySelectorAll('#records tr[data-record]').length > 100")
    listing.locator("#record-search").fill("00000000")
    assert rows.count() == 1
    assert "1 of 300" in listing.inner_text()


def test_an_accepted_change_is_marked_and_begins_the_baseline(tmp_path: Path) -> None:
    from hotloop.core.record import accept

    folder = fill(tmp_path / "records", history())
    accept(folder, "bench-0012", "a larger map")
    text = draw_page(read_shelf([folder]), "x")
    assert "a larger map" in text
    assert "no change of level" in text


def test_a_training_of_one_window_is_drawn_and_opens_its_record(tmp_path: Path) -> None:
    short = replace(trained(), values={"env_steps_per_s": (1e4,)})
    text = draw_page(read_shelf([fill(tmp_path, [short])]), "x")
    training = text.partition('id="tab-training"')[2].partition("</section>")[0]
    assert training.count("&quot;opens&quot;:[0]") == 1


def test_a_replay_is_stepped_and_jumped_through(opened: Any, drawn: Path) -> None:
    seen = opened(drawn)
    player = seen.tab("replays").locator(".player")
    assert player.locator("output").inner_text() == "step 0"
    player.locator("[data-act=forward]").click()
    assert player.locator("output").inner_text() == "step 1"
    jump = player.locator("[data-act=jump]")
    assert jump.inner_text() == "jump to the mark"
    jump.click()
    assert player.locator("output").inner_text() == "step 3: the mark"
    assert player.locator("img").evaluate("image => image.naturalWidth") == 1
    assert seen.complaints == []
