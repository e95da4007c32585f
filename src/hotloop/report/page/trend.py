"""The trend of every speed over the commits, and plots that the script of the page draws."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

from hotloop.judge.history import Series
from hotloop.report.kinds.overview import change_words, summary

MANY = 6  # Plots that one still finds by looking
Value = float | None  # None if there is none
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
    """Return a plot under its title; `about` has unit and machine, `still` what is read while nobody points.

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


# Metrics, and what people call them.
NAMES = {
    "env_steps_per_s": "env-steps/s",
    "agent_steps_per_s": "agent-steps/s",
    "runs_per_s": "runs/s",
    "updates_per_s": "updates/s",
}

EXPLAINED = (
    '<p class="hint">One point a commit, with its 95% interval. '
    '<span class="key" style="background:var(--change)"></span>the level changed '
    '<span class="key" style="background:var(--accepted)"></span>a change was accepted '
    '<span class="key" style="background:var(--goal)"></span>a target, and the floor. '
    "A click on a point opens its record; drag to zoom, double-click to go back.</p>"
)


Lines = Mapping[tuple[str, str], Sequence[Level]]  # What budgets ask for, by target and metric


def draw_trends(series: Sequence[Series], budgets: Lines, numbers: Mapping[str, int]) -> str:
    if not series:
        return "<p>No record holds a speed yet: <code>hotloop bench TARGET</code> makes one.</p>"
    return EXPLAINED + plots([trend(place, each, budgets, numbers) for place, each in enumerate(series)])


def unit(metric: str) -> str:
    return NAMES.get(metric, metric.replace("_per_s", "/s").replace("_", " "))


def trend(place: int, series: Series, budgets: Lines, numbers: Mapping[str, int]) -> str:
    identity = series.identity
    how = f"{identity.kind}, commits in turns" if identity.in_turns else identity.kind
    about = f"{unit(identity.metric)} by {how}, {series.cpu} ({identity.fingerprint})"
    return figure(
        plot_of(series, budgets, numbers), identity.target, about, summary(series), f"trend-{place}"
    )


def plot_of(series: Series, budgets: Lines, numbers: Mapping[str, int]) -> Plot:
    points = series.points
    curve = Curve(
        name=unit(series.identity.metric),
        values=tuple(point.median for point in points),
        low=tuple(point.low for point in points),
        high=tuple(point.high for point in points),
    )
    return Plot(
        x=tuple(map(float, range(len(points)))),
        labels=tuple(f"{point.commit[:8]}{'*' if point.dirty else ''}" for point in points),
        series=(curve,),
        lines=(*levels(series), *budgets.get((series.identity.target, series.identity.metric), ())),
        marks=tuple(marks(series)),
        opens=tuple(numbers[point.run_ids[-1]] for point in points),
    )


def levels(series: Series) -> Iterator[Level]:
    """Yield the speed that was asked for last, and what could be relied on then."""
    goal = next((point.goal for point in reversed(series.points) if point.goal), None)
    if goal and series.identity.metric == "env_steps_per_s":
        yield Level(y=goal.env_steps_per_s, label="target", kind="goal")
        if goal.floor:
            yield Level(y=goal.floor, label="floor", kind="goal")


def marks(series: Series) -> Iterator[Mark]:
    for change in series.changes:
        label, told = f"{change.ratio - 1:+.1%}", change_words(series, change)
        yield Mark(x=change.index, label=label, told=told, kind="change")
    for index, why in series.accepted.items():
        yield Mark(x=index, label="accepted", told=f"accepted: {why}", kind="accepted")
