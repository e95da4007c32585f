"""The overview of the page, every budget, what needs attention, and the trend of every speed."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

from hotloop.core.errors import ExitCode
from hotloop.core.project import PROGRAM, Budget
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.judge.baselines import Series
from hotloop.judge.compare import unlike_plays
from hotloop.report import html
from hotloop.report.kinds import checks
from hotloop.report.kinds.record import change_words, summary, unlike_words
from hotloop.report.section import Span, Words, commit_words, count, left_out, speed, speed_interval, text_of

Numbers = Mapping[str, int]  # Run ids, and what a click on them opens

LINE_WIDTH, LINE_HEIGHT = 120, 26

# Exit codes as a reader in a hurry sees them.
STATES: dict[int, tuple[str, str]] = {
    ExitCode.FINE: ("good", "fine"),
    ExitCode.UNSTABLE: ("warn", "unstable"),
    ExitCode.MISMATCH: ("bad", "mismatch"),
    ExitCode.REGRESSION: ("bad", "slower"),
    ExitCode.CANNOT_TELL: ("warn", "cannot tell"),
}


def draw_overview(series: Sequence[Series], numbers: Numbers, records: Sequence[Record]) -> str:
    """Return the latest of every series in a row; `numbers` are what a click on a run opens."""
    if not records:
        return "<p>No record yet: <code>hotloop bench TARGET</code> makes one.</p>"
    machines = {record.machine["fingerprint"] for record in records}
    told = (
        count(len(records), "record"),
        f"{count(len(series), 'speed')} followed",
        count(len(machines), "machine"),
    )
    changed = sum(bool(each.changes) for each in series)
    more = f"; {changed:,} changed {'its' if changed == 1 else 'their'} level" if changed else ""
    head = f"{', '.join(told)}{more}; the latest of {when(records[-1])} UTC"
    by_id = {record.run_id: record for record in records}
    rows = "".join(row(place, each, numbers, by_id) for place, each in enumerate(series))
    names = ("target", "speed", "95% interval", "level", "", "latest run", "made", "commit", "machine")
    table = html.framed("".join(f"<th>{name}</th>" for name in names), rows) if rows else ""
    return f"<p>{escape(head)}</p>{table}"


def when(record: Record) -> str:
    return record.created[:16].replace("T", " ")


def row(place: int, series: Series, numbers: Numbers, records: Mapping[str, Record]) -> str:
    """Return one speed; a click opens its latest run, one on its line the plot at that place of the trend."""
    latest = series.points[-1]
    record = records[latest.run_ids[-1]]
    metric = record.metrics[series.identity.metric]
    tone, word = state(record)
    medians, line = [point.median for point in series.points[-60:]], ""
    if len(medians) > 1:  # a line without axes; the plot is a tab away
        points = html.polyline(medians, LINE_WIDTH, LINE_HEIGHT, 3)
        size = f'viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" style="width:{LINE_WIDTH}px;height:{LINE_HEIGHT}px"'
        line = f'<svg class="curve" {size}><polyline points="{points}"/></svg>'
    cells = (
        f'{escape(series.identity.target)} <small class="dim">{escape(series.identity.kind)}</small>',
        f"<b>{speed(metric.median)}</b> {escape(unit(series.identity.metric))}",
        speed_interval(metric.ci95),
        level(series),
        f'<a href="#trend/{place}">{line}</a>',
        f'<span class="{tone}">{word}</span>',
        when(record),
        escape(commit_words(latest.commit[:8], dirty=latest.dirty)),
        escape(series.identity.fingerprint),
    )
    opens = numbers[record.run_id]
    return f'<tr data-record="{opens}" tabindex="0">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def level(series: Series) -> str:
    """Return the last change of level, for better or worse; that there is none; or how much is missing."""
    if series.changes:
        change = series.changes[-1]
        tone = "bad" if change.ratio < 1 else "good"
        since = escape(series.points[change.index].commit[:8])
        return f'<span class="{tone}">{change.ratio - 1:+.1%} since {since}</span>'
    told = f"{count(series.missing, 'commit')} more to tell" if series.missing else "no change seen"
    return f'<span class="dim">{told}</span>'


def state(record: Record) -> tuple[str, str]:
    """Return how it ended: the tone and the word."""
    return ("warn", "interrupted") if record.partial else STATES.get(record.exit_code, ("bad", "broken off"))


def omitted(reasons: Sequence[str]) -> str:
    """Return what is no record, and why."""
    if not reasons:
        return ""
    told = html.draw(left_out(reasons))
    return f"<details><summary>{count(len(reasons), 'file')} left out</summary>{told}</details>"


HEADS = ("budget", "of", "metric", "verdict", "now", "change", "limit", "against", "ask")

TargetMetric = tuple[str, str]  # A target as it would be typed, and a metric of it


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """A budget of the project's, or one that a record was held against."""

    name: str
    target: str  # As it would be typed, keys and all
    metric: str
    limit: float | None
    enforced: bool
    latest: Record | None  # What was held against it last
    written: Budget | None  # As the project has it now; None if it has it no more


