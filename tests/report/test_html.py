import re
from dataclasses import replace
from html.parser import HTMLParser

from support.records import PROFILE

from hotloop.core.record import Resources
from hotloop.core.record.profile import Finding, Table
from hotloop.judge.baselines import with_previous
from hotloop.report import shapes
from hotloop.report.html import draw, draw_page
from hotloop.report.kinds.profile import page as page_of
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
    Tree,
)
from hotloop.report.section import Table as Drawn

PICTURES = {"cprofile": shapes.draw_flames({(("slow<T>", "/a/env.py", 3),): 1.0}, "flames")}
FOUND = Finding(
    probe="cprofile",
    facts={"wall_ns": 2_000},
    tables=(
        Table(title="Functions", columns=("function", "calls"), rows=(("<built-in f>", 1_000),)),
        Table(title="Nothing", columns=("site",), rows=()),
    ),
    files=("cprofile.pstats",),
)
FULL = replace(PROFILE, findings=(FOUND,), resources=Resources(rss_peak_bytes=1 << 20, cpu_share=1.0))


class Balance(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_but_itself() -> None:
    page = draw_page(page_of(FULL, PICTURES))
    checker = Balance()
    checker.feed(page)
    assert checker.open == []
    assert set(re.findall(r"https?://[^\"' <]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "src=" not in page


def test_it_has_the_profile_the_probes_and_their_flames() -> None:
    page = draw_page(page_of(FULL, PICTURES))
    headings = re.findall(r"<h[123]>(.+?)</h[123]>", page)
    assert headings == [
        *("Profile of grid/toy", "Configuration", "Results", "Resources", "Time Breakdown"),
        *("cprofile", "Functions", "Nothing", "Notes"),
    ]
    assert "<svg" in page
    assert "slow&lt;T&gt;" in page
    assert '<td class="code">&lt;built-in f&gt;</td><td class="number">1,000</td>' in page
    assert "<dt>wall</dt><dd>2.00 µs</dd>" in page
    assert ".cprofile.pstats" in page


def test_the_bars_are_those_of_the_breakdown() -> None:
    page = draw_page(page_of(PROFILE))
    assert '<td class="number">64.0%</td><td><span class="bar" style="width:192.0px">' in page
    assert page.count('class="bar"') == 7


def test_the_previous_profile_is_there_where_there_is_one() -> None:
    assert "Previous Profile" not in draw_page(page_of(PROFILE))
    assert "<h2>Previous Profile</h2>" in draw_page(page_of(with_previous(PROFILE, PROFILE)))


def test_names_of_strangers_are_escaped() -> None:
    page = draw_page(page_of(replace(PROFILE, target=replace(PROFILE.target, name="<script>x"))))
    assert "<script>x" not in page


def drawn(*sections: Section) -> str:
    page = draw(sections)
    checker = Balance()
    checker.feed(page)
    assert checker.open == []
    return page


def test_meanings_become_classes_and_all_text_is_escaped() -> None:
    words = ("<", Span("b>", "bad", strong=True), Span("x<y", code=True))
    assert drawn(Note(words=words)) == '<p>&lt;<span class="bad strong">b&gt;</span><code>x&lt;y</code></p>'
    assert drawn(Heading(words=Span("a & b", strong=True))) == "<h3>a &amp; b</h3>"
    assert drawn(Lines(lines=("<i>",))) == "<ul><li>&lt;i&gt;</li></ul>"
    assert drawn(Facts(rows=(("<a>", "<b>"),))) == "<dl><dt>&lt;a&gt;</dt><dd>&lt;b&gt;</dd></dl>"


def test_cells_have_the_class_of_their_column_and_an_empty_table_says_none() -> None:
    columns = (Column(name="<f>", kind="code"), Column(name="n", kind="number"), Column(name="t"))
    page = drawn(Drawn(columns=columns, rows=(("<f>", "1", "x"), ("short",))))
    assert '<th class="code">&lt;f&gt;</th><th class="number">n</th><th class="">t</th>' in page
    assert '<td class="code">&lt;f&gt;</td><td class="number">1</td><td class="">x</td>' in page
    assert drawn(Drawn(columns=columns, rows=())) == "<p>None.</p>"


def test_a_tree_is_indented_with_bars_and_marks() -> None:
    branches = (
        Branch(name="<wall>", values=("10",), strong=True),
        Branch(name="step", depth=1, values=("5",), share=0.5, mark="<here>"),
    )
    page = drawn(Tree(title="where", columns=("ms",), branches=branches))
    assert '<tr class="sum"><td style="padding-left:0px">&lt;wall&gt;</td>' in page
    assert '<td style="padding-left:18px">step</td><td class="number">5</td>' in page
    assert 'style="width:150.0px"></span> &lt;here&gt;</td>' in page


def test_a_curve_is_a_line_from_the_lowest_to_the_highest() -> None:
    page = drawn(Curve(values=(1.0, 3.0, 2.0)))
    assert "2 at the end, 1 at the beginning" in page
    assert 'points="0.0,26.0 120.0,2.0 240.0,14.0"' in page
    assert 'points="0.0,26.0"' in drawn(Facts(rows=(("a", Curve(values=(1.0,))),)))


def test_summaries_stand_side_by_side_at_the_top_and_a_page_may_have_none() -> None:
    rest = Chapter(title="Rest", sections=(Note(words="r"),))
    one, two = (Chapter(title=name, sections=(), summary=True) for name in ("One", "Two"))
    page = draw_page(Page(title="T", when="now", chapters=(rest, one, two)))
    assert re.findall(r"<h2>(.+?)</h2>", page) == ["One", "Two", "Rest"]
    assert page.count("<section>") == 2
    assert "<section>" not in draw_page(Page(title="T", when="now", chapters=(rest,)))


def test_a_picture_stands_as_it_is() -> None:
    assert drawn(Picture(svg="<svg></svg>", instead=(Note(words="a map"),))) == "<svg></svg>"


def test_a_drawing_of_letters_keeps_its_places() -> None:
    assert drawn(Drawing(lines=("a  b", "  <c>"))) == '<pre class="drawing">a  b\n  &lt;c&gt;</pre>'
