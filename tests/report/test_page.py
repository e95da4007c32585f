import re
from dataclasses import replace
from html.parser import HTMLParser

from support.records import PROFILE

from hotloop.core.record import Finding, Resources, Table
from hotloop.judge.baselines import with_previous
from hotloop.report.page import draw_page

STACKS = {(("slow<T>", "/a/env.py", 3),): 1.0}
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
    page = draw_page(FULL, {"cprofile": STACKS})
    checker = Balance()
    checker.feed(page)
    assert checker.open == []
    assert set(re.findall(r"https?://[^\"' <]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "src=" not in page


def test_it_has_the_profile_the_probes_and_their_flames() -> None:
    page = draw_page(FULL, {"cprofile": STACKS})
    headings = re.findall(r"<h[123]>(.+?)</h[123]>", page)
    assert headings == [
        *("Profile of grid/toy", "Configuration", "Results", "Resources", "Time Breakdown"),
        *("cprofile", "Functions", "Notes"),
    ]
    assert "<svg" in page
    assert "slow&lt;T&gt;" in page
    assert '<td class="code">&lt;built-in f&gt;</td><td class="number">1,000</td>' in page
    assert "<dt>wall</dt><dd>2.00 µs</dd>" in page
    assert ".cprofile.pstats" in page


def test_the_bars_are_those_of_the_breakdown() -> None:
    page = draw_page(PROFILE, {})
    assert '<td class="number">64.0%</td><td><span class="bar" style="width:192.0px">' in page
    assert page.count('class="bar"') == 7


def test_the_previous_profile_is_there_where_there_is_one() -> None:
    assert "Previous Profile" not in draw_page(PROFILE, {})
    assert "<h2>Previous Profile</h2>" in draw_page(with_previous(PROFILE, PROFILE), {})


def test_names_of_strangers_are_escaped() -> None:
    page = draw_page(replace(PROFILE, target=replace(PROFILE.target, name="<script>x")), {})
    assert "<script>x" not in page
