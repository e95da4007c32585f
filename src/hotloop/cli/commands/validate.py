"""hotloop validate and gate: does a candidate do what its reference does, and are all budgets met?"""

import json
import json as json_format
import os
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.main import approximate_time, bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import (
    check_trust,
    make_room,
    measure,
    names_file,
    names_several,
    print_records,
    read_folder,
    record_path,
    save_record,
    saver,
    targets_of,
)
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, HotloopError, InputError
from hotloop.core.process import lifeline
from hotloop.core.settings import Target
from hotloop.options.bench import CompareOptions
from hotloop.options.validate import GateOptions, ValidateOptions

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.project import Budget, Project
    from hotloop.core.record import Record
    from hotloop.core.record.comparison import Comparison
    from hotloop.lab.gate.gate import BudgetRow, Profiles, Result
    from hotloop.lab.gate.measure import GateContext
    from hotloop.lab.validate.bundle import Bundle
    from hotloop.lab.validate.match import Match
    from hotloop.report.kinds.checks import GateView
    from hotloop.report.section import Section, Sections

WORTH_SAYING_S = 2.0  # A validation that takes less is over before a reader has read how long it takes


def validate(options: ValidateOptions) -> int:
    """Validate what the options name, keep and show the records; return the gravest exit code."""
    if options.replay is not None:
        return replay_bundle(options.replay, options.trust, as_json=options.json)
    from hotloop.lab.validate.validate import way_of
    from hotloop.report.kinds import checks as sections

    candidate = Target.typed(options.target or "", options.keys)
    way_of(options)  # Refuses a mode that is none before anything is opened
    if options.adoption:
        return show_adoption(candidate, options)
    if options.seeds is not None or options.on is not None or options.resume:
        records = validate_seeds(candidate, options)
        return print_records(records, sections.validations(records), as_json=options.json, as_list=True)
    presets = targets_of(candidate)
    if len(presets) > 1 and names_file(options.output):
        raise InputError(
            f"--output {options.output} is for one record, {candidate.name} has {len(presets)} presets: "
            "name one of them"
        )
    with stdout_kept_clean():
        matches = matches_of(presets, options.against)
    make_room(options.output)
    is_list = names_several(candidate.name)
    if options.statistical:
        from hotloop.lab.validate.distributions import validate as compare

        def experiment(target: Target, progress: "Progress") -> "Record":
            return compare(matches[target.name], options, progress)

        records = measure([Target(name) for name in matches], experiment, saver(options.output))
        view = sections.statistical(records)
    else:
        records = validate_matches(matches, options)
        view = sections.validations(records)
    return print_records(records, view, as_json=options.json, as_list=is_list)


def matches_of(targets: Sequence[Target], against: str | None) -> "dict[str, Match]":
    """Return what each target is compared with, by its name."""
    from hotloop.lab.validate.match import match_of

    return {target.name: match_of(target, against) for target in targets}


def validate_seeds(target: Target, options: ValidateOptions) -> "list[Record]":
    """Validate every preset with every seed as cells; a difference is found again here, with its bundle."""
    from hotloop.cli.commands.sweeps import open_executor
    from hotloop.lab.sweep.cells import FOLDER, LocalExecutor, shelf_of, sweep
    from hotloop.lab.sweep.experiments import refusal, validations_of

    output = options.output
    if names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder for those of many seeds")
    asked = {"amount": options.amount, "ignore": [*(options.ignore or ())]}
    asked |= {name: getattr(options, name) for name in ("against", "mode", "policy")}
    seeds = options.seeds or 1
    cells = [cell for each in targets_of(target) for cell in validations_of(each, seeds, **asked)]
    make_room(output)
    with open_executor(options.on, cells, LocalExecutor(), timed=False) as (executor, machines):
        shelf = shelf_of(FOLDER, "validate", cells, resume=options.resume, machines=machines)
        with bar(target.name) as progress, stdout_kept_clean():
            swept = sweep(cells, executor, shelf, progress)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else refusal(swept.refused)
    for each in swept.refused:
        remark(f"failed: {each.cell.target.words}: {each.refused}")
    if swept.interrupted:
        remark(f"interrupted after {len(swept.records)} of {len(cells)}: --resume goes on")
    return [
        find_again(cell.target, record, options)
        if ExitCode(record.exit_code) is ExitCode.MISMATCH
        else save_record(output, record)
        for cell, record in swept.records
    ]


