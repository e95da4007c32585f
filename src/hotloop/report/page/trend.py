"""Trends: every speed over the project's commits."""

from collections.abc import Iterator, Mapping, Sequence

from hotloop.judge.history import Series
from hotloop.report.kinds.trend import change_words, summary
from hotloop.report.page.plot import Curve, Level, Mark, Plot, figure, plots

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


def draw(series: Sequence[Series], budgets: Lines, numbers: Mapping[str, int]) -> str:
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
    """The speed that was asked for last, and what could be relied on then."""
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
