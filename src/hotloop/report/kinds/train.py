"""Trainings, loops of the user's own and simulations: what they came to, and where their time went."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean

from hotloop.core.record import (
    CONTEST,
    ELO,
    ENDED,
    ENV_STEPS_PER_S,
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
from hotloop.core.record.profile import WALL
from hotloop.core.time_tree import TimeTree, tree_text
from hotloop.judge.course import views
from hotloop.report.kinds.times import (
    Cell,
    account_of,
    calls_of,
    draw_account,
    gpus,
    keys,
    of_wall,
    resource_chapters,
    resources,
)
from hotloop.report.section import (
    CPU,
    Chapter,
    Curve,
    Facts,
    Lines,
    Note,
    Page,
    Section,
    Sections,
    Span,
    count,
    facts,
    log_lines,
    mean_line,
    number_columns,
    on_core,
    origin,
    pace_line,
    path_line,
    percent,
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

# What a curve is called, and the values it is of.
CURVES = {"return": "return_per_agent", "eval": "eval_return", "agreement": "agreement"}
COLUMNS: dict[str, Cell] = {
    "ms": lambda row, _: f"{row.total_ns / 1e6:,.2f}",
    "of wall": of_wall,
    "calls": calls_of,
}


def train(record: Record) -> Sections:
    """Return what a run came to, and where its time went."""
    whole = account_of(record)
    stages = [(str(each.label), account_of(each)) for each in views(record)]
    trees = [section for name, times in stages if times for section in training_tree(times, name)]
    if whole and not trees:
        trees += training_tree(whole, "all windows")
    return title(record), training_facts(record), *trees


def training_facts(record: Record) -> Facts:
    work = record.work
    updates = f"{count(work.updates, 'update')}, {count(record.method.rounds, 'window')}"
    stages = []
    for each in views(record):
        metric = each.metrics.get(ENV_STEPS_PER_S)
        pace = (
            f", {speed(metric.median)} env-steps/s {speed_interval(metric.ci95)}".rstrip() if metric else ""
        )
        steps = f"{each.work.env_steps:,} env-steps in {count(each.work.updates, 'update')}"
        stages.append((str(each.label), steps + pace))
    curves = ((name, record.values.get(values)) for name, values in CURVES.items())
    # Whose arithmetic the updates were made with.
    kernels = ", ".join(
        f"{name.removeprefix('updates.')} in {count(times, 'update')}"
        for name, times in record.path.counters.items()
        if name.startswith("updates.")
    )
    return facts(
        ("trained", f"{work.env_steps:,} env-steps, {work.agent_steps:,} agent-steps in {updates}"),
        ("speed", Span(speed_line(record), strong=True)),
        *stages,
        *((name, Curve(values=values)) for name, values in curves if values),
        ("validated", validation_line(record)),
        *origin(record),
        ("path", path_line(record)),
        ("kernels", kernels or "none"),
        ("GPU", gpus(record.resources) if record.resources else ""),
    )


def training_tree(times: TimeTree, name: str = "where the time went") -> tuple[Section, ...]:
    """Draw the tree, and under it how it was timed and what is in no part."""
    return draw_account(name, replace(times, calls=0), COLUMNS)


def speed_line(record: Record) -> str:
    """Return counted steps over wall, of the whole run and of its windows."""
    wall_ns, steps = (sum(record.values.get(name, ())) for name in ("wall_ns", "env_steps"))
    if not wall_ns:
        return "no window was finished"
    windows = record.values[ENV_STEPS_PER_S]
    spread = f"windows from {speed(min(windows))} to {speed(max(windows))}"
    return f"{steps * 1e9 / wall_ns:,.0f} env-steps/s ({steps:,.0f} in {wall_ns / 1e9:.2f} s); {spread}"


def validation_line(record: Record) -> str:
    """Return what the twin answered; empty if there was none."""
    checked = record.validation
    if checked is None:
        return ""
    if checked.difference:
        kept = f"; hotloop validate --replay {checked.bundle} shows it again" if checked.bundle else ""
        return f"DIFFERS from {checked.against}: {checked.difference}{kept}"
    seen = f"{checked.comparisons:,} outputs of agents"
    return f"{seen} equal to the twin's, to the byte, with the policy in the loop"


# Metrics of what a loop may count, and what they are called.
SPEEDS = {
    ENV_STEPS_PER_S: "steps/s",
    "updates_per_s": "updates/s",
    "samples_per_s": "samples/s",
}

THREADS = "threads/"


def run_text(record: Record) -> str:
    """Return the whole run in plain lines: what was counted, the tree of one update, and the notices."""
    lines = [f"{record.target.name}: {made_line(record)}"]
    stages = views(record)
    for each in stages or (record,):
        lines += [f"{each.label}: {made_line(each)}"] if stages else []
        lines += [f"  {text}" for _, text in speeds(each)]
        times = account_of(each)
        lines += [tree_text(times, each.work.updates)] if times else []
    lines += [f"! {notice.text}; {notice.remedy}" for notice in record.notices]
    return "\n".join(lines)


def run_page(record: Record) -> Page:
    """Return all that is known of a run."""
    results = [("Made", made_line(record)), *speeds(record)]
    results.append(("Windows", count(record.method.rounds, "window")))
    cost = record.overhead
    if cost and cost.mark_ns is not None:
        words = f"{percent(cost.ratio - 1)} of the time: {cost.mark_ns:,.0f} ns a boundary"
        results.append(("Instrument", words))
    configuration = facts(
        ("Parameters", keys(record.target.params)),
        ("Variant", keys(record.target.variant)),
        *origin(record),
        ("Clock", record.method.clock),
        ("Run", record.run_id),
    )
    notes = (
        "A window is so many updates; speeds are medians over the windows, the tree is of all of them.",
        *(f"{notice.text}: {notice.remedy}." for notice in record.notices),
    )
    stages = []
    for each in views(record):
        about = Note(words=f"{each.label}: {made_line(each)}"), facts(*speeds(each)), *tree(each)
        stages.append(Chapter(title=f"Time of one update: {each.label}", sections=about))
    chapters = (
        Chapter(title="Results", sections=(facts(*results),), summary=True),
        Chapter(title="Time of one update", sections=tree(record)),
        *stages,
        *other_threads(record),
        *resource_chapters(record),
        Chapter(title="Configuration", sections=(configuration,), summary=True),
        Chapter(title="Notes", sections=(Lines(lines=notes),)),
    )
    when = f"{record.created[:16].replace('T', ' ')} UTC"
    return Page(title=f"Run of {record.target.name}", when=when, chapters=chapters)


def made_line(record: Record) -> str:
    work, samples = record.work, record.path.counters.get("samples", 0)
    wall_ns = next((phase.total_ns for phase in record.phases if phase.path == WALL), 0)
    counted = [count(work.updates, "update"), *([f"{work.env_steps:,} env-steps"] if work.env_steps else [])]
    counted += [f"{samples:,} samples"] if samples else []
    partial = ", broken off" if record.partial else ""
    return f"{', '.join(counted)} in {wall_ns / 1e9:.2f} s{partial}"


def speeds(record: Record) -> Iterator[tuple[str, str]]:
    for name, unit in SPEEDS.items():
        metric = record.metrics.get(name)
        if metric:
            yield unit, f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}".rstrip()


def tree(record: Record) -> Sections:
    """Draw the tree of one update; of the whole run if no update was counted."""
    times = account_of(record)
    if times is None:
        return (Note(words="No time was accounted for."),)
    turns, is_clocked = max(record.work.updates, 1), any(row.on_core is not None for row in times.walk())
    columns: dict[str, Cell] = {
        "ms": lambda row, _: f"{row.total_ns / 1e6 / turns:,.3f}",
        "of wall": of_wall,
        **({CPU: lambda row, _: on_core(row.on_core)} if is_clocked else {}),
        "calls in all": calls_of,
    }
    name = "one update" if record.work.updates else "the whole run"
    return draw_account(name, replace(times, calls=0), columns)


def other_threads(record: Record) -> Iterator[Chapter]:
    """Yield what other threads did meanwhile, which is no part of the wall."""
    rows = []
    for phase in record.phases:
        if phase.path.startswith(THREADS):
            ms, calls = f"{phase.total_ns / 1e6:,.2f}", f"{phase.calls:,}"
            rows.append((phase.path.removeprefix(THREADS), ms, on_core(phase.worked), calls))
    if rows:
        columns = (*text_columns("span"), *number_columns("ms", CPU, "calls"))
        yield Chapter(title="Other threads", sections=(table(columns, rows),))


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


def time_parts(record: Record) -> Section:
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
