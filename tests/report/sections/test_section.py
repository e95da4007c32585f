from hotloop.report.section import (
    Branch,
    Curve,
    Facts,
    Span,
    Tree,
    facts,
    number_columns,
    spans_of,
    text_columns,
    text_of,
)


def test_a_line_is_a_string_a_span_or_several_of_both() -> None:
    good = Span("good", "good")
    assert spans_of("plain") == (Span("plain"),)
    assert spans_of(good) == (good,)
    assert spans_of(("so ", good)) == (Span("so "), good)
    assert text_of(("so ", good)) == "so good"


def test_facts_that_are_empty_are_left_out() -> None:
    curve = Curve(values=(1.0,))
    assert facts(("a", ""), ("b", "one"), ("c", ()), ("d", curve)) == Facts(rows=(("b", "one"), ("d", curve)))


def test_a_tree_has_bars_where_a_branch_has_a_share() -> None:
    bare = Branch(name="a", values=())
    assert not Tree(title="t", columns=(), branches=(bare,)).has_bars
    assert Tree(title="t", columns=(), branches=(bare, Branch(name="b", values=(), share=0.0))).has_bars


def test_numbers_are_never_broken() -> None:
    assert [(column.kind, column.whole) for column in number_columns("a")] == [("number", True)]
    assert [(column.kind, column.whole) for column in text_columns("a")] == [("text", False)]
