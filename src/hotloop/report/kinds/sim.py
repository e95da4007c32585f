"""Episodes that were played: what they came to, and what happened in them."""

from collections.abc import Iterator
from statistics import fmean

from hotloop.core.record import (
    CONTEST,
    ELO,
    ENDED,
    EPISODES_PER_S,
    FORWARD,
    GAMES_PER_S,
    MEAN,
    OUTCOME,
    PAIR,
    REASON,
    RETURN_OF,
    SPLIT,
    WITHIN,
    Record,
    Resources,
)
from hotloop.report.kinds.times import resources
from hotloop.report.section import (
    Facts,
    Note,
    Section,
    Sections,
    Span,
    facts,
    log_lines,
    mean_line,
    number_columns,
    origin,
    pace_line,
    path_line,
    plain,
    speed,
    speed_interval,
    table,
    text_columns,
    title,
    took,
    work_line,
)
from hotloop.stats.summary import wilson_interval

MOST_AGENTS = 8  # That have rows of their own


def sim(record: Record) -> Sections:
    """Return what the episodes came to, what happened in them, and how long it took."""
    tables = [each for found in record.findings if found.probe == ELO for each in found.tables]
    if not tables:
        return title(record), about(record), *coverage(record)
    # The players of a round robin, the strongest first, with their intervals; then each pair, the hero first.
    columns = (*text_columns("player"), *number_columns("Elo", "95% interval", "score", "games"))
    rows = [
        (player, f"{elo:,.0f}", f"[{low:,.0f}, {high:,.0f}]", f"{score:.1%}", f"{games:,}")
        for player, elo, low, high, score, games in tables[0].rows
    ]
    pairs = []
    for name, scores in record.values.items():
        if name.startswith(PAIR):
            draws = len(scores) - scores.count(1.0) - scores.count(0.0)
            drawn = f", {draws:,} draws" if draws else ""
            won = f"hero won {part_line(scores.count(1.0), len(scores))}{drawn}"
            pairs.append((name.removeprefix(PAIR), won))
    return title(record), table(columns, rows), facts(*pairs, *origin(record), ("path", path_line(record)))


def times(record: Record) -> Section:
    """Return the parts of the time as a table: what each takes of an env-step, and its share.

    A part that has parts of its own stands before them, as their sum.
    """
    parts = {n.removeprefix(SPLIT): ns[0] for n, ns in record.values.items() if n.startswith(SPLIT)}
    whole, steps = sum(parts.values()) or 1.0, record.work.env_steps
    timed: dict[str, float] = {}
    for name, ns in parts.items():
        part, _, within = name.partition(WITHIN)
        timed[part] = timed.get(part, 0.0) + ns
        if within:
            timed[f"of it {within}"] = ns
    rows = [(name, took(ns / max(steps, 1)), f"{ns / whole:.1%}") for name, ns in timed.items()]
    return table((*text_columns("Component"), *number_columns("Avg Time", "% of Total")), rows)


def about(record: Record) -> Facts:
    if has_games(record):
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
    """Return what episodes came to by the world's measures; of many agents only the least and the most."""
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
    """Return what a world's history is about, as means over all steps, and why its episodes ended."""
    means: dict[str, list[str]] = {}
    for name in (name for name in record.values if name.startswith(MEAN)):
        heading, _, label = name.removeprefix(MEAN).partition(".")
        means.setdefault(heading, []).append(f"{label} {plain(fmean(record.values[name]))}")
    ended = {name.removeprefix(ENDED): n[0] for name, n in record.values.items() if name.startswith(ENDED)}
    told = [(f"mean {heading}", ", ".join(each)) for heading, each in means.items()]
    by = ", ".join(f"{reason}: {int(count):,}" for reason, count in ended.items())
    return [*told, *([("ended by", by)] if by else [])]


