"""Puts measured figures into the pages, between `<!-- figures: NAME -->` and `<!-- end -->`.

    ./.venv/bin/python tools/figures.py

NAME is a benchmark, such as `scaling`, `peers/grid_toy` or `learning-guard`: its newest result in
benchmarks/results is shown with machine, commit and spread. `summary` is what the peers' results say, in
one table. A quick run, or one of code with uncommitted changes, is never shown.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chart import draw_scaling

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(?P<begin><!-- figures: (?P<name>\S+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
CHARTS = {"scaling": Path("docs/images/scaling.svg")}
"""Benchmarks that are drawn too, and where."""
SUMMARISED = ("peers/grid_toy", "peers/grid_arena")
SUMMARY_HEADER = (
    "world",
    "agent-steps/s, one core",
    "over the rounds",
    "CV",
    "MettaGrid",
    "speed, ours / MettaGrid",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run of a benchmark."""

    path: Path
    facts: Mapping[str, Any]

    @property
    def may_be_quoted(self) -> bool:
        return not self.facts["quick"] and not self.facts["code"]["dirty"]

    def origin(self, page: Path) -> str:
        """Say when, on what and from which code it was measured, with a link to the raw values."""
        machine, code = self.facts["machine"], self.facts["code"]
        load = "unknown" if machine["load"] is None else f"{machine['load']:.1f}"
        link = Path(os.path.relpath(self.path, page.parent)).as_posix()
        return (
            f"Measured {self.facts['created'][:10]} on {machine['cpu']}, {machine['cores']} cores, "
            f"load {load} at the end; commit {code['commit'][:12]}, {code['compiler']}, "
            f"Python {machine['python']}; [raw values]({link})."
        )


def newest(root: Path, name: str) -> Result | None:
    """Find the last result of a benchmark that may be quoted."""
    found = []
    for path in (root / "benchmarks/results").glob(f"{name.replace('/', '-')}-*.json"):
        result = Result(path=path, facts=json.loads(path.read_text(encoding="utf-8")))
        if result.facts["benchmark"] == name and result.may_be_quoted:
            found.append(result)
    return max(found, key=lambda result: str(result.facts["created"]), default=None)


def not_yet(*names: str) -> str:
    """Say that there is nothing to show, and how to change that."""
    commands = " and ".join(f"`./.venv/bin/python benchmarks/{script_of(name)}`" for name in names)
    return f"No figure has been measured yet; {commands} measures it."


def script_of(name: str) -> str:
    """The script of a result and what it is given: `scaling.py`, `learning.py guard` of `learning-guard`."""
    script, _, given = name.partition("-")
    return f"{script}.py {given}".rstrip()


def figure(root: Path, name: str, page: Path) -> str:
    """Write what belongs between the markers of one name."""
    if name == "summary":
        return summary(root, page)
    result = newest(root, name)
    if result is None:
        return not_yet(name)
    parts = [str(result.facts["text"]), result.origin(page)]
    if name in CHARTS:
        image = Path(os.path.relpath(root / CHARTS[name], page.parent)).as_posix()
        parts.insert(0, f"![The same figures as a chart]({image})")
    return "\n\n".join(parts)


def summary(root: Path, page: Path) -> str:
    """Draw the peers' results as one table; each contest is a row."""
    results = [newest(root, name) for name in SUMMARISED]
    there = [result for result in results if result is not None]
    if not there:
        return not_yet(*SUMMARISED)
    rows = [row for result in there for row in summary_rows(result)]
    lines = [SUMMARY_HEADER, ["---"] * len(SUMMARY_HEADER), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([table, *(result.origin(page) for result in there)])


def summary_rows(result: Result) -> Iterator[list[str]]:
    for title, case in result.facts["cases"].items():
        ours = case["sides"]["hotloop"]["agent_steps_per_s"]
        peer = case["sides"].get("mettagrid")
        ratio = case["ratios"].get("hotloop / mettagrid")
        yield [
            title,
            millions(ours["median"]),
            f"{millions(ours['min'])} .. {millions(ours['max'])}",
            f"{ours['cv']:.1%}",
            millions(peer["agent_steps_per_s"]["median"]) if peer else "missing",
            f"{ratio['estimate']:.1f} [{ratio['low']:.1f}, {ratio['high']:.1f}]" if ratio else "missing",
        ]


def millions(rate: float) -> str:
    return f"{rate / 1e6:.3f} M"


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def rewritten(root: Path, page: Path) -> str:
    """Give a page's text with the newest figures in it."""

    def fill(block: re.Match[str]) -> str:
        return f"{block['begin']}{figure(root, block['name'], page)}\n{block['end']}"

    return BLOCK.sub(fill, page.read_text(encoding="utf-8"))


def drawings(root: Path) -> dict[Path, str]:
    """Draw the charts there are results for."""
    results = {path: newest(root, name) for name, path in CHARTS.items()}
    return {root / path: draw_scaling(result.facts) for path, result in results.items() if result}


def main(root: Path = ROOT) -> int:
    wanted = drawings(root) | {page: rewritten(root, page) for page in pages(root)}
    for path, text in wanted.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
