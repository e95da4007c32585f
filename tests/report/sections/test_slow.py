from dataclasses import replace

import pytest
from support.drawn import lines as rows
from support.drawn import seen, text
from support.records import PROFILE

from hotloop.core.record import Record
from hotloop.core.record.profile import Pauses, RerunResult, Slow, SlowStep, Spread
from hotloop.report import html, markdown
from hotloop.report.kinds.profile import SHOWN, again, in_a_line, profile, slow, slow_chapters, slow_env
from hotloop.report.kinds.profile import page as profile_page

STEP = SlowStep(
    rank=1,
    step=7_000,
    env=None,
    seed=42,
    wall_ns=200_000_000,
    phases={"wall": 200_000_000, "wall/python": 1_000_000, "wall/step": 199_000_000},
    resets=0,
    gc_ns=150_000_000,
    collections=2,
    check_step=7_100,
    check="abcd",
)
HALVES = {"wall": 2_000, "wall/python": 500, "wall/step": 1_500}
RESET = replace(STEP, rank=11, env=3, resets=1, gc_ns=0, collections=0, wall_ns=2_000, phases=HALVES)
WARM = replace(STEP, rank=21, phases={"wall": 3_000}, wall_ns=3_000, gc_ns=0, collections=0)

SLOW = Slow(
    relative_error=1 / 64,
    calls=10_000,
    typical_ns=1_000.0,
    typical_reset_ns=None,
    steps=(STEP, *(replace(STEP, rank=rank, wall_ns=10_000 - rank) for rank in range(2, 11))),
    resets=(RESET,),
    warmup=(WARM,),
    reset_spreads=(Spread(path="wall", calls=30, p50_ns=1_500.0, max_ns=2_000.0),),
    pauses=Pauses(collections=3, total_ns=180_000_000, longest_ns=100_000_000),
    target="grid/toy",
    given={},
    policy="random",
)
PHASES = tuple(
    replace(phase, p50_ns=100.0, p95_ns=200.0, max_ns=400.0) if phase.path == "wall" else phase
    for phase in PROFILE.phases
)
RECORD = replace(PROFILE, slow=SLOW, phases=PHASES)

AGAIN = RerunResult(
    run_id="then",
    slow=STEP,
    typical_ns=1_100.0,
    typical_then_ns=1_000.0,
    wall_ns=(201_000_000, 202_000_000),
    gc_ns=(0, 5),
    phases={"wall": 202_000_000, "wall/step": 201_000_000},
    how="a fresh run each time",
    same_way=True,
    unlike=("another commit: a then, b now",),
    outcome="slow again",
)


def test_percentiles_are_of_calls_and_absent_where_there_is_none() -> None:
    drawn = rows(slow(RECORD))
    assert "wall 0.50 1.00 - 2.00" in drawn, "5 envs of a call times what an env-step took"
    assert "wall, where an episode began 1.50 - - 2.00" in drawn
    assert any("off by at most 1.6%" in line for line in drawn)


def test_slow_steps_say_step_env_times_garbage_and_blame() -> None:
    drawn = rows(slow(RECORD))
    assert "1 7,000 - 200.0 ms 200,000 0 150.0 ms in 2 step 99.5%" in drawn
    assert "11 7,000 3 2.00 µs 2.0 1 step 75.0%" in drawn
    assert "21 7,000 - 3.00 µs 3.0 - -" in drawn


def test_a_narrow_screen_shows_how_long_a_step_took_and_what_is_to_blame() -> None:
    shown = [" ".join(line.split()) for line in seen(slow(RECORD), 80)]
    assert "1 7,000 200.0 ms 200,000 step 99.5%" in shown
    assert "no room in 80 columns for env, resets, garbage" in shown


def test_a_terminal_shows_the_first_few_and_a_page_all() -> None:
    shown = [line for line in rows(slow(RECORD)) if " 7,000 " in line]
    assert len(shown) == SHOWN + 2
    page = markdown.draw(slow_chapters(RECORD)[1].sections)
    assert page.count("| 7,000 |") == 12