def budget_states(budgets: Sequence[Budget], records: Iterable[Record]) -> list[BudgetStatus]:
    """Return those of the project in their order, then those that only records know."""
    latest = {record.held.name: (record, record.held) for record in records if record.held}
    written = [
        BudgetStatus(
            name=budget.name,
            target=budget.words.removeprefix(PROGRAM),
            metric=budget.metric,
            limit=budget.limit,
            enforced=budget.enforce,
            latest=latest.pop(budget.name, (None, None))[0],
            written=budget,
        )
        for budget in budgets
    ]
    others = [
        BudgetStatus(
            name=name,
            target=record.target.words,
            metric=held.metric,
            limit=held.limit,
            enforced=held.enforced,
            latest=record,
            written=None,
        )
        for name, (record, held) in sorted(latest.items())
    ]
    return [*written, *others]


def draw_budgets(found: Sequence[BudgetStatus], numbers: Numbers) -> str:
    """Return a row a budget; a click opens what was held against it last."""
    if not found:
        return ""
    heads, rows = "".join(f"<th>{head}</th>" for head in HEADS), list[str]()
    for each in found:
        opens = f' data-record="{numbers[each.latest.run_id]}" tabindex="0"' if each.latest else ""
        row = (each.name, each.target, each.metric, *cells(each))
        rows.append(f"<tr{opens}>{''.join(f'<td>{html.words(cell)}</td>' for cell in row)}</tr>")
    return f"<h2>{count(len(found), 'budget')}</h2>{html.framed(heads, ''.join(rows))}"


def cells(each: BudgetStatus) -> Iterator[Words]:
    """Yield its verdict and what that rests on; or that it waits for its first."""
    held = each.latest.held if each.latest else None
    if held:
        yield from checks.cells(checks.GateView(name=each.name, held=held, record=each.latest))[1:]
        yield held.owner
    elif each.written:
        yield from (Span("not held yet", "dim"), "", "", checks.written(each.written), "", each.written.owner)


