from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


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
            case "name", name:
                self.spans.mark(name)
            case "switch", on:
                (self.spans.enable if on else self.spans.disable)()
            case "clock", on:
                self.spans.enable(cpu=on)

    def clocked(self) -> dict[str, bool]:
        """Whether the CPU time of each row is known."""
        return {path: row.cpu_ns is not None for path, row in self.spans.rows().items()}


names = st.sampled_from("abc")
moves = st.one_of(
    st.tuples(st.just("enter"), names),
    st.tuples(st.just("exit"), names),
    st.tuples(st.just("start"), st.integers(0, 1)),
    st.sampled_from([("mark", 0, 0), ("mark", 0, 1), ("mark", 1, 0)]),
    st.tuples(st.just("name"), names),
    st.sampled_from([("switch", True), ("switch", False), ("clock", True), ("clock", False)]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(moves, max_size=60))
def test_native_and_python_spans_agree_on_any_use(copies, played):
    if not copies["native"].NATIVE:
        pytest.skip("the native module is not built")
    players = [Player(copy) for copy in copies.values()]
    for player in players:
        player.spans.enable(cpu=True)
    for move in played:
        for player in players:
            player.play(move)
        native, python = (player.spans for player in players)
        assert list(native.calls().items()) == list(python.calls().items())
        assert players[0].clocked() == players[1].clocked()
        native.assert_adds_up()
        python.assert_adds_up()
    for player in players:
        player.spans.start_anew()
        player.spans.disable()


def logged(spans) -> list[str]:
    """The names of what was logged, in its order."""
    places, raw, _ = spans.take()
    return [places[place][2] for place in array("q", raw)[::4]]


@settings(max_examples=100, deadline=None)
@given(st.lists(moves, max_size=40))
def test_native_and_python_spans_log_the_same(copies, played):
    if not copies["native"].NATIVE:
        pytest.skip("the native module is not built")
    seen = []
    for copy in copies.values():
        copy.keep(1_000)
        copy.enable()
        player = Player(copy)
        for move in played:
            player.play(move)
        seen.append(logged(copy))
        copy.keep(0)
        copy.start_anew()
        copy.disable()
    assert seen[0] == seen[1]
