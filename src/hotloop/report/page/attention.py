"""What needs a look: levels that fell, budgets that are not met, and latest runs that ended badly."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hotloop.core.record.record import Record
from hotloop.judge.compare import unlike_plays
from hotloop.judge.history import Series
from hotloop.report.kinds import gate
from hotloop.report.kinds.overview import unlike_words
from hotloop.report.page.budgets import Known
from hotloop.report.page.overview import state
from hotloop.report.section import text_of
from hotloop.report.units import count, speed

MOST = 6  # Lines that are shown at once; the rest is a click away
FINE = "Nothing needs a look: no level fell, no enforced budget is missed, and no latest run ended badly."


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One line, and the run that a click on it opens."""

    tone: str
    word: str
    told: str
    run_id: str


def draw(looks: Sequence[Look], numbers: Mapping[str, int]) -> str:
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


def find(series: Iterable[Series], budgets: Iterable[Known], records: Iterable[Record]) -> list[Look]:
    """The gravest kind first: what answers wrongly, what is missed, what got slower."""
    known = list(records)
    return [*endings(known), *missed(budgets), *unlike(known), *falls(series)]


def latest(records: Iterable[Record]) -> Collection[Record]:
    """The latest run of every command and target; budgets speak for themselves."""
    found = {(each.kind, each.target.words, each.label): each for each in records if not each.held}
    return found.values()


def unsure(records: Iterable[Record]) -> str:
    """How many of the latest runs tell little; nothing where all are sound."""
    words = Counter(word for tone, word in map(state, latest(records)) if tone == "warn")
    told = ", ".join(f"{number:,} {word}" for word, number in words.items())
    return (
        f'<p class="hint">Of the latest runs {told}: what they say of speed means little.</p>' if told else ""
    )


def endings(records: Iterable[Record]) -> Iterator[Look]:
    """Latest runs that ended badly."""
    for record in latest(records):
        tone, word = state(record)
        if tone == "bad":
            told = f"{record.kind} {record.target.words}, {record.created[:16].replace('T', ' ')}"
            yield Look(tone=tone, word=word, told=told, run_id=record.run_id)


def unlike(records: Iterable[Record]) -> Iterator[Look]:
    """Latest runs whose short play showed something else than that of an earlier one."""
    for first, record, steps in unlike_plays(sorted(latest(records), key=lambda each: each.created)):
        told = f"{record.kind} {record.target.words}: {unlike_words(first, steps)}"
        yield Look(tone="bad", word="other code", told=told, run_id=record.run_id)


def missed(budgets: Iterable[Known]) -> Iterator[Look]:
    """Budgets that went red when they were held last; one that the project has given up is history."""
    for each in budgets:
        held = each.latest.held if each.latest else None
        if each.latest and held and each.enforced and held.standing != "met":
            word = gate.verdict(held)
            told = text_of(gate.because(gate.Shown(name=each.name, held=held, record=each.latest)))
            yield Look(tone=word.tone, word=word.text, told=told, run_id=each.latest.run_id)


def falls(series: Iterable[Series]) -> Iterator[Look]:
    """Speeds whose last change of level was one for the worse, the deepest first."""
    found = [(each, each.changes[-1]) for each in series if each.changes and each.changes[-1].ratio < 1]
    for each, change in sorted(found, key=lambda pair: pair[1].ratio):
        point = each.points[change.index]
        told = (
            f"{each.identity.target} ({each.identity.kind}) {change.ratio - 1:+.1%} since "
            f"{point.commit[:8]}: {speed(change.before)} before, {speed(change.after)} after"
        )
        yield Look(tone="bad", word="slower", told=told, run_id=point.run_ids[-1])
