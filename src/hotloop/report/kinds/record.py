"""Any record as the command that made it shows it, what matters most first; and many of them in one table."""

from collections.abc import Callable, Mapping, Sequence

from hotloop.core.errors import Code, InputError
from hotloop.core.record import ENV_STEPS_PER_S, NOISE, Record
from hotloop.core.record.comparison import Ratio
from hotloop.core.record.metadata import own_commit
from hotloop.judge.baselines import Series, histories
from hotloop.judge.compare import compare_stored, unlike_plays
from hotloop.report.charts import Panel
from hotloop.report.kinds import bench, checks, compare, profile, sim, sweep, train, validate
from hotloop.report.kinds.compare import outcome_words, ratio_words
from hotloop.report.kinds.times import step_shares
from hotloop.report.section import (
    Lines,
    Note,
    Sections,
    Span,
    Words,
    commit_words,
    count,
    facts,
    measured,
    notices,
    number_columns,
    percent,
    speed,
    speed_interval,
    table,
    text_columns,
    title,
)
from hotloop.stats.summary import FEWEST, Change, ratio

Told = Callable[[Record], Sections]


def run(record: Record) -> Sections:
    """Return a loop of the user's own as its page shows it, without headings."""
    chapters = train.run_page(record).chapters
    return title(record), *(section for chapter in chapters for section in chapter.sections)


# Of loops, by the kind of record.
LOOPS: Mapping[str, Told] = {
    "bench": lambda record: bench.bench([record]),
    "profile": lambda record: (*profile.profile(record), *profile.slow(record)),
    "compare": compare.compare,
    "gate": checks.budget,
    "validate": lambda record: validate.validations([record]),
    "replay": profile.again,
    "scale": sweep.scale,
    "sim": sim.sim,
    "soak": checks.soak,
    "statistical": lambda record: validate.statistical([record]),
    "train": train.train,
    "tune": sweep.tune,
    "run": run,
}

# Of whole programs.
PROGRAMS: Mapping[str, Told] = {
    "bench": bench.program_bench,
    "profile": profile.program_profile,
    "compare": compare.program_compare,
    "gate": checks.budget,
    "soak": checks.soak,
    "tune": sweep.tune,
}

# What a kind is about; a run that broke off early, or another tool's file, may be without it.
PARTS: Mapping[str, Callable[[Record], object]] = {
    "compare": lambda record: record.comparisons,
    "gate": lambda record: record.held,
    "validate": lambda record: record.validation,
    "replay": lambda record: record.again,
    "scale": lambda record: record.sweep,
    "sim": lambda record: "wall_ns" in record.values,
    "soak": lambda record: record.soak,
    "statistical": lambda record: record.statistical,
    "tune": lambda record: record.tuning,
}

# Curves that lie beside a record as pictures, by its kind.
PANELS: Mapping[str, Callable[[Record], tuple[Panel, ...]]] = {
    "scale": sweep.panels,
    "soak": checks.soak_panels,
    "tune": sweep.tuning_panels,
}


def record_sections(record: Record) -> Sections:
    """Return what a person is shown of a record, by its kind; else what all have in common."""
    # It is about whole programs; a comparison's own work may be its sides'.
    is_program = record.work.runs or any(each.b.work.runs for each in record.comparisons)
    draw = (PROGRAMS if is_program else LOOPS).get(record.kind)
    about = PARTS.get(record.kind)
    if draw is not None and (about is None or about(record)):
        return draw(record)
    return title(record), facts(*measured([record])), *notices([record])


def record_panels(record: Record) -> tuple[Panel, ...]:
    """Return what is drawn beside a record; nothing of most kinds."""
    return PANELS[record.kind](record) if record.kind in PANELS and PARTS[record.kind](record) else ()


OBSERVATIONS = "observations"


def overview(records: Sequence[Record]) -> Sections:
    """Return one row a record, in the order they were made, then what could not be told and why."""
    parts = [step_shares(record).get(OBSERVATIONS) if record.phases else None for record in records]
    commits = [commit_words(commit, dirty=dirty) for commit, dirty in (own_commit(r.code) for r in records)]
    shown = dict[str, Sequence[str]]()
    if any(part is not None for part in parts):
        shown[OBSERVATIONS] = ["" if part is None else percent(part) for part in parts]
    if len({*commits}) > 1:
        shown["commit"] = commits
    columns = (
        *text_columns("record"),
        *number_columns("speed"),
        *number_columns("95% interval", wide=True),
        *number_columns("against the first"),
        *text_columns("outcome", whole=True),
        *number_columns(*shown, wide=True),
    )
    rows = list[tuple[Words, ...]]()
    reasons = dict[str, str]()
    firsts = dict[tuple[str, str], Record]()
    for record, *more in zip(records, *shown.values(), strict=True):
        first = firsts.setdefault((record.kind, record.target.name), record)
        times, outcome, why = standing(first, record)
        reasons.setdefault(why, f"{label_of(record)}, {record.target.words}")
        rows.append((f"{label_of(record)} {record.target.words}", *pace(record), times, outcome, *more))
    told = [Span(f"{target}: {why}", "dim") for why, target in reasons.items() if why]
    told += [
        Span(f"{each.kind} {label_of(each)}, {each.target.words}: {unlike_words(first, steps)}", "warn")
        for first, each, steps in unlike_plays(records)
    ]
    same = [Span(f"all at commit {commits[0]}", "dim")] if commits and "commit" not in shown else []
    return table(columns, rows), Lines(lines=(*told, *same))


def unlike_words(first: Record, steps: int) -> str:
    """Say that a short play showed something else than that of an earlier record."""
    return (
        f"within {steps} steps of its reset it showed something else than in {first.kind} {label_of(first)}"
    )


