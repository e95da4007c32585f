from dataclasses import replace

from support.drawn import lines, text
from support.records import PROFILE

from hotloop.core.errors import Code, notice
from hotloop.core.record import Record, Resources
from hotloop.core.record.profile import Finding, Table
from hotloop.judge.baselines import with_previous
from hotloop.report.kinds.profile import MOST_HOT, glance, profile, profiles
from hotloop.report.kinds.profile import page as page_of
from hotloop.report.kinds.times import MOST_ROWS
from hotloop.report.markdown import draw_page
from hotloop.report.section import Sections
from hotloop.report.terminal import bar
from hotloop.stats.summary import with_metrics

STEADY = {"env_steps_per_s": (4.0e6,) * 8, "agent_steps_per_s": (8.0e6,) * 8}
FUNCTIONS = Table(
    title="Functions",
    columns=("function", "own_ns", "own_share"),
    rows=(("<built-in f|g>", 1_500_000, 0.75), *((f"f{number}", 10, 0.01) for number in range(20))),
)
FOUND = Finding(
    probe="cprofile",
    facts={"calls": 1_000, "slowdown": 2.5},
    tables=(FUNCTIONS,),
    files=("cprofile.pstats", "cprofile.svg"),
)
SAMPLED = Finding(
    probe="resources",
    facts={"read_bytes": 0, "written_bytes": 2048, "threads": 3, "processes": 2, "gpu": {"devices": []}},
    tables=(Table(title="Cores", columns=("core", "mean_share"), rows=((0, 0.5), (1, 0.1))),),
)
FULL = replace(
    with_previous(replace(PROFILE, values=STEADY), replace(PROFILE, values=STEADY)),
    findings=(Finding(probe="resources"), FOUND),
    resources=Resources(
        rss_peak_bytes=3 << 20,
        cpu_share=1.5,
        gpu={"devices": [{"busy_share": 0.5, "peak_bytes": 2 << 30}]},
    ),
)


def drawn(record: Record) -> str:
    return draw_page(page_of(record, most=MOST_ROWS))


def row(sections: Sections, first: str) -> str:
    """The line that begins with a word, its blanks made single."""
    (line,) = (line for line in lines(sections) if line.startswith(first))
    return line


def section(page: str, heading: str) -> list[str]:
    """The lines under a heading."""
    body = page.partition(f"## {heading}\n\n")[2].partition("\n\n")[0]
    return body.splitlines()


def test_a_profile_has_a_bar_beside_each_phase_and_sums_without() -> None:
    drawn = glance(PROFILE)
    assert row(drawn, "observations") == "observations 0.160 80.0 80.0% 64.0% " + bar(0.64)
    assert row(drawn, "unaccounted") == "unaccounted 0.010 5.0 5.0% 4.0% " + bar(0.04)
    assert row(drawn, "native step") == "native step 0.200 100.0 100.0% 80.0%"
    assert row(drawn, "Python and binding") == "Python and binding 0.050 25.0 20.0% " + bar(0.2)
    assert row(drawn, "wall") == "wall 0.250 125.0 100.0%"


def test_a_profile_prints_the_clean_speed_and_what_the_instrument_cost() -> None:
    drawn = text(glance(PROFILE))
    assert "8.00 M agent-steps/s [7.80 M, 8.20 M]" in drawn
    assert "1.012 [1.001, 1.020]" in drawn


def test_a_profile_without_a_finished_pair_says_so() -> None:
    assert "no pair of passes was finished" in text(glance(replace(PROFILE, phases=(), overhead=None)))


def test_the_tree_and_the_speed_come_after_what_they_rest_on_and_probes_after_them() -> None:
    shown = lines(profile(FULL))
    order = [
        next(at for at, line in enumerate(shown) if line.startswith(word))
        for word in ("machine", "previous", "phase", "speed", "cprofile")
    ]
    assert order == sorted(order)


def test_hot_functions_stand_between_the_tree_and_the_speed_and_are_shown_once() -> None:
    rows = tuple((f"f{number} (a/b.py:{number})", 0.1, 0.2) for number in range(12))
    hot = Table(
        title="Hot functions, by samples", columns=("function", "own_share", "total_share"), rows=rows
    )
    shown = lines(profile(replace(PROFILE, findings=(Finding(probe="samples", tables=(hot,)),))))
    order = [
        next(at for at, line in enumerate(shown) if line.startswith(word))
        for word in ("phase", "Hot functions", "f0 (a/b.py:0) 10.0% 20.0%", "speed")
    ]
    assert order == sorted(order)
    assert sum("Hot functions" in line for line in shown) == 1
    assert not any(line.startswith(f"f{MOST_HOT} ") for line in shown)


