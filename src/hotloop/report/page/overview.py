"""The overview of the page: the latest speed of every target, what needs attention, and every budget."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hotloop.core.errors import ExitCode
from hotloop.core.project import PROGRAM, Budget
from hotloop.core.record import Record
from hotloop.judge.compare import unlike_plays
from hotloop.judge.history import Series
from hotloop.report import html
from hotloop.report.facts import commit_words, left_out
from hotloop.report.kinds import gate
from hotloop.report.kinds.overview import unlike_words
from hotloop.report.page.trend import Level, unit
from hotloop.report.section import Span, Words, text_of
from hotloop.report.units import count, speed, speed_interval

LINE_WIDTH, LINE_HEIGHT = 120, 26

# Exit codes as a reader in a hurry sees them.
STATES: dict[int, tuple[str, str]] = {
    ExitCode.FINE: ("good", "fine"),
    ExitCode.UNSTABLE: ("warn", "unstable"),
    ExitCode.MISMATCH: ("bad", "mismatch"),
    ExitCode.REGRESSION: ("bad", "slower"),
    ExitCode.CANNOT_TELL: ("warn", "cannot tell"),
}


def draw_overview(series: Sequence[Series], numbers: Mapping[str, int], records: Sequence[Record]) -> str:
    """Return the latest of every series in a row; `numbers` are what a click on a run opens."""
    if not records:
        return "<p>No record yet: <code>hotloop bench TARGET</code> makes one.</p>"
    by_id = {record.run_id: record for record in records}
    rows = "".join(row(place, each, numbers, by_id) for place, each in enumerate(series))
    heads = ("target", "speed", "95% interval", "level", "", "latest run", "made", "commit", "machine")
    table = html.framed("".join(f"<th>{head}</th>" for head in heads), rows) if rows else ""
    return f"<p>{escape(counted(series, records))}</p>{table}"


def counted(series: Sequence[Series], records: Sequence[Record]) -> str:
    machines = {record.machine["fingerprint"] for record in records}
    told = ", ".join(
        (
            count(len(records), "record"),
            f"{count(len(series), 'speed')} followed",
            count(len(machines), "machine"),
        )
    )
    changed = sum(bool(each.changes) for each in series)
    more = f"; {changed:,} changed {'its' if changed == 1 else 'their'} level" if changed else ""
    return f"{told}{more}; the latest of {when(records[-1])} UTC"


def when(record: Record) -> str:
    return record.created[:16].replace("T", " ")


def row(place: int, series: Series, numbers: Mapping[str, int], records: Mapping[str, Record]) -> str:
    """Return one speed; a click opens its latest run, one on its line the plot at that place of the trend."""
    latest = series.points[-1]
    record = records[latest.run_ids[-1]]
    metric = record.metrics[series.identity.metric]
    tone, word = state(record)
    cells = (
        f'{escape(series.identity.target)} <small class="dim">{escape(series.identity.kind)}</small>',
        f"<b>{speed(metric.median)}</b> {escape(unit(series.identity.metric))}",
        speed_interval(metric.ci95),
        level(series),
        f'<a href="#trend/{place}">{sparkline([point.median for point in series.points[-60:]])}</a>',
        f'<span class="{tone}">{word}</span>',
        when(record),
        escape(commit_words(latest.commit[:8], dirty=latest.dirty)),
        escape(series.identity.fingerprint),
    )
    opens = numbers[record.run_id]
    return f'<tr data-record="{opens}" tabindex="0">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def level(series: Series) -> str:
    """The last change of level, for better or worse; that there is none; or how little history there is."""
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


def sparkline(values: Sequence[float]) -> str:
    """Return a line without axes; the plot is a tab away."""
    if len(values) < 2:
        return ""
    points = html.polyline(values, LINE_WIDTH, LINE_HEIGHT, 3)
    size = f'viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" style="width:{LINE_WIDTH}px;height:{LINE_HEIGHT}px"'
    return f'<svg class="curve" {size}><polyline points="{points}"/></svg>'


def omitted(reasons: Sequence[str]) -> str:
    """Return what is no record, and why."""
    if not reasons:
        return ""
    told = html.draw(left_out(reasons))
    return f"<details><summary>{count(len(reasons), 'file')} left out</summary>{told}</details>"


HEADS = ("budget", "of", "metric", "verdict", "now", "change", "limit", "against", "ask")

Speed = tuple[str, str]  # A target as it would be typed, and a metric of it


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


def draw_budgets(found: Sequence[BudgetStatus], numbers: Mapping[str, int]) -> str:
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
        yield from gate.cells(gate.GateView(name=each.name, held=held, record=each.latest))[1:]
        yield held.owner
    elif each.written:
        yield from (Span("not held yet", "dim"), "", "", gate.written(each.written), "", each.written.owner)


def budget_levels(found: Iterable[BudgetStatus]) -> dict[Speed, list[Level]]:
    """Return the line of every absolute limit: a floor is enforced, a target is hoped for."""
    lines: dict[Speed, list[Level]] = {}
    for each in found:
        if each.limit is not None:
            word = "floor" if each.enforced else "target"
            level = Level(y=each.limit, label=f"{word} {speed(each.limit)}, {each.name}", kind="goal")
            lines.setdefault((each.target, each.metric), []).append(level)
    return lines


MOST = 6  # Lines that are shown at once; the rest is a click away
FINE = "Nothing needs a look: no level fell, no enforced budget is missed, and no latest run ended badly."


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One line, and the run that a click on it opens."""

    tone: str
    word: str
    told: str
    run_id: str


def draw_attention(looks: Sequence[Attention], numbers: Mapping[str, int]) -> str:
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
    known = list(records)
    return [*endings(known), *missed(budgets), *unlike(known), *falls(series)]


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


def endings(records: Iterable[Record]) -> Iterator[Attention]:
    """Latest runs that ended badly."""
    for record in latest(records):
        tone, word = state(record)
        if tone == "bad":
            told = f"{record.kind} {record.target.words}, {record.created[:16].replace('T', ' ')}"
            yield Attention(tone=tone, word=word, told=told, run_id=record.run_id)


def unlike(records: Iterable[Record]) -> Iterator[Attention]:
    """Latest runs whose short play showed something else than that of an earlier one."""
    for first, record, steps in unlike_plays(sorted(latest(records), key=lambda each: each.created)):
        told = f"{record.kind} {record.target.words}: {unlike_words(first, steps)}"
        yield Attention(tone="bad", word="other code", told=told, run_id=record.run_id)


def missed(budgets: Iterable[BudgetStatus]) -> Iterator[Attention]:
    """Budgets that went red when they were held last; one that the project has given up is history."""
    for each in budgets:
        held = each.latest.held if each.latest else None
        if each.latest and held and each.enforced and held.standing != "met":
            word = gate.verdict(held)
            told = text_of(gate.because(gate.GateView(name=each.name, held=held, record=each.latest)))
            yield Attention(tone=word.tone, word=word.text, told=told, run_id=each.latest.run_id)


def falls(series: Iterable[Series]) -> Iterator[Attention]:
    """Speeds whose last change of level was one for the worse, the deepest first."""
    found = [(each, each.changes[-1]) for each in series if each.changes and each.changes[-1].ratio < 1]
    for each, change in sorted(found, key=lambda pair: pair[1].ratio):
        point = each.points[change.index]
        told = (
            f"{each.identity.target} ({each.identity.kind}) {change.ratio - 1:+.1%} since "
            f"{point.commit[:8]}: {speed(change.before)} before, {speed(change.after)} after"
        )
        yield Attention(tone="bad", word="slower", told=told, run_id=point.run_ids[-1])
