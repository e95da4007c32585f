"""The page tabs beyond the overview, each drawn from the latest record of every target that has it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from html import escape
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.record import Frames, Record, stacks
from hotloop.core.record.comparison import Comparison
from hotloop.core.record.stacks import Stack
from hotloop.core.time_tree import REST
from hotloop.report import flames, html, shapes
from hotloop.report.charts import Curve as Drawn
from hotloop.report.charts import Panel
from hotloop.report.facts import machine_line
from hotloop.report.kinds import slow
from hotloop.report.kinds.record import record_panels, record_sections
from hotloop.report.kinds.times import account_of, breakdown, is_tree, loop_rows, step_lines
from hotloop.report.page.overview import state
from hotloop.report.page.shelf import Entry
from hotloop.report.page.trend import Curve, Plot, Value, figure, plots
from hotloop.report.section import Drawing, Heading, Section
from hotloop.report.units import percent

Numbers = Mapping[str, int]  # Run ids, and what a click on them opens
MOST = 120  # Comparisons that are drawn, the latest

# Values of a training's windows that are drawn, and what they are called.
CURVES = {
    "env_steps_per_s": "env-steps/s",
    "return_per_agent": "return per agent",
    "eval_return": "return in evaluation",
    "agreement": "agreement with the teacher",
}


def latest(records: Sequence[Record], wanted: Callable[[Record], bool]) -> list[Record]:
    """Return the latest of every target that is wanted, by name."""
    found = {record.target.words: record for record in records if wanted(record)}
    return [found[name] for name in sorted(found)]


def phases(records: Sequence[Record], numbers: Numbers) -> str:
    """Return where the time of every target goes: all at one glance, then each in full."""
    found = latest(
        records, lambda record: bool(record.phases) and record.kind in ("profile", "bench", "train", "run")
    )
    if not found:
        return "<p>No profile yet: <code>hotloop profile TARGET</code> makes one.</p>"
    drawn = [shapes.Bar(name=r.target.words, shares=shares(r), record=numbers[r.run_id]) for r in found]
    each = "".join(
        f"<details><summary>{escape(record.target.words)} "
        f'<small class="dim">{escape(record.kind)}, {escape(machine_line(record.machine))}</small></summary>'
        f"{html.draw((breakdown(record),) if record.kind != 'train' else record_sections(record))}"
        f"{html.draw(slow.slow(record)) if record.slow else ''}</details>"
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
    found = [
        (record, each)
        for record in reversed(records)
        if record.kind == "compare"
        for each in record.comparisons
    ]
    effects = [effect(record, each, numbers) for record, each in found[:MOST] if each.ratio]
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


def effect(record: Record, compared: Comparison, numbers: Numbers) -> shapes.Effect:
    """Return a comparison as a line of the forest plot."""
    ratio = compared.ratio
    assert ratio
    return shapes.Effect(
        name=f"{compared.a.name} → {compared.b.name}",
        made=record.created[:10],
        about=f"{record.created[:16].replace('T', ' ')}, {machine_name(record)}",
        estimate=ratio.estimate,
        low=ratio.low,
        high=ratio.high,
        outcome="slower" if compared.difference else compared.outcome,
        record=numbers[record.run_id],
    )


def machine_name(record: Record) -> str:
    return f"{record.machine['cpu']} ({record.machine['fingerprint']})"


def flame_graphs(entries: Sequence[Entry]) -> str:
    """The stacks of every target's latest profile that kept some, and what changed since the one before."""
    found: dict[str, list[tuple[Entry, Mapping[Stack, float]]]] = {}
    for entry in entries:
        if kept := stacks_of(entry):
            found.setdefault(entry.record.target.words, []).append((entry, kept))
    if not found:
        return "<p>No stacks yet: <code>hotloop profile TARGET --probe cprofile</code> keeps some.</p>"
    return "".join(part for name in sorted(found) for part in graphs(name, found[name][-2:]))


def graphs(name: str, found: Sequence[tuple[Entry, Mapping[Stack, float]]]) -> Iterator[str]:
    """Yield the latest, and its difference from the one before."""
    entry, seconds = found[-1]
    when = entry.record.created[:16].replace("T", " ")
    title = f"{name}, {when}: seconds on {machine_name(entry.record)}, a caller over what it calls"
    yield flame_figure(flames.draw(seconds, title, script=False))
    if len(found) > 1:
        before = found[0][0].record.created[:16].replace("T", " ")
        title = f"{name}, {when} against {before}: orange takes more of the whole, blue less"
        yield flame_figure(flames.draw(seconds, title, before=found[0][1], script=False))


def flame_figure(svg: str) -> str:
    search = '<input class="flame-search" type="search" placeholder="a function" aria-label="function">'
    return f'<div><div class="search">{search} <small class="dim"></small></div>{wide(svg)}</div>'


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
    """Return every run's curves over its windows, the latest first."""
    runs = [record for record in reversed(records) if record.kind in ("train", "run")]
    figures = [curve for record in runs[:40] for curve in curves(record, numbers)]
    if not figures:
        return "<p>No training yet: <code>hotloop train TARGET run=NAME</code> makes one.</p>"
    more = f"The latest 40 of {len(runs):,} runs. " if len(runs) > 40 else ""
    return f'<p class="hint">{more}A click on a point opens the record.</p>{plots(figures)}'


def curves(record: Record, numbers: Numbers) -> Iterator[str]:
    """Yield what is known of each window, one plot a quantity."""
    about = f"{record.label or record.created[:16].replace('T', ' ')}, {machine_line(record.machine)}"
    for name, words in CURVES.items():
        values = record.values.get(name, ())
        if values:
            plot = Plot(
                x=tuple(map(float, range(1, len(values) + 1))),
                series=(Curve(name=words, values=values),),
                opens=(numbers[record.run_id],) * len(values),
            )
            yield figure(plot, f"{record.target.words}: {words}", f"by window; {about}")