def find_again(target: Target, record: "Record", options: ValidateOptions) -> "Record":
    """Find what differed elsewhere again here, so that its bundle lies beside its record."""
    [found] = validate_matches(matches_of([target], options.against), options)
    if ExitCode(found.exit_code) is not ExitCode.MISMATCH:
        remark(f"{target.words} differed on {record.machine['cpu']} and does not here")
        return save_record(options.output, record)
    return found


def validate_matches(matches: "dict[str, Match]", options: ValidateOptions) -> "list[Record]":
    """Validate the targets one after another, and keep their records and bundles."""
    from hotloop.lab.validate import bundle as bundles
    from hotloop.lab.validate import validate as lab

    def experiment(target: Target, progress: "Progress") -> "Record":
        match, presets = matches[target.name], len(matches)
        return lab.validate(match, options, progress, keep_bundle, say, presets=presets)[0]

    def say(seconds: float) -> None:
        if seconds >= WORTH_SAYING_S:
            remark(f"validate: about {approximate_time(seconds)}")

    def keep_bundle(record: "Record", found: "bundles.Bundle") -> Path:
        place = record_path(options.output, record).with_suffix(bundles.SUFFIX)
        path = bundles.write_bundle(found, place)
        draw_frames(path, found)
        return path

    return measure([Target(name) for name in matches], experiment, saver(options.output))


def draw_frames(path: Path, bundle: "Bundle") -> None:
    """Draw what leads to a difference beside its bundle, for the page, where it can be drawn."""
    from hotloop.core.record import FRAMES_SUFFIX, write_frames
    from hotloop.lab.sim.frames import frames_of_bundle

    try:
        if frames := frames_of_bundle(bundle):
            write_frames(path.with_name(f"{path.name}{FRAMES_SUFFIX}"), frames)
    except HotloopError as error:
        remark(f"no frames beside {path}: {error}")


def replay_bundle(path: Path, trusted: Path | None, *, as_json: bool) -> int:
    """Play a bundle again; its record is shown and not kept."""
    from hotloop.lab.validate import bundle as bundles
    from hotloop.lab.validate.validate import again
    from hotloop.report.kinds.checks import replay
    from hotloop.report.terminal import draw

    bundle = bundles.read_bundle(path)
    check_trust(path, (bundle.facts.reference, bundle.facts.candidate), trusted)
    with bar(path.name) as progress, stdout_kept_clean():
        record, from_state = again(bundle, progress)
    if as_json:
        emit(record.to_json())
    else:
        show(draw(replay(bundle.facts, record, from_state)))
    return record.exit_code


def show_adoption(target: Target, options: ValidateOptions) -> int:
    """Show where a candidate stands, from records of a folder and from timing it beside its reference."""
    from hotloop.lab.validate.bundle import stand
    from hotloop.report.kinds.checks import adoption
    from hotloop.report.terminal import draw

    output = options.output
    if names_file(output):
        raise InputError(f"--adoption reads a folder of records and {output} is a file: name its folder")
    targets = targets_of(target)
    with stdout_kept_clean():
        match = matches_of(targets[:1], options.against)[targets[0].name]
    records = read_folder(output).records if output.is_dir() and any(output.glob("*.json")) else []
    found = stand(match, [each.name for each in targets], records, time_sides(match, options.budget))
    if options.json:
        emit(f"{json.dumps(asdict(found), indent=1)}\n")
    else:
        show(draw(adoption(found)))
    return ExitCode.MISMATCH if any(each.difference for each in found.configurations) else ExitCode.FINE


def time_sides(match: "Match", budget: float | None) -> "Comparison | None":
    """Time both sides in turns, as any live comparison, phases too where they are ours."""
    from hotloop.cli.commands.bench import asked_of
    from hotloop.lab.compare.compare import compare
    from hotloop.lab.compare.contenders import TargetContender

    a, b = (TargetContender(side) for side in (match.reference, match.candidate))
    phases = not (a.target.is_foreign or b.target.is_foreign)
    asked = asked_of(CompareOptions(a=a.name, b=b.name, budget=budget, profile=phases))
    with bar(f"{a.name} | {b.name}") as progress, stdout_kept_clean():
        record = compare(a, b, asked, progress)
    if record.partial:
        raise KeyboardInterrupt
    for each in record.notices:
        remark(f"{each.code}: {each.text}")
    return record.comparisons[0]


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
