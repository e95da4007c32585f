"""The pages people read, taken apart: fenced blocks, code, links, and prose."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Whose every command is run."""
GUIDE = ROOT / "src/hotloop/mcp/guide.md"
ALL_PAGES = [*PAGES, GUIDE, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks/README.md"]

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
INCLUDED = re.compile(r'^--8<-- "(?P<path>[^"]+)"\n', re.MULTILINE)
INDENTED = re.compile(r"^(?: {4}.*\n)+", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FIGURES = re.compile(r"<!-- figures: (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word after it, and what is in it."""

    language: str
    word: str
    """`notest`, the name of the file it is to be, or nothing."""
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a bash block, long ones joined."""
        return [line for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        language, _, word = fence["info"].partition(" ")
        yield Block(language, word, INCLUDED.sub(text_of, fence["text"]))


def text_of(line: re.Match[str]) -> str:
    """Return the file that a line includes."""
    return (ROOT / line["path"]).read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its code blocks and measured figures."""
    text = FIGURES.sub("", page.read_text(encoding="utf-8"))
    return INDENTED.sub("", FENCE.sub("", text))


def spans(page: Path) -> list[str]:
    """The code in a page's prose."""
    return SPAN.findall(prose(page))


def links(page: Path) -> list[str]:
    return LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the web."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
