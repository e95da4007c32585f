"""hotloop gate: budgets of hotloop.toml against what is measured, for CI."""

import json as json_format
import os
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.main import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import make_room, save_record
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.process import lifeline
from hotloop.core.settings import Target
from hotloop.options.gate import GateOptions

if TYPE_CHECKING:
    from hotloop.core.project import Budget, Project
    from hotloop.lab.gate.gate import BudgetRow, Profiles, Result
    from hotloop.lab.gate.measure import GateContext
    from hotloop.report.kinds.checks import GateView
    from hotloop.report.section import Section, Sections

SUMMARY = "GITHUB_STEP_SUMMARY"  # Of the environment: the file that GitHub shows under a run

HEADLINES = {
    ExitCode.FINE: "green",
    ExitCode.REGRESSION: "red",
    ExitCode.MISMATCH: "red: not equal",
    ExitCode.USAGE: "error",
    ExitCode.FAULT: "error",
}


def gate(options: GateOptions) -> int:
    """Hold the budgets against what is measured; return the gravest exit code."""
    lifeline.endless = True
    if options.self_test:
        return run_self_test(as_json=options.json)
    if options.init:
        return write_first_budget(options.target or "", options.words)
    from hotloop.core.project import find
    from hotloop.lab.gate.gate import FOLDER, chosen
    from hotloop.report.kinds.checks import listing
    from hotloop.report.terminal import draw

    project = find()
    if not project.budgets:
        raise InputError(f"{project.path} has no budget: hotloop gate --init TARGET writes the first")
    budgets = chosen(project, options.only or ())
    if options.only_list:
        show(draw(listing(budgets)))
        return ExitCode.FINE
    with chdir(project.folder):
        folder = options.output or FOLDER
        make_room(folder)
        return hold_budgets(project, budgets, folder, options)


def hold_budgets(project: "Project", budgets: "Sequence[Budget]", folder: Path, options: GateOptions) -> int:
    """Measure, explain, bisect; keep the records and show what came of each budget."""
    from hotloop.lab.gate.gate import Profiles, refuse_changes, run, weaker, with_reasons
    from hotloop.lab.gate.measure import Checkouts, GateContext

    profiles = Profiles(folder=folder / "profiles")
    with Checkouts(Path.cwd(), build=options.build, say=remark) as places:
        if options.bisect:
            refuse_changes(places)
        how = GateContext(places=places, today=utc_now().date(), options=options)
        with bar("gate") as progress, stdout_kept_clean():
            result = run(budgets, how, progress, say=remark)
            if options.bisect or not options.no_explain:
                result = with_reasons(result, how, profiles)
        result = replace(result, rows=tuple(save_row(row, folder) for row in result.rows))
        found = bisect_misses(result, how, profiles) if options.bisect else ()
        lost = weaker(project, places)
    show_result(result, found, lost, folder, as_json=options.json)
    return result.code


def save_row(row: "BudgetRow", folder: Path) -> "BudgetRow":
    """Keep a row's record, with the flames of what changed if it says that; return the row as kept."""
    from hotloop.report.files import difference_flames

    if row.record is None:
        return row
    record, flames = difference_flames(row.record)
    path = folder / f"{record.run_id}-{row.budget.name}.json"
    record = save_record(path, record, *flames)
    return replace(row, record=record, code=ExitCode(record.exit_code))


def bisect_misses(result: "Result", how: "GateContext", profiles: "Profiles") -> "Sections":
    """Find for each missed budget the commit that did it; what one found is tried first by the next."""
    from hotloop.lab.gate.gate import bisect
    from hotloop.report.kinds.checks import bisected as sections
    from hotloop.report.section import Note

    told: list[Section] = []
    hint: str | None = None
    for row in (row for row in result.rows if row.is_missed):
        try:
            with bar(f"bisecting {row.budget.name}") as progress, stdout_kept_clean():
                found = bisect(row.budget, how, profiles, progress, say=remark, hint=hint)
        except InputError as error:  # such as an absolute limit: the table is still shown
            told.append(Note(words=str(error)))
            continue
        hint = found.suspects[-1][0]
        steps = [(step.commit, step.told, step.why) for step in found.steps]
        told += sections(row.budget.name, found.suspects, steps)
    return tuple(told)


def show_result(
    result: "Result", found: "Sections", lost: Sequence[str], folder: Path, *, as_json: bool
) -> None:
    """Print the records or draw the table; the same as Markdown where CI wants it.

    `found` are the commits that did it, `lost` the budgets that were weakened.
    """
    from hotloop.report import markdown
    from hotloop.report.kinds.checks import gate as sections
    from hotloop.report.section import notices
    from hotloop.report.terminal import draw

    views, headline = views_of(result, folder), HEADLINES.get(result.code, "cannot tell")
    drawn = (*sections(views, headline=headline, weaker=lost), *found)
    if as_json:
        emit(f"[{','.join(record.to_json() for record in result.records)}]\n")
        for line in (*(row.error for row in result.rows if row.error), *lost):
            remark(line)
        remark(draw(found))
    else:
        show(draw(drawn))
    remark(draw(notices(result.records)))
    if summary := os.environ.get(SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"## hotloop gate\n\n{markdown.draw(drawn)}\n")


def views_of(result: "Result", folder: Path) -> "list[GateView]":
    """Return each row with how far its target was in earlier runs."""
    from hotloop.lab.gate.gate import trend
    from hotloop.report.kinds.checks import GateView

    views = []
    for row in result.rows:
        held = row.record.held if row.record else None
        before = trend(folder, row.budget.name) if held and not held.enforced else []
        known = (each.held.distance for each in before if each.held)
        distances = tuple(each for each in known if each is not None)
        name, record, error = row.budget.name, row.record, row.error
        views.append(GateView(name=name, held=held, record=record, error=error, distances=distances))
    return views


def write_first_budget(target: str, words: list[str] | None) -> int:
    """Measure a target and write a first hotloop.toml, and what runs it in CI."""
    from hotloop.lab.gate.init import begin

    with bar(f"measuring {target}") as progress, stdout_kept_clean():
        written = begin(Path.cwd(), Target.typed(target, words), progress, say=remark)
    for path, what in written:
        show(f"wrote {path}: {what}")
    show("next: read hotloop.toml, commit these files, and run hotloop gate")
    return ExitCode.FINE


def run_self_test(*, as_json: bool) -> int:
    """Plant what the gate must see, and say whether it did; return 70 if not."""
    from hotloop.lab.gate.init import self_test

    with bar("self-test") as progress, stdout_kept_clean():
        cases = self_test(progress)
    if as_json:
        emit(json_format.dumps([asdict(case) for case in cases], indent=1) + "\n")
    for case in cases if not as_json else ():
        show(
            f"{'ok' if case.passed else 'FAILED':<7} {case.name}: expected {case.expected}, was {case.found}"
        )
    failed = [case.name for case in cases if not case.passed]
    if failed:
        remark(f"the gate is broken: {', '.join(failed)}; trust no green of it")
    return ExitCode.FAULT if failed else ExitCode.FINE
