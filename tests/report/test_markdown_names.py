"""Names that others gave, in a page: they are read, and do nothing."""

import pytest

from hotloop.report import markdown
from hotloop.report.section import Branch, Span, Tree, facts


def drawn(name: str) -> str:
    branches = (Branch(name=name, depth=0, values=("1",)),)
    return markdown.draw(
        [Tree(title="where", columns=("ns",), branches=branches), facts(("name", Span(name)))]
    )


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("</td><img src=x onerror=alert(1)>", "<img"),
        ("[free](https://example.org)", "]("),
        ("a\n# heading", "\n# heading"),
        ("a|b", "a|b |"),
    ],
)
def test_a_name_is_no_html_no_link_and_no_line_of_its_own(name, gone):
    assert gone not in drawn(name)


def test_a_name_keeps_its_letters():
    tree = drawn("my `odd` **span**").splitlines()[2]
    assert tree == "| my \\`odd\\` \\*\\*span\\*\\* | 1 |"
    assert "env.step_all [1, 2] < 3" in drawn("env.step_all [1, 2] < 3")
