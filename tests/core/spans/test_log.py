"""What spans log one by one, native and in Python alike."""

import gc
import os
import resource
import subprocess
import sys
from array import array
from contextlib import contextmanager
from threading import Thread

import pytest

Row = tuple[str, int, int, int]


@pytest.fixture(autouse=True)
def log(spans):
    """A log with room for all that these tests do, gone afterwards."""
    spans.keep(10_000)
    yield
    spans.keep(0)


def paths_of(places: list[tuple[int, int, str]]) -> list[str]:
    paths: list[str] = []
    for _, parent, name in places:
        paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
    return paths


def rows_of(taken: tuple) -> list[Row]:
    """Path, begin, end, own of each."""
    places, raw, _ = taken
    numbers, paths = array("q", raw).tolist(), paths_of(places)
    rows = zip(*(numbers[column::4] for column in range(4)), strict=True)
    beside = {-1: "lap", -2: "off the core"}
    return [(paths[place] if place >= 0 else beside[place], *times) for place, *times in rows]


def test_each_span_is_logged_when_it_ends(spans):
    with spans.span("a"):
        with spans.span("b"):
            pass
        with spans.span("b"):
            pass
    rows = rows_of(spans.take())
    assert [path for path, *_ in rows] == ["a/b", "a/b", "a"]
    first, second, around = rows
    assert around[1] <= first[1] <= first[2] <= second[1] <= second[2] <= around[2]
    assert all(own == end - begin for _, begin, end, own in rows)


def test_a_mark_is_logged_from_the_last_one_on_and_owns_what_no_span_took(spans):
    with spans.span("a"):
        spans.mark("m")
        with spans.span("b"):
            pass
        spans.mark("n")
    m, b, n, a = rows_of(spans.take())
    assert [each[0] for each in (m, b, n, a)] == ["a/m", "a/b", "a/n", "a"]
    assert (m[1], n[1]) == (a[1], m[2])
    assert n[3] == n[2] - n[1] - b[3]


def test_marks_by_number_are_logged_too(spans):
    marks = spans.Marks(("x", "y"))
    with spans.span("a"):
        marks.start()
        marks.mark(0)
        marks.mark(1)
    x, y, a = rows_of(spans.take())
    assert [x[0], y[0], a[0]] == ["a/x", "a/y", "a"]
    assert y[1] == x[2]


def test_laps_are_back_to_back_and_carry_their_number(spans):
    for number in (5, 6, 8):
        spans.lap(number)
    first, second = (row for row in rows_of(spans.take()) if row[0] == "lap")
    assert (first[0], first[3], second[3]) == ("lap", 6, 8)
    assert first[2] == second[1]


def test_enabling_begins_the_laps_anew(spans):
    spans.lap(1)
    spans.enable()
    spans.lap(2)
    assert rows_of(spans.take()) == []


@contextmanager
def one_core_for_two():
    """Somebody else on the core of this thread, who never rests."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()
        os.sched_setaffinity(0, before)


def times_put_off() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


@pytest.mark.parametrize("by", ["lap", "glance"])
def test_a_stretch_in_which_the_core_was_lost_is_logged_with_how_often(spans, by):
    look = {"lap": lambda: spans.lap(0), "glance": spans.glance}[by]
    with one_core_for_two():
        look()
        before = times_put_off()
        while times_put_off() < before + 3:
            os.sched_yield()
        look()
    *_, last = array_rows(spans.take())
    assert (last[0], last[3] >= 3) == (-2, True)


def array_rows(taken: tuple) -> list[list[int]]:
    numbers = array("q", taken[1]).tolist()
    return [numbers[at : at + 4] for at in range(0, len(numbers), 4)]


def test_what_has_no_room_is_counted(spans):
    spans.keep(2)
    for _ in range(5):
        with spans.span("a"):
            pass
    _, raw, missed = spans.take()
    assert (len(raw), missed) == (2 * 4 * 8, 3)
    assert spans.calls() == {"a": 5}


def test_without_a_log_nothing_is_kept_or_missed(spans):
    spans.keep(0)
    with spans.span("a"):
        spans.mark("m")
    spans.lap(1)
    spans.lap(2)
    assert spans.take()[1:] == (b"", 0)


def test_taking_and_enabling_empty_the_log(spans):
    with spans.span("a"):
        pass
    spans.enable()
    with spans.span("b"):
        pass
    assert [row[0] for row in rows_of(spans.take())] == ["b"]
    assert rows_of(spans.take()) == []


def test_a_log_of_less_than_nothing_is_refused(spans):
    with pytest.raises(ValueError, match="a log of -1 events"):
        spans.keep(-1)


def test_off_logs_nothing(spans):
    spans.disable()
    with spans.span("a"):
        spans.lap(1)
        spans.lap(2)
    assert rows_of(spans.take()) == []


def test_places_name_their_thread(spans):
    def work() -> None:
        with spans.span("there"):
            pass

    with spans.span("here"):
        pass
    thread = Thread(target=work)
    thread.start()
    thread.join()
    places, _, _ = spans.take()
    assert {(thread, name) for thread, _, name in places} == {(0, "here"), (1, "there")}


def test_moments_go_forward_on_both_clocks(spans):
    first, second = spans.moment(), spans.moment()
    assert first[0] <= second[0]
    assert first[1] <= second[1]


def test_the_collector_may_open_a_span_while_the_log_is_taken(spans):
    region = spans.span("collector")

    def note(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            region.__enter__()
        else:
            region.__exit__(None, None, None)

    for number in range(300):
        with spans.span(f"n{number}"):
            pass
    gc.callbacks.append(note)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        rows = rows_of(spans.take())
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert {f"n{number}" for number in range(300)} <= {row[0] for row in rows}


def test_what_a_mark_costs_is_more_than_nothing(spans):
    assert spans.mark_cost_ns() > 0
    assert not spans.enabled()
