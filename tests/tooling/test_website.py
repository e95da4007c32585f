from pathlib import Path

import pytest

from website import NUMBER, ROOT, as_mkdocs_reads_it, broken, links_out_of, moved


@pytest.mark.parametrize(
    ("link", "home", "there"),
    [
        ("grid.md#rules", "docs/speed.md", "grid.md#rules"),
        ("../CONTRIBUTING.md", "docs/architecture.md", "CONTRIBUTING.md"),
        ("docs/farm.md", "CHANGELOG.md", "farm.md"),
        ("../docs/speed.md", "benchmarks/README.md", "../speed.md"),
        ("../README.md", "docs/speed.md", "index.md"),
        ("#here", "docs/speed.md", "#here"),
        ("https://example.org/a", "docs/speed.md", "https://example.org/a"),
    ],
)
def test_links_between_files_become_links_between_pages(link: str, home: str, there: str) -> None:
    assert moved(link, home) == there


def test_what_a_page_links_to_outside_the_docs_comes_along() -> None:
    assert "CONTRIBUTING.md" in links_out_of(ROOT / "docs/architecture.md")


def test_blocks_keep_their_text_and_the_name_of_their_file() -> None:
    page = "Text.\n\n```toml rules.toml\n- [a](../b)\n```\n\n```bash notest\nls\n```\n"
    assert as_mkdocs_reads_it(page, "docs/a.md") == (
        'Text.\n\n```toml title="rules.toml"\n- [a](../b)\n```\n\n```bash\nls\n```\n'
    )


def test_lists_stand_apart_and_what_belongs_to_an_item_is_indented_by_four() -> None:
    page = "It has:\n- one,\n  going on\n- two\n   - inner\n\nAfter.\n"
    assert as_mkdocs_reads_it(page, "docs/a.md") == (
        "It has:\n\n- one,\n    going on\n- two\n    - inner\n\nAfter.\n"
    )


def test_a_link_that_leads_nowhere_and_a_thing_from_elsewhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="top"></h1><a href="a.html#part">a</a><a href="#top"></a>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#top"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<script src="https://example.org/x.js"></script><a href="https://example.org">fine</a>'
    )
    assert list(broken(tmp_path)) == [
        "a.html: b.html#gone leads nowhere",
        "a.html: c.html leads nowhere",
        "a.html: a browser would fetch https://example.org/x.js",
        "b.html: a.html#part leads nowhere",
    ]


def test_a_site_that_is_published_below_a_path_is_followed_there(tmp_path: Path) -> None:
    (tmp_path / "404.html").write_text('<link href="/hotloop/a.css"><a href="/hotloop/b.html">B</a>')
    (tmp_path / "b.html").write_text('<link rel="canonical" href="https://example.org/hotloop/b.html">')
    assert list(broken(tmp_path, "/hotloop/")) == ["404.html: /hotloop/a.css leads nowhere"]
    assert len(list(broken(tmp_path))) == 2


def test_every_page_is_in_the_navigation() -> None:
    named = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in named, page.name


@pytest.mark.parametrize(
    "cell", ["12", "-0.4%", "7.912 M .. 11.227 M", "56.2 [52.6, 74.2]", "19 ns", "6.9 MiB"]
)
def test_a_number_and_its_interval_stay_in_one_line(cell: str) -> None:
    assert NUMBER.sub("", f"<td>{cell}</td>") == ""


@pytest.mark.parametrize(
    "cell", ["3 share", "1 or 0; of any batch", "", ", ".join(["1.25"] * 8), "-- python"]
)
def test_words_and_long_rows_of_numbers_are_broken(cell: str) -> None:
    assert NUMBER.sub("", f"<td>{cell}</td>") != ""