def test_a_function_that_the_tree_has_timed_has_the_share_of_the_tree() -> None:
    columns = ("function", "own_share", "own_interval", "total_share", "total_interval", "cpu_share")
    rows = (("observations (a/b.py:1)", 0.4, "[39.0%, 41.0%]", 0.8, "[79.0%, 81.0%]", None),)
    hot = Table(title="Hot functions, by samples", columns=columns, rows=rows)
    shown = lines(profile(replace(PROFILE, findings=(Finding(probe="samples", tables=(hot,)),))))
    (line,) = (line for line in shown if line.startswith("observations (a/b.py:1)"))
    assert line.split()[-2:] == ["32.0%", "64.0%"]


def test_a_look_at_a_running_process_shows_only_what_was_found() -> None:
    untimed = replace(FULL, method=replace(PROFILE.method, rounds=0), comparisons=())
    assert lines(profile(untimed))[0] == "cprofile calls 1,000, slowdown 2.5"


def test_several_profiles_end_with_how_their_shares_move() -> None:
    other = replace(PROFILE, target=replace(PROFILE.target, name="grid/arena"))
    assert lines(profiles([PROFILE, other]))[-1].startswith("grid/toy → grid/arena: ")
    assert "→" not in text(profiles([PROFILE]))


def test_the_title_has_the_target_and_the_date() -> None:
    assert drawn(PROFILE).splitlines()[0] == "# Profile of grid/toy, 2025-01-02 03:04 UTC"


def test_the_sections_come_in_their_order() -> None:
    headings = [line for line in drawn(FULL).splitlines() if line.startswith("## ")]
    assert headings == [
        *("## Configuration", "## Results", "## Time Breakdown", "## Resources", "## cprofile"),
        *("## Previous Profile", "## Notes"),
    ]


def test_what_a_run_has_not_has_no_section() -> None:
    headings = [line for line in drawn(PROFILE).splitlines() if line.startswith("## ")]
    assert headings == ["## Configuration", "## Results", "## Time Breakdown", "## Notes"]


def test_the_configuration_begins_with_who_plays_how_much_on_how_many_threads() -> None:
    lines = section(drawn(PROFILE), "Configuration")
    assert lines[:3] == ["- **Policy**: random", "- **Steps**: 10", "- **Threads**: 1"]


def test_who_plays_against_whom_stands_among_the_parameters() -> None:
    target = replace(PROFILE.target, params={"first": "greedy", "second": "random"})
    page = drawn(replace(PROFILE, target=target))
    assert "- **Parameters**: `first=greedy`, `second=random`" in section(page, "Configuration")


