"""Episodes that were played: what they came to, and what happened in them."""

from collections.abc import Sequence
from statistics import fmean

from hotloop.core.record import (
    CONTEST,
    ENDED,
    EPISODES_PER_S,
    FORWARD,
    MEAN,
    OUTCOME,
    REASON,
    RETURN_OF,
    SPLIT,
    WITHIN,
    Record,
    Resources,
)
from hotloop.report.sections.facts import log_lines, mean_line, origin, pace_line, path_line, title, work_line
from hotloop.report.sections.findings import resources
from hotloop.report.sections.section import (
    Chapter,
    Facts,
    Note,
    Page,
    Section,
    Sections,
    Span,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import plain, took
from hotloop.stats.intervals import wilson_interval

MOST_AGENTS = 8
"""That have rows of their own."""


def sim(record: Record) -> Sections:
    """What the episodes came to, what happened in them, and how long it took."""
    return title(record), about(record), *coverage(record)


def page(record: Record) -> Page:
    """The same as a page of its own."""
    chapters = (
        Chapter(title="Results", sections=(about(record),), summary=True),
        Chapter(title="Time Breakdown", sections=(times(record),)),
        Chapter(title="What happened", sections=coverage(record)),
    )
    return Page(title=f"Profile of {record.target.name}", when=record.created, chapters=chapters)


def times(record: Record) -> Section:
    """The parts of the time, with what each takes of a step."""
    parts = {n.removeprefix(SPLIT): ns[0] for n, ns in record.values.items() if n.startswith(SPLIT)}
    whole, steps = sum(parts.values()) or 1.0, record.work.env_steps
    rows = [
        (name.replace(WITHIN, ", "), f"{ns / whole:.1%}", took(ns), took(ns / steps))
        for name, ns in parts.items()
    ]
    return table((*text_columns("part"), *number_columns("share", "time", "a step")), rows)


def about(record: Record) -> Facts:
    if f"{CONTEST}won" in record.values:
        return about_games(record)
    return facts(
        ("player", record.method.policy),
        ("episodes", f"{record.method.rounds:,}"),
        ("length", mean_line(record, "episode_length", "steps")),
        ("return", Span(mean_line(record, "return_per_agent", "per agent"), strong=True)),
        *outcomes(record),
        *history(record),
        ("work", work_line(record)),
        *log_lines(record),
        ("speed", f"{pace_line(record)}, the player's choosing included"),
        *(("episodes/s", f"{value:,.1f}") for value in record.values.get(EPISODES_PER_S, ())),
        *origin(record),
        ("path", path_line(record)),
    )


def outcomes(record: Record) -> list[tuple[str, Span]]:
    """What episodes came to by the world's own measures; of many agents only the least and the most."""
    names = [name for name in record.values if name.startswith(OUTCOME)]
    agents = {name: fmean(record.values[name]) for name in names if name.startswith(RETURN_OF)}
    many = agents if len(agents) > MOST_AGENTS else {}
    rows = [(name.removeprefix(OUTCOME), mean_line(record, name)) for name in names if name not in many]
    if many:
        ends = (min(many, key=agents.__getitem__), max(many, key=agents.__getitem__))
        low, high = (f"{plain(many[name])} ({name.removeprefix(RETURN_OF)})" for name in ends)
        rows.append((f"means of {len(many)} agents", f"from {low} to {high}"))
    return [(name, Span(said, strong=True)) for name, said in rows]


def history(record: Record) -> list[tuple[str, str]]:
    """What a world's history is about, as means over all steps, and why its episodes ended."""
    means: dict[str, list[str]] = {}
    for name in (name for name in record.values if name.startswith(MEAN)):
        heading, _, label = name.removeprefix(MEAN).partition(".")
        means.setdefault(heading, []).append(f"{label} {plain(fmean(record.values[name]))}")
    ended = {name.removeprefix(ENDED): n[0] for name, n in record.values.items() if name.startswith(ENDED)}
    told = [(f"mean {heading}", ", ".join(each)) for heading, each in means.items()]
    by = ", ".join(f"{reason}: {int(count):,}" for reason, count in ended.items())
    return [*told, *([("ended by", by)] if by else [])]


def about_games(record: Record) -> Facts:
    """Who won, how fast it went, why games ended, and where the time went."""
    values = record.values
    games, decisions = values[f"{CONTEST}games_per_s"][0], values[f"{CONTEST}decisions_per_s"][0]
    ended = {name.removeprefix(REASON): n[0] for name, n in values.items() if name.startswith(REASON)}
    return facts(
        ("player", record.method.policy),
        ("games", f"{record.method.rounds:,}"),
        ("speed", Span(f"{games:,.0f} games/s, {decisions:,.0f} decisions/s", strong=True)),
        ("steps a game", spread_line(record.values["episode_length"])),
        ("won", Span(share_line(record, None), strong=True)),
        ("won, first turn", share_line(record, 1.0)),
        ("won, second turn", share_line(record, 0.0)),
        ("ended by", ", ".join(f"{name} {int(count):,}" for name, count in ended.items())),
        ("split", split_line(record)),
        ("a step", step_line(record)),
        ("work", work_line(record)),
        *((name.lower(), text) for name, text in resources(record.resources or Resources(), record)),
        *origin(record),
        ("path", path_line(record)),
    )


def share_line(record: Record, began: float | None) -> str:
    """The share of games that were won, with Wilson's interval; a draw is half."""
    pairs = zip(record.values[f"{CONTEST}won"], record.values[f"{CONTEST}began"], strict=True)
    won = [win for win, first in pairs if began is None or first == began]
    if not won:
        return "no game"
    low, high = wilson_interval(sum(won), len(won))
    return f"{sum(won) / len(won):.1%} [{low:.1%}, {high:.1%}] of {len(won):,}"


def split_line(record: Record) -> str:
    """Where the time went; with threads their times add up to more than the wall's."""
    parts = {n.removeprefix(SPLIT): ns[0] for n, ns in record.values.items() if n.startswith(SPLIT)}
    whole = sum(parts.values()) or 1.0
    told: dict[str, list[str]] = {}
    for name, ns in parts.items():
        part, _, within = name.partition(WITHIN)
        told.setdefault(part, []).append(f"{within} {ns / whole:.1%}".strip())
    sums = {part: sum(ns for name, ns in parts.items() if name.partition(WITHIN)[0] == part) for part in told}
    lines = {part: f" ({', '.join(within)})" if len(within) > 1 else "" for part, within in told.items()}
    line = ", ".join(f"{part} {sums[part] / whole:.1%}{lines[part]}" for part in told)
    threads = int(record.target.variant.get("threads", 1))
    return line if threads == 1 else f"{line} ({threads} threads: no clean split, use one)"


def step_line(record: Record) -> str:
    """What one row's step took: in the network, and everything else."""
    wall, steps = record.values["wall_ns"][0], record.work.env_steps
    forward = record.values.get(FORWARD, (0.0,))[0]
    return f"{took(forward / steps)} in a network, {took((wall - forward) / steps)} in all else"


def spread_line(values: Sequence[float]) -> str:
    """The mean of some numbers, and where the lowest and highest twentieth of them begin."""
    ordered = sorted(values)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.05, 0.95))
    return f"mean {plain(fmean(ordered))}, p5 {plain(low)}, p95 {plain(high)}"


def coverage(record: Record) -> tuple[Section, ...]:
    """Every mechanic that fired, the most frequent first, and those that never did."""
    counted = sorted(record.work.coverage.items(), key=lambda item: -item[1])
    if not counted:
        return ()
    columns = number_columns("times", "per episode", "per 1,000 agent-steps")
    rows = [(name, *often(record, times)) for name, times in counted if times]
    fired = table((*text_columns("what happened"), *columns), rows)
    never = ", ".join(name for name, times in counted if not times)
    return (fired, Note(words=Span(f"never happened: {never}", "dim"))) if never else (fired,)


def often(record: Record, times: int) -> tuple[str, str, str]:
    """How often something happened: in all, an episode, an agent-step."""
    per_episode = f"{times / record.method.rounds:,.1f}" if record.method.rounds else ""
    return f"{times:,}", per_episode, f"{1_000 * times / record.work.agent_steps:,.2f}"
