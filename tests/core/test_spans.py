import importlib.util
import sys
import threading
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.clock import now_ns

NATIVE_MODULE = "hotloop.core._spans"


def load(kind: str) -> ModuleType:
    """A copy of hotloop.core.spans on the compiled spans or on the Python ones."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "python":
            patch.setitem(sys.modules, NATIVE_MODULE, None)
        spec = importlib.util.find_spec("hotloop.core.spans")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


COPIES = {kind: load(kind) for kind in ("native", "python")}


@pytest.fixture(params=["native", "python"])
def spans(request):
    module = COPIES[request.param]
    if request.param == "native" and not module.NATIVE:
        pytest.skip("the native module is not built")
    module.enable()
    yield module
    module.start_anew()
    module.disable()


def rows(spans) -> dict[str, object]:
    return {row.path: row for top in spans.tree() for row in top.walk()}


def calls(spans) -> dict[str, int]:
    return {path: row.calls for path, row in rows(spans).items()}


def spin(wanted_ns: int) -> None:
    begin = now_ns()
    while now_ns() - begin < wanted_ns:
        pass


def assert_adds_up(spans) -> None:
    for row in rows(spans).values():
        assert row.total_ns == row.self_ns + sum(child.total_ns for child in row.children)
        assert row.self_ns >= 0


def test_without_the_native_module_python_takes_over():
    assert not COPIES["python"].NATIVE


def test_spans_nest_by_name(spans):
    for _ in range(3):
        with spans.span("train"):
            with spans.span("rollout"):
                pass
            with spans.span("learn"), spans.span("rollout"):
                pass
    assert calls(spans) == {"train": 3, "train/rollout": 3, "train/learn": 3, "train/learn/rollout": 3}
    assert_adds_up(spans)


def test_a_span_lasts_as_long_as_what_it_holds(spans):
    begin = now_ns()
    with spans.span("outer"), spans.span("inner"):
        spin(500_000)
    elapsed = now_ns() - begin
    assert 500_000 <= rows(spans)["outer/inner"].total_ns <= rows(spans)["outer"].total_ns <= elapsed


def test_a_span_may_call_itself(spans):
    def descend(depth: int) -> None:
        with spans.span("level"):
            if depth:
                descend(depth - 1)

    descend(2)
    assert calls(spans) == {"level": 1, "level/level": 1, "level/level/level": 1}


def test_a_span_closes_when_an_error_passes_and_lets_it_pass(spans):
    with pytest.raises(KeyError), spans.span("outer"):
        raise KeyError
    with spans.span("after"):
        pass
    assert calls(spans) == {"outer": 1, "after": 1}


def test_a_decorated_function_is_timed_at_each_call(spans):
    @spans.span("work")
    def work(a, *, b):
        """Add."""
        return a + b

    assert work(1, b=2) == 3
    assert (work.__name__, work.__doc__) == ("work", "Add.")
    assert calls(spans) == {"work": 1}


def test_a_function_decorated_while_off_is_timed_once_on(spans):
    spans.disable()

    @spans.span("work")
    def work():
        pass

    work()
    spans.enable()
    work()
    assert calls(spans) == {"work": 1}


def test_a_function_that_runs_after_it_returns_is_refused(spans):
    def generator():
        yield

    async def coroutine():
        pass

    for function in (generator, coroutine):
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
    assert calls(spans) == {"new": 1}


def test_disabling_stops_the_clock_and_keeps_the_tree(spans):
    with spans.span("outer"):
        spans.disable()
        stopped = spans.tree()
        spin(100_000)
        with spans.span("inner"):
            pass
        assert spans.tree() == stopped
    assert spans.tree() == stopped
    assert calls(spans) == {"outer": 1}


def test_an_open_span_counts_up_to_now(spans):
    with spans.span("outer"):
        with spans.span("inner"):
            spin(100_000)
        first = rows(spans)["outer"].total_ns
        assert_adds_up(spans)
        assert first >= 100_000
        assert rows(spans)["outer"].total_ns > first


def test_marks_charge_the_time_since_the_mark_before(spans):
    marks = spans.Marks(("forward", "step"))
    begin = now_ns()
    with spans.span("round"):
        marks.start()
        spin(300_000)
        marks.mark(0)
        spin(200_000)
        marks.mark(1)
    elapsed = now_ns() - begin
    seen = rows(spans)
    assert calls(spans) == {"round": 1, "round/forward": 1, "round/step": 1}
    assert seen["round/forward"].total_ns >= 300_000
    assert seen["round/step"].total_ns >= 200_000
    assert seen["round/forward"].total_ns + seen["round/step"].total_ns <= elapsed
    assert_adds_up(spans)


def test_marks_need_no_span_around_them(spans):
    marks = spans.Marks(["forward", "step"])
    marks.start()
    for _ in range(5):
        marks.mark(0)
        marks.mark(1)
    assert calls(spans) == {"forward": 5, "step": 5}


def test_a_span_between_two_marks_keeps_its_own_time(spans):
    marks = spans.Marks(("loop",))
    begin = now_ns()
    marks.start()
    with spans.span("inner"):
        spin(300_000)
    marks.mark(0)
    elapsed = now_ns() - begin
    assert rows(spans)["inner"].total_ns + rows(spans)["loop"].total_ns <= elapsed


def test_two_chains_of_marks_share_the_time_between_them(spans):
    one, two = spans.Marks(("one",)), spans.Marks(("two",))
    begin = now_ns()
    one.start()
    two.start()
    spin(300_000)
    one.mark(0)
    two.mark(0)
    elapsed = now_ns() - begin
    assert rows(spans)["one"].total_ns + rows(spans)["two"].total_ns <= elapsed


def test_a_mark_without_a_start_begins_the_chain(spans):
    marks = spans.Marks(("a",))
    marks.mark(0)
    assert calls(spans) == {}
    marks.mark(0)
    assert calls(spans) == {"a": 1}


def test_a_chain_does_not_reach_into_another_span(spans):
    marks = spans.Marks(("a",))
    with spans.span("first"):
        marks.start()
    with spans.span("second"):
        marks.mark(0)
    with spans.span("second"):
        marks.mark(0)
    assert calls(spans) == {"first": 1, "second": 2}
    assert_adds_up(spans)


def test_marks_started_before_enabling_begin_anew(spans):
    marks = spans.Marks(("a",))
    marks.start()
    spans.enable()
    marks.mark(0)
    marks.mark(0)
    assert calls(spans) == {"a": 1}


def test_slots_that_are_not_there_are_refused_on_and_off(spans):
    marks = spans.Marks(("a", "b"))
    for _ in ("on", "off"):
        for slot in (-1, 2):
            with pytest.raises(IndexError, match=f"slot {slot} of 2 marks"):
                marks.mark(slot)
        spans.disable()


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
    assert calls(spans) == {"move": 2}


def test_a_span_left_open_is_closed_with_the_one_around_it(spans):
    forgotten = spans.span("forgotten")
    with spans.span("outer"):
        forgotten.__enter__()
    forgotten.__exit__(None, None, None)
    with spans.span("after"):
        pass
    assert calls(spans) == {"outer": 1, "outer/forgotten": 1, "after": 1}
    assert_adds_up(spans)


def in_threads(count: int, work) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_have_trees_of_their_own_that_are_added_up(spans):
    marks = spans.Marks(("a", "b"))

    def work():
        for _ in range(100):
            with spans.span("outer"), spans.span("inner"):
                marks.start()
                marks.mark(0)
                marks.mark(1)

    with spans.span("main"):
        in_threads(4, work)
    assert calls(spans) == {
        "main": 1,
        "outer": 400,
        "outer/inner": 400,
        "outer/inner/a": 400,
        "outer/inner/b": 400,
    }
    assert_adds_up(spans)


def test_a_tree_read_while_threads_run_adds_up(spans):
    done = threading.Event()
    marks = spans.Marks(("a",))

    def work():
        while not done.is_set():
            with spans.span("outer"):
                marks.start()
                with spans.span("inner"):
                    pass
                marks.mark(0)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        assert_adds_up(spans)
    spans.enable()
    spans.disable()
    done.set()
    for thread in threads:
        thread.join()
    assert_adds_up(spans)


def test_a_child_process_starts_with_an_empty_tree(spans, exit_code_of):
    def child():
        assert spans.enabled()
        assert spans.tree() == ()
        with spans.span("child"):
            pass
        assert calls(spans) == {"child": 1}

    with spans.span("parent"):
        assert exit_code_of(child) == 0
    assert calls(spans) == {"parent": 1}


def test_a_child_process_of_one_that_is_off_is_off(spans, exit_code_of):
    def child():
        assert not spans.enabled()
        assert spans.tree() == ()

    with spans.span("parent"):
        pass
    spans.disable()
    assert exit_code_of(child) == 0
    assert calls(spans) == {"parent": 1}


def test_marks_that_come_and_go_leave_nothing_behind(spans):
    before = sys.getrefcount(spans.Marks)
    for _ in range(1000):
        marks = spans.Marks(("a", "b"))
        marks.start()
        marks.mark(1)
    assert sys.getrefcount(spans.Marks) - before < 10
    assert calls(spans) == {"b": 1000}


class Player:
    """Plays a list of moves on one copy of the spans."""

    def __init__(self, spans) -> None:
        self.spans = spans
        self.marks = [spans.Marks(("m", "a")), spans.Marks(("n",))]

    def play(self, move: tuple) -> None:
        match move:
            case "enter", name:
                self.spans.span(name).__enter__()
            case "exit", name:
                self.spans.span(name).__exit__(None, None, None)
            case "start", which:
                self.marks[which].start()
            case "mark", which, slot:
                self.marks[which].mark(slot)
            case "switch", on:
                (self.spans.enable if on else self.spans.disable)()


names = st.sampled_from("abc")
moves = st.one_of(
    st.tuples(st.just("enter"), names),
    st.tuples(st.just("exit"), names),
    st.tuples(st.just("start"), st.integers(0, 1)),
    st.sampled_from([("mark", 0, 0), ("mark", 0, 1), ("mark", 1, 0)]),
    st.sampled_from([("switch", True), ("switch", False)]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(moves, max_size=60))
def test_native_and_python_spans_agree_on_any_use(played):
    if not COPIES["native"].NATIVE:
        pytest.skip("the native module is not built")
    players = [Player(module) for module in COPIES.values()]
    for player in players:
        player.spans.enable()
    for move in played:
        for player in players:
            player.play(move)
        native, python = (player.spans for player in players)
        assert list(calls(native).items()) == list(calls(python).items())
        assert_adds_up(native)
        assert_adds_up(python)
    for player in players:
        player.spans.start_anew()
        player.spans.disable()
