"""A diagnosis: what bounds the speed, what to change first, and what it would buy."""

from collections.abc import Callable, Iterator, Sequence

from hotloop.core.record.codec import Interval
from hotloop.judge.diagnose import Bound, Candidate, Diagnosis, Since
from hotloop.judge.expect import Causal, Expectations
from hotloop.report.section import (
    Chapter,
    Heading,
    Lines,
    Note,
    Page,
    Section,
    Sections,
    Span,
    Tone,
    Words,
    count,
    number_columns,
    percent,
    speed,
    table,
    text_columns,
    took,
)

UNITS = {"agent_steps_per_s": "agent-steps/s", "env_steps_per_s": "env-steps/s", "runs_per_s": "runs/s"}

MORE_TURNS = "too few turns for an interval: let the loop go on for more updates, or give it more --runs"

MOST_TOLD = 100  # Times as fast, above which a share measured to a percent tells no more
NO_GAIN = "not known"  # What a change would buy that a record cannot tell
NONE_EXPECTED: Sections = (Note(words="No other record of this target on a quiet machine."),)


def diagnosis(found: Diagnosis) -> Sections:
    """Return all of it, in the order in which a user reads it."""
    return (
        *bottleneck(found),
        *changes(found),
        *expected(found.expectations),
        *missing(found),
        *remarks(found),
    )


def page(found: Diagnosis, when: str, since: Since | None = None) -> Page:
    """Return the same as a file, with the checklist first."""
    chapters = (
        Chapter(title="What to change first", sections=checklist(found), summary=True),
        Chapter(title="Where the time goes", sections=(*bottleneck(found), *remarks(found))),
        *((Chapter(title="Since the change", sections=changed(since)),) if since else ()),
        Chapter(title="What could be expected", sections=expected(found.expectations) or NONE_EXPECTED),
        Chapter(title="What could not be looked at", sections=missing(found) or (Note(words="Nothing."),)),
    )
    return Page(title=f"Diagnosis of {found.target}", when=when, chapters=chapters)


def bottleneck(found: Diagnosis) -> Sections:
    """Return the faults and the lever, then the rows and functions with what each would buy."""
    said: list[Section] = [
        Heading(words=(Span(found.target, strong=True), f"  {found.kind} of {found.created[:16]}"))
    ]
    if found.partial:
        said.append(Note(words=Span("the record is of a run that was broken off", "warn")))
    faults = (f"{each.symptom}: {each.said}" for each in found.candidates if each.is_fault)
    said += [Note(words=Span(each, "warn", strong=True)) for each in faults]
    levers = [levered(each.lever) for each in found.stages if each.lever]
    said += [Note(words=Span(each, strong=True)) for each in levers or [headline(found)]]
    if found.hottest_line:
        said.append(Note(words=found.hottest_line))
    if found.is_healthy:
        said.append(Note(words=Span(no_problem(found), "good")))
    for each in found.stages:  # shares are of the phase, gains of the whole run
        pace = f", {speed(each.speed)} {UNITS.get(each.unit, 'updates/s')}" if each.speed else ""
        about = f"  {percent(each.of_run)} of the run, {count(each.updates, 'update')}{pace}"
        said.append(Heading(words=(Span(each.name, strong=True), about), apart=True))
        said += bounding("row", each.bounds)
    said += bounding("row", found.bounds if not found.stages else ())
    said += bounding("inside it, by samples", found.inside)
    said += bounding("where it goes in libraries", found.libraries)
    return tuple(said)


def headline(found: Diagnosis) -> str:
    """Return the lever in a sentence, with its share and what it buys."""
    if found.lever is None:
        return "no row takes 5% of the time: nothing to gain in one place"
    return levered(found.lever)


def levered(first: Bound) -> str:
    around = interval(first.interval, percent)
    share = f"{first.name} takes {percent(first.share)} of the time{f' {around}' if around else ''}"
    buys = f"2x faster there makes everything {times(first.halved)} faster"
    there = f"{first.where} " if first.where else ""
    return f"{there}{share}: {buys}, at most {times(first.gone)} without it"


