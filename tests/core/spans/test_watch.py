"""Who watches is told of every boundary, before the clock is read, by both engines alike."""

from threading import Thread

import pytest


class Told:
    def __init__(self):
        self.of = []

    def open(self, name):
        self.of.append(("open", name))

    def close(self, name):
        self.of.append(("close", name))

    def mark(self, name):
        self.of.append(("mark", name))

    def start(self):
        self.of.append(("start",))


@pytest.fixture
def told(spans):
    watcher = Told()
    spans.watch(watcher)
    yield watcher.of
    spans.watch(None)


def test_every_boundary_is_told(spans, told):
    @spans.span("work")
    def work():
        spans.mark("part")

    work()
    marks = spans.Marks(["a", "b"])
    with spans.span("outer"):
        marks.start()
        marks.mark(1)
    assert told == [
        ("open", "work"),
        ("mark", "part"),
        ("close", "work"),
        ("open", "outer"),
        ("start",),
        ("mark", "b"),
        ("close", "outer"),
    ]
    assert spans.calls() == {"work": 1, "work/part": 1, "outer": 1, "outer/b": 1}


def test_nobody_is_told_any_more(spans, told):
    spans.watch(None)
    with spans.span("a"):
        spans.mark("b")
    assert told == []


def test_an_error_of_the_watcher_passes_and_the_span_is_closed(spans):
    class Broken(Told):
        def close(self, name):
            raise RuntimeError("lost")

    spans.watch(Broken())
    with pytest.raises(RuntimeError, match="lost"), spans.span("a"):
        pass
    spans.watch(None)
    assert spans.opened() == ()


def test_a_thread_reads_its_own_tree_and_what_it_is_in(spans):
    def other():
        with spans.span("other"):
            pass

    with spans.span("here"), spans.span("inner"):
        thread = Thread(target=other)
        thread.start()
        thread.join()
        assert spans.opened() == ("here", "inner")
        assert [row.path for row in spans.tree_here()] == ["here"]
        assert {row.path for row in spans.tree()} == {"here", "other"}
    assert spans.opened() == ()