def test_the_seed_is_told() -> None:
    assert "seed 42, of all of them" in rows(slow(RECORD))


def test_garbage_is_summed_up_and_missed_events_are_said() -> None:
    assert any("collected 3 times" in line and "100.0 ms the longest" in line for line in rows(slow(RECORD)))
    missed = replace(RECORD, slow=replace(SLOW, missed=12))
    assert any("no room for 12 spans" in line for line in rows(slow(missed)))


def test_the_page_has_both_sections_and_an_older_record_neither() -> None:
    headings = [
        line for line in markdown.draw_page(profile_page(RECORD)).splitlines() if line.startswith("## ")
    ]
    assert "## Single Calls" in headings
    assert "## Slowest Steps" in headings
    for older in (PROFILE, replace(PROFILE, slow=replace(SLOW, calls=0))):
        assert slow_chapters(older) == ()
        assert text(slow(older)).strip() == ""


def test_the_web_page_has_the_same_tables() -> None:
    page = "".join(map(html.draw_chapter, slow_chapters(RECORD)))
    assert "<h2>Single Calls</h2>" in page
    assert page.count('<td class="number">7,000</td>') == 12
    assert "Single Calls" not in html.draw_page(profile_page(PROFILE))


def test_what_came_of_a_replay_is_told() -> None:
    drawn = rows(again(replace(PROFILE, again=AGAIN)))
    assert "step 7,000, seed 42" in drawn
    assert "then 200.0 ms, where a usual one took 1.00 µs" in drawn
    assert "now 201.0 ms, 202.0 ms, where those before it took 1.10 µs (a fresh run each time)" in drawn
    assert "garbage 150.0 ms of it then, 5 ns now at most" in drawn
    assert "run came to the same state as then" in drawn
    assert "unlike another commit: a then, b now" in drawn
    assert "outcome slow again" in drawn
    assert "step 199.0 ms 201.0 ms" in drawn


@pytest.mark.parametrize(("same_way", "said"), [(False, "came to another state"), (None, "was not followed")])
def test_a_replay_that_was_not_the_same_run_says_so(same_way: bool | None, said: str) -> None:
    record = replace(PROFILE, again=replace(AGAIN, same_way=same_way, wall_ns=()))
    drawn = text(again(record))
    assert said in drawn
    assert "never reached" in drawn


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ({"wall": 100, "wall/a": 90, "wall/a/b": 80}, "b 80.0%"),
        ({"wall": 100, "wall/a": 90, "wall/a/b": 30}, "a itself 60.0%"),
        ({"wall": 100, "wall/a": 30, "wall/b": 40}, "b 40.0%"),
        ({"wall": 100, "wall/python": 90}, "Python and binding 90.0%"),
        ({"wall": 100}, "-"),
    ],
)
def test_the_innermost_phase_that_has_most_of_it_is_blamed(phases: dict[str, int], said: str) -> None:
    assert slow_env(phases, 100) == said


def test_a_record_with_slow_steps_survives_being_written_and_read() -> None:
    whole = replace(RECORD, again=AGAIN, slow=replace(SLOW, draws=((256, 256, 3), (10, 4, 1))))
    assert Record.from_json(whole.to_json()) == whole


def test_the_slowest_step_is_one_line_unless_they_are_asked_for() -> None:
    shown = text(profile(RECORD))
    assert "200.0 ms, 200,000 times the usual 1.00 µs; --slow shows more" in shown
    assert "Slowest steps" not in shown
    assert "Slowest steps" in text(profile(RECORD, slow_steps=True))
    assert "--slow" not in text(profile(PROFILE))


def test_what_the_scheduler_did_is_not_blamed_on_code() -> None:
    lost = replace(STEP, put_off=3)
    record = replace(RECORD, slow=replace(SLOW, steps=(lost, *SLOW.steps[1:])))
    drawn = " ".join(rows(slow(record)))
    assert "put off its core 3 times" in drawn
    assert "1 of the 10 slowest steps were put off their core for somebody else" in drawn
    assert "put off its core 3 times" in in_a_line(record)
    assert "put off" not in " ".join(rows(slow(RECORD)))
