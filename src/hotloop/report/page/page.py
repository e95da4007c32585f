"""The page as one file: styles, script and data inside, nothing fetched."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from html import escape
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.record import Frames, Record, stacks
from hotloop.core.record.stacks import Stack
from hotloop.core.time_tree import REST
from hotloop.judge.baselines import histories
from hotloop.report import html, shapes
from hotloop.report.charts import Panel
from hotloop.report.files import Entry, Shelf
from hotloop.report.kinds.profile import slow
from hotloop.report.kinds.record import record_panels, record_sections
from hotloop.report.kinds.times import account_of, breakdown, is_tree, loop_rows, step_lines
from hotloop.report.page import overview
from hotloop.report.page.overview import Numbers, Plot, PlotCurve, Value, figure, plots
from hotloop.report.section import Drawing, Heading, Section, machine_line, notices, percent

# What the page may do: draw itself, and when it is served hear what is new.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src {}"
)

WRITTEN = '<small class="dim">written {:%Y-%m-%d %H:%M} UTC</small>'

THEME = '<button id="theme" type="button">dark</button>'

LIVE = '<div id="live" data-events="{}"></div>'

# What a page begins with, by which a later one knows that it may replace it.
HEAD = '<!doctype html>\n<html lang="en"><head><meta name="generator" content="hotloop report">'


def draw_page(shelf: Shelf, title: str, events: str | None = None) -> str:
    """Return the whole page; `events` is where a served one hears what is new."""
    numbers = {record.run_id: index for index, record in enumerate(shelf.records)}
    chapters = list(contents(shelf, numbers))
    links = "".join(f'<a href="#{name}">{name}</a>' for name, _ in chapters)
    bodies = "".join(f'<section id="tab-{name}">{body}</section>' for name, body in chapters)
    live = LIVE.format(escape(events, quote=True)) if events else ""
    policy = POLICY.format("'self'" if events else "'none'")
    return "".join(
        (
            f'{HEAD}<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{asset('uPlot.min.css')}{html.STYLE}{asset('page.css')}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>{WRITTEN.format(utc_now())}{THEME}</header>",
            f"{live}<nav>{links}</nav><main>{bodies}</main>",
            '<dialog id="record"><form method="dialog"><button>close</button></form><div></div></dialog>',
            *map(in_full, range(len(shelf.records)), shelf.records),
            f"<script>{asset('uPlot.iife.min.js')}</script><script>{asset('page.js')}</script></body></html>\n",
        )
    )


def contents(shelf: Shelf, numbers: Numbers) -> Iterator[tuple[str, str]]:
    """Yield every tab's name and body."""
    records = shelf.records
    series = histories(records, shelf.accepted)
    held = overview.budget_states(shelf.budgets, records)
    omitted = overview.omitted(shelf.left_out)
    found = overview.find_attention(series, held, records)
    looks = overview.draw_attention(found, numbers) + overview.unsure(records) if records else ""
    speeds = overview.draw_overview(series, numbers, records)
    yield "overview", looks + speeds + overview.draw_budgets(held, numbers) + omitted
    yield "trend", overview.draw_trends(series, held, numbers)
    yield "phases", phases(records, numbers)
    yield "comparisons", comparisons(records, numbers)
    yield "flames", flame_graphs(shelf.entries)
    yield "training", training(records, numbers)
    yield "sweeps", draw_sweeps(records, numbers)
    yield "replays", replays(shelf.replays)
    yield "records", listing(shelf.entries, numbers)


def in_full(number: int, record: Record) -> str:
    """Return a record as its command shows it, kept as text, which ends no element, until it is opened."""
    sections = (*record_sections(record), *notices([record]))
    told = f"<h1>{escape(record.kind)} {escape(record.run_id)}</h1>{html.draw(sections)}"
    harmless = told.replace("</script", "<\\/script").replace("<!--", "&lt;!--")
    return f'<script type="text/plain" id="record-{number}">{harmless}</script>'


