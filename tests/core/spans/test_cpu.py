"""CPU time of spans: what waits is told from what works, by the clock of the thread that it happens in."""

import threading
import time

import pytest

from hotloop.core.time_tree import TimeTree

SLEEP_S = 0.05

TOLERANCE_NS = 1_000_000
"""Between the system's clock of a thread and the clock of the wall."""


@pytest.fixture
def clocked(spans):
    spans.enable(cpu=True)
    return spans


def wait() -> None:
    time.sleep(SLEEP_S)


def work() -> int:
    return sum(range(200_000))


def assert_within_the_wall(row) -> None:
    assert 0 < row.cpu_ns <= row.total_ns + TOLERANCE_NS


def test_a_span_that_sleeps_has_little_cpu_time_and_one_that_computes_has_its_own(clocked):
    with clocked.span("sleep"):
        wait()
    with clocked.span("compute"):
        work()
    rows = clocked.rows()
    assert rows["sleep"].cpu_ns < SLEEP_S * 1e9 / 2 <= rows["sleep"].total_ns
    assert_within_the_wall(rows["compute"])


def test_a_row_has_what_its_children_have_and_its_own(clocked):
    with clocked.span("outer"):
        work()
        with clocked.span("sleep"):
            wait()
        with clocked.span("compute"):
            work()
    rows = clocked.rows()
    outer, below = rows["outer"], [rows["outer/sleep"], rows["outer/compute"]]
    assert outer.self_cpu_ns == outer.cpu_ns - sum(row.cpu_ns for row in below)
    assert outer.self_cpu_ns > 0
    assert_within_the_wall(outer)
    assert rows["outer/compute"].self_cpu_ns == rows["outer/compute"].cpu_ns


def test_a_mark_reads_no_thread_clock_and_a_row_of_both_has_none(clocked):
    with clocked.span("outer"):
        work()
        clocked.mark("forward")
        with clocked.span("forward"):
            work()
        with clocked.span("step"):
            work()
    rows = clocked.rows()
    assert rows["outer/forward"].calls == 2
    assert rows["outer/forward"].cpu_ns is None
    assert rows["outer"].self_cpu_ns is None
    assert_within_the_wall(rows["outer/step"])
    assert_within_the_wall(rows["outer"])


def test_marks_by_number_have_none_either(clocked):
    marks = clocked.Marks(("a",))
    with clocked.span("outer"):
        marks.start()
        marks.mark(0)
    assert clocked.rows()["outer/a"].cpu_ns is None


def test_a_span_in_a_thread_reads_that_threads_clock(clocked):
    def sleep() -> None:
        with clocked.span("elsewhere"):
            wait()

    thread = threading.Thread(target=sleep)
    thread.start()
    with clocked.span("here"):
        while thread.is_alive():
            work()
    thread.join()
    assert clocked.rows()["elsewhere"].cpu_ns < SLEEP_S * 1e9 / 2
    assert_within_the_wall(clocked.rows()["here"])


def test_only_its_own_thread_knows_the_cpu_time_of_a_span_that_is_open(clocked):
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with clocked.span("there"):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait()
    with clocked.span("here"):
        work()
        rows = clocked.rows()
    assert rows["there"].cpu_ns is None
    assert_within_the_wall(rows["here"])
    leave.set()
    thread.join()
    assert_within_the_wall(clocked.rows()["there"])


def test_spans_that_are_open_when_the_clock_stops_end_there(clocked):
    with clocked.span("outer"):
        work()
        clocked.disable()
        before = clocked.rows()["outer"]
        work()
    after = clocked.rows()["outer"]
    assert (after.cpu_ns, after.total_ns) == (before.cpu_ns, before.total_ns)
    assert_within_the_wall(after)


def test_who_closes_a_span_after_another_thread_stopped_the_clock_has_no_cpu_time(clocked):
    with clocked.span("outer"):
        thread = threading.Thread(target=clocked.disable)
        thread.start()
        thread.join()
    assert clocked.rows()["outer"].cpu_ns is None


def test_unless_it_is_asked_for_no_thread_clock_is_read(spans):
    with spans.span("outer"):
        work()
    assert not spans.clocked()
    assert spans.rows()["outer"].cpu_ns is None
    assert "CPU" not in spans.text()


def test_a_child_process_reads_its_clocks_as_its_parent_does(clocked, exit_code_of):
    def child() -> None:
        with clocked.span("child"):
            work()
        assert_within_the_wall(clocked.rows()["child"])

    assert exit_code_of(child) == 0


def test_text_says_how_much_of_each_row_was_worked(spans):
    row = TimeTree
    waits = row(path="all/fetch", calls=1, total_ns=6_000_000, cpu_ns=60_000, children=())
    whole = row(path="all", calls=1, total_ns=10_000_000, cpu_ns=4_060_000, children=(waits,))
    ends = [line.split()[-2:] for line in spans.text([whole]).splitlines()]
    assert ends == [["41%", "CPU"], ["1%", "CPU"], ["100%", "CPU"]]