def label_of(record: Record) -> str:
    """Return its label; without one when it was made."""
    return record.label or record.created[5:16].replace("T", " ")


def pace(record: Record) -> tuple[str, str]:
    """Return the speed that it found, of the later side where two were compared, and its interval."""
    if record.comparisons and record.kind == "compare":
        metric = record.metrics.get(f"b.{record.method.ns_per_unit}")
        return (
            (f"{speed(1e9 / metric.median)} {record.method.unit}s/s", "of B") if metric else ("not timed", "")
        )
    metric = record.metrics.get(record.method.headline)
    if metric is None:
        return "no rounds" if record.partial or record.method.rounds else "not timed", ""
    unit = record.method.headline.removesuffix("_per_s").replace("_", "-")
    per = f"{unit}/s" if unit != record.method.headline else unit
    return f"{speed(metric.median)} {per}", speed_interval(metric.ci95)


def standing(first: Record, record: Record) -> tuple[str, Span, str]:
    """Return a comparison's ratio, or that to the first of its target, the outcome, and why none is clear."""
    checked = record.validation
    if checked and checked.mismatches:
        told = [each.difference for each in record.comparisons if each.difference]
        differ = f"{checked.mismatches} of {checked.comparisons} compared outputs differ"
        return "", Span("not equal", "bad", strong=True), told[0] if told else differ
    if record.comparisons and record.kind == "compare":
        found = record.comparisons[-1]
    elif record is first:
        return "", Span("first"), ""
    else:
        try:
            found = compare_stored(first, record)
        except InputError as error:
            return "", Span("not compared", "warn"), str(error)
    why = found.why if found.outcome == "cannot tell" else ""
    return ratio_words(found.ratio), outcome_words(found.outcome), why


SHORT = 8  # Digits of a commit
SUBJECT = 40  # Characters of a subject


def trend(records: Sequence[Record]) -> Sections:
    """Return the newest against the first, a row a commit, then where the level changed."""
    first, newest = records[0], records[-1]
    series = next(iter(histories(records)), None)
    changed = {series.points[each.index].commit: each for each in series.changes} if series else {}
    columns = (
        *text_columns("commit", "date", whole=True),
        *text_columns("subject"),
        *number_columns("env-steps/s", "against the first"),
        *text_columns("", whole=True),
    )
    rows = [commit_row(first, each, changed.get(own_commit(each.code)[0])) for each in records]
    # How many times as fast the newest is, and whether it still is the same program.
    speeds = first.values[ENV_STEPS_PER_S]
    times = ratio_words(ratio_of(speeds, newest.values[ENV_STEPS_PER_S]))
    begin, end = ((each.code.get("ancestry") or {"position": 0})["position"] for each in (first, newest))
    words = (
        f"{newest.target.words} at {short(newest)}: {times} times as fast as at {short(first)}, "
        f"{count(end - begin, 'commit')} before"
    )
    others = sum(map(is_other, records))
    said = f"; outputs changed at {count(others, 'commit')} between"
    headline: Words = (words, Span(said, "warn", strong=True)) if others else words
    verdict = "interrupted: no change of level can be told" if series is None else summary(series)
    # How much the first commit differs from a second instance of itself.
    noise = ratio_of(speeds, first.values.get(NOISE, ()))
    noise_words = f"{short(first)} against itself {ratio_words(noise)}" if noise else ""
    return Note(words=headline), table(columns, rows), facts(("level", verdict), ("noise", noise_words))


def commit_row(first: Record, record: Record, change: Change | None) -> tuple[Words, ...]:
    """Return one commit: what it is, its speed, and what is new about it."""
    ancestry, metric = record.code.get("ancestry"), record.metrics[ENV_STEPS_PER_S]
    date, subject = (ancestry["committed"][:10], ancestry["subject"]) if ancestry else ("", "")
    subject = subject if len(subject) <= SUBJECT else f"{subject[: SUBJECT - 1]}…"
    marks = [
        *([Span(f"level {change.ratio - 1:+.1%}", "good" if change.ratio > 1 else "bad")] if change else []),
        *([Span("other outputs", "warn")] if is_other(record) else []),
    ]
    told = tuple(part for mark in marks for part in (", ", mark))[1:]
    speeds = (each.values[ENV_STEPS_PER_S] for each in (first, record))
    ratio_cell = "" if record is first else ratio_words(ratio_of(*speeds))
    return short(record), date, subject, speed(metric.median), ratio_cell, told


def ratio_of(first: Sequence[float], other: Sequence[float]) -> Ratio | None:
    """Return how many times as fast another is, from speeds round by round; None if they are too few."""
    if not FEWEST <= len(first) == len(other):
        return None
    return ratio([1e9 / each for each in first], [1e9 / each for each in other])


def short(record: Record) -> str:
    return own_commit(record.code)[0][:SHORT]


def is_other(record: Record) -> bool:
    """Return whether a commit showed something else than the one before."""
    return any(said.code == Code.OUTPUTS_CHANGED for said in record.notices)


def change_words(series: Series, change: Change) -> str:
    """Return a change of level: since which commit, by how much."""
    commit = series.points[change.index].commit[:SHORT]
    return (
        f"since {commit} {change.ratio - 1:+.1%}: {speed(change.before)} before, {speed(change.after)} after "
        f"(p {change.p:.3f})"
    )


def summary(series: Series) -> str:
    """Return what is read first: the last change of level, or why none can be told."""
    if series.changes:
        return change_words(series, series.changes[-1])
    if series.missing:
        return f"too little history for a change of level: {count(series.missing, 'commit')} more"
    return "no change of level"
