"""Finds sentences that need a second reading, in docs, docstrings and texts of notices.

    python tools/prose.py                 one line per group; fails if a group is above its budget
    python tools/prose.py PATH...         the sentences of these files, the hardest first
    python tools/prose.py --write         lower the budget of tools/prose.toml to today's figures

A sentence is hard if it breaks two rules. Code, tables of figures and commands are not read. The budget is
the share of hard sentences per group; it falls and never rises.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUDGET = ROOT / "tools" / "prose.toml"

LONG, TOO_LONG = 30, 45  # Words of a sentence
MOST_COMMAS = 3
HARD = 2  # Rules that a sentence may not reach

GENERATED = ("commands.md", "warnings.md")  # Written by tools/reference.py from texts of the code

RULES = {
    "a clause as the subject": (
        r"(?:^|[;:.] )(?:What|Who|Whoever|Whatever|Where)\b"
        r"(?! (?:is|are|does|do|can|should|would) (?:it|you|I|my|the|a)\b)[^?]*[^?]$"
    ),
    "what is/has as a noun": (
        r"\bwhat (?:is|are|was|were|has|have|stands|remains|ran|comes|came|goes|each|that|it|they"
        r"|nobody|somebody|such|else|follows|both|differs|surely|only)\b"
    ),
    "is said, is told": r"\b(?:is|are|was|were|be|been) (?:said|told|named|asked|taken|held|given|heard)\b",
    "says so, says of": r"\b(?:says? so|said so|says of|said of|tells? of|told of|say that of)\b",
    "of its own, of ours": r"\bof (?:its|their|his|your|one's|our) own\b|\bof (?:ours|theirs|yours)\b",
    "held against, stands beside": (
        r"\bheld (?:against|to)\b|\bstands? (?:beside|below|last|there|behind|above)\b"
        r"|\blies? (?:beside|with|below|there)\b"
    ),
    "private idioms": (
        r"\bover the rounds\b|\bin a row of\b|\ball the same\b|\bmend(?:ed|s|ing)?\b|\bput off\b|\banew\b"
        r"|\bcomes? to\b|\bcame (?:of|to)\b|\bnot looked at\b|\bas ever\b|\bas such\b"
    ),
    "people for things": r"\b(?:somebody|nobody|somebody's|nobody's|whoever|anybody|one's)\b",
    "else for otherwise": r"(?:; |, |\. )[Ee]lse\b",
    "where for if": (
        r"\b[Ww]here (?:it|there|that|this|they|one|none|nothing|no|your|a|an|the|all|several|enough|you|both"
        r"|some|only) [a-z]+"
    ),
    "as many as, so many": r"\bas (?:many|much|few|long|often) [a-z-]+ as\b|\bso many\b",
    "which, which": r",[^,.]{0,60}\bwhich\b[^.]{0,80},[^.]{0,60}\bwhich\b",
}
PATTERNS = {name: re.compile(rule) for name, rule in RULES.items()}

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
FIGURES = re.compile(r"<!-- figures.*?<!-- end -->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, where it stands, and the rules that it breaks."""

    path: str
    text: str
    broken: tuple[str, ...]

    @property
    def is_hard(self) -> bool:
        """Return whether it needs a second reading."""
        return len(self.broken) >= HARD


def judge(path: str, text: str) -> Sentence:
    """Return a sentence with the rules that it breaks."""
    plain = re.sub(r"[\[\]*]", "", re.sub(r"`[^`]*`", "X", text))
    broken = [name for name, pattern in PATTERNS.items() if pattern.search(plain)]
    words = len(plain.split())
    if words > LONG:
        broken.append(f"{words} words")
    if words > TOO_LONG:
        broken.append("far too long")
    if sum(plain.count(sign) for sign in ",;:") > MOST_COMMAS:
        broken.append("many commas")
    return Sentence(path, text, tuple(broken))


def split_sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph; addresses of links are left out."""
    plain = re.sub(r"\]\([^)]*\)", "]", paragraph)
    yield from (each.strip() for each in re.split(r"(?<=[.!?])\s+(?=[A-Z`\[*\"])", plain) if each.strip())


def paragraphs(markdown: str) -> Iterator[str]:
    """Yield the paragraphs, list items and long cells of a page."""
    block: list[str] = []
    for line in [*FIGURES.sub("", FENCE.sub("", markdown)).splitlines(), ""]:
        text = line.strip()
        is_item = bool(re.match(r"([-*]|\d+\.) ", text))
        if block and (not text or is_item or text[0] in "#|!<"):
            yield " ".join(block)
            block = []
        if not text or text[0] in "#!<" or line.startswith("    "):
            continue
        if text.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", text.strip("|"))]
            yield from (cell for cell in cells if len(cell.split()) > 5)
            continue
        block.append(re.sub(r"^([-*]|\d+\.) ", "", text))


def pages() -> list[Path]:
    """Return the pages that people read."""
    return [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
        *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in GENERATED),
    ]


def modules() -> list[Path]:
    """Return the modules whose docstrings are read."""
    return sorted((ROOT / "src" / "hotloop").rglob("*.py"))


def texts(path: Path) -> Iterator[str]:
    """Yield what a file says in prose."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from paragraphs(text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from re.split(r"\n\s*\n", ast.get_docstring(node) or "")
    yield from (match[1] for match in re.finditer(r"(?m)(?:^| )# (.+)$", text))


def sentences(paths: Sequence[Path]) -> list[Sentence]:
    """Return all sentences of some files."""
    return [
        judge(str(path.relative_to(ROOT)), each)
        for path in paths
        for block in texts(path)
        for each in split_sentences(" ".join(block.split()))
    ]


def share_of(found: Sequence[Sentence]) -> float:
    """Return the part of the sentences that is hard, in percent."""
    return round(100 * sum(each.is_hard for each in found) / max(len(found), 1), 1)


def main(words: Sequence[str]) -> int:
    """Print what was asked for; return 1 if a group is above its budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(words)
    if options.paths:
        found = sentences([path.resolve() for path in options.paths])
        for each in sorted((one for one in found if one.is_hard), key=lambda one: -len(one.broken)):
            print(f"{each.path}: {each.text}\n    {', '.join(each.broken)}")
        print(f"{share_of(found)}% of {len(found)} sentences need a second reading")
        return 0
    budget = tomllib.loads(BUDGET.read_text("utf-8")) if BUDGET.exists() else {}
    now = {"docs": share_of(sentences(pages())), "docstrings": share_of(sentences(modules()))}
    for group, share in now.items():
        print(
            f"{group}: {share}% of the sentences need a second reading, at most {budget.get(group, 100.0)}%"
        )
    if options.write:
        lines = [f"{group} = {min(share, budget.get(group, 100.0))}" for group, share in now.items()]
        head = "# Percent of the sentences that need a second reading, by tools/prose.py. Figures only fall."
        BUDGET.write_text("\n".join([head, *lines, ""]), "utf-8")
    return int(any(share > budget.get(group, 100.0) for group, share in now.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