def bounding(first: str, bounds: Sequence[Bound]) -> Iterator[Section]:
    """Yield a table of what takes how much of the time, and what to make it faster would buy."""
    if not bounds:
        return
    columns = (
        *text_columns(first),
        *number_columns("of the time"),
        *number_columns("95% interval", wide=True),
        *number_columns("2x there buys", "at most, without it"),
    )
    rows = []
    for each in bounds:
        ends = interval(each.interval, percent)
        rows.append((each.name, percent(each.share), ends, times(each.halved), times(each.gone)))
    yield table(columns, rows)


def changes(found: Diagnosis) -> Sections:
    """Return the candidates in the order of their gain; nothing if there are none."""
    if found.is_healthy:
        return ()
    lines = list[Words]()
    for number, each in enumerate(found.candidates, 1):
        lines.append((f"{number}. ", Span(each.symptom, "warn", strong=True), f": {gain_words(each)}"))
        lines += [f"   {each.said}", f"   {each.remedy}", ("   check  ", Span(each.check, code=True))]
    return (Heading(words="what to change, the largest gain first", apart=True), Lines(lines=tuple(lines)))


def no_problem(found: Diagnosis) -> str:
    """Return that no rule saw a problem, with how many could look."""
    skipped = f"; {len(found.gaps)} skipped for lack of data" if found.gaps else ""
    return f"No known problem found in {count(found.checks, 'check')}{skipped}."


def remarks(found: Diagnosis) -> Sections:
    """Return what Hotloop itself took."""
    return tuple(Note(words=Span(f"note: {each}", "dim")) for each in found.notes)


def gain_words(each: Candidate) -> str:
    """Return what it would buy end to end."""
    if each.gain is None:
        return "what it would buy is " + NO_GAIN
    most = "at most " if each.at_most or each.vanishes else ""
    return f"buys {most}{with_interval(each.gain, each.interval)}"


def checklist(found: Diagnosis) -> Sections:
    if found.is_healthy:
        return (Note(words=f"{headline(found)}. {no_problem(found)}"),)
    lines: list[Words] = [
        (
            f"[ ] {each.symptom}: {gain_words(each)}. {each.said}. {each.remedy}. Check: ",
            Span(each.check, code=True),
        )
        for each in found.candidates
    ]
    return (Lines(lines=tuple(lines)),)


def missing(found: Diagnosis) -> Sections:
    """Rules without evidence, and what to run to have it."""
    if not found.gaps:
        return ()
    rows = [(each.symptom, each.needs, Span(each.get, code=True)) for each in found.gaps]
    return (
        Heading(words="skipped: the record does not say", apart=True),
        table(text_columns("for", "it needs", "run"), rows),
    )


def expected(found: Expectations | None) -> Sections:
    """Return what this machine has reached before, by configuration, and what its memory allows."""
    if found is None:
        return ()
    said: list[Section] = []
    if found.refused:
        said.append(Note(words=Span(f"no expectations: {found.refused}", "dim")))
    elif found.table:
        columns = (
            *text_columns("reached on this machine", "on"),
            *number_columns("records", "typical", "best", "this record"),
        )
        rows = []
        for each in found.table:
            this = speed(each.this) if each.this is not None else ""
            best = f"{speed(each.best)} {UNITS.get(each.unit, each.unit)}"
            about = each.configuration, each.device, str(each.records)
            rows.append((*about, speed(each.typical), best, this))
        said += [Heading(words="what could be expected", apart=True), table(columns, rows)]
    return *said, *(Note(words=each) for each in short_of(found))


def short_of(found: Expectations) -> Iterator[Words]:
    """Yield what the owner and other records let one expect beside what was reached, and memory's share."""
    none = "no setting that a record knows differs"
    for each in found.given:
        ends = f"{speed(each.low)} to {speed(each.high)} env-steps/s"
        told = f"{each.phase}: {ends} expected, {speed(each.reached)} reached"
        short = Span("likely a configuration problem: ", "bad")
        yield (short, f"{told} ({'; '.join(each.differing) or none})") if each.is_short else told
    if found.is_short and found.expected and found.reached:
        share = found.reached / found.expected
        there = f" in the phase {found.phase}" if found.phase else ""
        problem = f"likely a configuration problem{there}: {share:.0%} of what {found.best_run} reached"
        yield Span(problem, "bad"), f" ({'; '.join(found.differing) or none})"
    memory = found.memory
    if memory is not None:
        yield (
            f"{memory.phase} writes {memory.bytes_per_env_step:,.0f} bytes an env-step: to copy them takes "
            f"{took(memory.least_ns)} at the {memory.bytes_per_s / 1e9:.1f} GB/s of this machine; it takes "
            f"{took(memory.phase_ns)}, {memory.phase_ns / memory.least_ns:.1f} times that"
        )