@cache
def asset(name: str) -> str:
    return (files("hotloop.report.page") / "assets" / name).read_text(encoding="utf-8")


MOST = 120  # Comparisons that are drawn, the latest

# Values of a training's windows that are drawn, and what they are called.
CURVES = {
    "env_steps_per_s": "env-steps/s",
    "return_per_agent": "return per agent",
    "eval_return": "return in evaluation",
    "agreement": "agreement with the teacher",
}


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the latest of every target, by name."""
    found = {record.target.words: record for record in records}
    return [found[name] for name in sorted(found)]


def phases(records: Sequence[Record], numbers: Numbers) -> str:
    """Return where the time of every target goes: all at one glance, then each in full."""
    timed = (record for record in records if record.kind in ("profile", "bench", "train", "run"))
    found = latest(record for record in timed if record.phases)
    if not found:
        return "<p>No profile yet: <code>hotloop profile TARGET</code> makes one.</p>"
    drawn = [shapes.Bar(name=r.target.words, shares=shares(r), record=numbers[r.run_id]) for r in found]
    each = "".join(
        f"<details><summary>{escape(record.target.words)} "
        f'<small class="dim">{escape(record.kind)}, {escape(machine_line(record.machine))}</small></summary>'
        f"{html.draw((breakdown(record),) if record.kind != 'train' else record_sections(record))}"
        f"{html.draw(slow(record)) if record.slow else ''}</details>"
        for record in found
    )
    hint = '<p class="hint">Share of the wall time. A click opens the record.</p>'
    return f"{hint}{wide(shapes.draw_bars(drawn))}{each}"


def wide(picture: str) -> str:
    """Return a picture that may be wider than a phone: it is moved sideways, and the page stays."""
    return f'<div class="wide">{picture}</div>'


def shares(record: Record) -> dict[str, float]:
    """Return the rows right below the whole, and what is left over."""
    tree = account_of(record) if record.kind in ("train", "run") else None
    if tree is None and is_tree(record):
        tree = loop_rows(record)
    if tree is not None:
        found = {row.name: row.total_ns / max(tree.total_ns, 1) for row in tree.children}
    else:
        lines = step_lines(record)
        parts = [line for line in lines if not line.is_sum and line.name != REST]
        found = {line.name: line.ns / lines[-1].ns for line in parts}
    rest = 1 - sum(found.values())
    return found | ({shapes.REST: rest} if rest > 0.001 else {})


def comparisons(records: Sequence[Record], numbers: Numbers) -> str:
    """Return every comparison with its interval, the latest first."""
    compared = [record for record in reversed(records) if record.kind == "compare"]
    found = [(record, each) for record in compared for each in record.comparisons]
    effects = [
        shapes.Effect(
            name=f"{each.a.name} → {each.b.name}",
            made=record.created[:10],
            about=f"{overview.when(record)}, {machine_name(record)}",
            estimate=each.ratio.estimate,
            low=each.ratio.low,
            high=each.ratio.high,
            outcome="slower" if each.difference else each.outcome,
            record=numbers[record.run_id],
        )
        for record, each in found[:MOST]
        if each.ratio
    ]
    if not effects:
        return "<p>No comparison yet: <code>hotloop compare A B</code> makes one.</p>"
    more = f"The latest {MOST} of {len(found):,}. " if len(found) > MOST else ""
    unmeasured = len(found[:MOST]) - len(effects)
    without = f"{unmeasured:,} without a ratio are left out. " if unmeasured else ""
    machines = sorted({machine_name(record) for record, _ in found[:MOST]})
    where = machines[0] if len(machines) == 1 else f"{len(machines)} machines: point at a line for its own"
    hint = (
        f"{more}{without}Above 1, B is faster; the line is the 95% interval. A click opens the record. "
        f"On {escape(where)}."
    )
    return f'<p class="hint">{hint}</p>{wide(shapes.draw_forest(effects))}'


def machine_name(record: Record) -> str:
    return f"{record.machine['cpu']} ({record.machine['fingerprint']})"


def flame_graphs(entries: Sequence[Entry]) -> str:
    """Return the stacks of every target's latest profile that kept some, and what changed since the last."""
    found: dict[str, list[tuple[Record, Mapping[Stack, float]]]] = {}
    for entry in entries:
        if kept := stacks_of(entry):
            found.setdefault(entry.record.target.words, []).append((entry.record, kept))
    if not found:
        return "<p>No stacks yet: <code>hotloop profile TARGET --probe cprofile</code> keeps some.</p>"
    figures = []
    for name in sorted(found):
        *others, (record, seconds) = found[name]
        when = overview.when(record)
        title = f"{name}, {when}: seconds on {machine_name(record)}, a caller over what it calls"
        figures.append(shapes.draw_flames(seconds, title, script=False))
        for before, then in others[-1:]:
            title = f"{name}, {when} against {overview.when(before)}"
            title += ": orange takes more of the whole, blue less"
            figures.append(shapes.draw_flames(seconds, title, before=then, script=False))
    search = '<input class="flame-search" type="search" placeholder="a function" aria-label="function">'
    head = f'<div><div class="search">{search} <small class="dim"></small></div>'
    return "".join(f"{head}{wide(svg)}</div>" for svg in figures)


