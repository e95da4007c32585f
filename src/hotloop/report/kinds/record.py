"""Any record, as the command that made it shows it; what matters most is first, as a page is read."""

from collections.abc import Callable, Mapping

from hotloop.core.record import Record
from hotloop.report.charts import Panel
from hotloop.report.facts import measured, notices, title
from hotloop.report.kinds import (
    bench,
    compare,
    gate,
    profile,
    programs,
    run,
    sim,
    slow,
    soak,
    sweep,
    train,
    tune,
    validate,
)
from hotloop.report.section import Chapter, Sections, facts

Told = Callable[[Record], Sections]

# Of loops, by the kind of record.
LOOPS: Mapping[str, Told] = {
    "bench": lambda record: bench.bench([record]),
    "profile": lambda record: (*profile.profile(record), *slow.slow(record)),
    "compare": compare.compare,
    "gate": gate.budget,
    "validate": lambda record: validate.validations([record]),
    "replay": slow.again,
    "scale": sweep.scale,
    "sim": sim.sim,
    "soak": soak.soak,
    "statistical": lambda record: validate.statistical([record]),
    "train": train.train,
    "tune": tune.tune,
    "run": lambda record: (title(record), *all_of(run.run_page(record).chapters)),
}

# Of whole programs.
PROGRAMS: Mapping[str, Told] = {
    "bench": programs.bench,
    "profile": programs.profile,
    "compare": programs.compare,
    "gate": gate.budget,
    "soak": soak.soak,
    "tune": tune.tune,
}


# What a kind is about; a run that broke off early, or somebody's own file, may be without it.
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


def record_sections(record: Record) -> Sections:
    """Return what a person is shown of a record, by its kind; else what all have in common."""
    told = (PROGRAMS if is_program(record) else LOOPS).get(record.kind, in_common)
    about = PARTS.get(record.kind)
    return told(record) if about is None or about(record) else in_common(record)


# Curves that lie beside a record as pictures, by its kind.
PANELS: Mapping[str, Callable[[Record], tuple[Panel, ...]]] = {
    "scale": sweep.panels,
    "soak": soak.panels,
    "tune": tune.panels,
}


def record_panels(record: Record) -> tuple[Panel, ...]:
    """Return what is drawn beside a record; nothing of most kinds."""
    drawn, about = PANELS.get(record.kind), PARTS.get(record.kind)
    return drawn(record) if drawn is not None and about is not None and about(record) else ()


def is_program(record: Record) -> bool:
    """Return whether it is about whole programs; a comparison's own work may be its sides'."""
    return bool(record.work.runs or any(each.b.work.runs for each in record.comparisons))


def all_of(chapters: tuple[Chapter, ...]) -> Sections:
    return tuple(section for chapter in chapters for section in chapter.sections)


def in_common(record: Record) -> Sections:
    return title(record), facts(*measured([record])), *notices([record])
