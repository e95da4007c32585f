"""hotloop validate: is the fast one the same as the slow one, in everything, and where not."""

import json
from collections.abc import Sequence
from dataclasses import asdict
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
from hotloop.core.errors import ExitCode, HotloopError, InputError
from hotloop.core.settings import Target
from hotloop.options.compare import CompareOptions
from hotloop.options.validate import ValidateOptions

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.core.record.comparison import Comparison
    from hotloop.lab.validate.bundle import Bundle
    from hotloop.lab.validate.match import Match

WORTH_SAYING_S = 2.0  # A validation that takes less is over before a reader has read how long it takes


def validate(options: ValidateOptions) -> int:
    """Validate what the options name, keep and show the records; return the gravest exit code."""
    if options.replay is not None:
        return replay_bundle(options.replay, options.trust, as_json=options.json)
    from hotloop.lab.validate.validate import way_of
    from hotloop.report.kinds import validate as sections

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
    from hotloop.report.kinds.validate import replay
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
    from hotloop.report.kinds.validate import adoption
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
    from hotloop.cli.commands.compare import asked_of
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
