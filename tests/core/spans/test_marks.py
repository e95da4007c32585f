import sys

import pytest

from hotloop.core.clock import now_ns


def test_marks_charge_the_time_since_the_mark_before(spans, spin):
    marks = spans.Marks(("forward", "step"))
    begin = now_ns()
    with spans.span("round"):
        marks.start()
        spin(300_000)
        marks.mark(0)
        spin(200_000)
        marks.mark(1)
    elapsed = now_ns() - begin
    seen = spans.rows()
    assert spans.calls() == {"round": 1, "round/forward": 1, "round/step": 1}
    assert seen["round/forward"].total_ns >= 300_000
    assert seen["round/step"].total_ns >= 200_000
    assert seen["round/forward"].total_ns + seen["round/step"].total_ns <= elapsed
    spans.assert_adds_up()


def test_marks_need_no_span_around_them(spans):
    marks = spans.Marks(["forward", "step"])
    marks.start()
    for _ in range(5):
        marks.mark(0)
        marks.mark(1)
    assert spans.calls() == {"forward": 5, "step": 5}


def test_a_span_between_two_marks_keeps_its_own_time(spans, spin):
    marks = spans.Marks(("loop",))
    begin = now_ns()
    marks.start()
    with spans.span("inner"):
        spin(300_000)
    marks.mark(0)
    elapsed = now_ns() - begin
    assert spans.rows()["inner"].total_ns + spans.rows()["loop"].total_ns <= elapsed


def test_two_chains_of_marks_share_the_time_between_them(spans, spin):
    one, two = spans.Marks(("one",)), spans.Marks(("two",))
    begin = now_ns()
    one.start()
    two.start()
    spin(300_000)
    one.mark(0)
    two.mark(0)
    elapsed = now_ns() - begin
    assert spans.rows()["one"].total_ns + spans.rows()["two"].total_ns <= elapsed


def test_a_mark_without_a_start_begins_the_chain(spans):
    marks = spans.Marks(("a",))
    marks.mark(0)
    assert spans.calls() == {}
    marks.mark(0)
    assert spans.calls() == {"a": 1}


def test_a_chain_does_not_reach_into_another_span(spans):
    marks = spans.Marks(("a",))
    with spans.span("first"):
        marks.start()
    with spans.span("second"):
        marks.mark(0)
    with spans.span("second"):
        marks.mark(0)
    assert spans.calls() == {"first": 1, "second": 2}
    spans.assert_adds_up()


def test_marks_started_before_enabling_begin_anew(spans):
    marks = spans.Marks(("a",))
    marks.start()
    spans.enable()
    marks.mark(0)
    marks.mark(0)
    assert spans.calls() == {"a": 1}


def test_slots_that_are_not_there_are_refused_on_and_off(spans):
    marks = spans.Marks(("a", "b"))
    for _ in ("on", "off"):
        for slot in (-1, 2):
            with pytest.raises(IndexError, match=f"slot {slot} of 2 marks"):
                marks.mark(slot)
        spans.disable()


def test_marks_that_come_and_go_leave_nothing_behind(spans):
    before = sys.getrefcount(spans.Marks)
    for _ in range(1000):
        marks = spans.Marks(("a", "b"))
        marks.start()
        marks.mark(1)
    assert sys.getrefcount(spans.Marks) - before < 10
    assert spans.calls() == {"b": 1000}


def test_a_mark_by_name_charges_the_time_since_the_span_began_or_the_mark_before(spans, spin):
    with spans.span("round"):
        spin(300_000)
        spans.mark("forward")
        with spans.span("inner"):
            spin(200_000)
        spans.mark("step")
    seen = spans.rows()
    assert spans.calls() == {"round": 1, "round/forward": 1, "round/inner": 1, "round/step": 1}
    assert seen["round/forward"].total_ns >= 300_000
    below = sum(row.total_ns for path, row in seen.items() if path.startswith("round/"))
    assert below <= seen["round"].total_ns, "the inner span's time is not charged to the mark after it too"
    spans.assert_adds_up()


def test_the_first_mark_by_name_outside_any_span_only_begins(spans):
    spans.mark("a")
    assert spans.calls() == {}
    spans.mark("b")
    assert spans.calls() == {"b": 1}


def test_equal_names_are_one_row_whatever_object_they_are(spans):
    with spans.span("round"):
        for name in ("forward", "FORWARD".lower(), str(b"forward", "ascii")):
            spans.mark(name)
    assert spans.calls() == {"round": 1, "round/forward": 3}


@pytest.mark.parametrize(("name", "error"), [("", ValueError), ("a/b", ValueError), (1, TypeError)])
def test_a_mark_by_a_name_that_is_none_is_refused(spans, name, error):
    with spans.span("round"), pytest.raises(error):
        spans.mark(name)


def test_a_mark_by_name_costs_nothing_and_leaves_nothing_where_spans_are_off(spans):
    spans.disable()
    spans.mark("a")
    spans.mark("a")
    assert spans.calls() == {}
