"""Plots: data that the page's script draws, in a figure that says its unit and its machine."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

MANY = 6  # Plots that one still finds by looking
Value = float | None  # None where there is none
Kind = Literal["goal", "change", "accepted"]  # Of what is marked; the page has a colour for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line, with its band where it has one."""

    name: str
    values: tuple[Value, ...]
    low: tuple[Value, ...] | None = None
    high: tuple[Value, ...] | None = None
    dots: bool = False  # Whether its points are not joined
    # The number of the curve whose colour it has, and whose name; it has no word of its own then.
    of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A height that is marked across the whole plot."""

    y: float
    label: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place on the x axis that is marked."""

    x: float
    label: str
    told: str  # In full, for who points at it
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Curves over one axis."""

    x: tuple[float, ...]
    series: tuple[Curve, ...]
    # What the values of x are called, where they are numbers of something; else they are written.
    labels: tuple[str, ...] | None = None
    lines: tuple[Level, ...] = ()
    marks: tuple[Mark, ...] = ()
    powers: bool = False  # Whether both axes are of powers of ten
    opens: tuple[int, ...] | None = None  # The record that a click on each point opens

    @property
    def data(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def figure(plot: Plot, title: str, about: str, still: str = "", name: str = "") -> str:
    """A plot under its title; `about` has unit and machine, `still` what is read while nobody points.

    By its name, where it has one, an address leads to it.
    """
    named = f' id="{name}"' if name else ""
    data = escape(json.dumps(plot.data, separators=(",", ":"), allow_nan=False), quote=True)
    return (
        f"<figure{named}><figcaption>{escape(title)}<small>{escape(about)}</small></figcaption>"
        f'<div class="plot" data-plot="{data}"></div>'
        f'<div class="read" data-still="{escape(still, quote=True)}">{escape(still)}</div></figure>'
    )


def plots(figures: Sequence[str]) -> str:
    """Figures side by side; where there are many, some can be asked for by what stands above them."""
    search = (
        '<p><input class="figure-search" type="search" placeholder="search" aria-label="search plots"></p>'
    )
    return f'{search if len(figures) > MANY else ""}<div class="plots">{"".join(figures)}</div>'