def about_games(record: Record) -> Facts:
    """Return how often each seat won, how fast it went, why games ended, and where the time went."""
    values = record.values
    # Games and decisions per second: the median of windows with its interval, or the whole.
    games, decisions = (values[f"{CONTEST}{what}_per_s"][0] for what in ("games", "decisions"))
    pace, windows = f"{games:,.0f} games/s", record.metrics.get(GAMES_PER_S)
    if windows is not None and windows.ci95 is not None:
        decisions *= windows.median / games
        pace = f"{speed(windows.median)} games/s {speed_interval(windows.ci95)}"
    ended = {name.removeprefix(REASON): n[0] for name, n in values.items() if name.startswith(REASON)}
    # What one row's step took: in the network, and everything else.
    wall, forward, steps = values["wall_ns"][0], values.get(FORWARD, (0.0,))[0], record.work.env_steps
    step = f"{took(forward / steps)} in a network, {took((wall - forward) / steps)} in all else"
    return facts(
        ("player", record.method.policy),
        ("games", f"{record.method.rounds:,}"),
        ("speed", Span(f"{pace}, {decisions:,.0f} decisions/s", strong=True)),
        *wins(record),
        ("ended by", ", ".join(f"{name} {int(count):,}" for name, count in ended.items())),
        ("split", split_line(record)),
        ("a step", step),
        ("work", work_line(record)),
        *((name.lower(), text) for name, text in resources(record.resources or Resources(), record)),
        *origin(record),
        ("path", path_line(record)),
    )


def has_games(record: Record) -> bool:
    """Return whether a record counts games of two seats."""
    return f"{CONTEST}won" in record.values


def wins(record: Record) -> Iterator[tuple[str, str | Span]]:
    """Return the games that each seat won, with Wilson's intervals, and how long games are."""
    won, began = record.values[f"{CONTEST}won"], record.values[f"{CONTEST}began"]
    if not won:
        yield "games won", "no game ended"
        return
    yield "hero won", Span(part_line(won.count(1.0), len(won)), strong=True)
    yield "villain won", part_line(won.count(0.0), len(won))
    if draws := len(won) - won.count(1.0) - won.count(0.0):
        yield "draws", part_line(draws, len(won))
    if len(set(began)) > 1:
        yield "hero, first turn", share_line(record, 1.0)
        yield "hero, second turn", share_line(record, 0.0)
    lengths = sorted(record.values["episode_length"])
    low, high = (lengths[round(share * (len(lengths) - 1))] for share in (0.05, 0.95))
    yield "steps a game", f"mean {plain(fmean(lengths))}, p5 {plain(low)}, p95 {plain(high)}"


def part_line(count: int, whole: int) -> str:
    """Return a share of games with Wilson's interval."""
    low, high = wilson_interval(count, whole)
    return f"{count / whole:.1%} [{low:.1%}, {high:.1%}] of {whole:,}"


def share_line(record: Record, began: float | None) -> str:
    """Return the share of games that the hero won, of all or of those with one first turn."""
    pairs = zip(record.values[f"{CONTEST}won"], record.values[f"{CONTEST}began"], strict=True)
    won = [win for win, first in pairs if began is None or first == began]
    if not won:
        return "no game"
    return part_line(won.count(1.0), len(won))


def split_line(record: Record) -> str:
    """Return where the time went; with threads their times add up to more than the wall's."""
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


def coverage(record: Record) -> tuple[Section, ...]:
    """Return every mechanic that fired, the most frequent first, and those that never did."""
    counted = sorted(record.work.coverage.items(), key=lambda item: -item[1])
    if not counted:
        return ()
    columns = number_columns("times", "per episode", "per 1,000 agent-steps")
    rows = []
    for name, times in counted:
        if times:
            each = f"{times / record.method.rounds:,.1f}" if record.method.rounds else ""
            rows.append((name, f"{times:,}", each, f"{1_000 * times / record.work.agent_steps:,.2f}"))
    fired = table((*text_columns("what happened"), *columns), rows)
    never = ", ".join(name for name, times in counted if not times)
    return (fired, Note(words=Span(f"never happened: {never}", "dim"))) if never else (fired,)