def listing(entries: Sequence[Entry], numbers: Numbers) -> str:
    """Return every record in a row, the latest first; rows are data until somebody comes near them."""
    heads = "".join(
        f"<th>{name}</th>"
        for name in ("made", "kind", "target", "label", "ended", "spread", "commit", "machine")
    )
    rows = [listed(entry.record, numbers) for entry in reversed(entries)]
    data = json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")
    search = '<input id="record-search" type="search" placeholder="search" aria-label="search records">'
    return (
        f'<p>{search} <small class="dim" id="record-count"></small></p>'
        f'<div id="records">{html.framed(heads, "")}</div>'
        f'<script type="application/json" id="record-rows">{data}</script>'
    )


def listed(record: Record, numbers: Numbers) -> tuple[int, str, tuple[str, ...]]:
    """Return what a click opens, the tone of its verdict, and the cells."""
    tone, word = state(record)
    metric = record.metrics.get(record.method.headline)
    cv = metric.cv if metric else None
    cells = (
        record.created[:16].replace("T", " "),
        record.kind,
        record.target.words,
        record.label or "",
        word,
        "" if cv is None else percent(cv),
        record.code.get("project", record.code)["commit"][:12],
        record.machine["fingerprint"],
    )
    return numbers[record.run_id], tone, cells


PLAYER = (
    '<button data-act="back">◀</button><button data-act="play">play</button>'
    '<button data-act="forward">▶</button>'
    '<button data-act="jump">jump to the mark</button>'
)


def replays(found: Sequence[Frames]) -> str:
    """Tapes and bundles, to be stepped through."""
    if not found:
        return "<p>No frames yet: <code>hotloop sim --replay TAPE --frames</code> draws some.</p>"
    return "".join(map(player, found))


def player(frames: Frames) -> str:
    data = escape(json.dumps([asdict(frame) for frame in frames.frames]), quote=True)
    shown = (
        '<div><img alt="the env"></div>' if any(frame.picture for frame in frames.frames) else "<pre></pre>"
    )
    last = max(len(frames.frames) - 1, 0)
    slider = f'<input type="range" min="0" max="{last}" value="0" aria-label="step">'
    return (
        f"<h3>{escape(frames.title)}</h3>"
        f'<div class="player" data-frames="{data}">{PLAYER}{slider}<output></output>{shown}</div>'
    )


KINDS = ("scale", "tune", "soak", "suite", "gate")  # Of records about many measurements
CORNERS = 24  # Of a law's line
NONE = "<p>No sweep yet: <code>hotloop scale TARGET agents=10,100</code> makes one.</p>"


def draw_sweeps(records: Sequence[Record], numbers: Numbers) -> str:
    """Return every sweep, its words above its plots."""
    return "".join(part for kind in KINDS for part in of_kind(kind, records, numbers)) or NONE


def of_kind(kind: str, records: Sequence[Record], numbers: Numbers) -> Iterator[str]:
    for record in latest(records, lambda record: record.kind == kind):
        title = f"{kind} {escape(record.target.words)}"
        yield f'<h2 class="opens" data-record="{numbers[record.run_id]}">{title}</h2>'
        yield html.draw(without_drawings(record_sections(record)))
        yield plots([plotted(panel, record) for panel in record_panels(record)])


def without_drawings(sections: Sequence[Section]) -> Iterator[Section]:
    """Yield all but pictures of letters, and what stands above them: the page has plots."""
    for index, section in enumerate(sections):
        after = sections[index + 1] if index + 1 < len(sections) else None
        if not isinstance(section, Drawing) and not (
            isinstance(section, Heading) and isinstance(after, Drawing)
        ):
            yield section


def plotted(panel: Panel, record: Record) -> str:
    """Return a panel as a plot; what each curve is called is read below it."""
    about = f"by {panel.across}; {machine_line(record.machine)}"
    told = panel.curves[0].name if len(panel.curves) == 1 else ""
    return figure(plot_of(panel), panel.title, about, told)


def plot_of(panel: Panel) -> Plot:
    """Points where they were measured, laws by as many corners as it takes to look round."""
    places = {x for curve in panel.curves for x, _ in curve.points}
    if any(curve.law for curve in panel.curves):
        low, high = min(places), max(places)
        places |= {
            low * (high / low) ** (k / CORNERS) if panel.powers else low + (high - low) * k / CORNERS
            for k in range(CORNERS + 1)
        }
    across = tuple(sorted(places))
    measured = [(curve, dict(curve.points)) for curve in panel.curves]
    curves = [
        Curve(name=curve.name, values=tuple(values.get(x) for x in across), dots=not curve.joined)
        for curve, values in measured
    ]
    laws = [
        law(curve, across, number, powers=panel.powers)
        for number, curve in enumerate(panel.curves)
        if curve.law
    ]
    return Plot(x=across, series=(*curves, *laws), powers=panel.powers)


def law(curve: Drawn, across: Sequence[float], number: int, *, powers: bool) -> Curve:
    """Return the law from its first point to its last, where it has a place on the axis."""
    function, first, last = curve.law, curve.points[0][0], curve.points[-1][0]
    assert function is not None

    def at(x: float) -> Value:
        value = function(x) if first <= x <= last else None
        return value if value is not None and (value > 0 or not powers) else None

    return Curve(name="", values=tuple(map(at, across)), of=number)
