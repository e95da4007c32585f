"""Sweeps: sizes, settings and time, the latest of each kind and target, as its command shows it."""

from collections.abc import Iterator, Sequence
from html import escape

from hotloop.core.record.record import Record
from hotloop.report import html
from hotloop.report.charts import Curve as Drawn
from hotloop.report.charts import Panel
from hotloop.report.facts import machine_line
from hotloop.report.kinds.record import record_panels, record_sections
from hotloop.report.page.plot import Curve, Plot, Value, figure, plots
from hotloop.report.page.tabs import Numbers, latest
from hotloop.report.section import Drawing, Heading, Section

KINDS = ("scale", "tune", "soak", "suite", "gate")  # Of records about many measurements
CORNERS = 24  # Of a law's line
NONE = "<p>No sweep yet: <code>hotloop scale TARGET agents=10,100</code> makes one.</p>"


def draw(records: Sequence[Record], numbers: Numbers) -> str:
    """Every sweep, its words above its plots."""
    return "".join(part for kind in KINDS for part in of_kind(kind, records, numbers)) or NONE


def of_kind(kind: str, records: Sequence[Record], numbers: Numbers) -> Iterator[str]:
    for record in latest(records, lambda record: record.kind == kind):
        title = f"{kind} {escape(record.target.words)}"
        yield f'<h2 class="opens" data-record="{numbers[record.run_id]}">{title}</h2>'
        yield html.draw(without_drawings(record_sections(record)))
        yield plots([plotted(panel, record) for panel in record_panels(record)])


def without_drawings(sections: Sequence[Section]) -> Iterator[Section]:
    """All but pictures of letters, and what stands above them: the page has plots."""
    for index, section in enumerate(sections):
        after = sections[index + 1] if index + 1 < len(sections) else None
        if not isinstance(section, Drawing) and not (
            isinstance(section, Heading) and isinstance(after, Drawing)
        ):
            yield section


def plotted(panel: Panel, record: Record) -> str:
    """A panel as a plot; what each curve is called is read below it."""
    about = f"by {panel.across}; {machine_line(record.machine)}"
    told = panel.curves[0].name if len(panel.curves) == 1 else ""
    return figure(plot_of(panel), panel.title, about, told)


def plot_of(panel: Panel) -> Plot:
    """Points where they were measured, laws by as many corners as it takes to look round."""
    places = {x for curve in panel.curves for x, _ in curve.points}
    if any(curve.law for curve in panel.curves):
        places |= set(corners(min(places), max(places), powers=panel.powers))
    across = tuple(sorted(places))
    curves = [measured(curve, across) for curve in panel.curves]
    laws = [
        law(curve, across, number, powers=panel.powers)
        for number, curve in enumerate(panel.curves)
        if curve.law
    ]
    return Plot(x=across, series=(*curves, *laws), powers=panel.powers)


def corners(low: float, high: float, *, powers: bool) -> Iterator[float]:
    for k in range(CORNERS + 1):
        yield low * (high / low) ** (k / CORNERS) if powers else low + (high - low) * k / CORNERS


def measured(curve: Drawn, across: Sequence[float]) -> Curve:
    values = dict(curve.points)
    return Curve(name=curve.name, values=tuple(values.get(x) for x in across), dots=not curve.joined)


def law(curve: Drawn, across: Sequence[float], number: int, *, powers: bool) -> Curve:
    """The law from its first point to its last, where it has a place on the axis."""
    function, first, last = curve.law, curve.points[0][0], curve.points[-1][0]
    assert function is not None

    def at(x: float) -> Value:
        value = function(x) if first <= x <= last else None
        return value if value is not None and (value > 0 or not powers) else None

    return Curve(name="", values=tuple(map(at, across)), of=number)