def changed(found: Since) -> Sections:
    """Predicted against seen, the rows that moved, and the bottleneck before and after."""
    seen = with_interval(found.seen, found.interval)
    how = "by the two records, one after the other"
    if found.in_turns:
        how = "the settings of both measured in turns now"
    said: list[Section] = [
        Heading(words=f"since {found.before}", apart=True),
        Note(words=("seen  ", Span(seen, strong=True), f"  {how}")),
    ]
    if found.unlike:
        said.append(Note(words=Span(f"unlike: {'; '.join(found.unlike)}", "warn")))
    if found.settings:
        said.append(Note(words=f"settings  {', '.join(found.settings)}"))
    nothing = "nothing was predicted of what changed: hotloop diagnose before the change does"
    outcomes: list[Words] = [] if found.outcomes else [Span(nothing, "dim")]
    for each in found.outcomes:
        tone: Tone = "good" if each.said == "as predicted" else "warn"
        predicted = f"{'at most ' if each.at_most else ''}{with_interval(each.predicted, each.interval)}"
        outcomes.append((f"predicted  {predicted} ({each.symptom}): ", Span(each.said, tone)))
    said.append(Lines(lines=tuple(outcomes)))
    if found.rows:
        columns = (*text_columns("row"), *number_columns("before", "after", "that alone is worth"))
        rows = [(row.name, took(row.before_ns), took(row.after_ns), times(row.worth)) for row in found.rows]
        said.append(table(columns, rows))
    bottleneck = "not known"
    if found.bottleneck is not None:
        before, after = found.bottleneck
        bottleneck = f"still {after.name}: {after.said}, {percent(before.share)} before"
        if found.moved:
            bottleneck = f"moved from {before.name} ({percent(before.share)}) to {after.name}: {after.said}"
    return *said, Note(words=f"bottleneck  {bottleneck}")


def causal(target: str, found: Sequence[Causal]) -> Sections:
    """Predicted by the share and seen by delays, side by side, the part that is worth most first."""
    columns = (
        *text_columns("part", whole=True),
        *number_columns("of the time"),
        *number_columns("turns", "delay costs", wide=True),
        *number_columns("2x predicted", "2x seen"),
        *text_columns("which is", whole=True),
    )
    rows = [
        (
            each.part,
            percent(each.share),
            str(each.trials),
            f"{each.slope:.2f} {interval(each.slope_interval, '{:.2f}'.format)}".rstrip(),
            with_interval(each.predicted, each.predicted_interval),
            with_interval(each.seen, each.seen_interval),
            each.said,
        )
        for each in found
    ]
    first = found[0]
    return (
        Heading(words=(Span(target, strong=True), "  delays in one part at a time")),
        Note(words=("bottleneck  ", Span(f"{first.part}: 2x there buys {times(first.seen)}", strong=True))),
        table(columns, rows),
        *((Note(words=MORE_TURNS),) if any(each.slope_interval is None for each in found) else ()),
        # What would be enough to tell of parts that could not be.
        *(
            Note(
                words=f"{each.part}: about {each.enough:,} turns would do, of {each.trials:,} that it had; "
                f"a program is given --turns {each.enough}, and more --runs"
            )
            for each in found
            if each.enough is not None
        ),
    )


def causal_page(target: str, found: Sequence[Causal], when: str) -> Page:
    chapter = Chapter(
        title="What a speed-up of each part is worth", sections=causal(target, found), summary=True
    )
    return Page(title=f"Delays in {target}", when=when, chapters=(chapter,))


def times(ratio: float) -> str:
    """Return how many times as fast in three digits; beyond a hundred, the record cannot tell."""
    if ratio > MOST_TOLD:
        return f"over {MOST_TOLD}x"
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


def with_interval(ratio: float, ends: Interval | None) -> str:
    return f"{times(ratio)} {interval(ends, times)}".rstrip()


def interval(ends: Interval | None, drawn: Callable[[float], str]) -> str:
    """Return both ends as a reader has the number before them; nothing if there is none."""
    return f"[{drawn(ends[0])}, {drawn(ends[1])}]" if ends else ""