def stacks_of(entry: Entry) -> Mapping[Stack, float] | None:
    """Return the stacks in a record's own folder, under its own name; None if there are none to be read."""
    if entry.path is None:
        return None
    stem = entry.path.name.removesuffix(".json")
    for name in (name for found in entry.record.findings for name in found.files):
        path = entry.path.with_name(f"{stem}.{Path(name).name}")
        if name.endswith(".speedscope.json") and path.is_file():
            with suppress(OSError, ValueError, KeyError, TypeError, InputError):
                return stacks.read(path)
    return None


def training(records: Sequence[Record], numbers: Numbers) -> str:
    """Return every run's curves over its windows, the latest run first, one plot a quantity."""
    runs = [record for record in reversed(records) if record.kind in ("train", "run")]
    figures = []
    for record in runs[:40]:
        about = f"by window; {record.label or overview.when(record)}, {machine_line(record.machine)}"
        for name, words in CURVES.items():
            values = record.values.get(name, ())
            if values:
                plot = Plot(
                    x=tuple(map(float, range(1, len(values) + 1))),
                    series=(PlotCurve(name=words, values=values),),
                    opens=(numbers[record.run_id],) * len(values),
                )
                figures.append(figure(plot, f"{record.target.words}: {words}", about))
    if not figures:
        return "<p>No training yet: <code>hotloop train TARGET run=NAME</code> makes one.</p>"
    more = f"The latest 40 of {len(runs):,} runs. " if len(runs) > 40 else ""
    return f'<p class="hint">{more}A click on a point opens the record.</p>{plots(figures)}'


LISTED = ("made", "kind", "target", "label", "ended", "spread", "commit", "machine")


def listing(entries: Sequence[Entry], numbers: Numbers) -> str:
    """Return every record in a row, the latest first; rows are data until they are scrolled to.

    A row is what a click opens, the tone of its verdict, and its cells.
    """
    rows = []
    for record in (entry.record for entry in reversed(entries)):
        tone, word = overview.state(record)
        metric = record.metrics.get(record.method.headline)
        cv = metric.cv if metric else None
        cells = (
            overview.when(record),
            record.kind,
            record.target.words,
            record.label or "",
            word,
            "" if cv is None else percent(cv),
            record.code.get("project", record.code)["commit"][:12],
            record.machine["fingerprint"],
        )
        rows.append((numbers[record.run_id], tone, cells))
    data = json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")
    search = '<input id="record-search" type="search" placeholder="search" aria-label="search records">'
    heads = "".join(f"<th>{name}</th>" for name in LISTED)
    return (
        f'<p>{search} <small class="dim" id="record-count"></small></p>'
        f'<div id="records">{html.framed(heads, "")}</div>'
        f'<script type="application/json" id="record-rows">{data}</script>'
    )