MOST = 6  # Lines that are shown at once; the rest is a click away
FINE = "Nothing needs a look: no level fell, no enforced budget is missed, and no latest run ended badly."


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One line, and the run that a click on it opens."""

    tone: str
    word: str
    told: str
    run_id: str


def draw_attention(looks: Sequence[Attention], numbers: Numbers) -> str:
    if not looks:
        return f'<p class="good">{FINE}</p>'
    lines = [
        f'<li data-record="{numbers[each.run_id]}" tabindex="0">'
        f'<b class="{each.tone}">{escape(each.word)}</b> {escape(each.told)}</li>'
        for each in looks
    ]
    shown = f'<ul class="looks">{"".join(lines[:MOST])}</ul>'
    rest = lines[MOST:]
    more = f"<details><summary>{len(rest):,} more</summary><ul class='looks'>{''.join(rest)}</ul></details>"
    return f"<h2>{count(len(looks), 'thing')} to look at</h2>{shown}{more if rest else ''}"


def find_attention(
    series: Iterable[Series], budgets: Iterable[BudgetStatus], records: Iterable[Record]
) -> list[Attention]:
    """Return the gravest kind first: what answers wrongly, what is missed, what got slower."""
    known = latest(records)
    found = []
    for record in known:
        tone, word = state(record)
        if tone == "bad":
            told = f"{record.kind} {record.target.words}, {when(record)}"
            found.append(Attention(tone=tone, word=word, told=told, run_id=record.run_id))
    found += missed_budgets(budgets)
    # Latest runs whose short play showed something else than that of an earlier one.
    for first, record, steps in unlike_plays(sorted(known, key=lambda each: each.created)):
        told = f"{record.kind} {record.target.words}: {unlike_words(first, steps)}"
        found.append(Attention(tone="bad", word="other code", told=told, run_id=record.run_id))
    # Speeds whose last change of level was one for the worse, the deepest first.
    fell = [(each, each.changes[-1]) for each in series if each.changes and each.changes[-1].ratio < 1]
    for each, change in sorted(fell, key=lambda pair: pair[1].ratio):
        point = each.points[change.index]
        told = (
            f"{each.identity.target} ({each.identity.kind}) {change.ratio - 1:+.1%} since "
            f"{point.commit[:8]}: {speed(change.before)} before, {speed(change.after)} after"
        )
        found.append(Attention(tone="bad", word="slower", told=told, run_id=point.run_ids[-1]))
    return found


def latest(records: Iterable[Record]) -> Collection[Record]:
    """Return the latest run of every command and target; budgets speak for themselves."""
    found = {(each.kind, each.target.words, each.label): each for each in records if not each.held}
    return found.values()


def unsure(records: Iterable[Record]) -> str:
    """Return how many of the latest runs tell little; nothing if all are sound."""
    words = Counter(word for tone, word in map(state, latest(records)) if tone == "warn")
    told = ", ".join(f"{number:,} {word}" for word, number in words.items())
    return (
        f'<p class="hint">Of the latest runs {told}: what they say of speed means little.</p>' if told else ""
    )


def missed_budgets(budgets: Iterable[BudgetStatus]) -> Iterator[Attention]:
    """Yield budgets that went red when they were held last; one that the project has given up is history."""
    for each in budgets:
        held = each.latest.held if each.latest else None
        if each.latest and held and each.enforced and held.standing != "met":
            word = checks.verdict(held)
            told = text_of(checks.because(checks.GateView(name=each.name, held=held, record=each.latest)))
            yield Attention(tone=word.tone, word=word.text, told=told, run_id=each.latest.run_id)


MANY = 6  # Plots that one still finds by looking
Value = float | None  # None if there is none
MarkKind = Literal["goal", "change", "accepted"]  # Of what is marked; the page has a color for each


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotCurve:
    """One line, with its band where it has one."""

    name: str
    values: tuple[Value, ...]
    low: tuple[Value, ...] | None = None
    high: tuple[Value, ...] | None = None
    dots: bool = False  # Whether its points are not joined
    # The number of the curve whose color it has, and whose name; it has no word of its own then.
    of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A height that is marked across the whole plot."""

    y: float
    label: str
    kind: MarkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place on the x axis that is marked."""

    x: float
    label: str
    told: str  # In full, for who points at it
    kind: MarkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Curves over one axis."""

    x: tuple[float, ...]
    series: tuple[PlotCurve, ...]
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
    """Return a plot under its title; `about` has unit and machine, `still` is read at first.

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
    """Return figures side by side; where there are many, some can be asked for by what stands above them."""
    search = (
        '<p><input class="figure-search" type="search" placeholder="search" aria-label="search plots"></p>'
    )
    return f'{search if len(figures) > MANY else ""}<div class="plots">{"".join(figures)}</div>'


# Metrics, and what people call them.
NAMES = {
    ENV_STEPS_PER_S: "env-steps/s",
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


def unit(metric: str) -> str:
    return NAMES.get(metric, metric.replace("_per_s", "/s").replace("_", " "))


def draw_trends(series: Sequence[Series], budgets: Iterable[BudgetStatus], numbers: Numbers) -> str:
    """Return a plot of every series, with each absolute limit: a floor is enforced, a target is not."""
    if not series:
        return "<p>No record holds a speed yet: <code>hotloop bench TARGET</code> makes one.</p>"
    lines: dict[TargetMetric, list[Level]] = {}
    for each in budgets:
        if each.limit is not None:
            word = "floor" if each.enforced else "target"
            level = Level(y=each.limit, label=f"{word} {speed(each.limit)}, {each.name}", kind="goal")
            lines.setdefault((each.target, each.metric), []).append(level)
    figures = []
    for place, found in enumerate(series):
        identity = found.identity
        how = f"{identity.kind}, commits in turns" if identity.in_turns else identity.kind
        about = f"{unit(identity.metric)} by {how}, {found.cpu} ({identity.fingerprint})"
        plot = plot_series(found, lines.get((identity.target, identity.metric), ()), numbers)
        figures.append(figure(plot, identity.target, about, summary(found), f"trend-{place}"))
    return EXPLAINED + plots(figures)


def plot_series(series: Series, limits: Sequence[Level], numbers: Numbers) -> Plot:
    """Return a series with the speed that was asked for last, its limits, and where its level changed."""
    points, levels = series.points, list[Level]()
    goal = next((point.goal for point in reversed(points) if point.goal), None)
    if goal and series.identity.metric == ENV_STEPS_PER_S:
        levels.append(Level(y=goal.env_steps_per_s, label="target", kind="goal"))
        if goal.floor:
            levels.append(Level(y=goal.floor, label="floor", kind="goal"))
    changes = [
        Mark(x=each.index, label=f"{each.ratio - 1:+.1%}", told=change_words(series, each), kind="change")
        for each in series.changes
    ]
    accepted = [
        Mark(x=index, label="accepted", told=f"accepted: {why}", kind="accepted")
        for index, why in series.accepted.items()
    ]
    curve = PlotCurve(
        name=unit(series.identity.metric),
        values=tuple(point.median for point in points),
        low=tuple(point.low for point in points),
        high=tuple(point.high for point in points),
    )
    return Plot(
        x=tuple(map(float, range(len(points)))),
        labels=tuple(f"{point.commit[:8]}{'*' if point.dirty else ''}" for point in points),
        series=(curve,),
        lines=(*levels, *limits),
        marks=(*changes, *accepted),
        opens=tuple(numbers[point.run_ids[-1]] for point in points),
    )