def test_the_breakdown_is_components_times_and_shares_of_the_wall() -> None:
    assert section(drawn(PROFILE), "Time Breakdown") == [
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
    played = replace(PROFILE, work=replace(PROFILE.work, resets=4), values={"clean_wall_ns": (2e9, 5e8)})
    assert section(drawn(played), "Results") == [
        "- **Throughput**: 4.00 M steps/sec [3.90 M, 4.10 M], spread 1.9% excellent",
        "- **Avg steps/game**: 2.5",
        "- **Steps/sec**: 4.00 M",
        "- **Agent-steps/sec**: 8.00 M",
        "- **Total games**: 4",
        "- **Wall time**: 2.50 s clean",
        "- **Instrument**: takes 1.012 [1.001, 1.020] times as long as the clean passes",
        "- **Unaccounted**: 4.0%",
        "- **Path**: native 100.0% of 10 env-steps (asked for auto)",
    ]


def test_games_are_the_throughput_where_they_were_measured() -> None:
    metrics = PROFILE.metrics | {"games_per_s": PROFILE.metrics["env_steps_per_s"]}
    results = section(drawn(replace(PROFILE, metrics=metrics)), "Results")
    assert results[0].startswith("- **Throughput**: 4000000.00 games/sec [")


OWNERS_PAGE = """\
# Profile: 2025-01-02 03:04 UTC
## Configuration
- **Hero**: simple
- **Villain**: random
- **Games**: 4
- **Threads**: 1
## Results
- **Throughput**: 20.00 games/sec
- **Avg steps/game**: 5
## Time Breakdown
| Component | Avg Time | % of Total |
| env.step | 100.0 µs | 50.0% |
| inference | 60.00 µs | 30.0% |
| of it forward | 40.00 µs | 20.0% |
| of it selection | 20.00 µs | 10.0% |
| encoding | 30.00 µs | 15.0% |
| rest | 10.00 µs | 5.0% |
## Notes
"""
"""What owners of two-player games agreed on; a page may hold more lines, between these and in their order."""


def test_the_page_of_a_two_player_game_has_the_owners_format() -> None:
    parts = {"env.step": 1e6, "inference/forward": 4e5, "inference/selection": 2e5}
    parts |= {"encoding": 3e5, "rest": 1e5}
    values = {
        "games_per_s": (20.0,) * 8,
        "contest.won": (1.0, 0.0, 1.0, 1.0),
        "contest.began": (1.0,) * 4,
        "episode_length": (5.0,) * 4,
        **{f"contest.split.{name}": (ns,) for name, ns in parts.items()},
    }
    method = replace(PROFILE.method, policy="simple against random")
    page = drawn(with_metrics(replace(PROFILE, values=PROFILE.values | values, method=method)))
    lines = iter(page.splitlines())
    for wanted in OWNERS_PAGE.splitlines():
        assert any(line.startswith(wanted) for line in lines), wanted


def test_a_run_in_which_no_game_ended_says_so() -> None:
    assert "- **Avg steps/game**: no game ended" in section(drawn(PROFILE), "Results")


def test_resources_are_memory_cpu_and_gpu() -> None:
    assert section(drawn(FULL), "Resources") == [
        "- **Peak memory**: 3.00 MiB",
        "- **CPU**: 150.0% of one core, of 4",
        "- **GPU**: 50.0% busy, 2.00 GiB",
    ]
    bare = replace(FULL, findings=(), resources=Resources(rss_peak_bytes=1 << 30, cpu_share=1.0))
    assert section(drawn(bare), "Resources")[-1] == "- **GPU**: none"


def test_samples_tell_of_cores_files_and_threads_too() -> None:
    page = drawn(replace(FULL, findings=(SAMPLED,)))
    assert section(page, "Resources")[-3:] == [
        "- **Cores**: 50.0%, 10.0% busy, with whatever else ran on them",
        "- **I/O**: 0 B read, 2.00 KiB written",
        "- **Threads**: 3 in 2 processes",
    ]


def test_a_probe_has_its_facts_files_and_the_first_rows_of_its_tables() -> None:
    page = drawn(FULL)
    assert section(page, "cprofile") == [
        "- **calls**: 1,000",
        "- **slowdown**: 2.5",
        "- **Files**: `.cprofile.pstats`, `.cprofile.svg`",
    ]
    body = page.partition("### Functions\n\n")[2].splitlines()
    assert body[:3] == [
        "| function | own | own % |",
        "| --- | --- | --- |",
        "| `<built-in f\\|g>` | 1.50 ms | 75.0% |",
    ]
    assert len([line for line in body if line.startswith("| `")]) == MOST_ROWS


def test_all_lines_of_a_function_are_shown() -> None:
    rows = tuple((number, None, f"  line {number}") for number in range(30))
    lines = Finding(
        probe="line", tables=(Table(title="Lines of f", columns=("line", "hits", "code"), rows=rows),)
    )
    body = drawn(replace(PROFILE, findings=(lines,))).partition("### Lines of f\n\n")[2]
    assert body.splitlines()[2] == "| 0 |  | `\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}line 0` |"
    assert "line 29` |" in body


def test_a_table_without_rows_says_none() -> None:
    empty = Finding(probe="memory", tables=(Table(title="What grows", columns=("site",), rows=()),))
    assert "### What grows\n\nNone.\n" in drawn(replace(PROFILE, findings=(empty,)))


def test_the_previous_profile_is_held_against_this_one() -> None:
    assert section(drawn(FULL), "Previous Profile") == [
        f"- **Compared with**: {PROFILE.run_id}",
        "- **Times as fast**: 1.000 [1.000, 1.000]",
        "- **Difference**: within noise",
        "- **Outcome**: same: within 2%; equality not known",
    ]
    other = replace(PROFILE, target=replace(PROFILE.target, workload_hash="ff", params={"agents": 9}))
    page = drawn(with_previous(PROFILE, other))
    assert "- **Unlike**: workload (agents 9 against 2)" in page
    assert ", of unlike things: " in page


def test_a_difference_beyond_noise_is_called_that() -> None:
    twice = {name: tuple(2 * value for value in values) for name, values in STEADY.items()}
    page = drawn(with_previous(replace(PROFILE, values=twice), replace(PROFILE, values=STEADY)))
    assert "- **Difference**: beyond noise" in page
    assert "- **Outcome**: faster: " in page


def test_a_look_at_a_running_process_has_no_results() -> None:
    method = replace(PROFILE.method, rounds=0)
    page = drawn(replace(FULL, method=method, metrics={}, phases=(), comparisons=(), resources=None))
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["## Configuration", "## cprofile", "## Notes"]
    assert "**Steps**" not in page


def test_notices_are_notes() -> None:
    said = notice(Code.DIRTY)
    notes = section(drawn(replace(PROFILE, notices=(said,))), "Notes")
    assert notes[-1] == f"- {said.text}: {said.remedy}."


def test_a_page_without_a_finished_pair_says_so() -> None:
    page = drawn(replace(PROFILE, phases=(), overhead=None, metrics={}))
    assert section(page, "Time Breakdown") == ["No pair of passes was finished."]


def test_keys_are_shown_as_they_would_be_typed() -> None:
    assert "`map=a|b`" in drawn(PROFILE)


def test_a_web_page_has_all_rows_of_a_table() -> None:
    (found,) = [chapter for chapter in page_of(FULL).chapters if chapter.title == "cprofile"]
    assert len(found.sections[-1].rows) == len(FUNCTIONS.rows)  # type: ignore[union-attr]
