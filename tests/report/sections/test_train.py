from dataclasses import replace

import pytest
from support.drawn import text
from support.records import BENCH

from hotloop.cli.commands.train import duration
from hotloop.core.record.comparison import Difference, Validation
from hotloop.core.record.profile import Phase
from hotloop.core.time_tree import CALL, LARGEST, REST, TimeTree, grow, tree_text
from hotloop.report.kinds.times import account_of
from hotloop.report.kinds.train import train, training_tree

TIMES = TimeTree(
    total_ns=10_000_000,
    children=grow(
        TimeTree(path=path, calls=calls, total_ns=ns)
        for path, calls, ns in [
            ("rollout", 2, 6_000_000),
            ("rollout/student", 8, 1_000_000),
            ("rollout/environment", 8, 4_000_000),
            ("rollout/environment/action", 8, 1_500_000),
            ("rollout/environment/observations", 8, 2_000_000),
            ("learn", 2, 3_000_000),
            ("learn/forward", 4, 3_000_000),
        ]
    ),
)


def test_the_lines_below_a_line_add_up_to_it() -> None:
    for row in TIMES.with_rests().walk():
        assert not row.children or row.self_ns == 0, row


def test_what_is_in_no_part_is_named_and_the_call_into_the_environment_is_not_among_it() -> None:
    rests = [(row.name, row.total_ns) for row in TIMES.with_rests().rows if not row.calls]
    assert rests == [(CALL, 500_000), (REST, 1_000_000), (REST, 0), (REST, 1_000_000)]
    assert tree_text(TIMES).splitlines()[-1].startswith("20.0% unaccounted in all")


def test_the_largest_part_is_marked_once() -> None:
    assert TIMES.largest == TIMES["rollout/environment"]
    assert text(training_tree(TIMES)).count(LARGEST) == tree_text(TIMES).count(LARGEST) == 1


@pytest.mark.parametrize(
    ("how", "word"), [("sync", "host clock"), ("events", "stream"), ("async", "charged")]
)
def test_it_says_how_it_was_timed(how: str, word: str) -> None:
    drawn = text(training_tree(replace(TIMES, how=how)))  # type: ignore[arg-type]
    assert f"timed by {how}" in drawn
    assert word in drawn


def test_milliseconds_and_shares_are_of_the_window() -> None:
    row = next(line for line in text(training_tree(TIMES)).splitlines() if "observations" in line)
    assert "2.00" in row
    assert "20.0%" in row


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (3_723, "1 h 02 min")]
)
def test_time_left_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def trained_record(**more: object):  # type: ignore[no-untyped-def]
    phases = (
        Phase(path="wall", calls=1, total_ns=10_000_000, mean_ns=1.0, share=1.0),
        *(
            Phase(path=f"wall/{row.path}", calls=row.calls, total_ns=row.total_ns, mean_ns=1.0, share=0.5)
            for row in TIMES.rows
        ),
    )
    made = replace(BENCH, kind="train", phases=phases, **more)
    values = {"env_steps_per_s": (50.0, 100.0), "wall_ns": (2e9, 1e9), "env_steps": (100.0, 100.0)}
    method = replace(made.method, clock="perf_counter_ns; regions events")
    return replace(made, values=values | {"return_per_agent": (1.0, 2.0)}, method=method)


def test_a_record_has_the_tree_it_was_made_from() -> None:
    assert account_of(trained_record()) == replace(TIMES, calls=1, how="events")
    assert account_of(BENCH) is None


def test_the_speed_of_a_run_is_its_steps_over_its_wall() -> None:
    drawn = text(train(trained_record()))
    assert "67 env-steps/s (200 in 3.00 s)" in drawn
    assert "2 at the end, 1 at the beginning  ▁█" in drawn


def test_what_was_compared_is_said_and_a_difference_is_named() -> None:
    fine = Validation(comparisons=1_000, mismatches=0)
    assert "1,000 outputs of agents equal" in text(train(trained_record(validation=fine)))
    where = Difference(step=3, field="rewards", index=(1,), a="0.0", b="1.0")
    wrong = replace(fine, mismatches=1, difference=where, bundle="a.bundle", against="prospector")
    drawn = " ".join(text(train(trained_record(validation=wrong))).split())
    assert "DIFFERS from prospector: step 3, rewards[1]: 0.0 against 1.0" in drawn
    assert "--replay a.bundle" in drawn
