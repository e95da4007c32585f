"""Sections as the text of a terminal."""

from collections.abc import Iterable
from io import StringIO

from rich.console import Console

from hotloop.report.section import Section
from hotloop.report.terminal import draw


def text(sections: Iterable[Section], width: int = 160) -> str:
    """All of it, without colours."""
    console = Console(file=StringIO(), width=width, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(draw(sections))
    return captured.get()


def seen(sections: Iterable[Section], width: int) -> list[str]:
    """The lines as a person sees them on a screen of that width."""
    console = Console(
        file=StringIO(), width=width, markup=False, highlight=False, force_terminal=True, color_system=None
    )
    with console.capture() as captured:
        console.print(draw(sections))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def lines(sections: Iterable[Section], width: int = 160) -> list[str]:
    """The lines that hold anything, their blanks made single."""
    return [" ".join(line.split()) for line in text(sections, width).splitlines() if line.strip()]