PLAYER = (
    '<button data-act="back">◀</button><button data-act="play">play</button>'
    '<button data-act="forward">▶</button>'
    '<button data-act="jump">jump to the mark</button>'
)


def replays(found: Sequence[Frames]) -> str:
    """Return tapes and bundles, to be stepped through."""
    players = []
    for each in found:
        data = escape(json.dumps([asdict(frame) for frame in each.frames]), quote=True)
        has_pictures = any(frame.picture for frame in each.frames)
        shown = '<div><img alt="the env"></div>' if has_pictures else "<pre></pre>"
        last = max(len(each.frames) - 1, 0)
        slider = f'<input type="range" min="0" max="{last}" value="0" aria-label="step">'
        players.append(
            f"<h3>{escape(each.title)}</h3>"
            f'<div class="player" data-frames="{data}">{PLAYER}{slider}<output></output>{shown}</div>'
        )
    none = "<p>No frames yet: <code>hotloop sim --replay TAPE --frames</code> draws some.</p>"
    return "".join(players) or none


KINDS = ("scale", "tune", "soak", "suite", "gate")  # Of records about many measurements
CORNERS = 24  # Of a law's line
NONE = "<p>No sweep yet: <code>hotloop scale TARGET agents=10,100</code> makes one.</p>"


def draw_sweeps(records: Sequence[Record], numbers: Numbers) -> str:
    """Return every sweep, its words above its plots."""
    parts = []
    for kind in KINDS:
        for record in latest(record for record in records if record.kind == kind):
            title = f"{kind} {escape(record.target.words)}"
            drawn = []
            for panel in record_panels(record):
                about = f"by {panel.across}; {machine_line(record.machine)}"
                # What each curve is called is read below the plot.
                told = panel.curves[0].name if len(panel.curves) == 1 else ""
                drawn.append(figure(plot_of(panel), panel.title, about, told))
            parts.append(f'<h2 class="opens" data-record="{numbers[record.run_id]}">{title}</h2>')
            parts.append(html.draw(without_drawings(record_sections(record))) + plots(drawn))
    return "".join(parts) or NONE


def without_drawings(sections: Sequence[Section]) -> Iterator[Section]:
    """Yield all but pictures of letters, and what stands above them: the page has plots."""
    for section, after in zip_longest(sections, sections[1:]):
        is_above = isinstance(section, Heading) and isinstance(after, Drawing)
        if section is not None and not isinstance(section, Drawing) and not is_above:
            yield section


def plot_of(panel: Panel) -> Plot:
    """Return points where they were measured, laws by as many corners as it takes to look round."""
    places = {x for curve in panel.curves for x, _ in curve.points}
    if any(curve.law for curve in panel.curves):
        low, high = min(places), max(places)
        places |= {
            low * (high / low) ** (k / CORNERS) if panel.powers else low + (high - low) * k / CORNERS
            for k in range(CORNERS + 1)
        }
    across, curves = tuple(sorted(places)), list[PlotCurve]()
    for each in panel.curves:
        values = dict(each.points)
        measured = tuple(values.get(x) for x in across)
        curves.append(PlotCurve(name=each.name, values=measured, dots=not each.joined))
    for number, each in enumerate(panel.curves):
        if each.law is None:
            continue
        # From its first point to its last, where it has a place on the axis.
        first, last, fitted = each.points[0][0], each.points[-1][0], list[Value]()
        for x in across:
            value = each.law(x) if first <= x <= last else None
            fitted.append(value if value is not None and (value > 0 or not panel.powers) else None)
        curves.append(PlotCurve(name="", values=tuple(fitted), of=number))
    return Plot(x=across, series=tuple(curves), powers=panel.powers)
