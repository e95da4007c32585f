"""The page as one file: styles, script and data inside, nothing fetched."""

from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files

from hotloop.core.clock import utc_now
from hotloop.core.record import Record
from hotloop.judge.history import histories
from hotloop.report import html
from hotloop.report.facts import notices
from hotloop.report.kinds.record import record_sections
from hotloop.report.page import overview, tabs, trend
from hotloop.report.page.shelf import Shelf

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
            *(in_full(index, record) for index, record in enumerate(shelf.records)),
            f"<script>{asset('uPlot.iife.min.js')}</script><script>{asset('page.js')}</script></body></html>\n",
        )
    )


def contents(shelf: Shelf, numbers: tabs.Numbers) -> Iterator[tuple[str, str]]:
    """Yield every tab's name and body."""
    records = shelf.records
    series = histories(records, shelf.accepted)
    held = overview.budget_states(shelf.budgets, records)
    omitted = overview.omitted(shelf.left_out)
    found = overview.find_attention(series, held, records)
    looks = overview.draw_attention(found, numbers) + overview.unsure(records) if records else ""
    speeds = overview.draw_overview(series, numbers, records)
    yield "overview", looks + speeds + overview.draw_budgets(held, numbers) + omitted
    yield "trend", trend.draw_trends(series, overview.budget_levels(held), numbers)
    yield "phases", tabs.phases(records, numbers)
    yield "comparisons", tabs.comparisons(records, numbers)
    yield "flames", tabs.flame_graphs(shelf.entries)
    yield "training", tabs.training(records, numbers)
    yield "sweeps", tabs.draw_sweeps(records, numbers)
    yield "replays", tabs.replays(shelf.replays)
    yield "records", tabs.listing(shelf.entries, numbers)


def in_full(number: int, record: Record) -> str:
    """Return a record as its command shows it, kept as text until somebody opens it."""
    sections = (*record_sections(record), *notices([record]))
    told = f"<h1>{escape(record.kind)} {escape(record.run_id)}</h1>{html.draw(sections)}"
    return f'<script type="text/plain" id="record-{number}">{harmless(told)}</script>'


def harmless(text: str) -> str:
    """Text that cannot end the element it stands in."""
    return text.replace("</script", "<\\/script").replace("<!--", "&lt;!--")


@cache
def asset(name: str) -> str:
    return (files("hotloop.report.page") / "assets" / name).read_text(encoding="utf-8")
