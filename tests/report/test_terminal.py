import pytest
from rich.text import Text
from support.drawn import lines, seen, text

from hotloop.report.section import (
    Branch,
    Column,
    Curve,
    Drawing,
    Facts,
    Heading,
    Lines,
    Note,
    Picture,
    Section,
    Span,
    Table,
    Tree,
)
from hotloop.report.terminal import BAR_CELLS, bar, line

NUMBER = Column(name="n", kind="number")


def styles(drawn: Text) -> list[tuple[str, str]]:
    """Each stretch of text with its style."""
    return [(drawn.plain[span.start : span.end], str(span.style)) for span in drawn.spans if span.style]


def test_meanings_become_colours() -> None:
    words = ("so ", Span("g", "good"), Span("w", "warn"), Span("b", "bad", strong=True), Span("d", "dim"))
    drawn = line((*words, Span("s", strong=True)))
    assert drawn.plain == "so gwbds"
    assert styles(drawn) == [("g", "green"), ("w", "yellow"), ("b", "bold red"), ("d", "dim"), ("s", "bold")]


def test_a_heading_that_stands_apart_has_a_blank_line_before_it() -> None:
    said = (Note(words="before"), Heading(words="close"), Heading(words="apart", apart=True))
    assert text(said).splitlines() == ["before", "close", "", "apart"]


def test_lines_keep_their_indent() -> None:
    assert text((Lines(lines=("  one", "two")),)).splitlines() == ["  one", "two"]


def test_facts_stand_in_line() -> None:
    drawn = text((Facts(rows=(("a", "one"), ("machine", Curve(values=(1.0, 2.0))))),)).splitlines()
    assert [row.rstrip() for row in drawn] == [
        "a           one",
        "machine     2 at the end, 1 at the beginning  ▁█",
    ]


def test_numbers_are_flush_right_and_never_broken() -> None:
    columns = (Column(name="name"), NUMBER)
    table = Table(columns=columns, rows=(("x" * 30, "1,000,000"), ("a [bold] name", "2"), ("short",)))
    drawn = text((table,), width=24)
    rows = [row.rstrip() for row in drawn.splitlines()]
    assert {len(row) for row in rows if row.endswith((" 1,000,000", " 2"))} == {23}
    assert sum(row.endswith((" 1,000,000", " 2")) for row in rows) == 2
    assert "[bold]" in drawn


def test_a_part_of_a_table_ends_with_a_blank_line() -> None:
    table = Table(columns=(NUMBER,), rows=(("1",), ("2",), ("3",)), ends=(0,))
    assert [row.strip() for row in text((table,)).splitlines()][3:7] == ["1", "", "2", "3"]


def test_a_wide_column_is_cut_where_it_says_so() -> None:
    table = Table(columns=(Column(name="code", kind="code", whole=True, width=10),), rows=(("x" * 30,),))
    assert "x" * 9 + "…" in text((table,))


def test_a_tree_is_indented_with_bars_and_marks() -> None:
    branches = (
        Branch(name="wall", values=("10",), strong=True),
        Branch(name="step", depth=1, values=("5",), share=0.5, mark=Span("here", "warn")),
    )
    drawn = text((Tree(title="where", columns=("ms",), branches=branches),))
    assert "   step" in drawn
    assert lines((Tree(title="where", columns=("ms",), branches=branches),))[-1] == f"step 5 {bar(0.5)} here"


def test_a_tree_without_shares_has_no_bars() -> None:
    tree = Tree(title="where", columns=("then",), branches=(Branch(name="wall", values=("10",)),))
    assert lines((tree,))[-1] == "wall 10"


def test_a_curve_is_a_line_of_blocks() -> None:
    assert text((Curve(values=(0.0, 7.0)),)) == "7 at the end, 0 at the beginning  ▁█\n"


def test_a_picture_is_left_out_or_said_in_words() -> None:
    assert text((Picture(svg="<svg/>"),)) == ""
    assert text((Picture(svg="<svg/>", instead=(Note(words="a map"),)),)) == "a map\n"


def test_a_drawing_of_letters_keeps_its_places() -> None:
    assert text((Drawing(lines=("a  b", "  c")),)) == "a  b\n  c\n"


SPEEDS = Table(
    columns=(
        Column(name="target"),
        Column(name="speed", kind="number"),
        Column(name="spread", kind="number", wide=True),
        Column(name="more", kind="number", wide=True),
    ),
    rows=(("grid/toy", "14.1 M", "1.2% excellent", "707 k"), ("grid/arena",)),
)


def test_a_narrow_screen_leaves_out_wide_columns_the_first_one_first_and_says_so() -> None:
    assert seen((SPEEDS,), 60)[-2].split() == ["grid/toy", "14.1", "M", "1.2%", "excellent", "707", "k"]
    assert seen((SPEEDS,), 36)[-3:] == [
        " grid/toy     14.1 M   707 k",
        " grid/arena",
        "no room in 36 columns for spread",
    ]
    narrow = seen((SPEEDS,), 24)
    assert narrow[-4] == " grid/toy     14.1 M"
    assert " ".join(narrow[-2:]) == "no room in 24 columns for spread, more"


def test_a_file_has_all_columns_whatever_its_width() -> None:
    assert "excellent" in text((SPEEDS,), width=60)
    assert "no room" not in text((SPEEDS,), width=24)


def test_bars_are_as_long_as_a_screen_has_room_for_and_names_stay_whole() -> None:
    branches = (
        Branch(name="Python and binding", values=("0.050",), share=1.0),
        Branch(name="actions", values=("0.020",), share=0.5, mark="largest"),
    )
    tree = Tree(title="phase", columns=("µs/env-step",), branches=branches)
    wide, narrow = seen((tree,), 80), seen((tree,), 52)
    assert wide[-2:] == [
        f" Python and binding         0.050   {bar(1.0)}",
        f" actions                    0.020   {bar(0.5)} largest",
    ]
    assert narrow[-2:] == [
        f" Python and binding         0.050   {'█' * 14}",
        f" actions                    0.020   {'█' * 7} largest",
    ]


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, ""), (0.5, "█" * (BAR_CELLS // 2)), (1.0, "█" * BAR_CELLS), (1 / BAR_CELLS / 2, "▌")],
)
def test_a_bar_is_as_long_as_its_share(share: float, shown: str) -> None:
    assert bar(share) == shown
    assert bar(-0.1) == ""


EVIL = "a \x1b[31mred\x07 [bold]name[/bold]"


@pytest.mark.parametrize(
    "section",
    [
        Note(words=EVIL),
        Lines(lines=(EVIL,)),
        Facts(rows=((EVIL, "value"),)),
        Table(columns=(Column(name="a"),), rows=((EVIL,),)),
        Tree(title="where", columns=("n",), branches=(Branch(name=EVIL, values=("1",)),)),
    ],
)
def test_what_a_terminal_would_obey_is_only_shown(section: Section) -> None:
    assert "a ?[31mred? [bold]name[/bold]" in text((section,))


def test_a_name_that_is_longer_than_its_column_is_folded_and_never_cut() -> None:
    name = "/home/somebody/projects/simulator/environments/warehouse.py:make"
    columns = (Column(name="target"), *(Column(name=f"n{each}", kind="number") for each in range(3)))
    drawn = seen((Table(columns=columns, rows=((name, "1" * 12, "2" * 12, "3" * 12),)),), width=70)
    assert "".join(row.split()[0] for row in drawn[2:]) == name
