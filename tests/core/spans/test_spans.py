import gc
import mmap
import re

import pytest

import hotloop
from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.spans import monitor
from hotloop.core.time_tree import TimeTree


def test_without_the_native_module_python_takes_over(copies):
    assert not copies["python"].NATIVE


def test_spans_nest_by_name(spans):
    for _ in range(3):
        with spans.span("train"):
            with spans.span("rollout"):
                pass
            with spans.span("learn"), spans.span("rollout"):
                pass
    assert spans.calls() == {"train": 3, "train/rollout": 3, "train/learn": 3, "train/learn/rollout": 3}
    spans.assert_adds_up()


def test_a_span_lasts_as_long_as_what_it_holds(spans, spin):
    begin = now_ns()
    with spans.span("outer"), spans.span("inner"):
        spin(500_000)
    elapsed = now_ns() - begin
    assert 500_000 <= spans.rows()["outer/inner"].total_ns <= spans.rows()["outer"].total_ns <= elapsed


def test_a_span_may_call_itself(spans):
    def descend(depth: int) -> None:
        with spans.span("level"):
            if depth:
                descend(depth - 1)

    descend(2)
    assert spans.calls() == {"level": 1, "level/level": 1, "level/level/level": 1}


def test_a_span_closes_when_an_error_passes_and_lets_it_pass(spans):
    with pytest.raises(KeyError), spans.span("outer"):
        raise KeyError
    with spans.span("after"):
        pass
    assert spans.calls() == {"outer": 1, "after": 1}


def test_a_decorated_function_is_timed_at_each_call(spans):
    @spans.span("work")
    def work(a, *, b):
        """Add."""
        return a + b

    assert work(1, b=2) == 3
    assert (work.__name__, work.__doc__) == ("work", "Add.")
    assert spans.calls() == {"work": 1}


def test_a_function_decorated_while_off_is_timed_once_on(spans):
    spans.disable()

    @spans.span("work")
    def work():
        pass

    work()
    spans.enable()
    work()
    assert spans.calls() == {"work": 1}


def test_a_function_that_runs_after_it_returns_is_refused(spans):
    def generator():
        yield

    async def coroutine():
        pass

    async def async_generator():
        yield

    for function in (generator, coroutine, async_generator):
        with pytest.raises(TypeError, match="put the span inside it"):
            spans.span("x")(function)


def test_off_is_one_shared_object_a_name_that_does_nothing(spans):
    spans.disable()
    spans.start_anew()
    assert spans.span("x") is spans.span("x")
    marks = spans.Marks(("a",))
    with spans.span("x"):
        marks.start()
        marks.mark(0)
    assert not spans.enabled()
    assert spans.tree() == ()


def test_enabling_starts_from_nothing_and_leaves_out_what_is_open(spans):
    with spans.span("old"):
        with spans.span("older"):
            pass
        spans.enable()
        with spans.span("new"):
            pass
    assert spans.calls() == {"new": 1}


def test_disabling_stops_the_clock_and_keeps_the_tree(spans, spin):
    with spans.span("outer"):
        spans.disable()
        stopped = spans.tree()
        spin(100_000)
        with spans.span("inner"):
            pass
        assert spans.tree() == stopped
    assert spans.tree() == stopped
    assert spans.calls() == {"outer": 1}


def test_an_open_span_counts_up_to_now(spans, spin):
    with spans.span("outer"):
        with spans.span("inner"):
            spin(100_000)
        first = spans.rows()["outer"].total_ns
        spans.assert_adds_up()
        assert first >= 100_000
        assert spans.rows()["outer"].total_ns > first


def test_names_that_would_not_fit_a_path_are_refused(spans):
    for name in ("", "a/b"):
        with pytest.raises(ValueError, match="not empty and has no '/'"):
            spans.span(name)
        with pytest.raises(ValueError, match="not empty and has no '/'"):
            spans.Marks((name,))


def test_names_that_are_no_text_are_refused(spans):
    with pytest.raises(TypeError, match="a span is named by a str"):
        spans.span(3)
    with pytest.raises(TypeError, match="a span is named by a str"):
        spans.Marks((3,))
    with pytest.raises(TypeError, match="a sequence of str"):
        spans.Marks("forward")


def test_regions_and_marks_know_their_names(spans):
    assert spans.span("x").name == "x"
    assert spans.Marks(["a", "b"]).names == ("a", "b")


def test_equal_names_are_one_span_however_they_are_made(spans):
    for name in ("move", b"move".decode()):
        with spans.span(name):
            pass
    assert spans.calls() == {"move": 2}


def test_a_span_left_open_is_closed_with_the_one_around_it(spans):
    forgotten = spans.span("forgotten")
    with spans.span("outer"):
        forgotten.__enter__()
    forgotten.__exit__(None, None, None)
    with spans.span("after"):
        pass
    assert spans.calls() == {"outer": 1, "outer/forgotten": 1, "after": 1}
    spans.assert_adds_up()


def test_the_tree_reads_as_text_with_shares_of_the_row_above(spans):
    row = TimeTree
    inner = row(path="learn/forward", calls=10, total_ns=750_000, children=())
    outer = row(path="learn", calls=1, total_ns=1_000_000, children=(inner,))
    lines = [line.split() for line in spans.text([outer]).splitlines()]
    assert lines == [
        ["learn", "1.000", "ms", "100.0%", "1", "x", "1,000.0", "µs", "1,000/s"],
        ["forward", "0.750", "ms", "75.0%", "10", "x", "75.0", "µs", "10,000/s"],
        ["self", "0.250", "ms", "25.0%"],
    ]
    slow = row(path="wait", calls=3, total_ns=2_000_000_000, children=())
    assert spans.text([slow]).split()[-1] == "1.5/s"
    assert all(len(line) <= 80 for line in spans.text([outer]).splitlines())


def test_it_prints_duration_cpu_and_memory_to_stderr(capsys, spin):
    gc.collect()
    with monitor("load") as seen:
        block = mmap.mmap(-1, 256 << 20)  # no memory that other tests have freed
        for page in range(0, len(block), mmap.PAGESIZE):
            block[page] = 1
        spin(2_000_000)
    printed = capsys.readouterr()
    assert printed.out == ""
    line = r"load: \d+\.\d{3} s, CPU \d+\.\d{3} s \(\d+% of a core\), memory [\d.]+ MiB \([+-][\d.]+\)\n"
    assert re.fullmatch(line, printed.err), printed.err
    assert len(block) == 256 << 20
    assert seen.wall_ns >= 2_000_000
    assert 0 < seen.cpu_ns
    assert seen.rss_bytes > seen.rss_change_bytes > 128 << 20


def test_it_prints_and_lets_the_error_through_where_the_block_fails(capsys):
    with pytest.raises(KeyError), monitor("load"):
        raise KeyError
    assert capsys.readouterr().err.startswith("load: ")


def test_it_is_a_span_where_spans_are_enabled(capsys):
    spans.enable()
    with monitor("load"), spans.span("inner"):
        pass
    rows = [row.path for top in spans.tree() for row in top.walk()]
    spans.start_anew()
    spans.disable()
    assert rows == ["load", "load/inner"]
    assert capsys.readouterr().err


def test_the_package_offers_all_of_it():
    assert hotloop.monitor is monitor
    assert hotloop.mark is spans.mark
    assert hotloop.span is spans.span
    assert hotloop.spans is spans
