from hotloop.report.markdown import draw, draw_page
from hotloop.report.section import (
    Branch,
    Chapter,
    Column,
    Curve,
    Drawing,
    Facts,
    Heading,
    Lines,
    Note,
    Page,
    Picture,
    Section,
    Span,
    Table,
    Tree,
)


def drawn(*sections: Section) -> list[str]:
    return draw(sections).splitlines()


def test_a_page_has_its_title_and_its_chapters_with_blank_lines_between() -> None:
    chapters = (
        Chapter(title="One", sections=(Note(words="a"), Note(words="b"))),
        Chapter(title="Two", sections=(Facts(rows=()), Note(words="c"))),
    )
    page = draw_page(Page(title="T", when="now", chapters=chapters))
    assert page == "# T, now\n\n## One\n\na\n\nb\n\n## Two\n\nc\n"


def test_a_heading_says_its_level_and_nothing_in_bold() -> None:
    assert drawn(Heading(words=Span("x", strong=True))) == ["### x"]


def test_what_is_strong_is_bold_and_code_is_code() -> None:
    words = ("a ", Span("b", "good", strong=True), " ", Span("c=<d>", code=True))
    assert drawn(Note(words=words)) == ["a **b** `c=<d>`"]


def test_lines_are_a_list_and_facts_one_with_names() -> None:
    assert drawn(Lines(lines=("  one", "two"))) == ["- one", "- two"]
    assert drawn(Facts(rows=(("a", "one"), ("b", Curve(values=(1.0, 2.0)))))) == [
        "- **a**: one",
        "- **b**: 2 at the end, 1 at the beginning  ▁█",
    ]


def test_cells_may_hold_a_bar() -> None:
    assert drawn(Table(columns=(Column(name="a"),), rows=(("x|y",),)))[-1] == r"| x\|y |"


def test_a_short_row_is_filled_and_a_table_without_rows_says_none() -> None:
    columns = (Column(name="a"), Column(name="b", kind="number"))
    assert drawn(Table(columns=columns, rows=(("x",),))) == ["| a | b |", "| --- | --- |", "| x |  |"]
    assert drawn(Table(columns=columns, rows=())) == ["None."]


def test_code_keeps_its_indent() -> None:
    table = Table(columns=(Column(name="code", kind="code"),), rows=(("  x = 1",), ("",)))
    assert drawn(table)[-2:] == ["| `\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}x = 1` |", "|  |"]


def test_a_tree_is_a_table_with_an_indent_and_its_sums_in_bold() -> None:
    branches = (
        Branch(name="wall", values=("10",), strong=True),
        Branch(name="step", depth=1, values=("5",), share=0.5),
    )
    assert drawn(Tree(title="where", columns=("ms",), branches=branches)) == [
        "| where | ms |",
        "| --- | --- |",
        "| **wall** | 10 |",
        "| &nbsp;&nbsp;&nbsp;&nbsp;step | 5 |",
    ]


def test_the_mark_of_a_branch_has_a_column() -> None:
    branches = (Branch(name="a", values=("1",), mark="here"), Branch(name="b", values=("2",)))
    tree = Tree(title="where", columns=("ms",), branches=branches)
    assert drawn(tree)[2:] == ["| a | 1 | here |", "| b | 2 |  |"]


def test_a_curve_is_words_and_a_picture_is_left_out() -> None:
    said = drawn(Curve(values=(0.0, 7.0)), Picture(svg="<svg/>"))
    assert said == ["7 at the end, 0 at the beginning  ▁█"]
    assert drawn(Picture(svg="<svg/>", instead=(Note(words="a map"),))) == ["a map"]


def test_a_drawing_of_letters_keeps_its_places() -> None:
    assert drawn(Drawing(lines=("a  b", "  c"))) == ["```text", "a  b", "  c", "```"]
